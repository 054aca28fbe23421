"""Counterfactuals on one lock at a time, under the same random streams, and the causal profile of all locks.

A *causal profile* asks of every lock how much throughput is gained when its hold time shrinks (C. Curtsinger,
E. D. Berger, *Coz: finding code that counts with causal profiling*, SOSP 2015). Coz can only slow down
everything else; here the hold itself is made shorter. "Hold time" is the CPU time of the program's segments
that begin while their task is the exclusive holder (`docs/experiments.md`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from simfs.experiments.decide import EQUAL, Contrast, Decided, decide, verdict
from simfs.experiments.points import Patch, Varied, common_runs, run_varied
from simfs.results.model import FINDING_EXIT_CODES, Finding
from simfs.results.run import Engine, Progress, Runs
from simfs.results.run_result import Strict
from simfs.results.statistics import Estimate
from simfs.results.summaries import LockSummary
from simfs.scenario import Measure, Point, with_values
from simfs.scenario.suggest import KINDS_OF_LOCKS, LOCKS_OF_A_RUN, choices
from simfs.vocabulary import vocabulary

REMOVED = (10, 20, 30, 40, 50)
"""Per cent of hold time removed in a causal profile."""

NOT_HELD = ("wait_lock", "completion")
"""Roles of what is no lock of its own: the raw spinlocks inside locks, and completions."""

AS_IT_IS = ("variant", "tasks", "cpus", "replications", "window_ns", "throughput", "operations")
"""What an answer says of the point as it is, of its `PointResult`."""

Change = Mapping[str, Any] | str
"""A change as the engine takes it: `remove`, {hold_scale: 0.5}, {split: 4}, {kind: mutex}."""


CHANGES = {"hold_scale": "{'hold_scale': 0.5}", "split": "{'split': 4}", "kind": "{'kind': 'mutex'}"}
"""Changes that have a value, each with an example."""


class Effect(Strict):
    """What one change does."""

    change: str
    lock: str | None
    throughput: Estimate
    gain_percent: Estimate | None
    verdict: str = Field(description="better, worse, equal within 2 %, undecided after n, or how it stalls")
    stall: str | None = None


class LockSlope(Strict):
    """How throughput answers to one lock's hold time."""

    lock: str
    type: str
    slope: Estimate = Field(
        description="per cent of throughput gained per per cent of hold time removed; all locks' intervals hold at once"
    )
    verdict: str = Field(
        description="matters, harms, does not matter (without half the hold below 2 %), undecided after n"
    )
    held_percent: float = Field(description="time held exclusively, of all tasks' time")
    waited_percent: float = Field(description="time waited for it, of all tasks' time")
    contended: int
    removed_percent: tuple[float, ...]
    gain_percent: tuple[Estimate, ...]
    operations: tuple[int, ...] = Field(description="as it is, then with each per cent removed")
    hold_total_ns: tuple[float, ...] = Field(description="the same")


class WhatIf(Strict):
    """The answer to a what-if: the point as it is, a causal profile, effects of single changes."""

    scenario: str
    point: str
    variant: str
    operation: str
    tasks: int
    cpus: int
    seed: int
    replications: int
    window_ns: float
    warmup_ns: float
    throughput: Estimate
    operations: int
    profile: tuple[LockSlope, ...] = ()
    too_short: tuple[str, ...] = Field(
        default=(),
        description="locks not in the profile: their whole hold time that would be removed is below 2 % of the time",
    )
    effects: tuple[Effect, ...] = ()
    findings: tuple[Finding, ...] = ()

    def _repr_html_(self) -> str:
        from simfs.reports.web.notebook import what_if

        return what_if(self)

    @property
    def exit_code(self) -> int:
        """0 for a clean answer, 3 where a run stalled, else 1 where a law is broken."""
        return max((FINDING_EXIT_CODES[f.kind] for f in self.findings), default=0)


