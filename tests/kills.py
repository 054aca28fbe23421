"""Kills a sweep of 20 seconds at random moments, resumes it, and compares: `python -m tests.kills --kills 50`.

A command is killed with SIGKILL after a random time, its start and the writing of its results among them; the same
command resumes. A sweep that ends must have the bytes of one that was never disturbed, and another begins. Then two run
at once in one directory, and, for root, one on a disk that is full at first. `test_sweep.py` has a short form.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SWEEP = [
    "lock-cycle", "--vary", "workload.tasks=1..40", "--vary", "workload.hold=2 us..20 us:log", "--design", "lhs",
    "--points", "32", "--set", "measure.warmup=5 ms", "--set", "measure.duration=320 ms", "--set",
    "measure.replications=4", "--threads", "2", "--out",
]  # fmt: skip
PATIENCE_S = 1800


def main() -> int:
    """Do all of it; AssertionError where a byte differs or a command ends in another way than it should."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description="Kills, resumes, compares.")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="simfs-kills-") as folder:
        there, begin = Path(folder), time.monotonic()
        ended(started(there / "undisturbed"))
        took, whole = time.monotonic() - begin, result(there / "undisturbed")
        print(f"undisturbed: {took:.1f} s, {len(kept(there / 'undisturbed'))} runs", flush=True)
        killed(random.Random(asked.seed), asked.kills, took, whole, there)
        at_once(whole, there / "at-once")
        if os.geteuid() == 0:
            full(whole, there / "full")
    return 0


def killed(draw: random.Random, kills: int, took: float, whole: dict[str, bytes], there: Path) -> None:
    """Kill sweeps `kills` times in all; each is begun anew when one has ended."""
    done, sweeps, early = 0, 0, 0
    while done < kills:
        out = there / f"killed-{sweeps}"
        before: dict[str, int] = {}
        while True:
            running = started(out)
            last = done == kills
            try:
                running.wait(PATIENCE_S if last else draw.uniform(0, took / 4))
            except subprocess.TimeoutExpired:
                running.kill()
                running.communicate()
                done += 1
            else:
                ended(running)
                break
            now = kept(out)
            assert before.items() <= now.items(), "a run that had ended was run again, or lost"
            early += not now
            before = now
        assert result(out) == whole, f"{out}: other bytes"
        sweeps += 1
        print(f"{done} kills, {sweeps} sweeps with the same bytes", flush=True)
    print(f"{early} kills came before the first run had ended")


def at_once(whole: dict[str, bytes], out: Path) -> None:
    """Two commands in one directory."""
    both = [started(out), started(out)]
    for running in both:
        ended(running)
    assert result(out) == whole
    print("two at once: the same bytes")


def full(whole: dict[str, bytes], out: Path) -> None:
    """A disk that is full before the sweep has ended, and then larger."""
    out.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", out], check=True)
    try:
        ended(started(out), code=4)
        there = len(kept(out))
        subprocess.run(["mount", "-o", "remount,size=64m", out], check=True)
        ended(started(out))
        assert result(out) == whole
    finally:
        subprocess.run(["umount", out], check=True)
    print(f"a full disk: exit code 4 after {there} runs, then the same bytes")


def started(out: Path) -> subprocess.Popen[bytes]:
    """The sweep on its way."""
    command = [sys.executable, "-c", "from simfs.cli import main; main()", "sweep", *SWEEP, str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def ended(running: subprocess.Popen[bytes], code: int = 0) -> None:
    """Wait for its end, which must be with this code and in plain words."""
    said = running.communicate(timeout=PATIENCE_S)[1].decode()
    assert running.returncode == code, said
    assert "Traceback" not in said, said


def kept(out: Path) -> dict[str, int]:
    """The runs in the store, and when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in out.glob("store/??/[!.]*")}


def result(out: Path) -> dict[str, bytes]:
    """The files that must be the same; no drafts of killed commands are among those that are looked for."""
    files = (p.relative_to(out).as_posix() for p in sorted(out.rglob("*")) if p.is_file())
    return {
        name: (out / name).read_bytes()
        for name in files
        if name != "manifest.json" and "/." not in f"/{name}"
    }


if __name__ == "__main__":
    sys.exit(main())
