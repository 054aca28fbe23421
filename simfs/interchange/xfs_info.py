"""`xfs_info`, also what `mkfs.xfs` prints: the geometry, as the `filesystem:` section of a scenario."""

from __future__ import annotations

import re

from simfs.interchange.reading import Lines, Reading, flow

_SECTION = re.compile(r"^(meta-data|data|naming|log|realtime)?\s*=(?P<rest>.*)$")
_AGCOUNT = re.compile(r"\bagcount=(\d{1,9})\b")
_DATA = re.compile(r"^data\s+=\s+bsize=(\d{1,9})\s+blocks=(\d{1,18})\b", re.MULTILINE)
_LOG = re.compile(r"^log\s+=\S.*?\bbsize=(\d{1,9})\s+blocks=(\d{1,12})\b", re.MULTILINE)
_NAMING = re.compile(r"^naming\s+=version 2\s+bsize=(\d{1,9})\b(?P<rest>.*)$", re.MULTILINE)
_LOG_STRIPE = re.compile(r"^log\s+=.*\n\s+=\s+sectsz=\d{1,9}\s+sunit=(\d{1,9}) blks\b", re.MULTILINE)


def is_mine(text: str) -> bool:
    """Whether there is its first line and its `data` line."""
    return text.lstrip().startswith("meta-data=") or bool(_AGCOUNT.search(text) and _DATA.search(text))


def read(text: str) -> Reading:
    """Read size, groups, size and stripe unit of the log, and what is of names, as keys of `filesystem:`."""
    lines = Lines(text)
    groups, data, log = _AGCOUNT.search(text), _DATA.search(text), _LOG.search(text)
    for line in lines:
        lines.take(1 if _SECTION.match(line) else 0)
    if groups is None or data is None:
        return Reading("xfs_info", 0, lines.skipped + lines.matched)
    facts = {"kind": "xfs", "size": f"{int(data[1]) * int(data[2])} B", "agcount": groups[1]}
    if log is not None:
        facts["log_size"] = f"{int(log[1]) * int(log[2])} B"
        stripe = _LOG_STRIPE.search(text)
        if stripe is not None and int(stripe[1]) > 0:
            facts["log_su"] = f"{int(log[1]) * int(stripe[1])} B"
    naming = _NAMING.search(text)
    if naming is not None and naming[1] != data[1]:
        facts["dirblksize"] = f"{int(naming[1])} B"
    if naming is not None and re.search(r"\bparent=1\b", naming["rest"]):
        facts["parent"] = "true"
    return Reading(
        "xfs_info", lines.matched, lines.skipped, facts=facts, section=f"filesystem: {flow(facts)}\n"
    )
