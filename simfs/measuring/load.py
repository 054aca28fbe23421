"""Do for real what a scenario's tasks do: `python -m simfs.measuring.load create_unlink --tasks 1,2,8 --at DIR`.

Each task is a process; all begin together and stop after `--seconds`. What is printed is the table of will-it-scale,
which `simfs compare` reads: operations a second of all processes, and idle time of the machine.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

from simfs._engine import measure
from simfs.interchange.will_it_scale import HEADING
from simfs.measuring.scratch import scratch

KINDS = {"create_unlink": 0, "tmpfile": 1}
"""Loads and how the engine is told: a file is created, closed and unlinked, the second with a write of 4 KiB before."""

START_SECONDS = 60


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a load and print its table."""
    parser = ArgumentParser(
        prog="python -m simfs.measuring.load", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--tasks", type=_numbers, default=[1, 2], help="numbers of processes")
    parser.add_argument("--at", type=_folder, required=True, help="a folder of the filesystem")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--directories", choices=("shared", "per-task"), default="shared")
    asked = parser.parse_args(arguments)
    print(f"{HEADING}\n0,0,100,0,100,0")
    one = 0.0
    for tasks in asked.tasks:
        rate, idle = run(asked.kind, tasks, asked.at, asked.seconds, own=asked.directories == "per-task")
        one = one or rate / tasks
        print(f"{tasks},{rate:.0f},{idle:.2f},-1,100.00,{one * tasks:.0f}", flush=True)


def run(kind: str, tasks: int, at: Path, seconds: float, *, own: bool = False) -> tuple[float, float]:
    """Operations a second of so many processes, and the idle time of the CPUs in per cent."""
    context = multiprocessing.get_context("spawn")
    with scratch(at) as folder, context.Manager() as manager:
        results = manager.list()
        start = context.Barrier(tasks + 1)
        places = [folder / f"d{n}" if own else folder for n in range(tasks)]
        for place in places:
            place.mkdir(exist_ok=True)
        workers = [
            context.Process(target=_work, args=(kind, str(p), seconds, start, results)) for p in places
        ]
        for worker in workers:
            worker.start()
        start.wait(START_SECONDS)
        before = _idle()
        for worker in workers:
            worker.join()
        used = _idle() - before
        if len(results) != tasks:
            raise OSError(f"{tasks - len(results)} of {tasks} processes failed")
        longest = max(each for _, each in results)
        idle = 100 * used / longest / (os.cpu_count() or 1)
        return sum(done / each for done, each in results), min(100.0, max(0.0, idle))


def _work(kind: str, at: str, seconds: float, start: Barrier, results: list[tuple[float, float]]) -> None:
    start.wait(START_SECONDS)
    found = measure("load", [], amount=KINDS[kind], seconds=seconds, at=at)
    results.append((found["operations"][0], found["seconds"][0]))


def _idle() -> float:
    """Seconds that all CPUs have been idle (proc_stat(5): idle and iowait)."""
    words = Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()
    return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")


def _numbers(text: str) -> list[int]:
    numbers = [int(word) for word in text.split(",")]
    if not all(1 <= n <= 1024 for n in numbers):
        raise ValueError(text)
    return numbers


def _folder(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise ValueError(text)
    return path


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"simfs.measuring.load: {error}")
