"""What a task that hits a uprobe takes, as `uprobes.yaml` uses it: kernel/events/uprobes.c of 6.11 and of 6.12.

Until 6.11 `find_active_uprobe` looks up the address under `mmap_lock` and the uprobe under `uprobes_treelock`, both
shared, and takes a reference; `handler_chain` has `register_rwsem` shared; `put_uprobe` gives the reference back. A
return probe takes a reference more, and when the function returns, `handle_uretprobe_chain` takes `register_rwsem`
shared and drops it. Since 6.12 tree and handlers are under SRCU, whose counts are those of a CPU, and only return
probes count. Times under the locks are not told apart: they lie before the locks. They vary by 5 %, as in `atomics.py`:
equal ones would keep tasks in step, so that none ever queues.
"""

from collections.abc import Generator
from typing import NamedTuple

from simfs._engine import Lock, Machine, Step, Task, Word


class Shared(NamedTuple):
    """What all tasks share; they find it as `task.shared`."""

    mmap_lock: Lock
    treelock: Lock
    register_rwsem: Lock
    references: Word
    """`struct uprobe` has it in the cache line of `register_rwsem`; here it has a line of its own."""


def setup(machine: Machine) -> Shared:
    """Make the process's lock, the tree's, and those of the one uprobe."""
    return Shared(
        machine.new_lock("mmap_lock"),
        machine.new_lock("uprobes_treelock"),
        machine.new_lock("register_rwsem"),
        machine.new_word(1),
    )


def read_locked(task: Task, lock: Lock) -> Step:
    """Take a lock shared and give it back."""
    return task.steps(task.lock(lock, "read"), task.unlock(lock, "read"))


def entry(task: Task, shared: Shared, *, locked: bool, returns: bool) -> list[Step]:
    """The breakpoint at the probed instruction."""
    get, put = task.fetch_add(shared.references, 1), task.fetch_add(shared.references, -1)
    work = task.run(task.gamma(task.params["entry"], 0.05), "system")
    if not locked:
        return [work, read_locked(task, shared.mmap_lock), *([get] if returns else [])]
    lookup = [
        task.lock(shared.mmap_lock, "read"),
        task.lock(shared.treelock, "read"),
        get,
        task.unlock(shared.treelock, "read"),
        task.unlock(shared.mmap_lock, "read"),
    ]
    took, gave = task.lock(shared.register_rwsem, "read"), task.unlock(shared.register_rwsem, "read")
    return [work, *lookup, took, *([get] if returns else []), gave, put]


def exit_of_function(task: Task, shared: Shared, *, locked: bool) -> list[Step]:
    """The system call at the end of the probed function."""
    put = task.fetch_add(shared.references, -1)
    work = task.run(task.gamma(task.params["return"], 0.05), "system")
    return [work, *([read_locked(task, shared.register_rwsem)] if locked else []), put]


def worker(task: Task) -> Generator[Step, int, None]:
    """Hit the probe again and again."""
    shared, params = task.shared, task.params
    locked, returns = bool(params["locked"]), bool(params["returns"])
    steps = entry(task, shared, locked=locked, returns=returns)
    if returns:
        steps += exit_of_function(task, shared, locked=locked)
    probe = task.steps(task.begin(), *steps, task.end("probe"))
    while True:
        yield probe
