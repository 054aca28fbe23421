"""Counterfactuals on one lock at a time, under the same random streams, and the causal profile of all locks.

A *causal profile* asks of every lock how much throughput is gained when its hold time shrinks (C. Curtsinger,
E. D. Berger, *Coz: finding code that counts with causal profiling*, SOSP 2015). Coz can only slow down
everything else; here the hold itself is made shorter. "Hold time" is the CPU time of the program's segments
that begin while their task is the exclusive holder (`docs/experiments.md`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field, ValidationError

from simfs.experiments.points import Patch, Varied, common_runs, run_varied
from simfs.results.model import FINDING_EXIT_CODES, Finding, LockSummary, PointResult
from simfs.results.run import Engine, Progress
from simfs.results.run_result import Strict
from simfs.results.statistics import Estimate, interval, paired_difference
from simfs.scenario import Measure, Point, with_values
from simfs.scenario.suggest import choices

REMOVED = (10, 20, 30, 40, 50)
"""Per cent of hold time removed in a causal profile."""

NOT_HELD = ("wait_lock", "completion")
"""Roles of what is no lock of its own: the raw spinlocks inside locks, and completions."""

Change = Mapping[str, Any] | str
"""A change as the engine takes it: `remove`, {hold_scale: 0.5}, {split: 4}, {kind: mutex}."""


class Effect(Strict):
    """What one change does."""

    change: str
    lock: str | None
    throughput: Estimate
    gain_per_s: Estimate | None
    gain_percent: Estimate | None
    stall: str | None = None

    @property
    def verdict(self) -> str:
        """`better`, `worse`, `no evidence`, or the stall that the change ends in."""
        return self.stall or verdict(self.gain_per_s)


class LockSlope(Strict):
    """How throughput answers to one lock's hold time."""

    lock: str
    type: str
    slope: Estimate = Field(
        description="per cent of throughput gained per per cent of hold time removed; all locks' intervals hold at once"
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
    effects: tuple[Effect, ...] = ()
    findings: tuple[Finding, ...] = ()

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
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> WhatIf:
    """Run `point` as it is and with each change, and compare replication by replication.

    `changes` are pairs of lock class and change, `agcounts` numbers of allocation groups, `removed` per cent of
    hold time in the causal profile. Raises ValueError for a lock that the point does not have, a kind that
    there is not, and an agcount that the filesystem cannot have.
    """
    runs = common_runs(point, measure, engine)
    options: dict[str, Any] = {"threads": threads, "progress": progress, "engine": engine}
    first = run_varied([Varied(point, "as it is")], runs, **options)
    base = first.points[0]
    known = [lock for lock in base.locks if lock.role not in NOT_HELD]
    for name, _ in changes:
        if name not in [lock.name for lock in known]:
            raise ValueError(f"--lock: no lock '{name}' here; {choices(name, [x.name for x in known])}")
    own = {lock.name: lock.type for lock in known}
    changes = [(name, change) for name, change in changes if change != {"kind": own[name]}]
    held = [lock for lock in known if lock.hold_total_ns > 0] if profile else []
    scaled = [Varied(point, f"{lock.name} -{r:g}%", _hold(lock.name, r)) for lock in held for r in removed]
    single = [Varied(point, f"{name}: {label(change)}", _patch(name, change)) for name, change in changes]
    grouped = [Varied(_with_agcount(point, n), f"agcount {n}") for n in agcounts]
    result = run_varied([*scaled, *single, *grouped], runs, **options)
    answers = iter(result.points)
    level = 1 - (1 - measure.confidence) / max(1, len(held))  # Bonferroni: all slopes at once
    slopes = [_slope(lock, base, removed, [next(answers) for _ in removed], level) for lock in held]
    findings = (*first.findings, *result.findings)
    names: list[str | None] = [name for name, _ in changes] + [None] * len(grouped)
    effects = [
        effect(v.id, name, next(answers), base, findings)
        for v, name in zip([*single, *grouped], names, strict=True)
    ]
    return WhatIf(
        scenario=scenario,
        point=point.id,
        variant=point.variant,
        operation=operation,
        tasks=base.tasks,
        cpus=base.cpus,
        seed=measure.seed,
        replications=base.replications,
        window_ns=base.window_ns,
        warmup_ns=float(runs.warmup),
        throughput=base.throughput,
        operations=base.operations,
        profile=tuple(sorted(slopes, key=lambda s: (-s.slope.mean, s.lock))),
        effects=tuple(effects),
        findings=findings,
    )


def label(change: Change) -> str:
    """Say a change in words."""
    if isinstance(change, str):
        return change
    ((what, value),) = change.items()
    words = {"hold_scale": "hold x {:g}", "split": "split {} ways", "kind": "kind {}"}
    return words[what].format(value)


def verdict(gain: Estimate | None) -> str:
    """What an interval of a gain says: `better`, `worse`, or `no evidence`."""
    if gain is None or gain.low is None or gain.high is None or gain.contains(0):
        return "no evidence"
    return "better" if gain.mean > 0 else "worse"


def effect(
    name: str, lock: str | None, after: PointResult, before: PointResult, findings: Sequence[Finding]
) -> Effect:
    """Compare a changed point with the point as it is, replication by replication."""
    stalls = [f.message for f in findings if f.point == after.id and f.kind == "stall"]
    gains = None if stalls else gain_percent(after, before)
    return Effect(
        change=name if lock is None else name.removeprefix(f"{lock}: "),
        lock=lock,
        throughput=after.throughput,
        gain_per_s=None if stalls else paired_difference(_rates(after), _rates(before)),
        gain_percent=gains,
        stall=stalls[0] if stalls else None,
    )


def gain_percent(after: PointResult, before: PointResult) -> Estimate | None:
    """Paired relative gain in per cent; None where a replication of `before` finished nothing."""
    if not all(_rates(before)):
        return None
    return interval([100 * (a / b - 1) for a, b in zip(_rates(after), _rates(before), strict=True)])


def _slope(
    lock: LockSummary,
    base: PointResult,
    removed: Sequence[float],
    points: Sequence[PointResult],
    level: float,
) -> LockSlope:
    """Least squares over the removed per cents, 0 included, in each replication by itself; then their interval."""
    x = np.array([0.0, *removed])
    curves = np.array([_rates(p) for p in (base, *points)]) / np.array(_rates(base)) * 100
    slopes = (x - x.mean()) @ curves / ((x - x.mean()) ** 2).sum()
    whole = base.tasks * base.window_ns * base.replications
    gains = [gain_percent(p, base) for p in points]
    mine = [next(s for s in p.locks if s.name == lock.name) for p in (base, *points)]
    return LockSlope(
        lock=lock.name,
        type=lock.type,
        slope=interval(slopes, level),
        held_percent=100 * lock.hold_total_ns / whole,
        waited_percent=100 * lock.wait_total_ns / whole,
        contended=lock.contended,
        removed_percent=tuple(removed),
        gain_percent=tuple(g for g in gains if g is not None),
        operations=tuple(p.operations for p in (base, *points)),
        hold_total_ns=tuple(s.hold_total_ns for s in mine),
    )


def _rates(point: PointResult) -> tuple[float, ...]:
    return point.replication_throughputs


def _hold(lock: str, removed: float) -> Patch:
    return _patch(lock, {"hold_scale": 1 - removed / 100})


def _patch(lock: str, change: Change) -> Patch:
    return {("whatif",): {"lock": lock, "change": change}}


def _with_agcount(point: Point, agcount: int) -> Point:
    scenario = point.scenario
    if scenario.filesystem.kind != "xfs":
        raise ValueError(f"--agcount: {scenario.filesystem.kind} has no allocation groups")
    try:
        changed = with_values(scenario, {"filesystem.agcount": agcount})
    except ValidationError as error:
        raise ValueError(f"--agcount: {error.errors()[0]['msg']}") from None
    return Point(point.id, point.variant, point.values, changed)
