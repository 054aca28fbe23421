"""Size and features of an ext4, from `dumpe2fs -h` or `tune2fs -l`, as the `filesystem:` section of a scenario."""

from __future__ import annotations

import re

from simfs.interchange.reading import Lines, Reading, flow

_FIELD = re.compile(r"^(?P<name>[A-Z][A-Za-z0-9#() -]{3,40}):\s+(?P<value>\S.*)$")
_COUNT = re.compile(r"\d{1,18}")


def is_mine(text: str) -> bool:
    """Whether there is the superblock's magic number."""
    return bool(re.search(r"^Filesystem magic number:\s+0xEF53", text, re.MULTILINE))


def read(text: str) -> Reading:
    """Read size, journal, orphan file and bytes an inode as keys of `filesystem:`."""
    lines = Lines(text)
    fields: dict[str, str] = {}
    for line in lines:
        if found := _FIELD.match(line):
            lines.take()
            fields[found["name"]] = found["value"]
    blocks, of, inodes = (_count(fields, name) for name in ("Block count", "Block size", "Inode count"))
    if not blocks or not of or not inodes:
        return Reading("dumpe2fs", 0, lines.skipped + lines.matched)
    features = fields.get("Filesystem features", "").split()
    facts = {
        "kind": "ext4",
        "size": f"{blocks * of} B",
        "inode_ratio": f"{blocks * of // inodes} B",
        "journal": _yes("has_journal" in features),
        "orphan_file": _yes("orphan_file" in features),
    }
    return Reading(
        "dumpe2fs", lines.matched, lines.skipped, facts=facts, section=f"filesystem: {flow(facts)}\n"
    )


def _count(fields: dict[str, str], name: str) -> int | None:
    value = fields.get(name, "")
    return int(value) if _COUNT.fullmatch(value) else None


def _yes(value: bool) -> str:
    return "true" if value else "false"
