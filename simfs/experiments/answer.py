"""The answer to a scenario: what it declares is fitted, its points are run, measured rows stand beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from simfs.experiments.conclusion import conclusion
from simfs.experiments.fitted import fitted
from simfs.results.expected import expected, metrics_of
from simfs.results.model import Fit, MeasuredRow, ScenarioResult
from simfs.results.run import Engine, Progress, run_scenario
from simfs.results.saturated import with_saturated
from simfs.scenario import Point, Scenario, expand, to_run_spec
from simfs.scenario.points import ONLY_VARIANT, group_loads
from simfs.scenario.sections.tasks import Serving

OPERATIONS = {
    "compile": "compile",
    "create": "create",
    "create_unlink": "create-unlink",
    "tmpfile": "temporary file",
    "fs_mark": "file",
    "mix": "operation",
    "dbench": "dbench call",
    "fio": "I/O",
    "lock_cycle": "lock cycle",
    "range_lock": "range lock",
    "python": "operation",
}
"""What one operation of a workload is called, singular."""


def answer(
    asked: Scenario,
    *,
    given: Iterable[str] = (),
    quick: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    metrics: Sequence[str] = (),
    variants: Sequence[str] = (),
    why: bool = False,
) -> tuple[Scenario, ScenarioResult]:
    """Fit what `asked` declares, except the keys that were `given` by hand, and run it.

    `metrics` are wanted besides those of the scenario's measured rows and expectations, `variants` the only ones
    that are run; with `why` the chains of waiting are recorded.
    `quick` makes it a first look; the fit stays the same. Returns the scenario with the fitted values in
    place, and the result. Raises ValueError for a fit that may not be done and for a spec that the engine
    refuses, ImportError where there is no engine.
    """
    options: dict[str, Any] = {"threads": threads, "progress": progress, "engine": engine}
    asked, fits = fit(asked, given=given, quick=quick, **options)
    points = [point for point in expand(asked) if not variants or point.variant in variants]
    wanted = list(dict.fromkeys([*metrics, *metrics_of_groups(asked), *metrics_of(asked.expect)]))
    result = run_points(asked, points, tuple(asked.sweep), metrics=wanted, why=why, **options).with_fits(fits)
    result = with_saturated(result, {point.id: rate for point in points if (rate := offered(point.scenario))})
    found = {"answer": conclusion(result, points), "expected": expected(asked.expect, result)}
    return asked, result.model_copy(update=found)


def metrics_of_groups(asked: Scenario) -> list[str]:
    """The rate and the fairness of each group of tasks, and the fairness between them."""
    each = [f"group_{group.name}_{what}" for group in asked.groups for what in ("per_s", "fairness")]
    return [*each, "groups_fairness"] if each else []


def offered(asked: Scenario) -> float | None:
    """Requests a second that arrive, where all tasks serve requests."""
    loads = list(group_loads(asked).values()) or [asked.workload]
    arrivals = [load.arrivals for load in loads if isinstance(load, Serving)]
    gaps = [each.gap for each in arrivals if each is not None]
    return sum(1e9 / gap for gap in gaps) if len(gaps) == len(loads) else None


def fit(
    asked: Scenario,
    *,
    given: Iterable[str] = (),
    quick: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> tuple[Scenario, tuple[Fit, ...]]:
    """The scenario with what it declares fitted, except the keys that were `given`, and the fit.

    A `quick` first look begins only then: a fit on a fifth of the time would be a fit on noise. What of `measure` was
    `given` stays as it is.
    """
    by_hand = set(given)
    open_ = tuple(wanted for wanted in asked.calibrate if wanted.parameter not in by_hand)
    asked = asked.model_copy(update={"calibrate": open_})
    asked, fits = fitted(asked, _measured(asked), threads=threads, progress=progress, engine=engine)
    return asked.quick(by_hand) if quick else asked, fits


def run_points(
    asked: Scenario,
    points: Sequence[Point],
    keys: Sequence[str],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    metrics: Sequence[str] = (),
    why: bool = False,
) -> ScenarioResult:
    """Run these points of `asked`, which vary in `keys`, beside the scenario's measured rows."""
    left_out = {variant.name for variant in asked.variants} - {point.variant for point in points}
    result = run_scenario(
        points,
        asked.measure,
        threads=threads,
        progress=progress,
        engine=engine,
        to_spec=_with_chains if why else None,
        measured=[row for row in _measured(asked) if row.variant not in left_out],
        name=asked.name,
        operation=operation_of(points),
        sweep=tuple(keys),
        titles=titles_of(asked),
        metrics=metrics,
    )
    kinds = dict.fromkeys(point.scenario.filesystem.kind for point in points)
    found = {"first_look_of_ns": asked.measure.whole_duration, "filesystems": tuple(kinds)}
    return result.model_copy(update=found)


def _with_chains(point: Point, replication: int) -> dict[str, Any]:
    return dict(to_run_spec(point, replication)) | {"chains": True}


def _measured(asked: Scenario) -> list[MeasuredRow]:
    if asked.measured is None:
        return []
    from simfs.scenario import placed_rows

    return [MeasuredRow(**vars(row)) for row in placed_rows(asked.measured)]


def operation_of(points: Sequence[Point]) -> str:
    """What one operation of these points is called, singular."""
    kinds = {
        load.kind
        for point in points
        for load in (group_loads(point.scenario).values() or [point.scenario.workload])
    }
    return OPERATIONS.get(kinds.pop(), "operation") if len(kinds) == 1 else "operation"


def titles_of(scenario: Scenario) -> dict[str, str]:
    """Titles of the variants that have one, by name; where there are none, the scenario's name."""
    if not scenario.variants:
        return {ONLY_VARIANT: scenario.name}
    return {variant.name: variant.title for variant in scenario.variants if variant.title}
