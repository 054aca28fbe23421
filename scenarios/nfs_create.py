"""Creating empty files on an NFS server far away: `nfs-create.yaml` runs it."""

from collections.abc import Generator

from simfs._engine import Lock, Machine, Step, Task


def setup(machine: Machine) -> Lock:
    """Make the lock of the one directory."""
    return machine.new_lock("directory")


def worker(task: Task) -> Generator[Step]:
    """`open(O_CREAT)` of a new name looks it up and creates it with the directory locked; `touch` then sets its times.

    Each of the three is a call to the server (`lookup_open`, `nfs3_proc_create`, `nfs3_proc_setattr`).
    """
    directory, params = task.shared, task.params
    call = task.sleep(params["round_trip"])
    locked = bool(params["locked"])
    create = (
        task.steps(task.lock(directory), call, call, task.unlock(directory))
        if locked
        else task.steps(call, call)
    )
    begin, end = task.begin(), task.end("create")
    while True:
        yield begin
        yield create
        yield call
        yield end
