"""`simfs validate`: predictions held against measured data, row by row."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simfs.commands.common import (
    Format,
    Quick,
    Rows,
    Seed,
    Threads,
    emit,
    notes,
    overrides,
    progresses,
    refuse_folder,
    refuse_out,
)
from simfs.commands.errors import (
    BAD_INPUT,
    BROKEN,
    FAILED,
    complain,
    plain_errors,
    refusals_of_runs,
    refused,
)
from simfs.commands.experiment import write_texts

if TYPE_CHECKING:
    from simfs.experiments.side_by_side import Gate
    from simfs.results.run import Engine, Progress
    from simfs.results.validation import Blame, Validated
    from simfs.scenario.measured.predicting import Predicted


SHOWN = 3
"""Rows without a prediction that are named of each data set before the rest is counted."""


Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DATASET",
        help="Data sets, or scenarios with measured data: names or files; all shipped data sets by default.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FOLDER", help="Write rows, scores and figures into this folder."),
]
MaxError = Annotated[
    float | None,
    typer.Option(
        min=0, metavar="PERCENT", help="Fail if the error of any predicted row is larger.", show_default=False
    ),
]
MedianError = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="PERCENT",
        help="Fail if the median error of any data set is larger.",
        show_default=False,
    ),
]
Signs = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=100,
        metavar="PERCENT",
        help="Fail if fewer signs of change are right.",
        show_default=False,
    ),
]
Details = Annotated[
    bool,
    typer.Option(
        "--details",
        help="With --format json: print rows, scores, fits and intervals, not only the rows.",
    ),
]
StoreFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Keep the runs in this folder; in the user's cache by default.",
        show_default=False,
    ),
]


def validate(
    names: Names = None,
    out: Out = None,
    output: Rows = Format.TEXT,
    max_error: MaxError = None,
    median_error: MedianError = None,
    signs: Signs = None,
    details: Details = False,
    store: StoreFolder = None,
    seed: Seed = None,
    threads: Threads = None,
    quick: Quick = False,
) -> None:
    """Compare predictions with measured data, row by row.

    Each scenario is fitted only on the rows that allow it, and predicts all others. The output has the errors, the
    share of right signs of change, and the errors of two baselines. Runs are kept: the same command resumes.
    """
    with plain_errors("the runs that ended are kept; the same command resumes"), refusals_of_runs():
        from simfs.scenario.measured.predicting import predicted

        if details and output is not Format.JSON:
            raise refused("--details: works with --format json")
        refuse_out(out)
        pairs = predicted(names or [], overrides(None, seed))
        remember = _remembering(store)
        found = _all_validated(pairs, quick, threads, remember)
        _print(found, output, details)
        if out is not None:
            _write(found, out)
        limits = {"max_error": max_error, "median_error": median_error, "signs": signs}
        code = _told(found) or _limits_broken(found, limits)
    raise typer.Exit(code)


def _numbered(pairs: Sequence[Predicted]) -> Iterator[tuple[str, Predicted]]:
    for number, pair in enumerate(pairs, 1):
        yield (f"{number}/{len(pairs)} " if len(pairs) > 1 else ""), pair


def _all_validated(
    pairs: Sequence[Predicted], quick: bool, threads: int | None, remember: Callable[[Engine], Engine]
) -> list[Validated]:
    """Side by side, the longest first: most of what a fit runs are single runs, one after the other."""
    from simfs.experiments.longest_first import longest_first
    from simfs.experiments.side_by_side import Gate, side_by_side

    gate = Gate(threads or os.cpu_count() or 1)
    with progresses() as another:

        def validated(number: str, pair: Predicted) -> Validated:
            with another() as report:
                engine = _engine_of(pair, gate, remember)
                return _validated(f"{number}{pair.dataset.name}", pair, quick, gate.slots, engine, report)

        order = longest_first(pairs)
        numbered = _numbered([pairs[number] for number in order])
        found = side_by_side(gate, [partial(validated, *each) for each in numbered])
        return [each for _, each in sorted(zip(order, found, strict=True), key=itemgetter(0))]


def _validated(
    name: str, pair: Predicted, quick: bool, threads: int, engine: Engine, report: Progress
) -> Validated:
    from simfs.experiments.validate import validate as hold

    begin = time.perf_counter()

    def tell(done: int, total: int, label: str) -> None:
        report(done, total, f"{name}: {label}")

    found = hold(pair, quick=quick, threads=threads, progress=tell, engine=engine)
    notes().print(f"{name}: {time.perf_counter() - begin:.1f} s")
    return found


def _engine_of(pair: Predicted, gate: Gate, remember: Callable[[Engine], Engine]) -> Engine:
    """Locks written in Python run on the reference machine; their text is not in a run's name, so none is kept."""
    from simfs.results.run import native_engine, reference_engine
    from simfs.scenario import expand

    points = expand(pair.scenario) if pair.scenario else ()
    own = any(point.scenario.used_own_locks for point in points)
    return gate.before(reference_engine()) if own else remember(gate.before(native_engine()))


