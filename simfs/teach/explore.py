"""All schedules with few disturbances, the fewest first; then random ones; then the shortest that shows the fault.

A disturbance is a preemption or a wake-up for no reason. Most faults need two at most: M. Musuvathi and S. Qadeer,
"Iterative context bounding for systematic testing of multithreaded programs", PLDI 2007 (the checker CHESS).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random

from simfs.teach.lock import Lock
from simfs.teach.play import Event, Fault, Play

MORE = 200
"""So many schedules more are tried for a shorter one once a fault is found."""
LENGTH = 30
"""Steps that a schedule may have on average; locks with long loops get fewer schedules."""
SHRINKS = 400
"""Most attempts to leave a choice out."""


@dataclass(frozen=True)
class Case:
    """So many tasks that each take the lock so often; all schedules with so many disturbances, or random ones."""

    tasks: int
    rounds: int
    disturbances: int | None = None


CASES = (Case(1, 2, 0), Case(2, 1, 2), Case(2, 2, 3), Case(3, 1, 2), Case(3, 2, 1), Case(4, 2), Case(8, 2))
"""What is tried, the smallest first."""


@dataclass(frozen=True)
class Found:
    """A fault with the shortest schedule that was found for it."""

    fault: Fault
    case: Case
    choices: list[int]
    disturbances: int
    events: list[Event]


@dataclass
class Explored:
    """What came out."""

    found: dict[str, Found] = field(default_factory=dict)
    """By kind of fault."""
    schedules: int = 0
    steps: int = 0
    covered: list[tuple[Case, int, bool]] = field(default_factory=list)
    """Case, schedules tried, whether those are all there are."""
    barged: str | None = None
    busy: bool = False
    """Tasks wait in loops of their own, not in spin_until or sleep."""
    passed: dict[int, int] = field(default_factory=dict)
    """How often a waiting task was passed at most, by number of tasks."""

    def note(self, play: Play, case: Case) -> None:
        """Take note of a play that has ended."""
        self.schedules += 1
        self.steps += play.step
        self.barged = self.barged or play.barged
        self.busy = self.busy or play.busy
        self.passed[case.tasks] = max(self.passed.get(case.tasks, 0), play.passed)


def explore(design: Callable[[], Lock], budget: int = 20_000, cases: tuple[Case, ...] = CASES) -> Explored:
    """Try the cases until one shows a fault, at most `budget` schedules altogether."""
    explored = Explored()
    for case in cases:
        left = (budget - explored.schedules) // 2 if case.tasks > 2 else budget - explored.schedules
        found = _all(design, case, left, explored) if case.disturbances is not None else None
        if case.disturbances is None:
            found = _random(design, case, min(max(left, 0), budget // 40), explored)
        for each in found or []:
            explored.found[each.fault.kind] = shrunk(design, each)
        if explored.found:
            break
    return explored


def _all(design: Callable[[], Lock], case: Case, budget: int, explored: Explored) -> list[Found]:
    """All schedules of a case, by number of disturbances."""
    assert case.disturbances is not None
    order = count()
    waiting: list[tuple[int, int, list[int], int, int | None]] = [(0, next(order), [], 0, None)]
    found: dict[str, Found] = {}
    tried, last = 0, budget
    most = explored.steps + budget * LENGTH
    while waiting and tried < last and explored.steps < most:
        cost, _, before, at, choice = heapq.heappop(waiting)
        prefix = before[:at] if choice is None else [*before[:at], choice]
        play = Play(design, case.tasks, case.rounds, prefix)
        fault = play.run()
        tried += 1
        explored.note(play, case)
        if fault:
            last = min(last, tried + MORE)
            _keep(found, Found(fault, case, play.taken, cost, play.events))
        for i in range(len(prefix), len(play.taken)):
            for option, more in play.options[i][1:]:
                if cost + more <= case.disturbances:
                    heapq.heappush(waiting, (cost + more, next(order), play.taken, i, option))
    explored.covered.append((case, tried, not waiting))
    return list(found.values())


def _keep(found: dict[str, Found], new: Found) -> None:
    """Keep the fault with the fewest disturbances, and then the shortest."""
    old = found.get(new.fault.kind)
    if old is None or (new.disturbances, len(new.events)) < (old.disturbances, len(old.events)):
        found[new.fault.kind] = new


def _random(design: Callable[[], Lock], case: Case, budget: int, explored: Explored) -> list[Found]:
    """Random schedules of a case, each with its own rate of disturbances."""
    for seed in range(budget):
        random = Random(seed)
        rate = random.choice((0.02, 0.1, 0.5))

        def choose(options: list[tuple[int, int]], random: Random = random, rate: float = rate) -> int:
            free = [option for option, disturbs in options if not disturbs]
            other = [option for option, disturbs in options if disturbs]
            return random.choice(other) if other and random.random() < rate else random.choice(free)

        play = Play(design, case.tasks, case.rounds)
        fault = play.run(choose)
        explored.note(play, case)
        if fault:
            explored.covered.append((case, seed + 1, False))
            return [Found(fault, case, play.taken, _disturbances(play), play.events)]
    explored.covered.append((case, budget, False))
    return []


def _disturbances(play: Play) -> int:
    return sum(dict(options)[choice] for options, choice in zip(play.options, play.taken, strict=True))


def shrunk(design: Callable[[], Lock], found: Found) -> Found:
    """Leave out choices as long as the same fault comes with fewer disturbances or events."""
    best, attempts, at = found, 0, 0
    while at < len(best.choices) and attempts < SHRINKS:
        attempts += 1
        choices = best.choices[:at] + best.choices[at + 1 :]
        play = Play(design, best.case.tasks, best.case.rounds, choices)
        fault = play.run()
        size = (_disturbances(play), len(play.events))
        if fault and fault.kind == found.fault.kind and size < (best.disturbances, len(best.events)):
            best = Found(fault, best.case, play.taken, size[0], play.events)
        else:
            at += 1
    return best
