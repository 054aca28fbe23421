"""Everything that one report tells: results read back from directories, the scenario, time lines run again for it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import parquet
from pydantic import ValidationError

from simfs.experiments.scene import Scene, Watcher, scenes
from simfs.experiments.sensitivity import Parameter, Sensitivity, parameters
from simfs.experiments.watching import native_watch
from simfs.experiments.whatif import WhatIf
from simfs.experiments.why import why
from simfs.results.chains import Why
from simfs.results.focus import focus
from simfs.results.model import PointResult, ScenarioResult
from simfs.results.run import native_engine, reference_engine
from simfs.results.run_result import Strict
from simfs.scenario import Point, Scenario, paths, points_at, to_run_spec
from simfs.scenario.left_out import LeftOut, left_out
from simfs.scenario.problems import ScenarioError
from simfs.scenario.suggest import choices, nearest

MANIFEST, RESULT = "manifest.json", "result.json"
BESIDE = ("whatif", "sensitivity")
"""Experiments that a report shows beside a run or sweep."""
TEN = 10

_Model = TypeVar("_Model", bound=Strict)


READERS = {
    "cohort_": ("cohort", "hmcs"),
    "hqlock_": ("hqlock",),
    "numa_spinlock_": ("cna",),
    "semaphore_": ("counting-semaphore",),
}
"""Constants of the kernel by how their names begin, and the kinds of locks that alone read them."""


class Written(Strict):
    """A page that was written, and the answer that stands on it first."""

    scenario: str
    answer: str
    page: str


@dataclass(frozen=True)
class Number:
    """A sourced number, and what hangs on it: the effect of its whole range in per cent, where that is known."""

    parameter: Parameter
    effect_percent: float | None = None
    matters: bool = False
    """Whether that effect is beyond the noise of the runs."""


@dataclass(frozen=True)
class Briefing:
    """What a report tells."""

    result: ScenarioResult
    scenario: Scenario
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    what_ifs: tuple[WhatIf, ...] = ()
    sensitivity: Sensitivity | None = None
    scenes: tuple[Scene, ...] = ()
    why: Mapping[str, Why] = field(default_factory=dict)
    """Chains of waiting by the title of a variant: of those that recorded them, else of the scenes' first runs."""
    laws: tuple[str, ...] = ()
    """Names of the laws that were checked on the runs of the scenes."""
    no_scene: str = ""
    """Why there is no time line; empty where there is one."""

    @property
    def point(self) -> Point:
        """The point of most interest: that of the variant which waits longest."""
        return self.point_of(max(focus(self.result), key=waited))

    def point_of(self, found: PointResult) -> Point:
        """The scenario's point of a result, also of a sweep over keys that the scenario does not sweep."""
        values = {key: None if value == "null" else value for key, value in found.values.items()}
        points = points_at(self.scenario, [values])
        return next(point for point in points if point.variant == found.variant)

    def numbers(self) -> list[Number]:
        """The ten numbers that matter most where a sensitivity says so, else those with the widest ranges."""
        known = {parameter.name: parameter for parameter in parameters(self.point)}
        if self.sensitivity:
            found = [(known.get(s.parameter), s) for s in self.sensitivity.screened]
            return [Number(p, s.mu_star.mean, s.matters) for p, s in found if p is not None][:TEN]
        kinds = _lock_kinds(self.point)
        read = (p for p in known.values() if _concerns(p, kinds))
        widest = sorted(read, key=lambda p: -(p.high - p.low) / (abs(p.value) or 1))
        return [Number(parameter) for parameter in widest[:TEN]]

    def left_out(self) -> list[LeftOut]:
        """What is not modelled and can matter for any of the variants."""
        points = [self.point_of(found) for found in focus(self.result)]
        return [each for each in left_out() if any(each.concerns(point) for point in points)]


