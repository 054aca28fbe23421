"""`simfs new`: a commented scenario to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simfs.commands.common import notes, refuse_folder
from simfs.commands.errors import plain_errors, refused, unwritable
from simfs.scenario.suggest import choices

_HEAD = """\
simfs: 1
name: {name}
title: {title}
machine: server-24            # `simfs list` names the others; {{profile: server-24, cpus: 48}} changes one
kernel: linux-6.12
"""
_TAIL = """\
measure: {warmup: auto, duration: 50 ms, replications: 3}      # `--quick` measures a fifth of that
expect:                       # what must hold, or `simfs run` ends with 1
  - throughput > 0
"""

_FILES = """\
workload: {kind: create_unlink, tasks: 24, directories: shared}
variants:                     # designs to compare: what differs
  - {name: shared, title: one directory}
  - {name: per-task, title: a directory for each task, workload: {directories: per-task}}
sweep:
  workload.tasks: [1, 8, 24]
"""

STARTS = {
    "lock": (
        "Readers and writers of one lock",
        """\
workload: {kind: lock_cycle, lock: rwsem, think: {exponential: 10 us}, hold: 1 us}
groups:                       # tasks that differ; without groups: `tasks: 24` in the workload
  - {name: readers, workload: {tasks: 20, readers: 1.0}}
  - {name: writers, workload: {tasks: 4}}
variants:                     # designs to compare: what differs
  - {name: rwsem}
  - {name: mutex, workload: {lock: mutex}}      # `simfs locks` names all kinds
""",
    ),
    **{
        kind: (
            "Short-lived files in one directory",
            f"filesystem: {{kind: {kind}, size: 8 GiB{more}}}\n{_FILES}",
        )
        for kind, more in (("xfs", ", agcount: 4"), ("ext4", ""), ("btrfs", ""), ("tmpfs", ""))
    },
    "fio": (
        "Direct I/O on one file",
        """\
filesystem: {kind: xfs}
device: nvme                  # hdd, loop-tmpfs, nvme-client, pmem, ramdisk, sata-ssd, sata-ssd-server, virtio-blk, zram
workload: {kind: fio, tasks: 8, rw: randrw, rwmixread: 70 %, size: 1 GiB, direct: true}
sweep:
  workload.tasks: [1, 4, 8]
""",
    ),
    "requests": (
        "Requests that create a file each",
        """\
filesystem: {kind: ext4}
workload:
  kind: tmpfile
  tasks: 8                    # servers; requests wait for a free one
  write: 16 KiB
  arrivals: {poisson: 20000 /s}
sweep:
  workload.arrivals.poisson: [10000 /s, 20000 /s, 40000 /s]
""",
    ),
}
"""What a scenario can be about: its title, and what is its own."""


def new(
    file: Annotated[Path, typer.Argument(metavar="NAME", help="Name of the scenario, or its file.")],
    about: Annotated[
        str, typer.Option("--about", metavar="WHAT", help=f"What the scenario is about: {', '.join(STARTS)}.")
    ] = "xfs",
) -> None:
    """Write a commented scenario to start from, in NAME.yaml."""
    with plain_errors():
        if about not in STARTS:
            raise refused(f"--about {about}: {choices(about, STARTS)}")
        if file.name in ("", ".."):
            raise refused(f"'{file}': is no name of a scenario; give one, for example my-lock")
        path = file if file.suffix in (".yaml", ".yml") else file.with_name(f"{file.name}.yaml")
        refuse_folder(path.parent, str(path))
        title, own = STARTS[about]
        name = "".join(c if c.isascii() and (c.isalnum() or c in "._+-") else "-" for c in path.stem).lstrip(
            "._+-"
        )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as out:
                out.write(_HEAD.format(name=name[:80] or "scenario", title=title) + own + _TAIL)
        except FileExistsError:
            raise refused(f"{path}: is there already") from None
        except OSError as error:
            raise unwritable(path, error) from None
        notes().print(f"written to {path}; `simfs run {path} --quick` runs it")
