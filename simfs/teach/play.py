"""One run of a lock through one schedule: tasks take turns between lines, and nothing takes time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from simfs.machine.caches.line import Access
from simfs.teach.frames import HIDDEN, close, line_of, state_of
from simfs.teach.lock import NO_SLEEP, NO_WORD, Code, Lock, Request, Sleep, Spin, Task
from simfs.teach.word import Word, present

T = TypeVar("T")

LOOPS = 4
"""Who has come by a line so often with the same variables, while no other ran, waits in a loop; others go on."""
STRETCH = 100
"""Steps in a row after which others go on in any case."""
STEPS = 500
"""Steps of a task in one round after which nobody seems to get on."""
OPERATION = 2
"""What code yields before an operation on a word."""


class Phase(StrEnum):
    """Where a task is."""

    OUTSIDE = "outside"
    ACQUIRING = "acquires"
    INSIDE = "has the lock"
    RELEASING = "releases"
    DONE = "is done"


@dataclass
class Event:
    """A line of the time line: what a task does, in which line of the code, and what words are then."""

    task: int
    line: int | None
    says: str = ""
    words: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Fault:
    """What went wrong in a play."""

    kind: str
    says: str
    where: str | None = None


@dataclass(eq=False)
class Actor:
    """A task in a play."""

    task: Task
    rounds: int
    phase: Phase = Phase.OUTSIDE
    code: Code | None = None
    request: Request | None = None
    woken: bool = False
    """A wake-up came."""
    arrived: int = 0
    waits_since: int | None = None
    """The step in which it first had to wait in this round."""
    passed: int = 0
    """How often others got the lock while it waited."""
    operates: bool = False
    """It stands before an operation on a word."""
    loops: Counter[object] = field(default_factory=Counter)
    """How often it came by each line, with the same variables, since others ran."""
    stretch: int = 0
    """Its steps since others ran."""


class Play:
    """Tasks that each take and release a lock some times, in the order that choices say.

    A choice is the number of the task that goes on, or -1 - number for one that wakes up for no reason first. Where the
    choices end, a task goes on as long as it can.
    """

    def __init__(
        self, design: Callable[[], Lock], tasks: int, rounds: int, choices: Sequence[int] = ()
    ) -> None:
        """Set up a play."""
        self.lock = design()
        self.actors = [Actor(Task(number), rounds) for number in range(1, tasks + 1)]
        self.asked = choices
        self.taken: list[int] = []
        self.options: list[list[tuple[int, int]]] = []
        """What could have been chosen at each decision, and how many disturbances that would have been."""
        self.events: list[Event] = []
        self.fault: Fault | None = None
        self.barged: str | None = None
        """Who passed whom, if a later one was served before an earlier one."""
        self.passed = 0
        """How often a waiting task was passed at most."""
        self.step = 0
        self.limit = STEPS * tasks * rounds
        self.current: Actor | None = None
        self.busy = False
        """Somebody waited in a loop of its own, not in spin_until or sleep."""
        self.words_read = 0
        self.tried: list[tuple[Word, object]] | None = None
        """The words that a condition used when it was only tried, with the values before."""

    # ---- the schedule -------------------------------------------------------------------------------------------

    def run(self, choose: Callable[[list[tuple[int, int]]], int] | None = None) -> Fault | None:
        """Play to the end, or to the first fault; `choose` decides where the choices end."""
        while not self.fault:
            able = [actor for actor in self.actors if self._able(actor)]
            if not able:
                self._end()
                break
            if self.step > self.limit:
                self.fault = Fault("deadlock", f"nobody gets on any more: {self._who()}")
                break
            self._go(self._chosen(able, choose))
        for actor in self.actors:
            close(actor.code)
        return self.fault

    def _chosen(self, able: list[Actor], choose: Callable[[list[tuple[int, int]]], int] | None) -> Actor:
        first, forced = self._default(able)
        asleep = [a for a in self.actors if isinstance(a.request, Sleep) and not a.woken]
        goes_on = first is self.current
        options = [(first.task.number, 0)]
        if not forced:
            options += [(a.task.number, int(goes_on)) for a in able if a is not first]
        options += [(-1 - a.task.number, 1) for a in asleep]
        if len(options) == 1:
            return first
        at = len(self.taken)
        choice = options[0][0]
        if at < len(self.asked):
            choice = self.asked[at]
        elif choose:
            choice = choose(options)
        if choice not in [option for option, _ in options]:
            choice = options[0][0]
        self.taken.append(choice)
        self.options.append(options)
        if choice < 0:
            actor = self.actors[-1 - choice - 1]
            actor.woken = True
            actor.loops.clear()  # a loop around a sleep is not one of its own
            self.events.append(Event(actor.task.number, None, "wakes up for no reason"))
            return actor
        return self.actors[choice - 1]

    def _default(self, able: list[Actor]) -> tuple[Actor, bool]:
        """Who goes on if nothing is chosen, and whether that must be so: who waits in a loop lets others go on."""
        current = self.current
        if current not in able:
            return able[0], False
        assert current is not None
        loops = max(current.loops.values(), default=0) >= LOOPS
        if len(able) == 1 or not (loops or current.stretch >= STRETCH):
            return current, False
        current.loops.clear()
        current.stretch = 0
        if loops:
            self.busy = True
            self._waits(current)
        later = [actor for actor in able if actor.task.number > current.task.number]
        return (later or able)[0], True

    def _able(self, actor: Actor) -> bool:
        if actor.phase is Phase.DONE:
            return False
        if isinstance(actor.request, Sleep):
            return actor.woken
        if isinstance(actor.request, Spin):
            return actor.request.at_most is not None or self._true(actor.request)
        return True

    def _true(self, spin: Spin) -> bool:
        """Whether a condition is true; what it does to words is undone until the task goes on."""
        self.tried = []
        try:
            return bool(self._in_world(spin.condition))
        except Exception:
            return True  # it fails when the task goes on, with its place
        finally:
            for word, before in reversed(self.tried):
                word.undo(before)
            self.words_read, self.tried = len(self.tried), None

    # ---- a step -------------------------------------------------------------------------------------------------

    def _go(self, actor: Actor) -> None:
        """Let a task go on to the next place where others may come between."""
        if actor is not self.current:
            actor.loops.clear()
            actor.stretch = 0
        self.current = actor
        self.step += 1
        actor.stretch += 1
        try:
            self._advance(actor)
        except (Exception, SystemExit) as error:
            self._failed(actor, error)
        if actor.request is not None and not self._able(actor):
            self._waits(actor)

    def _advance(self, actor: Actor) -> None:
        if actor.phase in (Phase.OUTSIDE, Phase.INSIDE):
            actor.loops.clear()
        match actor.phase:
            case Phase.OUTSIDE:
                actor.phase, actor.arrived, actor.woken = Phase.ACQUIRING, self.step, False
                actor.waits_since, actor.passed = None, 0
                self.events.append(Event(actor.task.number, None, "asks for the lock"))
                actor.code = self.lock.acquire(actor.task)
                self._until_point(actor, None)
            case Phase.INSIDE:
                actor.phase = Phase.RELEASING
                self.events.append(Event(actor.task.number, None, "gives the lock back"))
                actor.code = self.lock.release(actor.task)
                self._until_point(actor, None)
            case _:
                value = None
                if isinstance(actor.request, Spin):
                    value = bool(self._in_world(actor.request.condition))
                if isinstance(actor.request, Sleep):
                    actor.woken = False
                actor.request = None
                self._until_point(actor, value)

    def _until_point(self, actor: Actor, value: bool | None) -> None:
        for _ in range(HIDDEN):
            noted = self._note(actor)
            said = self._send(actor, value)
            value = None
            if said == OPERATION and noted and line_of(actor.code) == noted.line and not actor.operates:
                self.events.remove(noted)  # the line has only been come to
            actor.operates = said == OPERATION
            if said is None:
                return
            if not isinstance(said, int):
                self._request(actor, said)
                return
            if said:
                break
        actor.loops[state_of(actor.code)] += 1

    def _request(self, actor: Actor, request: Request) -> None:
        """Note what a task waits for; refuse what would never end on a machine."""
        assert actor.code is not None
        if isinstance(request, Spin):
            if not self._true(request) and not self.words_read:
                actor.code.throw(TypeError(NO_WORD))
        elif not self.lock.preemption:
            actor.code.throw(TypeError(NO_SLEEP))
        actor.request = request

    def _send(self, actor: Actor, value: bool | None) -> int | Request | None:
        code = actor.code
        assert code is not None
        try:
            return self._in_world(lambda: code.send(value))
        except StopIteration:
            actor.code = None
            self._finished(actor)
            return None

    def _in_world(self, run: Callable[[], T]) -> T:
        present.world = self
        try:
            return run()
        finally:
            present.world = None

    def _finished(self, actor: Actor) -> None:
        if actor.phase is Phase.RELEASING:
            actor.rounds -= 1
            actor.phase = Phase.OUTSIDE if actor.rounds else Phase.DONE
            return
        actor.phase = Phase.INSIDE
        self.events.append(Event(actor.task.number, None, "HAS THE LOCK"))
        others = [a for a in self.actors if a is not actor and a.phase is Phase.INSIDE]
        if others:
            self.fault = Fault("mutual exclusion", f"{actor.task} and {others[0].task} have the lock at once")
        for waiter in self.actors:
            if waiter is not actor and waiter.phase is Phase.ACQUIRING and waiter.waits_since is not None:
                waiter.passed += 1
                self.passed = max(self.passed, waiter.passed)
                if waiter.waits_since < actor.arrived and not self.barged:
                    self.barged = (
                        f"{actor.task} came when {waiter.task} waited already, and has the lock first"
                    )
        if self.barged and self.lock.fifo and not self.fault:
            self.fault = Fault("FIFO", self.barged)

    # ---- the world of the code ----------------------------------------------------------------------------------

    def access(self, word: Word, access: Access, before: object) -> None:
        """A word is accessed: stores are seen on the time line."""
        if self.tried is not None:
            self.tried.append((word, before))
        elif access is not Access.READ and self.events:
            names = [name for name, value in vars(self.lock).items() if value is word]
            if names:
                self.events[-1].words.append(f"{names[0]}={word.peek()!r}")

    def wake(self, task: Task) -> None:
        """The running task wakes another one."""
        actor = self.actors[task.number - 1]
        if actor.phase in (Phase.ACQUIRING, Phase.RELEASING):
            actor.woken = True

    # ---- what is said -------------------------------------------------------------------------------------------

    def _note(self, actor: Actor) -> Event | None:
        """Put the line at which a task stands on the time line, unless it is there."""
        line, last = line_of(actor.code), self.events[-1]
        if line is None or (last.task, last.line) == (actor.task.number, line):
            return None
        self.events.append(Event(actor.task.number, line))
        return self.events[-1]

    def _waits(self, actor: Actor) -> None:
        if actor.phase is not Phase.ACQUIRING:
            return
        if actor.waits_since is None:
            actor.waits_since = self.step
        if actor.request is not None:
            line, last = line_of(actor.code), self.events[-1]
            if (last.task, last.line) != (actor.task.number, line):
                self.events.append(Event(actor.task.number, line))
            self.events[-1].says = "sleeps" if isinstance(actor.request, Sleep) else "spins"

    def _who(self) -> str:
        return ", ".join(
            f"{a.task} {'sleeps' if isinstance(a.request, Sleep) else a.phase.value}"
            for a in self.actors
            if a.phase is not Phase.DONE
        )

    def _failed(self, actor: Actor, error: BaseException) -> None:
        from simfs.machine.own import place_in_own_lock

        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        self.fault = Fault("error", f"{actor.task}: {what}", place_in_own_lock(error))

    def _end(self) -> None:
        """Nobody can go on: all are done, or some are stuck. Whoever would go on if woken has lost a wake-up."""
        if all(actor.phase is Phase.DONE for actor in self.actors):
            return
        stuck, length = self._who(), len(self.events)
        for _ in range(self.limit):
            asleep = [a for a in self.actors if isinstance(a.request, Sleep)]
            able = [a for a in self.actors if self._able(a)]
            if self.fault or not (able or asleep):
                break
            if not able:
                asleep[0].woken = True
            self._go((able or asleep)[0])
        saved = all(actor.phase is Phase.DONE for actor in self.actors)
        del self.events[length:]
        if saved:
            self.fault = Fault("lost wake-up", f"the lock is free, and nobody wakes who sleeps: {stuck}")
        else:
            self.fault = Fault("deadlock", f"nobody can go on: {stuck}")
