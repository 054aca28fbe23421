"""The best allocation-group count, directory layout and lock choice for a point, where gains end, and why.

Every choice is run with the same random streams and compared with the point as it is, replication by
replication. A gain counts only where its interval leaves zero out, and more allocation groups are advised only
as far as they bring more than `FLAT` of the throughput.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from pydantic import Field

from simfs.experiments.decide import Contrast, Decided, decide, verdict
from simfs.experiments.points import Varied, common_runs
from simfs.experiments.unused_groups import ONE_GROUP, in_one_group
from simfs.experiments.whatif import NOT_HELD
from simfs.results.model import FINDING_EXIT_CODES, Finding, PointResult
from simfs.results.run import Engine, Progress
from simfs.results.run_result import Strict
from simfs.results.statistics import Estimate
from simfs.results.summaries import LockSummary
from simfs.scenario import Measure, Point, Scenario
from simfs.scenario.reading.document import Document
from simfs.scenario.reading.loader import check
from simfs.scenario.reading.overlay import set_option
from simfs.scenario.sections.filesystem import Xfs
from simfs.scenario.sections.tasks import FileTasks

FLAT = 0.02
"""Part of the best throughput that is not worth more allocation groups."""

KINDS = ("semaphore", "mutex", "rwsem")
"""Kinds under which a holder may sleep: what a filesystem's lock could be instead."""

TRIED = 2
"""Of so many locks other kinds are tried."""

LAYOUTS = ("shared", "per-task")

ONE_GROUP_OF = {
    "shared": "all files are in one directory and so in one allocation group, others are not used",
    "per-task": ONE_GROUP,
}
"""Why more groups bring nothing, where the runs used one only."""

_AGCOUNT = re.compile(r"\bagcount=(\d+)")
_DATA = re.compile(r"^data\s*=.*?\bbsize=(\d+)\s+blocks=(\d+)", re.MULTILINE)


class Choice(Strict):
    """One choice and what it brings."""

    agcount: int | None
    directories: str | None
    locks: dict[str, str]
    throughput: Estimate
    gain_percent: Estimate | None = Field(description="paired, against the point as it is")
    verdict: str
    top_lock: str | None = Field(description="the lock waited for longest")
    waited_percent: dict[str, float] = Field(description="of all tasks' time, by lock, where above 0.05")

    def waits_for(self, lock: str | None) -> float:
        """Per cent of the tasks' time spent waiting for a lock."""
        return self.waited_percent.get(lock or "", 0.0)


