"""Measured rows beside predictions and baselines: as text, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from simfs.reports.layout import Sheet, new_table, report_console
from simfs.reports.numbers import NOTHING, percent, plain
from simfs.results.validation import COLUMNS, SAYERS, Row, Score, Validated, score
from simfs.scenario.measured.metrics import metric

KINDS = {
    "throughput": "throughput",
    "bytes": "throughput",
    "share": "shares of CPU time",
    "kernel": "shares of CPU time",
    "online_idle": "shares of CPU time",
    "latency": "latencies",
    **dict.fromkeys(("wake_to_run", "grant_to_run", "wait", "delay"), "waits for CPUs and locks"),
}
"""What metrics are summed up under, by their quantity; all others are `counts and totals`."""


def print_validation(found: Sequence[Validated], console: Console | None = None) -> None:
    """Print every row, and how well each data set and all together were predicted."""
    console = console or report_console()
    for each in found:
        console.print(_dataset(each))
    console.print(summary(found))


def to_json(rows: Sequence[Row]) -> str:
    """The rows as one JSON list; what was not simulated is null."""
    return json.dumps([_cells(row) for row in rows], indent=1, ensure_ascii=False) + "\n"


def details_to_json(found: Sequence[Validated]) -> str:
    """One JSON document of rows with their measured intervals and baselines, scores, fits and what was refused."""
    whole = {
        "rows": [
            _cells(row) | {"measured_low": row.low, "measured_high": row.high, "counted": row.counted}
            | {"usl": row.usl, "nothing_changes": row.nothing}
            for row in _all(found)
        ],
        "scores": [dict(zip(SCORES, cells, strict=True)) for cells in _score_rows(found)],
        "fits": [{"dataset": each.dataset} | fit.model_dump(mode="json") for each in found for fit in each.fits],
        "not_counted": {each.dataset: each.outside for each in found if each.outside},
        "not_predicted": {each.dataset: each.problem for each in found if each.problem},
    }  # fmt: skip
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def to_csv(rows: Sequence[Row]) -> str:
    """The rows with both baselines as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*COLUMNS, "approx", "usl", "nothing_changes", "counted"])
    writer.writerows([*_cells(row).values(), row.approx, row.usl, row.nothing, row.counted] for row in rows)
    return out.getvalue()


def scores_to_csv(found: Sequence[Validated]) -> str:
    """Scores of each data set and overall, of simfs and of the baselines, as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(SCORES)
    writer.writerows(_score_rows(found))
    return out.getvalue()


SCORES = (
    "dataset", "predictor", "rows", "right_signs", "changes", "median_error", "worst_error", "median_points",
    "worst_points",
)  # fmt: skip


def _score_rows(found: Sequence[Validated]) -> Iterator[list[str | float | None]]:
    """Scores of each data set, of all rows that count as predicted, and of all rows."""
    every = _all(found)
    groups = [
        *((each.dataset, each.rows) for each in found),
        ("overall", _counted(every)),
        ("all rows", every),
    ]
    for name, rows in groups:
        for who, says in SAYERS.items():
            s = score(rows, says)
            yield [name, who, s.rows, s.right, s.changes, s.median, s.worst, *(s.points or (None, None))]


def _counted(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.counted]


def fits_to_csv(found: Sequence[Validated]) -> str:
    """What was fitted for each data set as CSV; values in the unit beside them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["dataset", "parameter", "value", "unit"])
    for each in found:
        for fit in each.fits:
            writer.writerows([each.dataset, k, v, fit.units.get(k, "")] for k, v in fit.values.items())
    return out.getvalue()


def broken_limits(
    each: Validated, *, max_error: float | None, median_error: float | None, signs: float | None
) -> Iterator[str]:
    """Say which limits, in per cent, a data set breaks."""
    s = score(each.rows)
    if max_error is not None:
        for row in each.rows:
            if row.role == "predict" and row.error is not None and abs(row.error) * 100 > max_error:
                yield f"{each.dataset}: {row.place}: error {100 * row.error:+.1f} %, over --max-error {max_error:g}"
    if median_error is not None and s.median is not None and 100 * s.median > median_error:
        yield f"{each.dataset}: median error {100 * s.median:.1f} %, over --median-error {median_error:g}"
    if signs is not None and s.signs is not None and 100 * s.signs < signs:
        yield f"{each.dataset}: {s.right} of {s.changes} signs of change are right, under --signs {signs:g} %"


