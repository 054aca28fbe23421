"""BCC's `klockstat`: of `tools/klockstat.py` (nanoseconds) and of `libbpf-tools/klockstat.c` (with units).

Both print who takes mutexes (the second one rwsems too), first what was waited, then how long was held.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simfs.interchange.reading import Lines, Reading, Waits, count, duration, symbol

if TYPE_CHECKING:
    from simfs.results.model import PointResult, ScenarioResult

_HEADING = re.compile(
    r"^\s*(?:Tid\s+Comm|Caller)\s+Avg (?P<what>Spin|Wait|Hold)\s+Count\s+Max (?:spin|[Ww]ait|[Hh]old)\s+Total"
)
_TIME = r"(\d+(?:\.\d+)?)(?: (ns|us|ms|s|m|h))?"
_ROW = re.compile(rf"^\s*(?P<where>\S.*?)\s+{_TIME}\s+(?P<count>\d+)\s+{_TIME}\s+{_TIME}\s*$")
_FRAME = re.compile(r"^\s+(?P<function>[\w.]+\+0x[0-9a-f]+)\s*$")
_MARGIN = re.compile(r"^(Tracing|Exiting|\^C|#|\s+Max PID)")


def is_mine(text: str) -> bool:
    """Whether there is a heading of its tables."""
    return any(_HEADING.match(line) for line in text.splitlines())


def read(text: str) -> Reading:
    """Read the waits and holds by caller; the last of several tables counts, which has everything since the start."""
    lines, side, found = Lines(text), "", dict[str, dict[str, tuple[tuple[str, ...], list[float]]]]()
    last = ""
    for line in lines:
        if heading := _HEADING.match(line):
            lines.take()
            side = "held" if heading["what"] == "Hold" else "wait"
            if side == "wait":
                found = {}
            found[side] = {}
        elif side and (row := _ROW.match(line)):
            numbers = _numbers(row)
            if numbers is not None:
                lines.take()
                last = row["where"]
                found[side][last] = ((symbol(last),), numbers)
        elif side and last in found.get(side, {}) and (frame := _FRAME.match(line)):
            lines.take()
            where, numbers = found[side][last]
            function = symbol(frame["function"])
            found[side][last] = ((*where, function) if function != where[-1] else where, numbers)
        elif _MARGIN.match(line):
            lines.take(0)
    waits, held = found.get("wait", {}), found.get("held", {})
    rows = [
        Waits(where, int(n), "", total, longest, int(n), held.get(key, ((), [0.0, 0.0, 0.0]))[1][2])
        for key, (where, (n, longest, total)) in waits.items()
    ]
    return Reading("klockstat", lines.matched if rows else 0, lines.skipped, waits=tuple(rows))


def _numbers(row: re.Match[str]) -> list[float] | None:
    """Count, longest and total; the total overflows its column where it is huge, and is none then."""
    _, _, average_unit, found, longest, longest_unit, total, total_unit = row.groups()
    times = [duration(longest, longest_unit or "ns"), duration(total, total_unit or "ns")]
    n = count(found)
    if n is None or None in times or (average_unit is None) != (total_unit is None):
        return None
    return [float(n), *(t for t in times if t is not None)]


def write(result: ScenarioResult, points: Sequence[PointResult]) -> str:
    """The tables of `klockstat.py` of one point: sleeping locks only, all acquisitions."""
    from simfs.interchange.locks_out import sleeping, the_one

    locks = sleeping(the_one(points))
    parts = ["Tracing lock events... Hit Ctrl-C to end."]
    for what in ("Spin", "Hold"):
        parts.append(
            f"{'Caller':>40} {'Avg ' + what:>10} {'Count':>6} {'Max ' + what.lower():>10} {'Total ' + what.lower():>10}"
        )
        for lock in locks:
            total, longest = (
                (lock.total_ns, lock.max_ns) if what == "Spin" else (lock.held_ns, lock.held_max_ns)
            )
            mean = total / lock.acquired
            parts.append(
                f"{lock.where + '+0x0':>40} {mean:10.0f} {lock.acquired:6d} {longest:10.0f} {total:10.0f}"
            )
        parts.append("")
    return "\n".join(parts)
