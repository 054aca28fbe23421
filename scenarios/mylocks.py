"""A lock of your own, as scenarios/own-lock.yaml uses it; docs/extending.md explains it."""

from simfs.machine.lock import Lock, Place, Side, Waiting
from simfs.machine.task import Steps, Task

MICROSECOND = 1_000_000  # the machine counts picoseconds


class TwoPhase(Lock):
    """Spins for up to 5 us, then sleeps. Any task may take a free lock; a release wakes the first sleeper."""

    perf_name = "two-phase"
    has_wait_lock = False

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.sleepers: list[Task] = []

    def try_fast(self, task: Task, side: Side) -> bool:
        task.atomic(self.line)
        if self.holder:
            return False
        self.begin_hold(task)
        return True

    def wait(self, task: Task, side: Side) -> Waiting:
        deadline = self.machine.now + 5 * MICROSECOND
        task.preempt_off += 1
        while self.machine.now < deadline and not task.need_resched:
            yield from self.poll(task, deadline=deadline)
            if self.try_fast(task, side):
                task.preempt_off -= 1
                return False
        task.preempt_off -= 1
        task.forget_wakeups()
        self.sleepers.append(task)
        while not self.try_fast(task, side):
            yield from task.park()
        self.sleepers.remove(task)
        return True

    def release(self, task: Task, side: Side) -> Steps:
        task.store(self.line)
        self.end_hold()
        self.tell_pollers(task)
        if self.sleepers:
            self.wake(task, self.sleepers[0])
        yield from ()
