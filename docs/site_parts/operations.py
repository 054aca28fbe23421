"""The page of all operations: on which filesystem each runs, and why it is refused elsewhere."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from simfs.scenario import ScenarioError, expand, load
from simfs.vocabulary import vocabulary

FILESYSTEMS = ("xfs", "btrfs", "ext4", "tmpfs")
RUNS = "yes"
FIO = {
    "buffered reads (fio)": "rw: randread",
    "buffered writes (fio)": "rw: randwrite",
    "buffered writes with O_SYNC (fio)": "rw: randwrite, sync: true",
    "fsync after writes (fio)": "rw: randwrite, fsync: 2",
    "direct reads (fio)": "rw: randread, direct: true",
    "direct writes (fio)": "rw: randwrite, direct: true",
    "direct reads, several under way (fio)": "rw: randread, direct: true, iodepth: 4",
    "direct writes, several under way (fio)": "rw: randwrite, direct: true, iodepth: 4",
}
"""Jobs of fio by what they do."""
NOT_YET = ("copy_file_range",)
"""System calls on files that no filesystem here has."""


def loads() -> dict[str, str]:
    """The workload of each operation, as a scenario writes it."""
    mixes = {
        f"`{name}`": f"kind: mix, operations: [{{op: {name}}}]" for name in sorted(vocabulary().operations)
    }
    return mixes | {name: f"kind: fio, size: 1 MiB, {job}" for name, job in FIO.items()}


def outcome(filesystem: str, workload: str) -> str:
    """`yes`, or why a scenario with this workload is refused there."""
    device = "" if filesystem == "tmpfs" else "device: nvme\n"
    text = (
        "simfs: 1\nname: a\ntitle: a\nmachine: {profile: server-24, cpus: 2}\nkernel: linux-6.12\n"
        f"{device}filesystem: {{kind: {filesystem}}}\nworkload: {{{workload}, tasks: 1}}\n"
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.yaml"
        path.write_text(text, "utf-8")
        try:
            expand(load(path))
        except ScenarioError as error:
            return error.problems[0].message
    return RUNS


def page() -> str:
    """The table as Markdown."""
    rows = [
        f"| {name} | {' | '.join(outcome(kind, load) for kind in FILESYSTEMS)} |"
        for name, load in loads().items()
    ]
    return "\n".join(
        [
            "# Operations and filesystems\n",
            "Each operation of a mix, and what fio does, on each filesystem: `yes`, or why a scenario is refused.\n",
            f"| operation | {' | '.join(FILESYSTEMS)} |",
            "| --- " * (len(FILESYSTEMS) + 1) + "|",
            *rows,
            "",
            f"No filesystem has {' nor '.join(NOT_YET)}.\n",
        ]
    )
