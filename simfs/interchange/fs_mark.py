"""fs_mark 3.3: a line an iteration below `FSUse% Count Size Files/sec App Overhead`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simfs.interchange.reading import Figure, Lines, Reading, count, number

if TYPE_CHECKING:
    from simfs.results.model import PointResult, ScenarioResult

_HEADING = re.compile(r"^FSUse%\s+Count\s+Size\s+Files/sec\s+App Overhead")
_THREADS = re.compile(r"^#\s*Version (?P<version>\S+), (?P<threads>\d+) thread\(s\)")
_COMMAND = re.compile(r"^#\s+\S*fs_mark\s+(?P<options>-.*)$")


def is_mine(text: str) -> bool:
    """Whether there is its heading."""
    return any(_HEADING.match(line) for line in text.splitlines())


def read(text: str) -> Reading:
    """Read a figure an iteration: files a second of all threads."""
    lines, figures, tasks, seen = Lines(text), list[Figure](), None, False
    facts = dict[str, str]()
    for line in lines:
        if found := _THREADS.match(line):
            lines.take()
            tasks, facts["version"] = count(found["threads"]) or None, found["version"]
        elif found := _COMMAND.match(line):
            lines.take()
            facts["options"] = " ".join(found["options"].split())
        elif line.startswith("#") or _HEADING.match(line):
            lines.take()
            seen |= bool(_HEADING.match(line))
        elif seen and (rate := _rate(line.split())) is not None:
            lines.take()
            figures.append(Figure("fs_mark", "files_per_s", rate, tasks))
    return Reading("fs_mark", lines.matched if figures else 0, lines.skipped, tuple(figures), facts=facts)


def _rate(words: list[str]) -> float | None:
    whole = len(words) >= 5 and all(count(w) is not None for w in words[:3])
    rate = number(words[3]) if whole and number(words[4]) is not None else None
    return rate if rate is not None and rate >= 0 else None


def write(result: ScenarioResult, points: Sequence[PointResult]) -> str:
    """A run a point: the head with its threads, and a line a replication."""
    parts = []
    for point in points:
        size, done = 0, 0
        parts += [
            "",
            f"#  fs_mark  -t  {point.tasks}  -s  {size} ",
            f"#\tVersion 3.3, {point.tasks} thread(s) starting at Thu Jan  1 00:00:00 1970",
            f"#\tSync method: as {result.name}:{point.variant} has it.",
            "#\tApp overhead is time in microseconds spent in the test not doing file writing related system calls.",
            "",
            "FSUse%        Count         Size    Files/sec     App Overhead",
        ]
        for rate in point.replication_throughputs:
            done += round(rate * point.window_ns / 1e9)
            user = point.shares.user.mean / 100 * point.cpus * point.window_ns / 1e3
            parts.append(f"{0:6d} {done:12d} {size:12d} {rate:12.1f} {user:16.0f}")
    return "\n".join(parts) + "\n"
