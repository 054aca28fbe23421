"""Locks with one fault each, which the judge has to find; the docstring says of which kind it is."""

from simfs.teach import Lock, Task, Word


class Taken(Lock):
    def __init__(self) -> None:
        self.taken = Word(0)
        self.sleepers: list[Task] = []

    def acquire(self, task: Task) -> None:
        while self.taken.exchange(1):
            task.spin_until(lambda: self.taken.load() == 0)

    def release(self, task: Task) -> None:
        self.taken.store(0)


class Sleeps(Taken):
    def acquire(self, task: Task) -> None:
        self.sleepers.append(task)
        while self.taken.exchange(1):
            task.sleep()
        self.sleepers.remove(task)

    def release(self, task: Task) -> None:
        self.taken.store(0)
        for first in self.sleepers[:1]:
            self.wake(first)


class NoAtomicity(Taken):
    """mutual exclusion"""

    def acquire(self, task: Task) -> None:
        task.spin_until(lambda: self.taken.load() == 0)
        self.taken.store(1)


class PlainFlag(Lock):
    """mutual exclusion"""

    def __init__(self) -> None:
        self.busy = False

    def acquire(self, task: Task) -> None:
        while self.busy:
            pass
        self.busy = True

    def release(self, task: Task) -> None:
        self.busy = False


class NeverReleases(Taken):
    """deadlock"""

    def release(self, task: Task) -> None:
        self.taken.load()


class TakesTwice(Taken):
    """deadlock"""

    def acquire(self, task: Task) -> None:
        super().acquire(task)
        super().acquire(task)


class ReleasesTwice(Taken):
    """mutual exclusion"""

    def release(self, task: Task) -> None:
        self.taken.store(0)
        self.taken.store(0)


class ReleasedByNobody(Taken):
    """deadlock"""

    def __init__(self) -> None:
        super().__init__()
        self.owner = Word(None)

    def acquire(self, task: Task) -> None:
        super().acquire(task)
        self.owner.store(task)

    def release(self, task: Task) -> None:
        if self.owner.load() is task:
            self.taken.store(0)
            self.owner.store(None)


class WakesNobody(Sleeps):
    """lost wake-up"""

    def release(self, task: Task) -> None:
        self.taken.store(0)


class WakesBeforeEnqueue(Sleeps):
    """lost wake-up"""

    def acquire(self, task: Task) -> None:
        while self.taken.exchange(1):
            self.sleepers.append(task)
            task.sleep()

    def release(self, task: Task) -> None:
        self.taken.store(0)
        if self.sleepers:
            self.wake(self.sleepers.pop(0))


class WakesBeforeRelease(Sleeps):
    """lost wake-up"""

    def release(self, task: Task) -> None:
        for first in self.sleepers[:1]:
            self.wake(first)
        self.taken.store(0)


class WakesTheWrongOne(Sleeps):
    """lost wake-up"""

    def release(self, task: Task) -> None:
        self.taken.store(0)
        for last in self.sleepers[1:]:
            self.wake(last)


class StaysInTheQueue(Sleeps):
    """lost wake-up"""

    def acquire(self, task: Task) -> None:
        self.sleepers.append(task)
        while self.taken.exchange(1):
            task.sleep()


class QueueLooksTwice(Sleeps):
    """error"""

    def release(self, task: Task) -> None:
        self.taken.store(0)
        if self.sleepers:
            self.wake(self.sleepers[0])


class CountsWithoutAtomicity(Sleeps):
    """lost wake-up"""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = Word(0)

    def acquire(self, task: Task) -> None:
        self.waiting.store(self.waiting.load() + 1)
        super().acquire(task)
        self.waiting.store(self.waiting.load() - 1)

    def release(self, task: Task) -> None:
        self.taken.store(0)
        if self.waiting.load() > 0:
            for first in self.sleepers[:1]:
                self.wake(first)


class ForgetsThatOthersSleep(Lock):
    """lost wake-up"""

    def __init__(self) -> None:
        self.state = Word(0)  # 2: taken, and somebody sleeps
        self.sleepers: list[Task] = []

    def acquire(self, task: Task) -> None:
        self.sleepers.append(task)
        while not self.state.compare_and_swap(0, 1):  # who was woken has to write 2
            if self.state.compare_and_swap(1, 2) or self.state.load() == 2:
                task.sleep()
        self.sleepers.remove(task)

    def release(self, task: Task) -> None:
        if self.state.exchange(0) == 2:
            for first in self.sleepers[:1]:
                self.wake(first)


