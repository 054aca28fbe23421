"""The generated text of the prediction pages: measured beside predicted, scores and misses, as Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from simfs.reports.numbers import NOTHING, plain
from simfs.reports.validate import kind
from simfs.results.validation import SAYERS, Row, Score, Validated, relative, score
from simfs.scenario.measured.dataset import Dataset
from simfs.scenario.measured.predicting import Predicted

WIDE = 4
"""Most series that stand side by side in a table."""
FAR, FAR_POINTS = 0.5, 20.0
"""From which error on, relative and in points, the farthest row of a data set is listed as a miss."""


@dataclass(frozen=True)
class Recorded:
    """A data set with the predictions and fitted values of the tables."""

    pair: Predicted
    validated: Validated
    fits: dict[str, str]

    @property
    def data(self) -> Dataset:
        """What was measured."""
        return self.pair.dataset

    @property
    def rows(self) -> Sequence[Row]:
        """The measured rows with their predictions."""
        return self.validated.rows


# ── The page of one data set ──


def about(each: Recorded) -> str:
    """What stands between the marks of a data set's page."""
    data, scenario = each.data, each.pair.scenario
    source = f"{data.source.author}, {data.source.date}; {data.source.where}"
    lines = [
        f"* What was measured: {one_line(data.title)}",
        f"* Machine: {one_line(data.machine)}. Kernel: {one_line(data.kernel)}.",
        f"* Source: {one_line(source)}" + (f" ([link]({data.source.url}))" if data.source.url else ""),
    ]
    if scenario is not None:
        where = f"[`{scenario.name}`](../../scenarios/{scenario.name}.yaml)"
        lines.append(f"* Scenario: {where}; `simfs validate {data.name}` makes this page's numbers.")
    outside = (f"{sentence[0].upper()}{sentence[1:]}." for sentence in each.validated.outside)
    lines += [f"* {sentence}" for sentence in (fitted(each), *outside, *scores(each.rows))]
    return "\n".join([*lines, "", *tables(each)]) + "\n"


def one_line(text: str) -> str:
    """Text of a YAML file in one line of Markdown."""
    return " ".join(text.split()).replace("<", "&lt;").rstrip(".")


def fitted(each: Recorded) -> str:
    """What was fitted, on which rows."""
    scenario = each.pair.scenario
    if scenario is None or not scenario.calibrate:
        return "Nothing was fitted."
    parts = []
    for entry in scenario.calibrate:
        on = ", ".join(
            dict.fromkeys(f"{r.series}" + (f" at {r.x:g}" if r.x is not None else "") for r in entry.rows)
        )
        value = f" = {each.fits[entry.parameter]}" if entry.parameter in each.fits else ""
        parts.append(f"`{entry.parameter}`{value} (on {on})")
    said = "; ".join(parts)
    if not each.fits:
        return f"To be fitted: {said}. No value within its bounds meets the rows, so nothing is predicted."
    return f"Fitted: {said}. All else is predicted."


def scores(rows: Sequence[Row]) -> Iterator[str]:
    """How well simfs and the baselines said the rows to be predicted."""
    for who, says in SAYERS.items():
        s = score(rows, says)
        if s.rows == 0:
            continue
        parts = [f"{s.right} of {s.changes} signs of change are right"] if s.changes else []
        if s.median is not None and s.worst is not None:
            parts.append(f"absolute error: median {100 * s.median:.1f} %, worst {100 * s.worst:.0f} %")
        if s.points is not None:
            parts.append("of percentages: median {:.1f}, worst {:.0f} points".format(*s.points))
        name = {"simfs": "simfs predicts", "USL": "the Universal Scalability Law says"}.get(
            who, f'"{who}" says'
        )
        yield f"{name} {s.rows} rows: " + "; ".join(parts) + "."


