"""The command: inputs in worker processes, which may die; a table of what came out; exit code 1 for any failure."""

from __future__ import annotations

import argparse
import mmap
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random

from . import environment
from .inputs import made
from .judge import outcome, quiet, warm_up

BATCH = 500
"""Inputs of a worker: what it remembers of them goes with it."""

PATIENCE_S = 30
"""CPU seconds for one input after which a worker hangs; native code is not interrupted by Python's alarm."""

RUN_EACH = 10
"""One input in so many is also run for a moment."""


def main(words: list[str] | None = None) -> int:
    """Try inputs until there are enough or the time is over; the exit code."""
    asked = _arguments(words)
    shared = Path(
        tempfile.mkdtemp(prefix="simfs-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    )
    try:
        if asked.only is not None:
            return _show(asked.seed, asked.only, shared)
        return _all(asked, shared)
    finally:
        shutil.rmtree(shared, ignore_errors=True)


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Damaged input for simfs.")
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--begin", type=int, default=0, help="the number of the first input")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so long")
    parser.add_argument(
        "--environments", type=int, help="commands in odd surroundings; one in 2,000 inputs by default"
    )
    parser.add_argument("--only", type=int, help="show this input and what becomes of it")
    return parser.parse_args(words)


def _all(asked: argparse.Namespace, shared: Path) -> int:
    if asked.inputs > BATCH:  # one worker alone reads what it needs itself
        warm_up()
    begin, counts, failures = time.monotonic(), Counter[str](), 0
    number, end = asked.begin, asked.begin + asked.inputs
    progress = mmap.mmap(-1, 8)
    while number < end and time.monotonic() - begin < asked.seconds:
        number, told, failed = _batch(asked.seed, number, min(number + BATCH, end), shared, progress)
        counts.update(told)
        failures += failed
    commands = asked.inputs // 2000 if asked.environments is None else asked.environments
    for turn in range(commands):
        failures += _surroundings(asked.seed, turn, shared, counts)
    tried = number - asked.begin
    print(f"{tried} inputs and {commands} commands in {time.monotonic() - begin:.0f} s, {failures} failures")
    for what, count in sorted(counts.items()):
        print(f"  {count:8} {what}")
    return 1 if failures else 0


def _batch(
    seed: int, begin: int, end: int, shared: Path, progress: mmap.mmap
) -> tuple[int, Counter[str], int]:
    """Let a worker try inputs, until it ends, dies or hangs; the next number, what came out, and failures."""
    report = shared / "report"
    report.write_text("")
    progress[:] = struct.pack("q", begin)
    sys.stdout.flush()
    worker = os.fork()
    if worker == 0:
        try:
            _work(seed, begin, end, shared, progress)
        finally:
            os._exit(0)  # a worker that fails must not go on as the command; the number that it reached tells
    last, since = begin, 0.0
    while os.waitpid(worker, os.WNOHANG) == (0, 0):
        time.sleep(0.02)
        now = struct.unpack("q", progress[:])[0]
        if now != last:
            last, since = now, _cpu_seconds(worker)
        elif _cpu_seconds(worker) - since > PATIENCE_S:
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
            break
    reached = struct.unpack("q", progress[:])[0]
    lines = report.read_text("utf-8").splitlines()
    counts = Counter(line[1:] for line in lines if line.startswith("="))
    failed = sum(line.startswith("!") for line in lines)
    print("\n".join(line[1:] for line in lines if not line.startswith("=")), end="\n" if failed else "")
    if reached < end:
        print(f"input {reached}: killed the interpreter, or hung (--seed {seed} --only {reached})")
        return reached + 1, counts, failed + 1
    return end, counts, failed


def _cpu_seconds(process: int) -> float:
    """CPU time that a process has used: on a busy computer a minute on the clock is no hang."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _work(seed: int, begin: int, end: int, shared: Path, progress: mmap.mmap) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    quiet()
    folder = shared / "work"
    with (shared / "report").open("a", encoding="utf-8", errors="replace") as report:
        for number in range(begin, end):
            progress[:] = struct.pack("q", number)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            kind, given = made(seed, number, folder)
            try:
                came = outcome(given, run=number % RUN_EACH == 0)
                report.write(f"={kind}: {came}\n")
            except BaseException as error:
                at = traceback.extract_tb(error.__traceback__)[-1]
                what = " ".join(str(error).split())[:300]
                report.write(
                    f"!input {number} ({kind}): {type(error).__name__}: {what} ({at.filename}:{at.lineno})\n"
                )
            report.flush()
        progress[:] = struct.pack("q", end)


def _surroundings(seed: int, turn: int, shared: Path, counts: Counter[str]) -> int:
    folder = shared / f"command-{turn}"
    folder.mkdir()
    from simfs.scenario import paths

    shutil.copy(paths.SCENARIOS / "lock-cycle.yaml", folder)
    try:
        what = environment.tried(Random(f"{seed}/command {turn}"), folder)
    except (AssertionError, OSError, ValueError) as error:
        print(f"command {turn}: {error}")
        return 1
    counts[f"commands: {what.rpartition(': ')[2]}"] += 1
    return 0


def _show(seed: int, number: int, shared: Path) -> int:
    kind, given = made(seed, number, shared)
    print(f"{kind}: {given.scenario} {' '.join(given.settings)}")
    for path in sorted(shared.iterdir()):
        print(f"--- {path.name}\n{path.read_bytes()[:20_000]!r}")
    print(outcome(given, run=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
