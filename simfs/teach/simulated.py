"""A beginner's lock on the simulated machine: lines cost nothing, operations on words cost accesses to their lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from simfs.machine.caches.line import Access
from simfs.machine.cpus.cpu import Account
from simfs.machine.lock import Lock as MachineLock
from simfs.machine.lock import Place, Side, Waiting
from simfs.machine.task import Steps
from simfs.machine.task import Task as MachineTask
from simfs.machine.task_state import Status
from simfs.machine.time import Time, from_ns
from simfs.teach.lock import NO_SLEEP, NO_WORD, Code, Lock, Request, Spin, Task
from simfs.teach.word import Word, present

LINES = 1_000
"""So many lines without an access to memory take a microsecond: a loop that waits for nothing must not stop time."""


def simulated(design: type[Lock]) -> type[MachineLock]:
    """The lock of the machine that runs a beginner's lock."""
    return type(design.__name__, (Taught,), {"design_kind": design, "perf_name": design.__name__})


class Taught(MachineLock):
    """A lock of the machine whose rules are a beginner's lock. It is exclusive: readers exclude each other too."""

    has_wait_lock = False
    design_kind: ClassVar[type[Lock]]

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.design = self.design_kind()
        self.memory = Memory(self)

    # ---- the lock of the machine --------------------------------------------------------------------------------

    def try_fast(self, task: MachineTask, side: Side) -> bool:
        """Refuse: there is no trylock."""
        raise ValueError(f"{self}: locks of simfs.teach have no trylock, which this workload needs")

    def acquire(self, task: MachineTask, side: Side) -> Steps:
        """Run `acquire`; the wait begins where it first has to wait."""
        if not self.design.preemption:
            task.preempt_off += 1
        elif self.machine.kernel.preemption == "voluntary" and task.need_resched:
            yield from task.reschedule()
        yield from task.pay()
        task.forget_wakeups()
        code: Code = self.design.acquire(self.memory.face(task))
        request = yield from self._up_to_request(task, code, None)
        while isinstance(request, Spin) and self._is_true(task, request):
            request = yield from self._up_to_request(task, code, True)
        if request is not None:
            yield from self.waited_for(task, self._rest(task, code, request), side)
        yield from task.pay()
        self.begin_hold(task)

    def release(self, task: MachineTask, side: Side) -> Steps:
        """End the hold and run `release`."""
        yield from task.pay()
        self.end_hold()
        code: Code = self.design.release(self.memory.face(task))
        request = yield from self._up_to_request(task, code, None)
        if request is not None:
            yield from self._rest(task, code, request)
        if not self.design.preemption:
            task.preempt_off -= 1

    # ---- running the beginner's code ----------------------------------------------------------------------------

    def _up_to_request(self, task: MachineTask, code: Code, value: bool | None) -> Any:  # noqa: ANN401
        """Run on until something has to be waited for; returns that, or None at the end."""
        lines = 0
        while True:
            said = self._next(task, code, value)
            if not isinstance(said, int):
                return said
            value, lines = None, lines + 1
            if task.debt or lines == LINES:
                yield from task.run(Account.SYSTEM, 0 if task.debt else from_ns(1000))
                lines = 0
            if self.design.preemption and task.need_resched:
                yield from task.reschedule()

    def _next(self, task: MachineTask, code: Code, value: bool | None) -> int | Request | None:
        with self.memory.of(task):
            try:
                return code.send(value)
            except StopIteration:
                return None

    def _rest(self, task: MachineTask, code: Code, request: Request | None) -> Waiting:
        """Wait, and run on to the end. Returns whether the task slept."""
        slept = False
        while request is not None:
            value = None
            if isinstance(request, Spin):
                value = yield from self._spin(task, code, request)
            else:
                if not self.design.preemption:
                    code.throw(TypeError(NO_SLEEP))
                yield from task.park()
                slept = True
            request = yield from self._up_to_request(task, code, value)
        return slept

    def _spin(self, task: MachineTask, code: Code, request: Spin) -> Waiting:
        deadline: Time | None = None
        if request.at_most is not None:
            deadline = self.machine.now + from_ns(request.at_most)
        while True:
            if self.design.preemption and task.need_resched:
                yield from task.reschedule()
            if self._is_true(task, request):
                return True
            if deadline is not None and self.machine.now >= deadline:
                return False
            words = self.memory.words
            if not words:
                code.throw(TypeError(NO_WORD))
            for word in words:
                word.pollers.append(task)
            yield from task.spin(until_resched=self.design.preemption, deadline=deadline)
            for word in words:
                word.pollers.remove(task)

    def _is_true(self, task: MachineTask, request: Spin) -> bool:
        with self.memory.of(task):
            return bool(request.condition())


class Memory:
    """The world of a beginner's lock on the machine: accesses are paid, spinning tasks see them, sleepers are woken."""

    def __init__(self, lock: Taught) -> None:
        self.lock = lock
        self.running: MachineTask | None = None
        """Whose code runs just now."""
        self.words: list[Word] = []
        """What a condition has read."""
        self.faces: dict[MachineTask, Task] = {}
        self.tasks: dict[Task, MachineTask] = {}

    def face(self, task: MachineTask) -> Task:
        """What the lock sees of a task."""
        if task not in self.faces:
            self.faces[task] = face = Task(task.number)
            self.tasks[face] = task
        return self.faces[task]

    @contextmanager
    def of(self, task: MachineTask) -> Iterator[None]:
        """Let code run for a task."""
        self.running, self.words, present.world = task, [], self
        try:
            yield
        finally:
            present.world = None

    def access(self, word: Word, access: Access, before: object) -> None:
        """The running task pays for its access; who spins on the word sees a store when its refetch is served."""
        task = self.running
        assert task is not None
        task.access(word.line, access)
        self.words.append(word)
        if access is Access.READ:
            return
        order, random = list(word.pollers), self.lock.machine.random
        for i in range(len(order) - 1, 0, -1):
            j = random.next_u64() % (i + 1)
            order[i], order[j] = order[j], order[i]
        for poller in order:
            self._show(task, poller, word)

    def _show(self, writer: MachineTask, poller: MachineTask, word: Word) -> None:
        if poller.on_cpu:
            at = max(self.lock.machine.now + writer.debt, writer.stores_until)
            poller.look_at(word.line.refetch(self.lock.machine.topology, poller.cpu.number, at))

    def wake(self, task: Task) -> None:
        """Wake a task that waits for this lock or is about to; nobody who sleeps for anything else."""
        sleeper = self.tasks[task]
        assert self.running is not None
        if sleeper.status is not Status.SLEEPING or sleeper.sleeps_for is self.lock:
            self.lock.wake(self.running, sleeper)