def _lock_kinds(point: Point) -> set[str]:
    """The kinds of a kernel's locks, and what else the workload of its RunSpec names."""
    spec = to_run_spec(point, 0)
    return set(spec["kernel"]["locks"].values()) | {str(value) for value in spec["workload"].values()}


def _concerns(parameter: Parameter, kinds: set[str]) -> bool:
    """Whether a constant may be read where there are locks of these kinds."""
    name = parameter.name.removeprefix("kernel.constants.")
    return all(kinds.intersection(readers) for begin, readers in READERS.items() if name.startswith(begin))


def waited(point: PointResult) -> float:
    """How long all tasks of a point waited for locks (ns)."""
    return sum(lock.wait_total_ns for lock in point.locks)


def read(folders: Sequence[Path]) -> Briefing:
    """What directories of `--out` tell together: one of a run or sweep, others of what-ifs and a sensitivity.

    Raises ValueError for a directory that cannot be read, and where there is not just one run or sweep.
    """
    manifests = {folder: _manifest(folder) for folder in folders}
    main = [folder for folder in folders if "experiment" not in manifests[folder]]
    if len(main) != 1:
        found = ", ".join(map(str, main)) or "none"
        raise ValueError(
            f"simfs report: a report is of one run or sweep, with what-ifs beside it; given: {found}"
        )
    about, result = manifests[main[0]], _model(ScenarioResult, main[0] / RESULT)
    if not result.points:
        raise ValueError(f"{main[0]}: no point was run, so there is nothing to report")
    briefing = Briefing(
        _with_curves(result, main[0]),
        _scenario(about, main[0]),
        shlex.join(["simfs", *about.get("command", [])]) if about.get("command") else "",
        versions_of(about),
    )
    briefing = replace(briefing, why=recorded(briefing.result))
    others = [(folder, about["experiment"]) for folder, about in manifests.items() if "experiment" in about]
    what_ifs = [_model(WhatIf, folder / "whatif.json") for folder, name in others if name == "whatif"]
    screened = [
        _model(Sensitivity, folder / "sensitivity.json") for folder, name in others if name == BESIDE[1]
    ]
    return replace(briefing, what_ifs=tuple(what_ifs), sensitivity=screened[-1] if screened else None)


def with_scenes(briefing: Briefing, variants: Sequence[str] = ()) -> Briefing:
    """The same with time lines of `variants`, by default of the one that waits longest; each is run again for it.

    Raises ValueError for an unknown variant; where a time line cannot be had, the briefing says why.
    """
    points = {point.variant: point for point in focus(briefing.result)}
    for name in variants:
        if name not in points:
            raise ValueError(f"--variant {name}: there is no such variant; {choices(name, points)}")
    chosen = [points[name] for name in variants] or [max(points.values(), key=waited)]
    if not waited(chosen[0]):
        return replace(briefing, no_scene="nobody waits for a lock")
    try:
        return _watched(briefing, chosen)
    except (ValueError, ImportError, OSError) as error:
        return replace(briefing, no_scene=str(error).splitlines()[0])


def _watched(briefing: Briefing, chosen: Sequence[PointResult]) -> Briefing:
    from simfs import machine

    found, laws, chains = [], dict[str, None](), dict(briefing.why)
    once = briefing.scenario.measure.model_copy(update={"replications": 1, "precision": None})
    for result in chosen:
        point = briefing.point_of(result)
        watch = machine.watch if point.scenario.used_own_locks else native_watch

        def noting(*spec: Any, start: int, watch: Any = watch) -> Any:  # noqa: ANN401
            seen = watch(*spec, start=start)
            laws.update(dict.fromkeys(law["law"] for law in json.loads(seen[0])["laws"]))
            return seen

        watcher = Watcher(noting)
        title = briefing.result.title(point.variant)
        at = f"{title}, {point.scenario.tasks} tasks"
        found.append((watcher, watcher.find(point, at)))
        if title not in chains:
            engine = reference_engine() if point.scenario.used_own_locks else native_engine()
            chains[title], _ = why(point, once, engine=engine)
    return replace(briefing, scenes=tuple(scenes(found)), why=chains, laws=tuple(laws))