class Advice(Strict):
    """What to choose, and why."""

    scenario: str
    point: str
    operation: str
    tasks: int
    as_it_is: Choice
    layouts: tuple[Choice, ...]
    locks: tuple[Choice, ...]
    best: Choice
    sentences: tuple[str, ...]
    seed: int
    findings: tuple[Finding, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 for a clean answer, 3 where a run stalled, else 1 where a law is broken."""
        return max((FINDING_EXIT_CODES[f.kind] for f in self.findings), default=0)


def from_xfs_info(text: str, cpus: int, workload: str, *, settings: Sequence[str] = ()) -> Scenario:
    """Make a scenario of the output of `xfs_info`: one task a CPU in one directory on a generic server.

    Raises ValueError where the text is no such output, ScenarioError for CPUs or sizes out of range.
    """
    groups, data = _AGCOUNT.search(text), _DATA.search(text)
    if groups is None or data is None:
        raise ValueError(
            "--xfs-info: this is not the output of xfs_info (no agcount= or no 'data = bsize= blocks=')"
        )
    size = int(data[1]) * int(data[2])
    document = {
        "simfs": 1,
        "name": "xfs-info",
        "title": f"{workload} on this XFS with {cpus} CPUs",
        "machine": {"profile": "server-24", "cpus": cpus},
        "kernel": "linux-6.12",
        "filesystem": {"kind": "xfs", "size": f"{size} B", "agcount": int(groups[1])},
        "workload": {"kind": workload, "tasks": cpus, "directories": "shared"},
    }
    whole = Document("xfs_info", document)
    for setting in settings:
        set_option(whole, setting)
    return check(whole)


def advise(
    point: Point,
    measure: Measure,
    *,
    scenario: str,
    operation: str = "operation",
    most: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Advice:
    """Try the choices that `point` has and say which to take.

    With `most`, choices that are undecided are run up to so many times (`decide`). Raises ValueError where the engine
    refuses one.
    """
    runs = common_runs(point, measure, engine)
    options: dict[str, Any] = {"threads": threads, "progress": progress, "engine": engine, "most": most}
    now = Varied(point, "as it is")
    layouts = _layouts(point)
    first = decide(now, [Contrast((Varied(p, p.id),)) for p in layouts], runs, **options)
    as_it_is = _choice(point, first.base, None, ())
    tried = [_chosen(p, first) for p in layouts]
    others = _other_locks(point, first.base)
    second = decide(now, [Contrast((Varied(p, p.id),)) for p in others], runs, **options) if others else None
    locks = [_chosen(p, second) for p in others] if second else []
    best = _best([as_it_is, *tried])
    alone = {
        d for d in LAYOUTS if all(in_one_group(first.points[p.id]) for p in layouts if _directories(p) == d)
    }
    return Advice(
        scenario=scenario,
        point=point.id,
        operation=operation,
        tasks=first.base.tasks,
        as_it_is=as_it_is,
        layouts=tuple(tried),
        locks=tuple(locks),
        best=best,
        sentences=tuple(_sentences(operation, as_it_is, tried, locks, best, alone)),
        seed=measure.seed,
        findings=_findings(first, second),
    )


def _findings(first: Decided, second: Decided | None) -> tuple[Finding, ...]:
    later = second.findings if second else ()
    return (*first.findings, *(finding for finding in later if finding not in first.findings))


def flat_from(choices: Sequence[Choice]) -> Choice | None:
    """The choice with the fewest allocation groups whose throughput is within `FLAT` of the best of all."""
    sound = [c for c in choices if c.verdict != "stall" and c.agcount is not None]
    if not sound:
        return None
    most = max(c.throughput.mean for c in sound)
    near = [c for c in sound if c.throughput.mean >= (1 - FLAT) * most]
    return min(near, key=lambda c: c.agcount or 0)


def _layouts(point: Point) -> list[Point]:
    use, files = point.scenario.workload, point.scenario.filesystem
    if not isinstance(use, FileTasks):
        return []
    groups: list[int | None] = [None]
    if isinstance(files, Xfs):
        doubled = [2**n for n in range(2, 12) if 2**n <= 4 * use.tasks]
        wanted = sorted({files.agcount, use.tasks, 2 * use.tasks, *doubled})
        groups = [n for n in wanted if Xfs.MIN_AG_BYTES <= files.size / n <= Xfs.MAX_AG_BYTES]
    made = []
    for directories in LAYOUTS:
        for agcount in groups:
            update: dict[str, Any] = {"workload": use.model_copy(update={"directories": directories})}
            if agcount is not None:
                update["filesystem"] = files.model_copy(update={"agcount": agcount})
            name = f"{directories}, agcount {agcount}" if agcount else directories
            made.append(Point(name, point.variant, point.values, point.scenario.model_copy(update=update)))
    return made


def _other_locks(point: Point, base: PointResult) -> list[Point]:
    """Other kinds for the locks waited for longest: more than one, as who holds one often waits for another."""
    made = []
    for lock in _waited(base)[:TRIED]:
        for kind in KINDS:
            if lock.type in KINDS and kind != lock.type:
                changed = point.scenario.model_copy(
                    update={"locks": {**point.scenario.locks, lock.role: kind}}
                )
                made.append(Point(f"{lock.role} as {kind}", point.variant, point.values, changed))
    return made


def _chosen(point: Point, found: Decided) -> Choice:
    return _choice(
        point, found.points[point.id], found.estimate(Contrast((Varied(point, point.id),))), found.findings
    )


def _choice(point: Point, answer: PointResult, gain: Estimate | None, findings: Sequence[Finding]) -> Choice:
    use, files = point.scenario.workload, point.scenario.filesystem
    stalled = any(f.point == answer.id and f.kind == "stall" for f in findings)
    whole = answer.tasks * answer.window_ns * answer.replications
    waits = {x.name: 100 * x.wait_total_ns / whole for x in answer.locks if x.role not in NOT_HELD}
    top = next(iter(_waited(answer)), None)
    return Choice(
        agcount=files.agcount if isinstance(files, Xfs) else None,
        directories=use.directories if isinstance(use, FileTasks) else None,
        locks=dict(point.scenario.locks),
        throughput=answer.throughput,
        gain_percent=gain,
        verdict="stall" if stalled else verdict(gain),
        top_lock=top.name if top else None,
        waited_percent={name: waited for name, waited in waits.items() if waited >= 0.05},
    )


def _waited(answer: PointResult) -> list[LockSummary]:
    """The locks that were waited for, the longest wait first, one a role."""
    waited = [lock for lock in answer.locks if lock.role not in NOT_HELD and lock.contended]
    waited.sort(key=lambda lock: -lock.wait_total_ns)
    by_role: dict[str, LockSummary] = {}
    for lock in waited:
        by_role.setdefault(lock.role, lock)
    return list(by_role.values())


def _directories(point: Point) -> str | None:
    use = point.scenario.workload
    return use.directories if isinstance(use, FileTasks) else None


def _best(choices: Sequence[Choice]) -> Choice:
    """What is as good as the best and changes least: the present one, else the fewest groups."""
    as_it_is, *others = choices
    sound = [c for c in others if c.verdict == "better"]
    if not sound:
        return as_it_is
    most = max(c.throughput.mean for c in sound)
    near = [c for c in sound if c.throughput.mean >= (1 - FLAT) * most]
    return min(near, key=lambda c: (c.directories != as_it_is.directories, c.agcount or 0))


def _sentences(
    operation: str,
    now: Choice,
    layouts: Sequence[Choice],
    locks: Sequence[Choice],
    best: Choice,
    alone: Collection[str],
) -> list[str]:
    said = [_advice(operation, now, layouts, best)] if layouts else []
    for directories in LAYOUTS:
        own = [c for c in layouts if c.directories == directories and c.agcount is not None]
        if (flat := flat_from(own)) is not None:
            why = f": {ONE_GROUP_OF[directories]}" if directories in alone else ""
            said.append(f"{_flat(directories, own, flat)}{why}")
    said += _why(now, best)
    said += _locks(now, locks)
    return said


def _advice(operation: str, now: Choice, layouts: Sequence[Choice], best: Choice) -> str:
    if best is now:
        open_ = [c.verdict for c in layouts if c.verdict.startswith("undecided")]
        why = "no layout is better by 2 % or more"
        if open_:
            why = f"no layout is certainly better ({len(open_)} of {len(layouts)} {open_[0]} runs)"
        return f"stay with {_named(now)}: {why} ({now.throughput.mean:,.0f} {operation}s/s)"
    gain = best.gain_percent
    assert gain is not None
    return (
        f"take {_named(best)}: {best.throughput.mean:,.0f} {operation}s/s instead of {now.throughput.mean:,.0f}"
        f" ({gain.mean:+.1f} % ± {gain.half_width:.1f})"
    )


def _flat(directories: str, own: Sequence[Choice], flat: Choice) -> str:
    layout = _layout(directories)
    fewest = min(own, key=lambda c: c.agcount or 0)
    most = max(own, key=lambda c: c.throughput.mean)
    lost = _lost(own, flat, most)
    fall = f", and {lost.throughput.mean:,.0f}/s at {lost.agcount}" if lost else ""
    if flat is fewest:
        which = "more allocation groups bring nothing" if lost else "allocation groups do not matter"
        return (
            f"with {layout} {which}: agcount={flat.agcount} is within {100 * FLAT:.0f} %"
            f" of the best of {len(own)} counts ({most.throughput.mean:,.0f}/s at {most.agcount}{fall})"
        )
    where = f"ends at agcount={flat.agcount}" if lost else f"is flat from agcount={flat.agcount} on"
    return (
        f"with {layout} the gain {where}: {flat.throughput.mean:,.0f}/s, against {fewest.throughput.mean:,.0f}/s"
        f" at {fewest.agcount} and at most {most.throughput.mean:,.0f}/s at {most.agcount}{fall}"
    )


def _lost(own: Sequence[Choice], flat: Choice, most: Choice) -> Choice | None:
    """The worst choice with more groups than `flat`, if it is worse than the best."""
    more = [c for c in own if (c.agcount or 0) > (flat.agcount or 0) and c.verdict != "stall"]
    worst = min(more, key=lambda c: c.throughput.mean, default=None)
    return worst if worst and worst.throughput.mean < (1 - FLAT) * most.throughput.mean else None


def _why(now: Choice, best: Choice) -> list[str]:
    top = now.top_lock
    if top is None:
        return ["no lock is waited for as it is"]
    before = now.waits_for(top)
    if best is now:
        return [f"tasks wait {before:.1f} % of their time for {top}, the longest wait"]
    after, rest = best.waits_for(top), best.top_lock
    said = f"why: tasks wait {before:.1f} % of their time for {top} as it is, and {after:.1f} % then"
    if rest and rest != top:
        said += f"; the longest wait is then {rest} ({best.waits_for(rest):.1f} %)"
    return [said]


def _locks(now: Choice, locks: Sequence[Choice]) -> list[str]:
    if not locks:
        return []
    better = [c for c in locks if c.verdict == "better"]
    if not better:
        open_ = [c.verdict for c in locks if c.verdict.startswith("undecided")]
        if open_:
            return [f"whether another kind for the locks waited for longest helps is {open_[0]} runs"]
        return ["another kind for the locks waited for longest brings nothing"]
    best = max(better, key=lambda c: c.throughput.mean)
    gain = best.gain_percent
    assert gain is not None
    changed = ", ".join(
        f"{role} as {kind}" for role, kind in best.locks.items() if now.locks.get(role) != kind
    )
    return [
        f"in the kernel, with the layout as it is: {changed} brings {gain.mean:+.1f} % (± {gain.half_width:.1f})"
    ]


def _named(choice: Choice) -> str:
    parts = [f"agcount={choice.agcount}"] if choice.agcount else []
    return (
        " and ".join([*parts, *([_layout(choice.directories)] if choice.directories else [])])
        or "what there is"
    )


def _layout(directories: str) -> str:
    return {"shared": "one shared directory", "per-task": "a directory per task"}[directories]
