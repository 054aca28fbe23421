"""Locks in ten lines, as docs/how-to/ten-lines.md explains them and tests judge them."""

from simfs.teach import Lock, Task, Word


class Spinning(Lock):
    """Test-and-test-and-set: whoever sees it free first has it."""

    def __init__(self) -> None:
        self.taken = Word(0)

    def acquire(self, task: Task) -> None:
        while self.taken.exchange(1):
            task.spin_until(lambda: self.taken.load() == 0)

    def release(self, task: Task) -> None:
        self.taken.store(0)


class Ticket(Lock):
    """Draw a number and wait until it is up."""

    fifo = True

    def __init__(self) -> None:
        self.next, self.serving = Word(0), Word(0)

    def acquire(self, task: Task) -> None:
        mine = self.next.fetch_add()
        task.spin_until(lambda: self.serving.load() == mine)

    def release(self, task: Task) -> None:
        self.serving.fetch_add()


class Mcs(Lock):
    """A queue of tasks, each spinning on a word of its own; a release tells the next one."""

    fifo = True

    def __init__(self) -> None:
        self.tail = Word(None)

    def acquire(self, task: Task) -> None:
        task.next, task.must_wait = Word(None), Word(True)
        before = self.tail.exchange(task)
        if before:
            before.next.store(task)
            task.spin_until(lambda: not task.must_wait.load())

    def release(self, task: Task) -> None:
        if not task.next.load():  # a swap that fails takes the tail's line away from the next arrival
            if self.tail.compare_and_swap(task, None):
                return
            task.spin_until(lambda: task.next.load())
        task.next.load().must_wait.store(False)


class Clh(Lock):
    """A queue in which each task spins on the word of the one before it (Craig; Landin and Hagersten)."""

    fifo = True
    preemption = False

    def __init__(self) -> None:
        self.tail = Word(None)

    def acquire(self, task: Task) -> None:
        task.done = Word(False)
        before = self.tail.exchange(task.done)
        if before is not None:
            task.spin_until(lambda: before.load())

    def release(self, task: Task) -> None:
        task.done.store(True)


class Sleeping(Lock):
    """A task that finds the lock taken sleeps. A release wakes the first sleeper, which has to try again."""

    def __init__(self) -> None:
        self.taken = Word(0)
        self.sleepers: list[Task] = []

    def acquire(self, task: Task) -> None:
        if not self.taken.exchange(1):
            return
        self.sleepers.append(task)
        while self.taken.exchange(1):
            task.sleep()
        self.sleepers.remove(task)

    def release(self, task: Task) -> None:
        self.taken.store(0)
        for first in self.sleepers[:1]:
            self.wake(first)
