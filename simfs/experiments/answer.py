"""The answer to a scenario: what it declares is fitted, its points are run, measured rows stand beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simfs.results.fitted import fitted
from simfs.results.model import MeasuredRow, ScenarioResult
from simfs.results.run import Progress, run_scenario
from simfs.scenario import Point, Scenario, expand, placed_rows

OPERATIONS = {
    "compile": "compile",
    "create": "create",
    "create_unlink": "create-unlink",
    "tmpfile": "temporary file",
    "lock_cycle": "lock cycle",
}
"""What one operation of a workload is called, singular."""


def answer(
    asked: Scenario,
    *,
    given: Iterable[str] = (),
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[Scenario, ScenarioResult]:
    """Fit what `asked` declares, except the keys that were `given` by hand, and run it.

    Returns the scenario with the fitted values in place, and the result. Raises ValueError for a fit that
    may not be done and for a spec that the engine refuses, ImportError where there is no engine.
    """
    rows = [MeasuredRow(**vars(row)) for row in placed_rows(asked.measured)]
    by_hand = set(given)
    open_ = tuple(wanted for wanted in asked.calibrate if wanted.parameter not in by_hand)
    asked = asked.model_copy(update={"calibrate": open_})
    asked, fits = fitted(asked, rows, threads=threads, progress=progress)
    points = expand(asked)
    result = run_scenario(
        points,
        asked.measure,
        threads=threads,
        progress=progress,
        measured=rows,
        name=asked.name,
        operation=operation_of(points),
        sweep=tuple(asked.sweep),
        titles=titles_of(asked),
    )
    return asked, result.with_fits(fits)


def operation_of(points: Sequence[Point]) -> str:
    """What one operation of these points is called, singular."""
    kinds = {point.scenario.workload.kind for point in points}
    return OPERATIONS.get(kinds.pop(), "operation") if len(kinds) == 1 else "operation"


def titles_of(scenario: Scenario) -> dict[str, str]:
    """Titles of the variants that have one, by name."""
    return {variant.name: variant.title for variant in scenario.variants if variant.title}
