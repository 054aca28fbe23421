"""How far throughputs were off, as factors, and how often changes went the way that was predicted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, exp, log

from prediction_text import Recorded, table

from simfs.reports.accuracy import Accuracy, Direction, Level
from simfs.reports.validate import kind
from simfs.results.validation import Row, changes

SIZES = (2.0, 5.0, 20.0, None)
"""Ends of the classes of predicted changes, in per cent."""

EVIDENCE = {
    ("published", False): "measured by others, nothing fitted",
    ("published", True): "measured by others, something fitted",
    ("measured", None): "measured on machines of ours",
    ("emulated", None): "of a real kernel on emulated CPUs",
}
"""Where rows come from, and whether something was fitted to others of their data set."""


def accuracy(found: Sequence[Recorded]) -> str:
    """The record of what others measured, as JSON: what results quote."""
    published = [each for each in found if each.pair.scenario and each.data.evidence == "published"]
    of = {
        fitted: by_filesystem(each for each in published if bool(each.fits) is fitted)
        for fitted in (False, True)
    }
    record = Accuracy(fitted=of[True], unfitted=of[False], directions=tuple(directions(published)))
    return f"{record.model_dump_json(indent=2)}\n"


def by_filesystem(found: Iterable[Recorded]) -> dict[str, Level]:
    """How far throughputs on each kind of filesystem are off."""
    of: dict[str, list[Row]] = {}
    for each in found:
        assert each.pair.scenario
        of.setdefault(each.pair.scenario.filesystem.kind, []).extend(throughputs(each))
    levels = {name: level(rows) for name, rows in sorted(of.items())}
    return {name: known for name, known in levels.items() if known}


def throughputs(each: Recorded) -> list[Row]:
    """The rows of a data set that are rates and are counted."""
    return [row for row in each.rows if row.counted and kind(row) == "throughput"]


def level(rows: Iterable[Row]) -> Level | None:
    """Within which factors predictions lie; None where nothing was predicted."""
    off = sorted(
        abs(log(row.predicted / row.measured))
        for row in rows
        if row.role == "predict" and row.predicted and row.measured > 0
    )
    if not off:
        return None
    half, most = (exp(off[ceil(share * len(off)) - 1]) for share in (0.5, 0.9))
    return Level(rows=len(off), half=round(half, 2), most=round(most, 1))


def directions(found: Iterable[Recorded]) -> Iterator[Direction]:
    """How often changes between two versions, at the same load, went the predicted way, by predicted size."""
    pairs = [
        (b.predicted / a.predicted - 1, b.measured / a.measured - 1)
        for each in found
        for a, b in changes(throughputs(each))
        if a.x == b.x and a.predicted and b.predicted and a.measured
    ]
    low = 0.0
    for below in SIZES:
        mine = [pair for pair in pairs if low <= 100 * abs(pair[0]) < (below or float("inf"))]
        yield Direction(below=below, changes=len(mine), right=sum(said * was > 0 for said, was in mine))
        low = below or low


def record(found: Sequence[Recorded]) -> Iterator[str]:
    """Tables of factors by evidence, and of directions by predicted size."""
    yield "How far throughputs were off, as factors, and how many changes between versions went the way predicted:"
    yield ""
    heads = ["throughputs", "rows", "half within", "nine of ten within", "changes"]
    yield from table(heads, filter(None, (cells(found, *key) for key in EVIDENCE)))
    yield "The same changes of what others measured, by the size of what was predicted:"
    yield ""
    others = directions(each for each in found if each.data.evidence == "published")
    heads = ["predicted change", "went that way"]
    yield from table(heads, ([size, right_of(each)] for size, each in zip(sizes(), others, strict=True)))


def cells(found: Sequence[Recorded], evidence: str, fitted: bool | None) -> list[str] | None:
    """The line of one kind of evidence."""
    mine = [e for e in found if e.data.evidence == evidence and fitted in (None, bool(e.fits))]
    known = level(row for each in mine for row in throughputs(each))
    if known is None:
        return None
    told = Direction(below=None, changes=0, right=0)
    for each in directions(mine):
        told = Direction(below=None, changes=told.changes + each.changes, right=told.right + each.right)
    return [
        EVIDENCE[evidence, fitted],
        str(known.rows),
        f"{known.half:.2f}",
        f"{known.most:.1f}",
        right_of(told),
    ]


def right_of(told: Direction) -> str:
    """How many changes went the predicted way."""
    return f"{told.right} of {told.changes}"


def sizes() -> Iterator[str]:
    """The classes of predicted changes."""
    low = 0.0
    for below in SIZES:
        yield f"more than {low:g} %" if below is None else f"{low:g} to {below:g} %"
        low = below or low