def recorded(result: ScenarioResult) -> dict[str, Why]:
    """The chains of the points of most interest that recorded them, by the title of the variant."""
    return {
        result.title(p.variant): Why(
            point=p.id,
            variant=p.variant,
            replications=p.replications,
            task_time_ns=p.tasks * p.window_ns * p.replications,
            waits=p.chains.waits,
            holders=p.chains.holders,
            sleeps=p.chains.sleeps,
        )
        for p in focus(result)
        if p.chains is not None
    }


def versions_of(about: Mapping[str, Any]) -> dict[str, str]:
    """Package and engine of a manifest."""
    engine = about.get("engine") or {}
    versions = {name: str(version) for name, version in about.get("versions", {}).items() if version}
    return versions | {"engine": f"{engine.get('name')}, {engine.get('version')}"}


# ── Reading ──


def _manifest(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        if str(folder) in paths.names(paths.SCENARIOS) or folder.suffix == ".yaml":
            run = f"simfs run {folder} --report report.html"
            raise ValueError(
                f"{folder}: is no directory of results but a scenario; `{run}` makes a page of it"
            )
        what = "is a file, no directory of results" if folder.exists() else "there is no such directory"
        raise ValueError(f"{folder}: {what}{_near(folder)}")
    if not (folder / MANIFEST).is_file():
        raise ValueError(f"{folder}: is no directory of results: it has no {MANIFEST}{_near(folder)}")
    try:
        about = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise ValueError(f"{folder / MANIFEST}: cannot be read: {error}") from None
    if not isinstance(about, dict) or "simfs" not in about:
        raise ValueError(f"{folder / MANIFEST}: is not of simfs")
    name = about.get("experiment", "run")
    if name not in ("run", *BESIDE):
        raise ValueError(f"{folder}: is of simfs {name}; a report shows run, sweep, {', '.join(BESIDE)}")
    return about


def _near(folder: Path) -> str:
    """The nearest directory of results beside or below a wrong one."""
    around = [*_results(folder), *_results(folder.parent)]
    near = nearest(str(folder), map(str, around)) or next(iter(map(str, around)), None)
    return f" (did you mean '{near}'?)" if near else ""


def _results(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(each.parent for each in folder.glob(f"*/{MANIFEST}"))
    except OSError:
        return


def _model(kind: type[_Model], file: Path) -> _Model:
    try:
        return kind.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        raise ValueError(f"{file}: is missing; run the command that wrote this directory again") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "all of it"
        raise ValueError(
            f"{file}: is not what this simfs writes ({where}: {first['msg']}); run it again"
        ) from None


def _scenario(about: Mapping[str, Any], folder: Path) -> Scenario:
    resolved = about.get("scenario", {}).get("resolved")
    try:
        return Scenario.model_validate(resolved)
    except (ValidationError, ScenarioError):
        where = folder / MANIFEST
        raise ValueError(f"{where}: its scenario is not one of this version of simfs; run it again") from None


def _with_curves(result: ScenarioResult, folder: Path) -> ScenarioResult:
    """The result with its latency curves, which lie in a table of their own; older directories have none.

    Raises ValueError where that table is broken.
    """
    file = folder / "tables" / "latency_curves.parquet"
    if not file.exists():
        return result
    try:
        rows = parquet.read_table(file).to_pylist()
    except (OSError, pa.ArrowInvalid):
        raise ValueError(f"{file}: is broken; run it again") from None
    curves: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        curves.setdefault((row["point"], row["operation"]), []).append(row["below_ns"])

    def curved(point: PointResult) -> PointResult:
        found = {
            name: took.model_copy(update={"curve": tuple(curves.get((point.id, name), ())[:-1])})
            for name, took in point.latency.items()
        }
        return point.model_copy(update={"latency": found})

    return result.model_copy(update={"points": tuple(map(curved, result.points))})
