"""The lock cycle as a program: think, take the lock, hold it, release it. `python-lock-cycle.yaml` runs it."""

from collections.abc import Generator

from simfs._engine import Lock, Machine, Step, Task


def setup(machine: Machine) -> Lock:
    """Make what all tasks share; they find it as `task.shared`."""
    return machine.new_lock("lock")


def worker(task: Task) -> Generator[Step]:
    """Go round for ever. Steps are made once; each yield of one draws a new time."""
    lock, params = task.shared, task.params
    think = task.run(task.exponential(params["think"]))
    hold = task.run(task.exponential(params["hold"]), "system")
    section = task.steps(task.lock(lock), hold, task.unlock(lock))
    begin, end = task.begin(), task.end("cycle")
    while True:
        yield think
        yield begin
        yield section
        yield end
