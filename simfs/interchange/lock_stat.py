"""`/proc/lock_stat`, version 0.4 (`kernel/locking/lockdep_proc.c`, `seq_stats`): times are microseconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simfs.interchange.reading import Lines, Reading, Waits, count, number

if TYPE_CHECKING:
    from simfs.results.model import PointResult, ScenarioResult

COLUMNS = (
    "con-bounces", "contentions", "waittime-min", "waittime-max", "waittime-total", "waittime-avg",
    "acq-bounces", "acquisitions", "holdtime-min", "holdtime-max", "holdtime-total", "holdtime-avg",
)  # fmt: skip
_HEADING = re.compile(r"^\s*class name\s+con-bounces\s+contentions", re.MULTILINE)
_ROW = re.compile(r"^\s*(?P<name>\S.*?):\s*(?P<numbers>\d[\d.\s]*)$")
_POINT = re.compile(r"^\s*\S.*\s+\d+\s+\[<[0-9a-f]*>\]\s+\S+$")
WIDTH = 40 + 12 * 15


def is_mine(text: str) -> bool:
    """Whether there is its version, its heading, or nothing but its rows (`grep : /proc/lock_stat`)."""
    first = [line for line in text.splitlines() if line.strip()][:3]
    return (
        text.lstrip().startswith("lock_stat version")
        or bool(_HEADING.search(text))
        or (bool(first) and all(_of_row(line) for line in first))
    )


def read(text: str) -> Reading:
    """Read a row a class and side (`-W`, `-R`); the contention points below it count as used."""
    lines, waits = Lines(text), []
    for line in lines:
        if _HEADING.match(line) or "lock_stat version" in line or _POINT.match(line):
            lines.take()
        elif (row := _of_row(line)) is not None:
            lines.take()
            waits.append(row)
    return Reading("lock_stat", lines.matched if waits else 0, lines.skipped, waits=tuple(waits))


def _of_row(line: str) -> Waits | None:
    found = _ROW.match(line)
    numbers = found["numbers"].split() if found else []
    if found is None or len(numbers) != len(COLUMNS):
        return None
    values = dict(zip(COLUMNS, numbers, strict=True))
    contended, acquired = count(values["contentions"]), count(values["acquisitions"])
    times = [number(values[key]) for key in ("waittime-total", "waittime-max", "holdtime-total")]
    if contended is None or acquired is None or None in times:
        return None
    total, longest, held = (1e3 * (time or 0.0) for time in times)
    name, side = found["name"].strip(), ""
    if name[-2:] in ("-W", "-R"):
        name, side = name[:-2], name[-1]
    return Waits((name,), contended, side, total, longest, acquired, held)


def write(result: ScenarioResult, points: Sequence[PointResult]) -> str:
    """The classes of one point with lockdep's names, as the file has them; minima are not kept: 0.00."""
    from simfs.interchange.locks_out import of_lock_stat, the_one

    rule = "-" * (WIDTH + 1)
    rows = [
        "lock_stat version 0.4",
        rule,
        f"{'class name':>40} " + " ".join(f"{name:>14}" for name in COLUMNS),
    ]
    rows += [rule, ""]
    for name, numbers in of_lock_stat(the_one(points)):
        shown = [f"{v:>14d}" if isinstance(v, int) else f"{v:>14.2f}" for v in numbers]
        rows.append(f"{name:>40}:" + " ".join(shown))
    return "\n".join(rows) + "\n"