def tables(each: Recorded) -> Iterator[str]:
    """Measured beside predicted, in the shape that the data set has."""
    rows = each.rows
    series = list(dict.fromkeys(row.series for row in rows))
    metrics = list(dict.fromkeys((row.metric, row.unit) for row in rows))
    x = each.data.x.rsplit(".", 1)[-1].replace("_", " ")
    if len(series) <= WIDE and len({row.x for row in rows}) == 1:
        lines = ((called(*m), [row for row in rows if (row.metric, row.unit) == m]) for m in metrics)
        yield from side_by_side(f"{x}: {rows[0].x:g}", series, lines)
        return
    for (present, alone), alike in groupby(metrics, lambda m: shape(rows, *m)):
        few = list(alike)
        if alone is not None and len(few) > 1:
            lines = ((called(*m), [row for row in rows if (row.metric, row.unit) == m]) for m in few)
            yield from side_by_side(f"{x}: {alone:g}", present, lines)
            continue
        yield from apart(rows, few, present, x)


def shape(rows: Sequence[Row], metric: str, unit: str) -> tuple[tuple[str, ...], float | None]:
    """The series that have a metric, and the one x at which all have it, if they fit side by side."""
    mine = [row for row in rows if (row.metric, row.unit) == (metric, unit)]
    present, at = tuple(dict.fromkeys(row.series for row in mine)), {row.x for row in mine}
    return present, at.pop() if len(at) == 1 and len(present) <= WIDE else None


def apart(
    rows: Sequence[Row], metrics: Sequence[tuple[str, str]], present: Sequence[str], x: str
) -> Iterator[str]:
    """A table for each of the metrics."""
    for metric, unit in metrics:
        mine = [row for row in rows if (row.metric, row.unit) == (metric, unit)]
        name = called(metric, unit)
        yield f"{name[0].upper()}{name[1:]}:"
        yield ""
        if len(present) <= WIDE:
            steps = sorted({row.x for row in mine})
            yield from side_by_side(
                x, present, ((f"{at:,g}", [r for r in mine if r.x == at]) for at in steps)
            )
        else:
            yield from table(
                ["series", x, "measured", "predicted"],
                (
                    [row.series, f"{row.x:,g}", measured(row), said(row)]
                    for row in sorted(mine, key=lambda row: present.index(row.series))
                ),
            )


