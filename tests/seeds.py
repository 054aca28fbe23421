"""Runs tests of what locks do on average under other seeds: `python -m tests.seeds --seeds 20`.

They hold for the seed that they were written with; how many fall under others says how much that means. Seeds 2, 3 and
so on are tried, or those from `--first` on.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

FILES = ("locks", "locks_spin", "mutex", "rwsem_eras")
"""Tests whose lock cycles draw their times."""


def main() -> int:
    """Print what fell under which seed; 1 if anything did."""
    parser = argparse.ArgumentParser(prog="python -m tests.seeds", description="Tests under other seeds.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=2)
    asked = parser.parse_args()
    fallen, passed, begin = Counter[str](), 0, time.monotonic()
    for seed in range(asked.first, asked.first + asked.seeds):
        passing, failing = tried(seed)
        print(f"seed {seed}: {passing} passed, {len(failing)} fell {' '.join(failing)}", flush=True)
        passed += passing
        fallen.update(failing)
    print(f"{passed + fallen.total()} tests in {time.monotonic() - begin:.0f} s, {fallen.total()} fell")
    for name, count in fallen.most_common():
        print(f"  {count:4} of {asked.seeds} {name}")
    return 1 if fallen else 0


def tried(seed: int) -> tuple[int, list[str]]:
    """How many tests pass under a seed, and which do not."""
    folder = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "--tb=no", "-rf", "-p", "no:cacheprovider"]
    files = [str(folder / "locks" / f"test_{name}.py") for name in FILES]
    done = subprocess.run(
        [*command, *files],
        env=os.environ | {"SIMFS_TEST_SEED": str(seed)},
        cwd=folder.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    passing = sum(line.count(".") for line in re.findall(r"^([.sFE]+) +\[", done.stdout, re.MULTILINE))
    failing = re.findall(r"^FAILED \S*?(test_\w+\.py::\S+)", done.stdout, re.MULTILINE)
    if not passing:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    return passing, failing


if __name__ == "__main__":
    sys.exit(main())
