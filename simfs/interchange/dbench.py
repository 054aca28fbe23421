"""dbench 4: the table of operations and the last line, `Throughput ... MB/sec  n clients`. Times are milliseconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simfs.interchange.reading import Figure, Lines, Reading, count, number

if TYPE_CHECKING:
    from simfs.results.model import PointResult, ScenarioResult

_LAST = re.compile(
    r"^Throughput (?P<rate>[\d.]+) MB/sec\s+(?:\(sync \w+\)\s+)?(?P<clients>\d+) clients\s+\d+ procs\s+"
    r"max_latency=(?P<latency>[\d.]+) ms"
)
_OPERATION = re.compile(r"^ (?P<name>[A-Z]\w+)\s+(?P<count>\d+)\s+(?P<average>[\d.]+)\s+(?P<longest>[\d.]+)$")
_PROGRESS = re.compile(
    r"^\s*\d+\s+(?:\d+\s+[\d.]+ MB/sec\s+(?:warmup|execute)|cleanup)\s+\d+ sec"
    r"|^dbench version|^Running for|^\d+ of \d+ processes|^releasing clients|^ Operation\s+Count"
)


def is_mine(text: str) -> bool:
    """Whether there is its first or last line."""
    return any(line.startswith("dbench version") or _LAST.match(line) for line in text.splitlines())


def read(text: str) -> Reading:
    """Read the throughput and the latencies of the operations."""
    lines, figures, operations = Lines(text), list[Figure](), list[tuple[str, float, float]]()
    for line in lines:
        if found := _LAST.match(line):
            tasks = count(found["clients"]) or None
            rate, longest = number(found["rate"]), number(found["latency"])
            if rate is None or longest is None:
                continue
            lines.take()
            figures += [
                Figure("dbench", "throughput_mb_per_s", rate, tasks),
                Figure("dbench", "max_latency_ms", longest, tasks),
            ]
            figures += [f for operation in operations for f in _latencies(*operation, tasks)]
            operations = []
        elif found := _OPERATION.match(line):
            average, longest = number(found["average"]), number(found["longest"])
            if average is not None and longest is not None:
                lines.take()
                operations.append((found["name"].lower(), average, longest))
        elif _PROGRESS.match(line):
            lines.take()
    return Reading("dbench", lines.matched if figures else 0, lines.skipped, tuple(figures))


def _latencies(name: str, average: float, longest: float, tasks: int | None) -> list[Figure]:
    return [
        Figure("dbench", f"{name}_avg_latency_ms", average, tasks),
        Figure("dbench", f"{name}_max_latency_ms", longest, tasks),
    ]


def write(result: ScenarioResult, points: Sequence[PointResult]) -> str:
    """A run a point: the table of its operations and the last line."""
    parts = []
    for point in points:
        seconds = point.window_ns * point.replications / 1e9
        parts += ["dbench version 4.00 - simfs", "", f"Running for {seconds:g} seconds", ""]
        parts += [" Operation      Count    AvgLat    MaxLat", " ----------------------------------------"]
        for name, latency in point.latency.items():
            shown = "".join(word.title() for word in re.split(r"\W+", name))
            parts.append(
                f" {shown:<12} {latency.count:7d} {latency.mean_ns / 1e6:9.3f} {latency.max_ns / 1e6:9.3f}"
            )
        moved = (point.bytes_per_s.mean if point.bytes_per_s else 0.0) / 1e6
        longest = max((x.max_ns for x in point.latency.values()), default=0.0) / 1e6
        parts += [
            "",
            f"Throughput {moved:g} MB/sec  {point.tasks} clients  {point.tasks} procs  max_latency={longest:.3f} ms",
            "",
        ]
    return "\n".join(parts)