def side_by_side(
    corner: str, series: Sequence[str], lines: Iterable[tuple[str, Sequence[Row]]]
) -> Iterator[str]:
    """A table with measured and predicted columns for each series."""

    def cells(rows: Sequence[Row]) -> Iterator[str]:
        for name in series:
            row = next((row for row in rows if row.series == name), None)
            yield from (measured(row), said(row)) if row else ("", "")

    heads = [head for name in series for head in (f"{name}: measured", "predicted")]
    return table([corner, *heads], ([name, *cells(rows)] for name, rows in lines))


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table and an empty line."""
    yield "| " + " | ".join(heads) + " |"
    yield "|" + " --- |" * len(heads)
    for line in lines:
        yield "| " + " | ".join(line) + " |"
    yield ""


def called(metric: str, unit: str) -> str:
    """A metric for people: `idle (%)`."""
    words = metric.replace("_per_s", " a second").replace("_per_operation", " an operation").replace("_", " ")
    words = re.sub(r"^io\b", "I/Os", words)
    words = re.sub(r"\b(xfs|agi|agf)\b", lambda name: name[0].upper(), words)
    words = (
        re.sub(rf" ({unit.lower().replace('/s', '')}|percent)( a second)?$", "", words)
        if unit != "1/s"
        else words
    )
    return words if unit in ("1/s", "1") else f"{words} ({unit})"


def measured(row: Row) -> str:
    """A measured value; `~` says that it is approximate."""
    return ("about " if row.approx else "") + plain(row.measured)


def said(row: Row) -> str:
    """A predicted value with its interval and its error, or what the row is for instead."""
    if row.predicted is None:
        return NOTHING
    value = plain(row.predicted)
    if row.ci_low is not None and row.ci_high is not None:
        half = (row.ci_high - row.ci_low) / 2
        value += f" ± {half:,.0f}" if abs(row.predicted) >= 100 else f" ± {half:.2g}"
    return f"{value} ({off(row) if row.role == 'predict' else row.role})"


def off(row: Row) -> str:
    """The error of a prediction: of a percentage in points."""
    assert row.predicted is not None
    if row.unit == "%":
        return f"{row.predicted - row.measured:+.0f} points"
    error = relative(row.predicted, row.measured)
    return f"{row.predicted:+.3g}" if error is None else f"{100 * error:+.0f} %"


# ── The page of all ──


def overview(found: Sequence[Recorded]) -> str:
    """The table of all data sets, sums by kind of metric, and the farthest misses."""
    whole = [row for each in found for row in each.rows]
    every = [row for row in whole if row.counted]
    kinds = dict.fromkeys(map(kind, every))
    groups = [(link(e) + (" (*)" if e.validated.outside else ""), e.rows) for e in found]
    groups += [(f"all {name}", [row for row in every if kind(row) == name]) for name in kinds]
    groups += [("**all**", every), ("all, with (*)", whole)]
    heads = ["data set", "rows", "right signs", "error, %", "error, points"]
    heads += ['"nothing changes": right signs', "error, %"]
    lines = ([name, *score_cells(rows)] for name, rows in groups)
    return "\n".join(["", *table(heads, lines), NOT_COUNTED, "", law(every), "", *misses(found)])


def fits_of(found: Sequence[Recorded]) -> str:
    """What was fitted for each data set, by key of its scenario, as JSON: with what notebooks run it."""
    fitted = {each.data.name: each.fits for each in found if each.fits}
    return f"{json.dumps(fitted, indent=2)}\n"


NOT_COUNTED = """\
(*) Not counted as predicted: a fitted value lies outside the range of its source. Such a value stands for a mechanism
that simfs does not have. The rows "all" are without these."""


def link(each: Recorded) -> str:
    """The name of a data set, with a link to its page."""
    return f"[{each.data.name}](predictions/{each.data.name}.md)"


def law(every: Sequence[Row]) -> str:
    """How well the Universal Scalability Law says the rows for which it can be fitted, and simfs the same rows."""
    rows = [row for row in every if row.usl is not None]
    its, ours = score(rows, SAYERS["USL"]), score(rows)
    return (
        f"A Universal Scalability Law can be fitted for {its.rows} of these rows. It has {signs(its)} signs right and "
        f"a median error of {percent(its.median)} there; simfs has {signs(ours)} and {percent(ours.median)}."
    )


def score_cells(rows: Sequence[Row]) -> list[str]:
    """How well rows were said by simfs and by "nothing changes"."""
    ours, nothing = score(rows), score(rows, SAYERS["nothing changes"])
    points = NOTHING if ours.points is None else "{:.1f} / {:.0f}".format(*ours.points)
    return [str(ours.rows), signs(ours), errors(ours), points, signs(nothing), errors(nothing)]


def signs(s: Score) -> str:
    """Right signs of change of all."""
    return f"{s.right} of {s.changes}" if s.changes else NOTHING


def errors(s: Score) -> str:
    """Median and worst error."""
    if s.median is None or s.worst is None:
        return NOTHING
    return f"{100 * s.median:.1f} / {100 * s.worst:,.0f}"


def percent(share: float | None) -> str:
    """A share in per cent."""
    return NOTHING if share is None else f"{100 * share:.0f} %"


def misses(found: Sequence[Recorded]) -> Iterator[str]:
    """The farthest row of each data set that has one far off."""
    yield "The farthest miss of each data set that has one off by more than half of the measured value or 20 points:"
    yield ""
    worst = [(each, max(wrong(each.rows), key=distance, default=None)) for each in found]
    yield from table(
        ["data set", "row", "measured", "predicted"],
        (
            [link(e), f"{r.series}, {r.x:,g}, {called(r.metric, r.unit)}",
             measured(r), said(r)]
            for e, r in worst
            if r is not None
        ),
    )  # fmt: skip


def wrong(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows to be predicted that are far off."""
    for row in rows:
        if row.role == "predict" and row.predicted is not None:
            far = FAR_POINTS if row.unit == "%" else FAR
            if abs(row.predicted - row.measured) > far * (1 if row.unit == "%" else abs(row.measured)):
                yield row


def distance(row: Row) -> float:
    """How far off a row is, for comparison: relative errors as factors, points as shares."""
    assert row.predicted is not None
    if row.unit == "%":
        return abs(row.predicted - row.measured) / 100
    return abs(row.predicted - row.measured) / max(abs(row.measured), 1e-12)