class GrantsAndFrees(Sleeps):
    """mutual exclusion"""

    def acquire(self, task: Task) -> None:
        self.sleepers.append(task)
        if self.taken.exchange(1):
            task.sleep()
        else:
            self.sleepers.remove(task)

    def release(self, task: Task) -> None:
        self.taken.store(0)
        for first in self.sleepers[:1]:
            self.sleepers.remove(first)
            self.wake(first)


class TrustsEveryWakeUp(Taken):
    """mutual exclusion"""

    def __init__(self) -> None:
        super().__init__()
        self.guard = Word(0)

    def acquire(self, task: Task) -> None:
        while self.guard.exchange(1):
            task.spin_until(lambda: self.guard.load() == 0)
        waits = self.taken.load()
        self.taken.store(1)
        if waits:
            self.sleepers.append(task)
        self.guard.store(0)
        if waits:
            task.sleep()  # the lock is granted; but a task may wake for no reason

    def release(self, task: Task) -> None:
        while self.guard.exchange(1):
            task.spin_until(lambda: self.guard.load() == 0)
        if self.sleepers:
            self.wake(self.sleepers.pop(0))
        else:
            self.taken.store(0)
        self.guard.store(0)


class GivesUpWaiting(Taken):
    """mutual exclusion"""

    def acquire(self, task: Task) -> None:
        task.spin_until(lambda: self.taken.compare_and_swap(0, 1), at_most=1000)


class Barges(Taken):
    """FIFO"""

    fifo = True


class BargesBeforeSleepers(Sleeps):
    """FIFO"""

    fifo = True


class LastComeFirstServed(Sleeps):
    """FIFO"""

    fifo = True

    def release(self, task: Task) -> None:
        self.taken.store(0)
        for last in self.sleepers[-1:]:
            self.wake(last)


class Ticket(Lock):
    def __init__(self) -> None:
        self.next, self.serving = Word(0), Word(0)

    def acquire(self, task: Task) -> None:
        mine = self.next.fetch_add()
        task.spin_until(lambda: self.serving.load() == mine)

    def release(self, task: Task) -> None:
        self.serving.fetch_add()


class SameTicketTwice(Ticket):
    """mutual exclusion"""

    def acquire(self, task: Task) -> None:
        mine = self.next.load()
        self.next.store(mine + 1)
        task.spin_until(lambda: self.serving.load() == mine)


class SkipsATicket(Ticket):
    """deadlock"""

    def release(self, task: Task) -> None:
        self.serving.fetch_add(2)


class ServesEarlyTickets(Ticket):
    """mutual exclusion"""

    def acquire(self, task: Task) -> None:
        mine = self.next.fetch_add()
        task.spin_until(lambda: self.serving.load() <= mine)


class Mcs(Lock):
    def __init__(self) -> None:
        self.tail = Word(None)

    def acquire(self, task: Task) -> None:
        task.next, task.must_wait = Word(None), Word(True)
        before = self.tail.exchange(task)
        if before:
            before.next.store(task)
            task.spin_until(lambda: not task.must_wait.load())

    def release(self, task: Task) -> None:
        if self.tail.compare_and_swap(task, None):
            return
        task.spin_until(lambda: task.next.load())
        task.next.load().must_wait.store(False)


class ForgetsASuccessor(Mcs):
    """deadlock"""

    def release(self, task: Task) -> None:
        if task.next.load():
            task.next.load().must_wait.store(False)
        else:
            self.tail.compare_and_swap(task, None)


class QueuesBeforeItIsReady(Mcs):
    """deadlock"""

    def acquire(self, task: Task) -> None:
        task.next, task.must_wait = Word(None), Word(False)
        before = self.tail.exchange(task)
        if before:
            before.next.store(task)
            task.must_wait.store(True)
            task.spin_until(lambda: not task.must_wait.load())


class Flags(Lock):
    def __init__(self) -> None:
        self.wants = [Word(0) for _ in range(16)]
        self.turn = Word(0)

    def release(self, task: Task) -> None:
        self.wants[task.number].store(0)


class BothWait(Flags):
    """deadlock"""

    def acquire(self, task: Task) -> None:
        self.wants[task.number].store(1)
        task.spin_until(lambda: sum(word.load() for word in self.wants) == 1)


class PetersonInTheWrongOrder(Flags):
    """mutual exclusion"""

    def acquire(self, task: Task) -> None:
        other = 3 - task.number if task.number < 3 else 0
        self.turn.store(other)
        self.wants[task.number].store(1)
        task.spin_until(lambda: not self.wants[other].load() or self.turn.load() != other)
