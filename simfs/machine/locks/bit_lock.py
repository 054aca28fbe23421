"""A bit that is a lock (`wait_on_bit_lock`, `kernel/sched/wait_bit.c`), such as `BH_Lock` of a buffer."""

from __future__ import annotations

from typing import ClassVar

from simfs.machine.lock import Lock, Place, Side, Waiting
from simfs.machine.locks.waitqueue import WaitQueue
from simfs.machine.task import Steps, Task


class BitLock(Lock):
    """An atomic bit, and a queue of exclusive waiters.

    Nobody spins. A release clears the bit and wakes the **first** sleeper, as a **hint**, and takes it off the queue:
    who comes meanwhile may take the bit, and its release wakes the next one. Anyone may release it, from any context.
    """

    perf_name = "bit"
    has_wait_lock: ClassVar[bool] = False
    wait_queues = 1

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.queue = WaitQueue(self, *place.queue_locks)

    def try_fast(self, task: Task, side: Side) -> bool:
        """`test_and_set_bit_lock`."""
        task.atomic(self.line)
        if self.holder is not None:
            return False
        self.begin_hold(task)
        return True

    def wait(self, task: Task, side: Side) -> Waiting:
        """`__wait_on_bit_lock`."""
        slept = False
        while True:
            yield from self.queue.prepare(task, exclusive=True)
            task.read(self.line)
            if self.holder is not None:
                yield from task.park()
                slept = True
            if self.try_fast(task, side):
                break
        yield from self.queue.finish(task)
        return slept

    def release(self, task: Task, side: Side) -> Steps:
        """`clear_bit_unlock` and `wake_up_bit`."""
        task.atomic(self.line)
        self.end_hold()
        yield from self.queue.wake_up(task)

    def done_by_interrupt(self) -> None:
        """The same from an interrupt: nobody pays for the wake-up but the interrupted CPU."""
        self.end_hold()
        if self.queue.entries:
            self.machine.scheduler.wakeups.wake(self.queue.entries.popleft()[0], None)
