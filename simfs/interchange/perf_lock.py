"""`perf lock contention` (tables, `-x`, `-t`, `-o`, `-l`, with or without `-b`) and `perf lock report`.

The columns are those of `tools/perf/builtin-lock.c` (Linux 6.12): `print_lock_stat_stdio`, `print_lock_stat_csv`
and `print_result`. Times of tables have a unit, those of `-x` are nanoseconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simfs.interchange.reading import Lines, Reading, Waits, count, duration, number

if TYPE_CHECKING:
    from simfs.results.model import PointResult, ScenarioResult

_TABLE = re.compile(r"^\s*contended\s+total wait", re.MULTILINE)
_CSV = re.compile(r"^# output:\s*(?P<columns>contended.*)$", re.MULTILINE)
_REPORT = re.compile(r"^\s*Name\s+acquired\s+contended\s+avg wait", re.MULTILINE)
_TIME = r"(?P<{0}>[\d.]+) (?P<{0}_unit>ns|us|ms|s|m|h)"
_COLUMNS = {
    "contended": "contended",
    "total wait": "wait_total",
    "max wait": "wait_max",
    "min wait": "wait_min",
    "avg wait": "wait_avg",
}
_STACK = re.compile(r"^\s+0x[0-9a-f]+\s+(?P<function>[\w.]+)(?:\+0x[0-9a-f]+)?\s*$")
_ROW = re.compile(
    rf"^\s*(?P<acquired>\d+)\s+(?P<contended>\d+)\s+{_TIME.format('avg')}\s+{_TIME.format('total')}\s+"
    rf"{_TIME.format('max')}\s+{_TIME.format('min')}\s*$"
)
_KINDS = ("spinlock", "rwlock", "rwsem", "mutex", "semaphore", "pcpu-sem", "rt-mutex", "percpu-rwsem")


def is_mine(text: str) -> bool:
    """Whether there is a heading of perf's tables."""
    return bool(_TABLE.search(text) or _CSV.search(text) or _REPORT.search(text))


def read(text: str) -> Reading:
    """Read the waits; by thread, owner or address they have no kind."""
    lines = Lines(text)
    if found := _CSV.search(text):
        waits = _of_csv(lines, found["columns"])
    elif _TABLE.search(text):
        waits = _of_table(lines)
    else:
        waits = _of_report(lines)
    return Reading("perf-lock", lines.matched, lines.skipped, waits=tuple(waits))


def _of_csv(lines: Lines, heading: str) -> list[Waits]:
    separator = heading.removeprefix("contended")[:1] or ","
    columns = [word.strip() for word in heading.split(separator)]
    waits = []
    for line in lines:
        if line.startswith("# output:"):
            lines.take()
            continue
        values = dict(zip(columns, (w.strip() for w in line.split(separator)), strict=False))
        found = count(values.get("contended", ""))
        if found is None or len(values) < len(columns):
            continue
        lines.take()
        whole, longest = (number(values.get(key, "")) for key in ("total wait", "max wait"))
        waits.append(_waits(values, columns, found, whole, longest))
    return waits


def _waits(
    values: dict[str, str], columns: Sequence[str], found: int, whole: float | None, longest: float | None
) -> Waits:
    kind = values.get("type", "")
    where = values.get("caller") or values.get(columns[-1], "")
    return Waits((_function(where),), found, kind, whole, longest)


def _function(caller: str) -> str:
    return re.sub(r"\+0x[0-9a-f]+$", "", " ".join(caller.split()))


def _of_table(lines: Lines) -> list[Waits]:
    row, waits = None, list[Waits]()
    for line in lines:
        if _TABLE.match(line):
            row = _row_of(line)
            lines.take()
        elif row and (found := row.match(line)):
            lines.take()
            waits.append(_of_row(found.groupdict()))
        elif waits and (stack := _STACK.match(line)):
            lines.take()
            last = waits[-1]
            where = (*(() if last.kind and len(last.where) == 1 else last.where), stack["function"])
            waits[-1] = Waits(where, last.count, last.kind, last.total_ns, last.max_ns)
    return waits


def _row_of(heading: str) -> re.Pattern[str]:
    """What a line below a heading looks like: `-F` and `-k` choose and order the columns."""
    rest, parts, left = heading.strip(), [], list(_COLUMNS)
    while known := next((name for name in left if rest.startswith(name)), None):
        left.remove(known)
        parts.append(r"(?P<contended>\d+)" if known == "contended" else _TIME.format(_COLUMNS[known]))
        rest = rest.removeprefix(known).lstrip()
    kind = r"(?P<kind>[\w:-]+)\s+" if rest.startswith("type") else ""
    return re.compile(r"^\s*" + r"\s+".join(parts) + r"\s+" + kind + r"(?P<where>\S.*?)\s*$")


def _of_row(found: dict[str, str | None]) -> Waits:
    def time(name: str) -> float | None:
        return duration(found.get(name) or "", found.get(f"{name}_unit") or "")

    where = found["where"] or ""
    return Waits(
        (_function(where),),
        count(found.get("contended") or "") or 0,
        found.get("kind") or "",
        time("wait_total"),
        time("wait_max"),
    )


def _of_report(lines: Lines) -> list[Waits]:
    """`perf lock report` cuts names at 16 characters, and leaves those that it does not know empty."""
    waits = []
    for line in lines:
        if _REPORT.match(line):
            lines.take()
        elif found := _ROW.match(line[20:]):
            lines.take()
            values = found.groupdict()
            name = _function(line[:20].strip()) or "?"
            waits.append(
                Waits(
                    (name,),
                    count(values["contended"]) or 0,
                    "",
                    duration(values["total"], values["total_unit"]),
                    duration(values["max"], values["max_unit"]),
                    count(values["acquired"]),
                )
            )
    return waits


def write(result: ScenarioResult, points: Sequence[PointResult]) -> str:
    """The table of `perf lock contention` of one point; the caller is the function that names the class."""
    from simfs.interchange.locks_out import contended, the_one

    rows = [" contended   total wait     max wait     avg wait         type   caller", ""]
    for lock in contended(the_one(points)):
        times = "".join(f" {_time(ns):>12}" for ns in (lock.total_ns, lock.max_ns, lock.mean_ns))
        rows.append(f"{lock.count:10d}{times}   {lock.kind:>10}   {lock.where}+0x0")
    return "\n".join(rows) + "\n"


def write_csv(result: ScenarioResult, points: Sequence[PointResult]) -> str:
    """The same as `-x,` prints it."""
    from simfs.interchange.locks_out import contended, the_one

    rows = ["# output: contended, total wait, max wait, avg wait, type, caller"]
    for lock in contended(the_one(points)):
        times = ", ".join(f"{ns:.0f}" for ns in (lock.total_ns, lock.max_ns, lock.mean_ns))
        rows.append(f"{lock.count}, {times}, {lock.kind}, {lock.where}+0x0")
    return "\n".join(rows) + "\n"


def _time(ns: float) -> str:
    """As perf prints times (`lock_stat_key_print_time`): the largest unit that the number fills."""
    for scale, unit in ((3600e9, "h "), (60e9, "m "), (1e9, "s "), (1e6, "ms"), (1e3, "us")):
        if ns >= scale:
            return f"{ns / scale:.2f} {unit}"
    return f"{ns:.0f} ns"
