"""Logs of FxMark's `run-fxmark.py`: `## medium:filesystem:benchmark:cores:directio`, `# ncpu secs works ...`, a row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simfs.interchange.reading import Figure, Lines, Reading, count, number

if TYPE_CHECKING:
    from simfs.results.model import PointResult, ScenarioResult

_RUN = re.compile(r"^## (?P<medium>[\w-]+):(?P<fs>\w+):(?P<bench>\w+):(?P<cores>\d+):(?P<io>\w+)\s*$")
_CONFIG = re.compile(r"^### (?P<key>[A-Z_]+)\s*= (?P<value>.*)$")
_COLUMNS = "# ncpu secs works works/sec"
_SHARES = {"idle.util": "idle_percent", "user.util": "user_percent"}


def is_mine(text: str) -> bool:
    """Whether there is a run and the heading of a row."""
    lines = text.splitlines()
    return any(x.startswith(_COLUMNS) for x in lines) and any(_RUN.match(x) for x in lines)


def read(text: str) -> Reading:
    """Read the rate, the idle and the user time of each run."""
    lines, figures, facts = Lines(text), list[Figure](), dict[str, str]()
    run, columns = "", list[str]()
    for line in lines:
        if found := _RUN.match(line):
            lines.take()
            run, columns = f"{found['fs']} {found['bench']} {found['io']}, {found['medium']}", []
        elif found := _CONFIG.match(line):
            lines.take()
            facts[found["key"]] = found["value"]
        elif line.startswith(_COLUMNS):
            lines.take()
            columns = line[1:].split()
        elif run and columns and (values := _row(line, columns)):
            lines.take()
            figures += _figures(run, values)
    return Reading("fxmark", lines.matched if figures else 0, lines.skipped, tuple(figures), facts=facts)


def _row(line: str, columns: list[str]) -> dict[str, float]:
    found = [number(word) for word in line.split()]
    usable = len(found) == len(columns) and None not in found
    values = dict(zip(columns, (v for v in found if v is not None), strict=False)) if usable else {}
    return values if values.get("ncpu", 0) >= 1 and "works/sec" in values else {}


def _figures(run: str, values: dict[str, float]) -> list[Figure]:
    tasks = count(str(values["ncpu"]))
    found = [Figure(run, "works_per_s", values["works/sec"], tasks)]
    return found + [
        Figure(run, metric, values[column], tasks)
        for column, metric in _SHARES.items()
        if 0 <= values.get(column, -1) <= 100
    ]


def write(result: ScenarioResult, points: Sequence[PointResult]) -> str:
    """A run a point, with the columns of `PerfMon.LEVEL_LOW`; seconds of steal and guest are none."""
    states = ("user", "nice", "sys", "idle", "iowait", "irq", "softirq", "steal", "guest")
    heading = " ".join([_COLUMNS, "real.sec", *(f"{s}.sec" for s in states), *(f"{s}.util" for s in states)])
    parts = [f"### SYSTEM         = simfs {result.name}", f"### NUM_TEST_CONF  = {len(points)}", ""]
    for point in points:
        shares, seconds = point.shares, point.window_ns * point.replications / 1e9
        part = {
            "user": shares.user.mean,
            "sys": shares.system.mean + shares.spin.mean + shares.switch.mean,
            "idle": shares.idle.mean,
            "irq": shares.irq.mean,
        }
        util = [part.get(state, 0.0) for state in states]
        spent = [share / 100 * seconds * point.cpus for share in util]
        numbers = [seconds, *spent, *util]
        name, bench = (re.sub(r"\W", "_", word) for word in (point.variant, result.operation))
        parts += [
            f"## sim:{name}:{bench}:{point.tasks}:bufferedio",
            heading,
            f"{point.tasks} {seconds:f} {point.operations:f} {point.throughput.mean:f} "
            + " ".join(f"{v:g}" for v in numbers),
            "",
        ]
    return "\n".join(parts)