def what_if(
    point: Point,
    measure: Measure,
    *,
    scenario: str,
    operation: str = "operation",
    changes: Sequence[tuple[str, Change]] = (),
    agcounts: Sequence[int] = (),
    profile: bool = True,
    removed: Sequence[float] = REMOVED,
    most: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> WhatIf:
    """Run `point` as it is and with each change, and compare replication by replication.

    `changes` are pairs of lock class and change, `removed` per cent of hold time in the causal profile. With `most`,
    what is undecided is run up to so many times (`decide`). Raises ValueError for a lock that the point does not
    have, a kind that there is not, and an agcount that the filesystem cannot have.
    """
    runs = common_runs(point, measure, engine)
    options: dict[str, Any] = {"threads": threads, "progress": progress, "engine": engine}
    now = Varied(point, "as it is")
    known = [lock for lock in _locks_of(now, runs, options) if lock.role not in NOT_HELD]
    tried = _tried(point, changes, agcounts, {lock.name: lock.type for lock in known})
    exclusive = [lock for lock in known if lock.hold_total_ns > 0] if profile else []
    held = [lock for lock in exclusive if _can_matter(lock, runs, measure.duration, max(removed))]
    alike = _alike(point, held, max(removed), runs, options)
    sloped = [_profiled(point, alike[lock.name], removed, len(held)) for lock in held]
    answer = decide(now, [*sloped, *(c for _, c in tried)], runs, most=most, **options)
    return WhatIf(
        scenario=scenario,
        point=point.id,
        operation=operation,
        seed=measure.seed,
        warmup_ns=float(runs.warmup),
        profile=_profile(held, sloped, removed, answer),
        too_short=tuple(sorted(lock.name for lock in exclusive if lock not in held)),
        effects=tuple(_effect(name, contrast, answer) for name, contrast in tried),
        findings=answer.findings,
        **{name: getattr(answer.base, name) for name in AS_IT_IS},
    )


def _can_matter(lock: LockSummary, runs: Runs, window_ns: float, removed: float) -> bool:
    """Whether a lock's holds, shorter by `removed` per cent, could gain more than makes a difference.

    Work that takes less time ends earlier by no more than that, whoever waits for whom: the longest chain of work and
    waits gets shorter by what is removed from it, and all is what is removed from all chains.
    """
    saved = lock.hold_total_ns * removed / 100 / (window_ns * runs.replications)
    return 100 * saved >= EQUAL * (1 - saved)


def _alike(
    point: Point, locks: Sequence[LockSummary], removed: float, runs: Runs, options: dict[str, Any]
) -> dict[str, str]:
    """For each lock the first whose shorter holds make the same run: locks that are held by the same work run once.

    Of XFS's two inode trees each insertion and removal holds both.
    """
    if len(locks) < 2:
        return {lock.name: lock.name for lock in locks}
    probes = [Varied(point, lock.name, _hold(lock.name, removed)) for lock in locks]
    first: dict[tuple[object, ...], str] = {}
    found = run_varied(probes, replace(runs, replications=1), **options).points
    return {p.id: first.setdefault((p.batches_per_s, *map(repr, p.locks)), p.id) for p in found}


def _profile(
    locks: Sequence[LockSummary], sloped: Sequence[Contrast], removed: Sequence[float], answer: Decided
) -> tuple[LockSlope, ...]:
    """The steepest slope first."""
    slopes = (_slope(lock, removed, contrast, answer) for lock, contrast in zip(locks, sloped, strict=True))
    return tuple(sorted(slopes, key=lambda s: (-s.slope.mean, s.lock)))


def _tried(
    point: Point, changes: Sequence[tuple[str, Change]], agcounts: Sequence[int], kinds: Mapping[str, str]
) -> list[tuple[str | None, Contrast]]:
    """Each change with its lock, which must be one of `kinds`; a lock of the kind that it has already is none."""
    for name, change in changes:
        if name not in kinds:
            raise ValueError(f"--lock: no lock '{name}' here; {choices(name, list(kinds), LOCKS_OF_A_RUN)}")
        check_change(change)
    single: list[tuple[str | None, Varied]] = [
        (name, Varied(point, f"{name}: {label(change)}", _patch(name, change)))
        for name, change in changes
        if change != {"kind": kinds[name]}
    ]
    single += [(None, Varied(_with_agcount(point, n), f"agcount {n}")) for n in agcounts]
    return [(name, Contrast((varied,))) for name, varied in single]


def check_change(change: object) -> None:
    """Refuse with ValueError what is no change of a lock."""
    if change == "remove":
        return
    if not isinstance(change, Mapping) or len(change) != 1 or next(iter(change)) not in CHANGES:
        raise ValueError(f"change {change!r}: is none; there are 'remove', {', '.join(CHANGES.values())}")
    ((what, value),) = change.items()
    if what == "kind":
        if value not in (known := vocabulary().lock_kinds):
            raise ValueError(
                f"change kind {value!r}: there is no lock of this kind; {choices(value, known, KINDS_OF_LOCKS)}"
            )
        return
    low, high, numbers = {"hold_scale": (0, 1000, (int, float)), "split": (1, 4096, (int,))}[what]
    if isinstance(value, bool) or not isinstance(value, numbers) or not low <= value <= high:
        raise ValueError(f"change {what} {value!r}: must be a number from {low} to {high:,}")


def label(change: Change) -> str:
    """Say a change in words."""
    if isinstance(change, str):
        return change
    ((what, value),) = change.items()
    words = {"hold_scale": "hold x {:g}", "split": "split {} ways", "kind": "kind {}"}
    return words[what].format(value)


def _locks_of(now: Varied, runs: Runs, options: dict[str, Any]) -> tuple[LockSummary, ...]:
    """The locks of the point as it is, from the first runs of it."""
    return run_varied([now], runs, **options).points[0].locks


def _effect(lock: str | None, contrast: Contrast, answer: Decided) -> Effect:
    """Compare a changed point with the point as it is, replication by replication."""
    (name,) = contrast.ids
    stalls = [f.message for f in answer.findings if f.point == name and f.kind == "stall"]
    gained = answer.estimate(contrast)
    return Effect(
        change=name if lock is None else name.removeprefix(f"{lock}: "),
        lock=lock,
        throughput=answer.points[name].throughput,
        gain_percent=gained,
        verdict=stalls[0] if stalls else verdict(gained),
        stall=stalls[0] if stalls else None,
    )


def _profiled(point: Point, lock: str, removed: Sequence[float], among: int) -> Contrast:
    """The slope over the hold time removed from a lock; all slopes' intervals hold at once (Bonferroni)."""
    scaled = tuple(Varied(point, f"{lock} -{r:g}%", _hold(lock, r)) for r in removed)
    x = np.array([0.0, *removed])
    x -= x.mean()

    def slope(base: NDArray[np.float64], varied: NDArray[np.float64]) -> NDArray[np.float64]:
        """Least squares over the removed per cents, 0 included, in each replication by itself."""
        fitted: NDArray[np.float64] = x @ np.vstack([base, varied]) / (x**2).sum() * 100 / base.mean()
        return fitted

    return Contrast(scaled, slope, equal=EQUAL / max(removed), among=among)


def _slope(lock: LockSummary, removed: Sequence[float], contrast: Contrast, answer: Decided) -> LockSlope:
    base, points = answer.base, [answer.points[name] for name in contrast.ids]
    whole = base.tasks * base.window_ns * base.replications
    mine = [next(s for s in p.locks if s.name == lock.name) for p in (base, *points)]
    now = mine[0]
    gains = [answer.estimate(Contrast((v,))) for v in contrast.points]
    slope = answer.estimate(contrast) or Estimate(mean=0, low=None, high=None, n=base.replications)
    return LockSlope(
        lock=lock.name,
        type=lock.type,
        slope=slope,
        verdict=_of_slope(slope, contrast.equal),
        held_percent=100 * now.hold_total_ns / whole,
        waited_percent=100 * now.wait_total_ns / whole,
        contended=now.contended,
        removed_percent=tuple(removed),
        gain_percent=tuple(g for g in gains if g is not None),
        operations=tuple(p.operations for p in (base, *points)),
        hold_total_ns=tuple(s.hold_total_ns for s in mine),
    )


def _of_slope(slope: Estimate, equal: float) -> str:
    """`matters`, `does not matter`, `harms`, or `undecided after n`: what shorter holds of a lock would do."""
    said = verdict(slope, equal)
    words = {"better": "matters", "worse": "harms"}
    return "does not matter" if said.startswith("equal") else words.get(said, said)


def _hold(lock: str, removed: float) -> Patch:
    return _patch(lock, {"hold_scale": 1 - removed / 100})


def _patch(lock: str, change: Change) -> Patch:
    return {("whatif",): {"lock": lock, "change": change}}


def _with_agcount(point: Point, agcount: int) -> Point:
    scenario = point.scenario
    if scenario.filesystem.kind != "xfs":
        raise ValueError(
            f"--agcount: only xfs has allocation groups; filesystem.kind is {scenario.filesystem.kind} here"
        )
    try:
        changed = with_values(scenario, {"filesystem.agcount": agcount})
    except ValidationError as error:
        raise ValueError(f"--agcount: {error.errors()[0]['msg']}") from None
    return Point(point.id, point.variant, point.values, changed)