def _remembering(store: Path | None) -> Callable[[Engine], Engine]:
    """What gives an engine a memory in `store`; without one where the cache cannot be written."""
    from simfs.results.store import Store

    folder = store or _cache()
    if store is not None:
        refuse_folder(store, f"--store {store}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(None, "permission denied", str(folder))
    except OSError as error:
        if store is not None:
            raise refused(f"--store {store}: cannot be written: {error.strerror}") from None
        notes().print(f"{folder} cannot be written: runs are not kept; --store names another place")
        return lambda engine: engine
    return Store(folder).remembering


def _cache() -> Path:
    # The XDG Base Directory Specification.
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "simfs" / "runs"


def _print(found: Sequence[Validated], output: Format, details: bool) -> None:
    from simfs.reports import validate as reports

    if output is Format.TEXT:
        reports.print_validation(found)
    elif details:
        emit(reports.details_to_json(found))
    else:
        rows = [row for each in found for row in each.rows]
        emit(reports.to_json(rows) if output is Format.JSON else reports.to_csv(rows))


def _write(found: Sequence[Validated], out: Path) -> None:
    from simfs.reports import validate as reports
    from simfs.reports.figures.validate import figures

    rows = [row for each in found for row in each.rows]
    texts = {
        "rows.json": reports.to_json(rows),
        "rows.csv": reports.to_csv(rows),
        "scores.csv": reports.scores_to_csv(found),
        "fits.csv": reports.fits_to_csv(found),
    }
    write_texts(out, "validate", texts, figures(found))


BLAMED: dict[Blame, int] = {"input": BAD_INPUT, "fit": BROKEN, "engine": FAILED}


def _told(found: Sequence[Validated]) -> int:
    """Say on standard error what went wrong; the exit code for it."""
    from simfs.results.model import FINDING_EXIT_CODES

    codes = [0]
    for each in found:
        for note in each.notes[:SHOWN]:
            complain(f"{each.dataset}: {note}")
        if len(each.notes) > SHOWN:
            complain(f"{each.dataset}: and {len(each.notes) - SHOWN} more rows without a prediction")
        if each.notes and all(row.predicted is None for row in each.rows):
            codes.append(BAD_INPUT)
        if each.problem:
            complain(f"{each.dataset}: not predicted: {each.problem}")
            codes.append(BLAMED[each.blame] if each.scenario else 0)
        for finding in each.findings:
            complain(f"check failed: {each.dataset}: {finding.sentence}")
            codes.append(FINDING_EXIT_CODES[finding.kind])
    return max(codes)


def _limits_broken(found: Sequence[Validated], limits: dict[str, float | None]) -> int:
    from simfs.reports.validate import broken_limits

    broken = [message for each in found for message in broken_limits(each, **limits)]
    for message in broken:
        complain(f"check failed: {message}")
    return BROKEN if broken else 0
