"""Write `classes` of `models/instructions/*.yaml`: the classes of instructions of `just emulate steps-charged`.

    python -m laboratory.classed FOLDER KERNEL

KERNEL is the unpacked package of the guests' kernel, by whose code instructions are classed. Steps of guests that were
not run, and those of groups without an operation, keep the classes that they have. Needs capstone and pyelftools, which
nothing else here needs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from laboratory import calls, file_calls, loops, synced, trees
from laboratory.blocks import Log
from laboratory.counted import GROUPS, MODELS, Row, Values, counted, read
from laboratory.fetched import fetches
from laboratory.results import read_console

if TYPE_CHECKING:
    from laboratory.classes import Code

CLASSES = ("atomic", "unlock", "indirect", "user", "mask", "return")
"""Instructions that cost a machine more than others do (classes.py)."""
FETCH = "fetch"
"""Lines of code that come from the L2."""
APART = 1_000_000
"""What is counted of a class is counted so many times."""
SPREAD = 0.2
"""Range of what is counted of a class: another release or compiler, recalled."""
HEAD = f"""\
classes:  # fetch: lines of code that an L1 of 32 KiB does not have in the loop that was counted; overlap: by trees.py
  source: "one task in the emulated kernel, charged to a memory cgroup, by the code of the kernel's package;
    means. Without `instructions`: as counted before, in a kernel without memory cgroups"
  evidence: measured
  spread: {SPREAD}
  steps:
"""
Rows = Mapping[str, Sequence[Row]]
"""Of the guests of a filesystem, by their names behind that of the filesystem."""
Part = tuple[str, tuple[str, ...], Callable[[Rows], Values]]
"""A table, the guests whose rows it needs, and its steps."""
_BY_HAND = ".softirq"
"""RCU's callbacks, of which the tables have medians of functions."""
_OPERATIONS = ("-operations", "-directories")


def parts(filesystem: str) -> Iterator[Part]:
    """Yield what `counted` takes from guests, guest by guest."""
    if filesystem == "tmpfs":
        yield "tmpfs", ("",), lambda rows: calls.tmpfs(rows[""])
        yield "vfs", ("",), lambda rows: calls.tmpfs_loop(rows[""])
    else:
        yield filesystem, ("",), lambda rows: counted(rows[""], filesystem, few=True)
        yield "vfs", ("",), lambda rows: calls.vfs(rows[""], filesystem)
    yield filesystem, ("-loops",), lambda rows: loops.counted(rows["-loops"], filesystem)
    yield "vfs", ("-loops",), lambda rows: loops.vfs(rows["-loops"], filesystem)
    yield (
        "vfs",
        _OPERATIONS,
        lambda rows: file_calls.counted(rows["-operations"], rows["-directories"], filesystem),
    )
    yield from _OF[filesystem]
    if filesystem in ("xfs", "btrfs"):
        yield (
            filesystem,
            ("-operations",),
            lambda rows: file_calls.truncations(rows["-operations"], filesystem),
        )


_OF: dict[str, tuple[Part, ...]] = {
    "xfs": (
        (
            "xfs",
            _OPERATIONS,
            lambda rows: file_calls.block_directory(rows["-operations"], rows["-directories"]),
        ),
    ),
    "ext4": (
        ("ext4", ("-loops",), lambda rows: synced.ext4(rows["-loops"])),
        ("loop-tmpfs", ("-loops",), lambda rows: synced.device(rows["-loops"])),
    ),
    "btrfs": (
        (
            "btrfs",
            ("-operations",),
            lambda rows: trees.synced(loops.loops(rows["-operations"])["own:overwrite_fsync"]),
        ),
    ),
    "tmpfs": tuple((name, ("-loops",), lambda rows: loops.d_move(rows["-loops"])) for name in GROUPS),
}
"""What one filesystem has besides; all have the VFS's `d_move`."""


