"""Make the tables `models/instructions/*.yaml` of what the guests of `just emulate steps` did.

    python -m laboratory.counted FOLDER

FOLDER has a console, a trace and a log of blocks of each guest `steps-FILESYSTEM`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import yaml

from laboratory import calls, file_calls, forced, loops, pushes, synced, trees
from laboratory.blocks import Log, Symbols, logs
from laboratory.results import Result, read_console
from laboratory.steps import Step, count, likeness, operations, steps

MODELS = Path(__file__).parents[3] / "models"
PER_EVENT = 10
"""Instructions of a tracepoint that is on besides the tracer: 652 in the 66 events of an XFS create and unlink, by the
same operation untraced."""
LIKE = 0.75
"""An operation with fewer of its steps in common with a group is another one."""
RARE = 0.05
"""Operations with a smaller share are not taken."""
FIRST = {
    "unlink": "enter_unlinkat",
    "mkdir": "enter_mkdirat",
}
"""The first step of an operation where it is not `enter_openat`."""
WORKER = "inode_inactivating"
_DIRECTORY = re.compile(r"xfs_ilock: dev 7:0 ino (0x[0-9a-f]+) flags ILOCK_SHARED caller xfs_ilock_data_map")

Values = dict[str, list[int]]
Table = tuple[str, Values, dict[str, str]]
"""Title, values and sources of a file."""


@dataclass(frozen=True)
class Row:
    """What was run, the log of its blocks, and the text of its trace (none where it was not traced)."""

    what: Result
    log: Log
    trace: str

    @property
    def key(self) -> tuple[str, int, str]:
        """The operation, how many names there were before, and how they begin."""
        return self.what.words["kind"], int(self.what["names"]), self.what.words["prefix"]

    def steps(self) -> list[Step]:
        """Return what the trace says; the directory is the inode whose names are looked up most."""
        looked_up = Counter(_DIRECTORY.findall(self.trace)).most_common(1)
        return list(steps(self.trace.splitlines(), self.log, looked_up[0][0] if looked_up else ""))

    def operations(self, worker: bool = False) -> list[list[Step]]:
        """Return the steps of all operations but the first and the last, which the log may cut."""
        first = WORKER if worker else FIRST.get(self.key[0], "enter_openat")
        return list(operations(self.steps(), first))[1:-1]


GROUPS: dict[str, dict[str, tuple[str, int, str]]] = {
    "xfs": {
        "cu_short": ("create_unlink", 0, "y"),
        "cu_short_gc": ("create_unlink", 0, "y"),
        "tmp_short": ("tmpfile", 0, "y"),
        "tmp_short_gc": ("tmpfile", 0, "y"),
        "create_node": ("create", 2000, "name-"),
        "create_node_agf": ("create", 2000, "y"),
        "cu_node": ("create_unlink", 2000, "name-"),
        "cu_node_agf": ("create_unlink", 2000, "y"),
        "unlink_node": ("unlink", 2000, "name-"),
        "unlink_node_gc": ("unlink", 2000, "name-"),
        "unlink_node_list": ("unlink", 2000, "name-"),
        "unlink_node_list_gc": ("unlink", 2000, "name-"),
        "mkdir_node": ("mkdir", 2000, "name-"),
    },
    "ext4": {
        "cu_short": ("create_unlink", 0, "y"),
        "tmp_short": ("tmpfile", 0, "y"),
        "cu_htree": ("create_unlink", 2000, "y"),
        "mkdir_htree": ("mkdir", 2000, "y"),
    },
    "btrfs": {"cu_l0": ("create_unlink", 0, "y"), "tmp_l0": ("tmpfile", 0, "y")},
    "tmpfs": {},
}
"""Which row has the operations of a group of `models/traces`."""


@dataclass(frozen=True)
class Folder:
    """What guests have written."""

    path: Path

    def rows(self, name: str) -> list[Row]:
        """Return what the guest `steps-NAME` did; untraced rows come before the traced ones."""
        return read(self.path / f"steps-{name}")[0]


def read(guest: Path) -> tuple[list[Row], str]:
    """Return what a guest has written, and where its functions are."""
    sections = re.split(r"^=== ", guest.with_suffix(".trace").read_text(errors="replace"), flags=re.M)[1:]
    kallsyms = sections.pop().partition("\n")[2]
    symbols = Symbols.parse(kallsyms)
    results = read_console(guest.with_suffix(".log")).results
    traces = [""] * (len(results) - len(sections)) + sections
    found = list(logs(guest.with_suffix(".blocks")))
    if len(found) != len(results):
        raise ValueError(f"{guest}.blocks has {len(found)} logs, the console {len(results)} rows")
    logged = (Log(b, symbols) for b in found)
    return [Row(*parts) for parts in zip(results, logged, traces, strict=True)], kallsyms


def counted(all_rows: Sequence[Row], filesystem: str, few: bool = False) -> Values:
    """Return what each step took, in every operation that is like the most frequent one of its row.

    Where there were `few` operations, a group may have none.
    """
    groups = yaml.safe_load((MODELS / f"traces/{filesystem}.yaml").read_text())["groups"]
    costs = yaml.safe_load((MODELS / f"filesystems/{filesystem}.yaml").read_text())["costs"]
    found: Values = {}
    for group, key in GROUPS[filesystem].items():
        order = groups[group]["order"]
        row = next(row for row in all_rows if row.key == key and row.trace)
        ops = alike(row.operations(worker=group.endswith("_gc")), order)
        if not ops and not few:
            raise ValueError(f"no operation is like the group that begins {', '.join(order[:5])}")
        for op in ops:
            for step, instructions in count(op, order, PER_EVENT).items():
                name = f"{group}.{step}"
                if name in costs and costs[name]["evidence"] == "measured":
                    found.setdefault(name, []).append(instructions)
    return found


def alike(ops: list[list[Step]], order: Sequence[str]) -> list[list[Step]]:
    """Return the operations whose steps are most like a group's, and which are not rare."""
    kinds = Counter(tuple(step.name for step in op) for op in ops)
    first = {tuple(step.name for step in op): op for op in reversed(ops)}
    likely = {names: likeness(first[names], order) for names, n in kinds.items() if n >= RARE * len(ops)}
    best = max(likely, key=lambda names: (likely[names], kinds[names]))
    if likely[best] < LIKE:
        return []
    return [op for op in ops if tuple(step.name for step in op) == best]