def summary(found: Sequence[Validated]) -> RenderableType:
    """How well each data set was predicted, and all, beside the baselines."""
    groups = {each.dataset: list(each.rows) for each in found}
    every = _all(found)
    if len(found) > 1:
        believed = _counted(every)
        kinds = dict.fromkeys(map(kind, believed))
        groups |= {f"all: {name}": [row for row in believed if kind(row) == name] for name in kinds}
        groups["overall"] = believed
        if len(believed) < len(every):
            groups["with rows not counted"] = every
    title = "Rows with role predict: right signs of change, absolute errors (median / worst)"
    parts: list[RenderableType] = [_scores(title, groups, ("simfs", "nothing changes"), len(found))]
    lawful = {name: [row for row in rows if row.usl is not None] for name, rows in groups.items()}
    lawful = {name: rows for name, rows in lawful.items() if score(rows).rows}
    if lawful:
        title = "Of these the rows for which a Universal Scalability Law (USL) can be fitted"
        parts.append(_scores(title, lawful, ("simfs", "USL"), sum(each.dataset in lawful for each in found)))
    else:
        parts.append(Text(" USL: no series has enough calibrate rows for it"))
    notes = ["points: percentages, whose difference is not taken relative to them"]
    if spoilt := [each.dataset for each in found if each.outside]:
        notes.append(
            "not counted as predicted, because a fitted value lies outside the range of its source: "
            + ", ".join(spoilt)
        )
    return Group(*parts, Padding(Group(*map(Text, notes)), (0, 1, 1, 1)))


def _scores(title: str, groups: Mapping[str, Sequence[Row]], sayers: Sequence[str], sets: int) -> Sheet:
    table = new_table(title)
    table.add_column("data set", no_wrap=True, vertical="bottom")
    table.add_column("rows", justify="right", no_wrap=True, vertical="bottom")
    for who in sayers:
        for name in (f"{who}\nsigns".replace(" ", "\n"), "%", "points"):
            table.add_column(name, justify="right", no_wrap=True, vertical="bottom")
    for place, (name, rows) in enumerate(groups.items(), 1):
        scores = [score(rows, SAYERS[who]) for who in sayers]
        wanted = sum(row.role == "predict" for row in rows)
        known = score(rows if name == "with rows not counted" else _counted(rows)).rows
        predicted = f"{known} of {wanted}" if known < wanted else str(wanted)
        cells = [cell for each in scores for cell in _score(each)]
        table.add_row(name, predicted, *cells, end_section=place == sets)
    return table


def kind(row: Row) -> str:
    """What a row is summed up under."""
    return KINDS.get(metric(row.metric).quantity, "counts and totals")


def _all(found: Sequence[Validated]) -> list[Row]:
    return [row for each in found for row in each.rows]


def _score(s: Score) -> list[str]:
    signs = f"{s.right}/{s.changes}" if s.changes else NOTHING
    errors = (
        NOTHING if s.median is None or s.worst is None else f"{_short(100 * s.median)} / {100 * s.worst:.0f}"
    )
    points = NOTHING if s.points is None else f"{_short(s.points[0])} / {s.points[1]:.0f}"
    return [signs, errors, points]


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def _dataset(each: Validated) -> RenderableType:
    heading = f"{each.dataset}: {each.title}" + (f" (scenario {each.scenario})" if each.scenario else "")
    table = new_table(heading)
    for name in ("series", "metric"):
        table.add_column(name)
    columns: dict[str, Callable[[Row], str]] = {
        each.x.rsplit(".", 1)[-1]: lambda row: f"{row.x:g}",
        "measured": lambda row: ("~" if row.approx else "") + plain(row.measured),
        "predicted": lambda row: plain(row.predicted),
        "interval": _interval,
        "error": lambda row: error(row),
        "role": lambda row: row.role,
    }
    for name in columns:
        table.add_column(name, justify="left" if name == "role" else "right", no_wrap=True)
    for row in each.rows:
        table.add_row(row.series, row.metric, *(cell(row) for cell in columns.values()))
    return Group(table, Padding(Group(*(Text(line) for line in _sentences(each))), (0, 1, 1, 1)))


def _sentences(each: Validated) -> Iterator[str]:
    yield from (fit.sentence for fit in each.fits)
    yield from each.outside
    if each.problem:
        yield f"not predicted: {each.problem}"
    elif not each.fits:
        yield "nothing was fitted here"
    for who, says in SAYERS.items():
        s = score(each.rows, says)
        parts = [f"{s.right} of {s.changes} signs of change right"] if s.changes else []
        if s.median is not None and s.worst is not None:
            parts.append(f"absolute error median {100 * s.median:.1f} %, worst {100 * s.worst:.1f} %")
        if s.points is not None:
            parts.append("of percentages median {:.1f}, worst {:.1f} points".format(*s.points))
        yield f"{who}: {s.rows} rows to be predicted" + "".join(f"; {part}" for part in parts)


def _interval(row: Row) -> str:
    if row.ci_low is None or row.ci_high is None:
        return NOTHING
    return f"{plain(row.ci_low)} to {plain(row.ci_high)}"


def error(row: Row) -> str:
    """The error of a row's prediction: of a percentage in points, else relative."""
    value = row.predicted
    if value is None:
        return NOTHING
    if row.unit == "%":
        return f"{percent(value - row.measured, signed=True)} points"
    if row.error is None:
        return f"{value - row.measured:+.3g} {row.unit}"
    return f"{percent(100 * row.error, signed=True)} %"


def _cells(row: Row) -> dict[str, str | float | None]:
    cells = {name: getattr(row, name) for name in COLUMNS}
    return cells | {"x": int(row.x) if row.x.is_integer() else row.x}
