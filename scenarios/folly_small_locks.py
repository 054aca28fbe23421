"""Threads that share a lock in groups and work between two holds, as folly's `SmallLocksBenchmark.cpp` lets them.

A turn adds one to five numbers in lines of their own under the lock (`Ints`), or by atomic additions without one
(`AtomicsAdd`), or changes one number by compare-and-exchange (`AtomicCas`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

from simfs._engine import Line, Lock, Machine, Step, Task, Word

NUMBERS = 5


class Group(NamedTuple):
    """What the threads of a group share."""

    futex: Lock
    spinlock: Word
    numbers: list[Word]
    guarded: Line


def setup(machine: Machine) -> Sequence[Group]:
    """Make as many groups as there are CPUs for, at least one, and deal the threads to them.

    Threads are dealt by chance. The scheduler starts each on the CPU that went idle last (`find_idlest_group_cpu`), so
    which of them are neighbours says nothing of their locks.
    """
    count = max(1, machine.cpus // int(machine.params["sharers"]))
    groups = [
        Group(
            machine.new_lock("futex"),
            machine.new_word(),
            [machine.new_word() for _ in range(NUMBERS)],
            machine.new_line(NUMBERS),
        )
        for _ in range(count)
    ]
    stream = machine.stream("deal")
    dealt = sorted(range(machine.tasks), key=lambda _: stream.next_u64())
    of_task = {task: groups[place % count] for place, task in enumerate(dealt)}
    return [of_task[task] for task in range(machine.tasks)]


def group_of(task: Task) -> Group:
    """The group that this thread was dealt to."""
    group: Group = task.shared[task.number]
    return group


def work(task: Task) -> Step:
    """Burn the cycles between two turns. They vary a little: equal ones would keep threads in step for ever."""
    return task.run(task.gamma(task.params["cycle"] * 1000, 0.05))


def mutex(task: Task) -> Generator[Step, int, None]:
    """`std::mutex`."""
    group = group_of(task)
    held = task.steps(task.lock(group.futex), task.touch(group.guarded, "write"), task.unlock(group.futex))
    turn = task.steps(task.begin(), held, work(task), task.end("turn"))
    while True:
        yield turn


def microspin(task: Task) -> Generator[Step, int, None]:
    """`MicroSpinLock`: exchanges until it was free; 4,096 looks, each after a pause, and then it naps."""
    group, params = group_of(task), task.params
    begin, end = (
        task.begin(),
        task.steps(
            task.touch(group.guarded, "write"), task.store(group.spinlock, 0), work(task), task.end("turn")
        ),
    )
    take, look = task.exchange(group.spinlock, 1), task.load(group.spinlock)
    pause, nap = task.run(params["pause"]), task.sleep(params["nap"])
    while True:
        yield begin
        looks = 0
        while (yield take):
            taken = 1
            while taken:
                yield pause if looks < 4096 else nap
                looks += 1
                taken = yield look
        yield end


def additions(task: Task) -> Generator[Step, int, None]:
    """Five atomic additions, to numbers in five lines."""
    turn = [task.fetch_add(number, 1) for number in group_of(task).numbers]
    every = task.steps(task.begin(), *turn, work(task), task.end("turn"))
    while True:
        yield every


def compare(task: Task) -> Generator[Step, int, None]:
    """Load a number and exchange it with one more, until nobody came between."""
    number, between = group_of(task).numbers[0], work(task)
    load, end = task.steps(task.begin(), task.load(number)), task.steps(between, task.end("turn"))
    while True:
        old = yield load
        while (found := (yield task.compare_exchange(number, old, old + 1))) != old:
            old = found
        yield end