def text(name: str, title: str, values: Values, sources: dict[str, str]) -> str:
    """Return a table as YAML; a step's source is that of the longest beginning of its name.

    Means: what is rare here, such as a new page of a slab, is work of the operation and no disturbance.
    """
    where = "devices" if name == "loop-tmpfs" else "filesystems"
    lines = [
        f"# Instructions, counted in the laboratory (docs/laboratory.md), of steps with times in models/{where}.",
        f"# Written by tools/emulated-kernel/laboratory/counted.py. {len(values)} steps.",
        f"name: {name}",
        f'title: "{title}"',
        "steps:",
    ]
    for step, taken in values.items():
        source = sources[max((key for key in sources if step.startswith(key)), key=len)]
        lines.append(
            f"  {step}: {{value: {round(mean(taken), 1):g}, unit: instructions, range: [{min(taken)}, {max(taken)}],"
            f' evidence: measured, source: "{source}; mean of {len(taken)}"}}'
        )
    return "\n".join([*lines, ""])


def main(folder: Folder) -> None:
    """Write the tables of all filesystems whose guest was run; their classes stay (classed.py)."""
    into = MODELS / "instructions"
    into.mkdir(exist_ok=True)
    for name, (title, values, sources) in tabulated(folder).items():
        path = into / f"{name}.yaml"
        _, head, classes = path.read_text().partition("classes:") if path.exists() else ("", "", "")
        path.write_text(text(name, title, values, sources) + head + classes)


def tabulated(folder: Folder) -> dict[str, Table]:
    """Return the tables of all filesystems whose guest was run."""
    found: dict[str, Table] = {}
    sources = {
        "": "one task in the emulated kernel, Linux 6.12.117, every block of instructions logged: call by call"
    }
    vfs: Values = {}
    parts = loops.SOURCES | file_calls.SOURCES
    named = {f"{kind}.{name}": where for kind in GROUPS for name, where in parts.items()}
    named |= {
        f"xfs.{name}": where.replace("Linux 6.12.117", "Linux 6.1.192")
        for name, where in file_calls.SOURCES.items()
        if name in ("call.read_folio", "call.overwrite_folio", "call.append_folio")
    }
    for filesystem in filter(lambda name: read_console(folder.path / f"steps-{name}.log").complete, GROUPS):
        own, around = tables(folder.rows(filesystem), filesystem)
        if filesystem == "btrfs":
            own |= trees.counted(folder.rows("btrfs-grown"))
        looped = folder.rows(f"{filesystem}-loops")
        own |= loops.counted(looped, filesystem) | loops.d_move(folder.rows("tmpfs-loops"))
        if filesystem == "ext4":
            own |= synced.ext4(looped)
            device = synced.device(looped)
            found["loop-tmpfs"] = "A loop device over a file in tmpfs", device, synced.SOURCES
        called = folder.rows(f"{filesystem}-operations"), folder.rows(f"{filesystem}-directories")
        if filesystem == "ext4":
            own |= file_calls.new_times(called[0])
        if filesystem == "btrfs":
            own |= trees.synced(loops.loops(called[0])["own:overwrite_fsync"])
        if filesystem == "xfs":
            own |= (
                forced.counted(called[0], own)
                | forced.queue(folder.rows("xfs-queue"))
                | file_calls.block_directory(*called)
            )
        own |= file_calls.truncations(called[0], filesystem) if filesystem in ("xfs", "btrfs") else {}
        vfs |= around | loops.vfs(looped, filesystem) | file_calls.counted(*called, filesystem)
        if filesystem == "xfs":
            vfs |= file_calls.small_folios(folder.rows("xfs-folios"))
        here = (
            sources
            | pushes.SOURCES
            | trees.SOURCES
            | trees.SYNCED_SOURCES
            | loops.SOURCES
            | (forced.SOURCES if filesystem == "xfs" else synced.SOURCES)
            | file_calls.BLOCK_SOURCES
            | file_calls.TRUNCATE_SOURCES
            | file_calls.NEW_TIMES_SOURCES
            | {f"{g}.": source(key) for g, key in GROUPS[filesystem].items()}
        )
        found[filesystem] = f"Steps of {filesystem}", own, here
    return found | {"vfs": ("The VFS around a filesystem's steps", vfs, sources | named)}


def tables(all_rows: Sequence[Row], filesystem: str) -> tuple[Values, Values]:
    """Return a filesystem's own steps, and the VFS's around them."""
    if filesystem == "tmpfs":
        return calls.tmpfs(all_rows), calls.tmpfs_loop(all_rows)
    own = counted(all_rows, filesystem) | (pushes.counted(all_rows) if filesystem == "xfs" else {})
    return own, calls.vfs(all_rows, filesystem)


def source(key: tuple[str, int, str]) -> str:
    """Return where the steps of a row are from."""
    return (
        f"{key[0]} in a directory of {key[1]} names ({key[2]}*), one task in the emulated kernel, Linux 6.12.117,"
        " every block of instructions logged: from event to event, tracer left out"
    )


if __name__ == "__main__":
    main(Folder(Path(sys.argv[1])))