@cache
def code_of(kernel: Path, kallsyms: str) -> Code:
    """Return the code of a kernel and its modules."""
    from laboratory.classes import Code

    return Code(kernel, kallsyms)


def main(folder: Path, kernel: Path) -> None:
    """Write the classes of all steps whose guests were run."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for filesystem in GROUPS:
        for table, steps in of_filesystem(folder, kernel, filesystem):
            found.setdefault(table, {}).update(steps)
    for table, steps in found.items():
        path = MODELS / f"instructions/{table}.yaml"
        path.write_text(replaced(path.read_text(), steps))


def of_filesystem(
    folder: Path, kernel: Path, filesystem: str
) -> Iterator[tuple[str, dict[str, dict[str, float]]]]:
    """Yield tables, and all instructions of some of their steps and those of each class."""
    wanted = list(parts(filesystem))
    rows: dict[str, list[Row]] = {}
    kallsyms = ""
    for name in sorted({name for _, names, _ in wanted for name in names}):
        guest = folder / f"steps-{filesystem}{name}"
        if guest.with_suffix(".log").exists() and read_console(guest.with_suffix(".log")).complete:
            rows[name], kallsyms = read(guest)
    run = [(table, make) for table, names, make in wanted if rows.keys() >= set(names)]
    whole = [make(rows) for _, make in run]
    counts: list[dict[str, dict[str, float]]] = [
        {step: {"instructions": mean(taken)} for step, taken in values.items()} for values in whole
    ]
    logs = [row.log for all_rows in rows.values() for row in all_rows]
    classed = [_classes(log, code_of(kernel, kallsyms)) for log in logs]
    for kind in (*CLASSES, FETCH):
        for log, more in zip(logs, classed, strict=True):
            log.weigh(APART * more[kind].astype(np.int64))
        for (_, make), values, of in zip(run, whole, counts, strict=True):
            for step, taken in make(rows).items():
                of[step][kind] = (mean(taken) - mean(values[step])) / APART
    yield from ((table, of) for (table, _), of in zip(run, counts, strict=True))


def _classes(log: Log, code: Code) -> dict[str, NDArray[np.generic]]:
    """Return what each block of a log has of each class."""
    return {**code.count(CLASSES, log.pc, log.executes), FETCH: fetches(log)}


def replaced(text: str, steps: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table with the classes of some steps in place of those that it has of them.

    Where the steps of a group have fewer instructions here than in the table, as fewer operations were logged, they
    have theirs in proportion. Within a group work may lie in a neighbouring step, as files have attribute forks.
    """
    table, _, classes = text.partition("classes:")
    lines = dict(re.findall(r"^    (\S+): (\{.*\})$", classes, flags=re.M))
    known = {name: float(n) for name, n in re.findall(r"^  (\S+): \{value: ([^,}]+)", table, flags=re.M)}
    taken = {step: counts for step, counts in steps.items() if step in known and not step.endswith(_BY_HAND)}
    before: dict[str, float] = {}
    here: dict[str, float] = {}
    for step, counts in taken.items():
        group = _group(step)
        before[group] = before.get(group, 0) + known[step]
        here[group] = here.get(group, 0) + counts["instructions"]
    for step, counts in taken.items():
        more = max(1, before[_group(step)] / max(1, here[_group(step)]))
        of = {kind: f"{more * n:.5g}" for kind, n in counts.items() if round(more * n, 2) > 0}
        of |= {"overlap": f"{trees.OVERLAP[step]:g}"} if step in trees.OVERLAP else {}
        lines[step] = "{" + ", ".join(f"{kind}: {n}" for kind, n in of.items()) + "}"
    return table + HEAD + "".join(f"    {step}: {lines[step]}\n" for step in known if step in lines)


def _group(step: str) -> str:
    """Return the traced operation that a step is of, else the step."""
    group = step.partition(".")[0]
    return group if any(group in groups for groups in GROUPS.values()) else step


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
