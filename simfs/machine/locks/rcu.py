"""RCU as a workload sees it (`kernel/rcu/tree.c`)."""

from __future__ import annotations

from typing import ClassVar

from simfs.machine.chains import Reason
from simfs.machine.lock import Lock, Place, Side, Waiting
from simfs.machine.task import Steps, Task
from simfs.machine.time import Time


class Rcu(Lock):
    """Readers write nothing and wait for nobody; an updater waits for them when it has changed what they read.

    An updater excludes other updaters with a mutex, changes the data beside the readers, and waits for a *grace period*
    after that (`synchronize_rcu`): until all readers are gone that might have seen the data as they were. It takes
    `percpu_rwsem_grace_period`, and longer if a reader is inside that was there when it began. Who asks while one is
    under way waits for the next, with all others who do. What the kernel does meanwhile (ticks, the kernel thread that
    drives it) costs nothing here.
    """

    perf_name = "mutex"
    inner_kind: ClassVar[tuple[str, str]] = ("mutex", "mutex")
    readers_hold = False

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.inside: list[tuple[Task, Time]] = []
        """Readers, and since when."""
        self.begins: Time = 0
        self.ends: Time = 0
        """The last grace period, which may not have begun."""
        self.waiters: list[Task] = []
        """Updaters that wait for readers although its time is over."""

    @property
    def mutex(self) -> Lock:
        """What updaters exclude each other with."""
        assert self.inner, "it has a mutex inside"
        return self.inner

    def try_fast(self, task: Task, side: Side) -> bool:
        """`rcu_read_lock`; an updater takes the mutex if it is free."""
        if side is Side.READ:
            self.inside.append((task, self.machine.now))
            self.begin_reading(task)
            return True
        if not self.mutex.try_fast(task, side):
            return False
        self.begin_hold(task)
        return True

    def wait(self, task: Task, side: Side) -> Waiting:
        """An updater waits for the mutex."""
        slept = yield from self.mutex.waited_for(task, self.mutex.wait(task, side))
        self.begin_hold(task)
        return slept

    def release(self, task: Task, side: Side) -> Steps:
        """`rcu_read_unlock`, or the end of an update with `synchronize_rcu`."""
        if side is Side.READ:
            self._read_unlock(task)
            return
        self.end_hold()
        yield from self.mutex.release(task, side)
        yield from self._synchronize(task)

    def _read_unlock(self, task: Task) -> None:
        """Who waits for readers looks again. Nobody pays for that wake-up: a kernel thread does it."""
        self.inside.pop(max(n for n, (reader, _) in enumerate(self.inside) if reader is task))
        self.end_reading(task)
        waiters, self.waiters = self.waiters, []
        for updater in waiters:
            self.machine.scheduler.wakeups.wake(updater, None)

    def _synchronize(self, task: Task) -> Steps:
        yield from task.pay()
        now = self.machine.now
        if now > self.begins or not self.ends:
            self.begins = max(now, self.ends)
            self.ends = self.begins + self.machine.kernel.grace_period
        begins = self.begins
        yield from task.sleep(self.ends - now)
        task.forget_wakeups()
        while self._has_readers_since(task, begins):
            yield from task.park(lambda: Reason.WAKE_UP)

    def _has_readers_since(self, task: Task, begins: Time) -> bool:
        """Whether a reader is inside that was there at `begins`; if so `task` is told when one leaves."""
        waits = any(since <= begins for _, since in self.inside)
        if waits and task not in self.waiters:
            self.waiters.append(task)
        return waits
