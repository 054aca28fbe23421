"""Distances between CPUs."""

from __future__ import annotations

import json

import pytest

from engine import lock_cycle
from simfs.machine.cpus.topology import Topology


@pytest.mark.parametrize(
    ("others", "expected"),
    [({3, 7}, 7), ({3, 5, 7}, 5), ({0, 3}, 3), ({4, 2}, 4), (set(), None)],
    ids=[
        "its own socket, not the next number",
        "the next in its socket",
        "the next elsewhere",
        "itself",
        "nobody",
    ],
)
def test_a_line_comes_from_the_nearest_by_what_is_shared(others: set[int], expected: int | None) -> None:
    """Two sockets of four CPUs; CPU 4 is the first of the second. The native machine has its test in `cpu_set.rs`."""
    made = lock_cycle("qspinlock", 8, costs={"line_llc": 47, "line_socket": 47, "line_remote": 135})[
        "machine"
    ]
    machine = json.loads(json.dumps(made)) | {"cpus": 8, "cpus_per_llc": 4, "cpus_per_socket": 4}
    assert Topology(machine).nearest(4, others) == expected
