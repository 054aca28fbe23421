"""Maps of bpftrace: `hist()` and `lhist()`, plain or by call chain, and counts.

The unit is that of the map's name (`@wait_ns`, `@wait_us`), nanoseconds if it has none. A histogram has no sum: the
total is that of the middles of its buckets, so it is good to about a third.
"""

from __future__ import annotations

import re

from simfs.interchange.reading import SCALE, Lines, Reading, Waits, count

_MAP = re.compile(r"^@(?P<name>\w*)(?P<key>\[.*\])?:\s*$")
_OPEN = re.compile(r"^@(?P<name>\w*)\[\s*$")
_CLOSE = re.compile(r"^\](?:,\s*\d+\])?:\s*$")
_BUCKET = re.compile(
    r"^[\[(](?P<low>-?\d+|\.\.\.)(?P<low_unit>[KMGTP]?)(?:, (?P<high>\d+|\.\.\.)(?P<high_unit>[KMGTP]?))?[)\]]\s+"
    r"(?P<count>\d+) \|[@ ]*\|$"
)
_FRAME = re.compile(r"^\s+(?P<function>[\w.]+)(?:\+\d+)?,?\s*$")
_COUNT = re.compile(r"^@\w*(?:\[.*\])?: \d+$")
_BINARY = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50}
_LOCK = re.compile(
    r"slowpath|^(_raw_|__mutex|mutex_|down|__down|rwsem_|percpu_|queued_|__pv_queued|__bpf_trace|bpf_trace)"
)


def is_mine(text: str) -> bool:
    """Whether there is a map with a bucket, or the tool's first line with a map below it."""
    lines = text.splitlines()
    maps = any(_MAP.match(x) or _OPEN.match(x) for x in lines)
    return maps and any(_BUCKET.match(x) for x in lines)


def read(text: str) -> Reading:
    """Read the histograms as waits: how many, and about how long."""
    lines, name, chain, waits = Lines(text), "", list[str](), list[Waits]()
    buckets = list[tuple[float, int]]()
    inside = False
    for line in lines:
        if (start := _OPEN.match(line)) or (whole := _MAP.match(line)):
            lines.take()
            waits += _histogram(name, chain, buckets)
            found = start or whole
            name, chain, buckets, inside = (found["name"] if found else ""), [], [], start is not None
            if not inside and found and found.re is _MAP and found["key"]:
                chain = [found["key"].strip("[]")]
        elif inside and _CLOSE.match(line):
            lines.take()
            inside = False
        elif inside and (frame := _FRAME.match(line)):
            lines.take()
            chain.append(frame["function"])
        elif (bucket := _BUCKET.match(line)) and not inside:
            lines.take()
            buckets.append((_middle(bucket), count(bucket["count"]) or 0))
        elif _COUNT.match(line):
            lines.take()
    waits += _histogram(name, chain, buckets)
    return Reading("bpftrace", lines.matched if waits else 0, lines.skipped, waits=tuple(waits))


def _middle(bucket: re.Match[str]) -> float:
    def edge(value: str | None, unit: str | None) -> float | None:
        return None if value in (None, "...") else float(int(value or 0) << _BINARY[unit or ""])

    low, high = edge(bucket["low"], bucket["low_unit"]), edge(bucket["high"], bucket["high_unit"])
    if low is None:
        return high or 0.0
    return low if high is None else (low + high) / 2


def _histogram(name: str, chain: list[str], buckets: list[tuple[float, int]]) -> list[Waits]:
    found = sum(n for _, n in buckets)
    if not found:
        return []
    scale = SCALE.get(name.rpartition("_")[2], 1.0)
    total = sum(middle * n for middle, n in buckets) * scale
    first = next((i for i, f in enumerate(chain) if not _LOCK.search(f)), 0)
    return [Waits(tuple(chain[first:]) or (f"@{name}",), found, _kind(chain[:first]), total)]


def _kind(own: list[str]) -> str:
    words = " ".join(own)
    for word, kind in (("spin", "spinlock"), ("rwsem_down_write", "rwsem:W"), ("rwsem_down_read", "rwsem:R")):
        if word in words:
            return kind
    return "mutex" if "mutex" in words else "semaphore" if "down" in words else ""
