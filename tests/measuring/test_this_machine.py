"""Predictions of the machine that runs the tests, held against the same calls made for real.

Nothing is fitted but what `simfs measure` measures with one process. Other work on the machine would be in the real
numbers and not in the simulated ones: then the tests skip, unless SIMFS_THIS_MACHINE=1 says that they run all the same.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from simfs.experiments.answer import answer
from simfs.measuring.beside import quantities
from simfs.measuring.circumstances import Clocks, look
from simfs.measuring.filesystem import KINDS, kernel_here, kind_at
from simfs.measuring.load import run
from simfs.measuring.measured import Measured, measure_machine
from simfs.scenario import load

FACTOR = 2.0
"""How far real and simulated rates may be apart."""

QUIET = 0.1
CPUS = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(len(CPUS) < 2, reason="needs Linux and two CPUs that this process may use"),
]


@pytest.fixture(scope="module")
def quiet() -> None:
    before = Clocks.read()
    time.sleep(1.0)
    after = Clocks.read()
    busy = (
        (after.busy - before.busy - (after.own - before.own)) / (after.at - before.at) / (os.cpu_count() or 1)
    )
    if busy > QUIET and not os.environ.get("SIMFS_THIS_MACHINE"):
        pytest.skip(f"other work uses {busy:.0%} of the CPUs; SIMFS_THIS_MACHINE=1 runs this all the same")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on a filesystem that simfs has."""
    own = tmp_path_factory.mktemp("load")
    shm = Path("/dev/shm")
    found = next((p for p in (own, shm) if p.is_dir() and kind_at(p) in KINDS), None)
    if found is None:
        pytest.skip(f"{own} is on {kind_at(own)}, which simfs has not, and there is no tmpfs")
    return found


@pytest.fixture(scope="module")
def measured(quiet: None, place: Path) -> Measured:
    return measure_machine("here", quick=True, progress=lambda *_: None, calls=(kind_at(place), place))


@pytest.mark.parametrize("tasks", [1, 2])
def test_real_processes_are_as_fast_as_simulated_ones(
    tasks: int, measured: Measured, place: Path, tmp_path: Path
) -> None:
    measured.write(tmp_path / "here.yaml")
    kind = kind_at(place)
    scenario = {
        "simfs": 1,
        "name": "here",
        "title": "Create and unlink on this machine",
        "machine": str(tmp_path / "here.yaml"),
        "kernel": kernel_here(),
        "filesystem": {"kind": kind},
        "workload": {"kind": "create_unlink", "tasks": tasks, "directories": "per-task"},
        "measure": {"warmup": "50 ms", "duration": "200 ms", "replications": 2},
    }
    _, result = answer(load(scenario))
    real, _ = run("create_unlink", tasks, place, 1.0, own=True)
    assert 1 / FACTOR < result.points[0].throughput.mean / real < FACTOR


def test_two_measurements_differ_by_less_than_their_ranges(measured: Measured) -> None:
    """Of all numbers but a tenth: a range is from the 10th to the 90th percentile.

    Lines and memory of a guest depend on where its host runs its CPUs (40 or 160 ns a line, minutes apart).
    """
    moved = ("costs.line_", "caches.") if look().hypervisor else ()
    again = quantities(measure_machine("again", quick=True, progress=lambda *_: None).machine)
    own = {
        name: q
        for name, q in quantities(measured.machine).items()
        if name.startswith(("costs.", "caches.")) and not name.startswith(("costs.speed", *moved))
    }
    apart = [n for n, q in own.items() if q.range[0] > again[n].range[1] or again[n].range[0] > q.range[1]]
    assert len(apart) <= len(own) / 10, apart
