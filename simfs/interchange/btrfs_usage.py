"""Size of a btrfs: `btrfs filesystem usage` and `btrfs inspect-internal dump-super` as `filesystem:` of a scenario."""

from __future__ import annotations

import re

from simfs.interchange.reading import Lines, Reading, flow

_USED = re.compile(
    r"^\s*(Device size:|total_bytes)\s+(?P<value>\d{1,20}(\.\d{1,4})?)(?P<unit>[KMGT]iB|B)?\s*$"
)
_UNITS = {None: "B", "B": "B", "KiB": "KiB", "MiB": "MiB", "GiB": "GiB", "TiB": "TiB"}


def is_mine(text: str) -> bool:
    """Whether it begins as `usage` does, or has btrfs's magic word."""
    return "_BHRfS_M" in text or ("Device size:" in text and "Device allocated:" in text)


def read(text: str) -> Reading:
    """Read the size of the device as a key of `filesystem:`."""
    lines = Lines(text)
    size = ""
    for line in lines:
        found = _USED.match(line)
        lines.take(1 if found else 0)
        if found:
            size = f"{found['value']} {_UNITS[found['unit']]}"
    if not size:
        return Reading("btrfs", 0, lines.skipped + lines.matched)
    facts = {"kind": "btrfs", "size": size}
    return Reading("btrfs", lines.matched, lines.skipped, facts=facts, section=f"filesystem: {flow(facts)}\n")
