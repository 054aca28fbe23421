"""A time line in a sentence: what the lock in focus did in the window, and who waited longest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

from pydantic import Field

from simfs.experiments.scene import HOLDING, Scene
from simfs.machine.labels import name_of
from simfs.machine.time import Time
from simfs.reports.numbers import duration
from simfs.results.run_result import Strict
from simfs.results.timeline import Doing, Interval, State, state_of

SAID = {
    State.HOLDS: "held by who runs",
    State.GRANTED: "by who has not run yet",
    State.STALLED: "by who is off CPU",
    None: "free",
}


class ToldScene(Strict):
    """What a picture shows of one variant."""

    title: str
    lock: str = Field(description="the lock in focus; empty where nobody waits for any")
    begin_ns: float
    end_ns: float
    longest_wait_ns: float | None = Field(description="of the run, for that lock")
    longest_wait_task: int | None
    sentence: str


class Told(Strict):
    """What a picture shows, and its file."""

    picture: str
    scenes: tuple[ToldScene, ...]


def told(scenes: Iterable[Scene], picture: str) -> Told:
    """What a picture shows, in numbers and in a sentence each."""
    return Told(picture=picture, scenes=tuple(map(_told, scenes)))


def _told(scene: Scene) -> ToldScene:
    _, task, begin, end = scene.worst or ("", None, 0, 0)
    return ToldScene(
        title=scene.title,
        lock=scene.focus,
        begin_ns=scene.line.begin / 1000,
        end_ns=scene.line.end / 1000,
        longest_wait_ns=(end - begin) / 1000 if scene.worst else None,
        longest_wait_task=task,
        sentence=sentence(scene),
    )


def sentence(scene: Scene) -> str:
    """What the window shows."""
    line = scene.line
    where = f"{duration((line.end - line.begin) / 1000)} from {duration(line.begin / 1000)} on"
    if not scene.focus:
        return f"{where}; nobody waits for a lock."
    shares = {state: time / (line.end - line.begin) for state, time in lock_times(scene).items()}
    parts = [
        f"{shares[state] * 100:.0f} % {said}" for state, said in SAID.items() if shares.get(state, 0) >= 0.005
    ]
    if (off := main_reason(scene)) and shares[State.STALLED] >= 0.005:
        parts = [f"{part} ({off})" if part.endswith(SAID[State.STALLED]) else part for part in parts]
    given = sum(over.lock == scene.focus for over in line.hand_overs)
    text = f"{scene.focus}, {where}: {', '.join(parts)}; {given} hand-overs."
    if scene.worst:
        _, task, begin, end = scene.worst
        text += f" Longest wait of the run: {duration((end - begin) / 1000)}, {name_of(task)}."
    return text


def reason(interval: Interval) -> str:
    """Why a task is off CPU."""
    if interval.doing is Doing.RUNNABLE:
        return "wants a CPU"
    if interval.waits:
        return f"waits for {interval.waits[-1].partition('#')[0]}"
    if interval.woken_by == "timer":
        return "until a timer rings"
    if interval.woken_by.startswith("device"):
        return "until a device is done"
    return "until another task wakes it" if interval.woken_by else "asleep to the end"


def main_reason(scene: Scene) -> str:
    """Why holders of the lock in focus were off CPU, if one reason has more than half of the time."""
    time = Counter[str]()
    for intervals in scene.line.tasks.values():
        for each in intervals:
            if state_of(each, scene.locks) is State.STALLED:
                time[reason(each)] += each.end - each.begin
    first = time.most_common(1)
    return first[0][0] if first and first[0][1] * 2 > time.total() else ""


def lock_times(scene: Scene) -> Counter[State | None]:
    """For how long (ps) the lock in focus was held by who was in which state; None is free, or with a device."""
    changes: dict[Time, Counter[State]] = {scene.line.begin: Counter(), scene.line.end: Counter()}
    for state, begin, end in _held(scene):
        changes.setdefault(begin, Counter())[state] += 1
        changes.setdefault(end, Counter())[state] -= 1
    found = Counter[State | None]()
    holders = Counter[State]()
    times = sorted(changes)
    for time, until in pairwise(times):
        holders.update(changes[time])
        found[next((state for state in HOLDING if holders[state]), None)] += until - time
    return found


def _held(scene: Scene) -> Iterator[tuple[State, Time, Time]]:
    for intervals in scene.line.tasks.values():
        for each in intervals:
            state = state_of(each, scene.locks)
            if state in HOLDING:
                yield state, each.begin, each.end
