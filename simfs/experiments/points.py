"""Points that experiments vary: which one is asked about, and the same point with a changed RunSpec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simfs.results.model import ScenarioResult, Value
from simfs.results.request import Request
from simfs.results.run import Engine, Progress, Runs, run_scenario, suited_engine
from simfs.results.warmup import settled
from simfs.scenario import Measure, Point, Scenario, expand, to_run_spec
from simfs.scenario.suggest import choices

Patch = Mapping[tuple[str, ...], object]
"""Path in the RunSpec -> the value it gets."""


@dataclass(frozen=True)
class Varied:
    """A point whose RunSpec differs from its scenario's in what `patch` says."""

    point: Point
    id: str
    patch: Patch = field(default_factory=dict)

    @property
    def variant(self) -> str:
        """Name of the variant."""
        return self.point.variant

    @property
    def values(self) -> Mapping[str, Value]:
        """Swept values of the point itself."""
        return self.point.values

    def spec(self, replication: int) -> dict[str, Any]:
        """Return the RunSpec of one replication."""
        spec = to_run_spec(self.point, replication)
        for path, value in self.patch.items():
            holder = spec
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = value
        return spec


def the_point(scenario: Scenario, variant: str | None = None) -> Point:
    """Return the one point of a scenario that is asked about.

    The variant must be named where there are several. Of several swept points it is the one with as many
    tasks as CPUs, else the one with the most tasks. Raises ValueError for a variant that is missing or unknown.
    """
    points = expand(scenario)
    names = list(dict.fromkeys(point.variant for point in points))
    if variant is None and len(names) > 1:
        raise ValueError(f"--variant: this scenario has several; name one of {', '.join(names)}")
    if variant is not None and variant not in names:
        raise ValueError(f"--variant: there is no variant '{variant}'; {choices(variant, names)}")
    own = [point for point in points if variant in (None, point.variant)]

    def interest(point: Point) -> tuple[bool, int]:
        tasks = point.scenario.tasks
        return tasks == to_run_spec(point, 0)["machine"]["cpus"], tasks

    return max(own, key=interest)


def common_runs(point: Point, measure: Measure, engine: Engine | None = None) -> Runs:
    """Return how variations of `point` are run: equally often and with one warm-up, so that they can be paired.

    `warmup: auto` is found once, on the point itself. `precision` is not used: pairs need equal numbers.
    """
    warmup = measure.warmup
    if isinstance(warmup, str):
        warmup = settled(Request(to_run_spec(point, 0)), engine or suited_engine())
    return Runs(measure.replications, warmup=warmup, confidence=measure.confidence)


def run_varied(
    points: Sequence[Varied],
    runs: Runs,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    metrics: Sequence[str] = (),
) -> ScenarioResult:
    """Run every variation with the same random streams. Raises ValueError where the engine refuses one."""

    def spec(point: Varied, replication: int) -> dict[str, Any]:
        return point.spec(replication) | {"warmup_ns": runs.warmup}

    options: dict[str, Any] = {"threads": threads, "progress": progress, "engine": engine}
    return run_scenario(points, runs, to_spec=spec, metrics=metrics, **options)
