"""Comparison tables of `lkp compare` and the kernel test robot: base, change, head, metric."""

from __future__ import annotations

import re

from simfs.interchange.reading import Figure, Lines, Reading, count, number

_QUOTE = re.compile(r"^(?:> ?)+")
_HEADING = re.compile(r"^\s*%stddev\s+%change\s+%stddev\s*$")
_RULE = re.compile(r"^[- \t]{20,}$|^\s*\\\s+\|\s+\\\s*$")
_COMMITS = re.compile(r"^(?P<base>[\w.:/-]{1,40})\s+(?P<head>[\w.:/-]{1,40})\s*$")
_NUMBER = r"-?\d[\d.]*(?:e[+-]?\d+)?"
_ROW = re.compile(
    rf"^\s*(?P<base>{_NUMBER})(?:\s*±\s*\d+%)?\s+(?P<change>[+-]{_NUMBER}%?)\s+(?P<head>{_NUMBER})"
    r"(?:\s*±\s*\d+%)?\s+(?P<metric>\S.*?)\s*$"
)
_RATE = re.compile(
    r"(ops_per_sec|files_per_sec|per_(process|thread)_ops|works_per_sec|works_sec|operations_per_sec)$"
)
_TASKS = re.compile(r"\.(\d{1,5})\.(processes|threads)$|_(\d{1,5})_(?:buffered|direct)io\.")
_FXMARK = {"idle_util": "idle_percent", "user_util": "user_percent"}
_PLAIN = {
    "mpstat.cpu.all.idle%": "idle_percent",
    "mpstat.cpu.all.usr%": "user_percent",
    "fs-mark.files_per_sec": "files_per_s",
    "fsmark.files_per_sec": "files_per_s",
    "vmstat.system.cs": "context_switches_per_s",
    "dbench.throughput-MB/sec": "throughput_mb_per_s",
}


def is_mine(text: str) -> bool:
    """Whether there is its heading, also quoted in a mail."""
    return any(_HEADING.match(_QUOTE.sub("", line)) for line in text.splitlines())


def read(text: str) -> Reading:
    """Read what simfs has a metric for, on both sides; all other rows are rows too, and count as skipped."""
    lines, figures, seen, names = Lines(text), list[Figure](), False, ("base", "head")
    line = ""
    for quoted in lines:
        above, line = line, _QUOTE.sub("", quoted)
        if _HEADING.match(line):
            named = _COMMITS.match(above)
            lines.take(2 if named else 1)
            names = (named["base"], named["head"]) if named else names
            seen = True
        elif _RULE.match(line):
            lines.take()
            line = above
        elif seen and (row := _ROW.match(line)) and (known := _metric(row["metric"])):
            values = [number(row[side]) for side in ("base", "head")]
            if None in values:
                continue
            lines.take()
            metric, tasks, what = known
            figures += [
                Figure(f"{name}{what}", metric, value, tasks)
                for name, value in zip(names, values, strict=True)
                if value is not None
            ]
    return Reading("lkp", lines.matched if figures else 0, lines.skipped, tuple(figures))


def _metric(name: str) -> tuple[str, int | None, str] | None:
    if name in _PLAIN:
        return _PLAIN[name], None, ""
    found = _TASKS.search(name)
    tasks = count(found[1] or found[3]) if found else None
    if found and found[3] and (share := _FXMARK.get(name.rpartition(".")[2])):
        return share, tasks, f" {name.split('.')[1]}"
    if found and found[2]:
        return "operations_per_s", tasks, f" {found[2]}"
    if _RATE.search(name) and "per_process" not in name and "per_thread" not in name:
        return "works_per_s" if "works" in name else "operations_per_s", tasks, f" {name.split('.')[0]}"
    return None
