"""How much the instructions of the same call vary (`step_cv` of models/machines/emulated.yaml).

    python -m laboratory.paces FOLDER/steps-xfs-loops FOLDER/steps-ext4-loops FOLDER/steps-tmpfs

prints them of each kind of call of these guests of `just emulate steps`, and the median of all kinds.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from laboratory.counted import read
from laboratory.loops import Loop

FEWEST = 50
"""Calls of a kind that tell how much it varies."""


def calls(guest: Path) -> Iterator[tuple[str, list[int]]]:
    """Yield each kind of call of each row of a guest, with the instructions of each call; interrupts are left out."""
    for row in read(guest)[0]:
        loop = Loop(row.log)
        took: defaultdict[str, list[int]] = defaultdict(list)
        for call in loop.calls():
            took[call.name].append(loop.took(call.task, call.begin, call.end))
        for name, each in took.items():
            if len(each) >= FEWEST:
                yield f"{guest.name} {row.key[0]} {name}", each


def main() -> None:
    """Print a line for each kind of call: median, 90th percentile, standard deviation by mean."""
    varied = []
    for guest in map(Path, sys.argv[1:]):
        for name, each in calls(guest):
            varied.append(float(np.std(each) / np.mean(each)))
            print(f"{name:48} {np.median(each):9.0f} {np.percentile(each, 90):9.0f} {varied[-1]:8.4f}")
    print(f"{len(varied)} kinds: median {np.median(varied):.4f}, {min(varied):.4f} to {max(varied):.4f}")


if __name__ == "__main__":
    main()
