"""Holds simfs against this machine, from end to end: `python -m tests.end_to_end --seconds 3`, as root, with perf.

For each filesystem: a fresh one on a loop device over tmpfs, `simfs measure --filesystem`, a load that creates and
unlinks, once alone and once under `perf lock record`, and `simfs compare` of both with the scenario. Nothing is fitted
but the speed of one process, which `measure` measures. Other work on the machine is in the real numbers and not in the
simulated ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from simfs.measuring.filesystem import kernel_here

MKFS = {
    "xfs": ["mkfs.xfs", "-q"],
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "btrfs": ["mkfs.btrfs", "-q"],
    "tmpfs": [],
}
SCENARIO = """\
simfs: 1
name: here
title: This machine
machine: ./machine.yaml
kernel: {kernel}
filesystem: {{kind: {kind}, size: 8 GiB}}
workload: {{kind: create_unlink, tasks: 1, directories: {directories}}}
sweep: {{workload.tasks: [{tasks}]}}
measure: {{duration: 300 ms, replications: 3}}
"""

CLI = Path(__file__).parents[1] / "cli.py"


def main() -> int:
    """Print a line for each filesystem, layout and number of processes, and how far they are off together."""
    parser = argparse.ArgumentParser(prog="python -m tests.end_to_end", description="Real beside simulated.")
    parser.add_argument("--filesystems", nargs="+", choices=MKFS, default=list(MKFS))
    parser.add_argument("--tasks", nargs="+", type=int, default=[2, 8])
    parser.add_argument("--seconds", type=int, default=3)
    asked = parser.parse_args()
    rates: list[float] = []
    locks: list[bool] = []
    with tempfile.TemporaryDirectory(prefix="simfs-end-", dir="/dev/shm") as folder:
        for kind in asked.filesystems:
            with mounted(kind, Path(folder)) as at:
                profile = Path(folder) / "machine.yaml"
                simfs("measure", "--quick", "--filesystem", kind, "--at", at, "-o", profile)
                for directories in ("shared", "per-task"):
                    for tasks in asked.tasks:
                        rate, same = compared(Path(folder), kind, directories, tasks, at, asked.seconds)
                        rates.append(abs(rate - 1))
                        locks += [] if same is None else [same]
            profile.unlink()
    print(f"\nthroughput: {median(rates):.1%} median, {max(rates):.1%} at worst of {len(rates)}")
    print(f"top lock the same in {sum(locks)} of {len(locks)}")
    return 0


@contextmanager
def mounted(kind: str, folder: Path) -> Iterator[Path]:
    """A fresh filesystem of 8 GiB."""
    at, image = folder / "at", folder / "image"
    at.mkdir(exist_ok=True)
    if kind == "tmpfs":
        done("mount", "-t", "tmpfs", "-o", "size=8g", "tmpfs", at)
    else:
        image.unlink(missing_ok=True)
        done("truncate", "-s", "8G", image)
        done(*MKFS[kind], image)
        done("mount", "-o", "loop", image, at)
    try:
        yield at
    finally:
        done("umount", at)


def compared(
    folder: Path, kind: str, directories: str, tasks: int, at: Path, seconds: int
) -> tuple[float, bool | None]:
    """Simulated over real throughput, and whether the lock most waited for is the same; None where nobody waits."""
    scenario = folder / "here.yaml"
    scenario.write_text(
        SCENARIO.format(kernel=kernel_here(), kind=kind, directories=directories, tasks=tasks)
    )
    load = [sys.executable, "-m", "simfs.measuring.load", "create_unlink", "--tasks", str(tasks)]
    load += ["--directories", directories, "--seconds", str(seconds), "--at", str(at)]
    (folder / "rates.csv").write_text(done(*load))
    rates = beside(folder / "rates.csv", scenario)["lines"]
    line = next(line for line in rates if line["quantity"].startswith("operations_per_s"))
    watched = done("perf", "lock", "record", "-q", "-a", "-o", folder / "perf.data", "--", *load)
    (folder / "perf.txt").write_text(done("perf", "script", "-i", folder / "perf.data"))
    (folder / "perf.data").unlink()
    operations = round(float(watched.splitlines()[-1].split(",")[1]) * seconds)
    try:
        waits = beside(folder / "perf.txt", scenario, "--operations", operations)
    except SystemExit as error:  # nobody waited for a lock that both have
        if "in common" not in str(error):
            raise
        waits = {"lines": []}
    real, simulated = (top(waits, side) for side in ("real", "simulated"))
    counts = "; ".join(
        f"{x['of']} {x['real']:.3g} and {x['simulated']:.3g} an operation"
        for x in waits["lines"]
        if counted(x)
    )
    print(f"{kind}, {directories}, {tasks}: {line['real']:,.0f} and {line['simulated']:,.0f}/s", end="; ")
    print(f"top lock {real} and {simulated}; {counts}", flush=True)
    return line["simulated"] / line["real"], None if real is None else real == simulated


def counted(line: dict[str, Any]) -> bool:
    """Whether a line counts waits, and some that matter."""
    return bool(line["quantity"] == "waits per operation" and max(line["real"], line["simulated"]) > 0.001)


def top(waits: dict[str, Any], side: str) -> str | None:
    """The lock with the largest share of all waiting; `another` where one that only this side has may have more."""
    shares = {x["of"]: x[side] for x in waits["lines"] if x["quantity"].startswith("share of all waits")}
    if not shares:
        return None
    best = max(shares, key=lambda lock: shares[lock])
    return best if shares[best] >= 100 - sum(shares.values()) else "another"


def beside(real: Path, scenario: Path, *options: object) -> dict[str, Any]:
    """`simfs compare` of what a tool printed."""
    found: dict[str, Any] = json.loads(simfs("compare", real, scenario, *options, "--format", "json"))
    return found


def simfs(*words: object) -> str:
    """What a command of simfs prints."""
    return done(sys.executable, CLI, *words)


def done(*words: object) -> str:
    """What a command prints; it must end well."""
    command: Sequence[str] = [str(word) for word in words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {ran.returncode}: {ran.stderr.strip()}")
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main())
