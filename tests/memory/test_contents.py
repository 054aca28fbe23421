"""What blocks hold: a CPU fetches the lines that others have changed since it was there."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same

from engine import FREE, rate, simulate, written_spec
from simfs.machine.caches.contents import Contents
from simfs.machine.caches.line import Access
from simfs.machine.cpus.topology import Topology

NEAR, FAR, OVERLAP = 50_000, 120_000, 5
"""Prices in ps of a transfer within a socket and between two."""


@pytest.fixture
def topology() -> Topology:
    """Two sockets of two CPUs."""
    costs = {**FREE, "line_llc": 50, "line_socket": 50, "line_remote": 120, "line_overlap": OVERLAP}
    return Topology({"cpus": 4, "cpus_per_core": 1, "cpus_per_llc": 2, "cpus_per_socket": 2, "costs": costs})


def test_who_is_alone_with_a_block_fetches_nothing(topology: Topology) -> None:
    contents = Contents()
    touches = [(range(64), Access.WRITE), (range(10), Access.READ), (range(64), Access.WRITE)]
    assert [contents.touch(topology, 0, lines, access) for lines, access in touches] == [0, 0, 0]


def test_what_others_have_changed_is_fetched_once_and_together(topology: Topology) -> None:
    contents = Contents()
    for cpu in (0, 1):
        contents.touch(topology, cpu, range(64), Access.READ)
    contents.touch(topology, 0, range(10, 21), Access.WRITE)
    assert contents.touch(topology, 1, range(10), Access.READ) == 0, "nobody has changed these"
    assert contents.touch(topology, 1, range(64), Access.READ) == NEAR + 10 * NEAR // OVERLAP
    assert contents.touch(topology, 1, range(64), Access.READ) == 0
    assert contents.touch(topology, 0, range(64), Access.READ) == 0, "its own changes"


def test_what_was_read_is_stale_when_it_is_changed_again(topology: Topology) -> None:
    contents = Contents()
    contents.touch(topology, 0, range(4), Access.WRITE)
    assert contents.touch(topology, 2, range(1), Access.READ) == FAR
    contents.touch(topology, 0, range(1), Access.WRITE)
    assert contents.touch(topology, 2, range(4), Access.WRITE) == FAR + 3 * FAR // OVERLAP


def test_lines_come_from_the_last_other_who_changed_any(topology: Topology) -> None:
    contents = Contents()
    contents.touch(topology, 2, range(3), Access.WRITE)
    contents.touch(topology, 1, range(1), Access.WRITE)
    contents.touch(topology, 0, range(1), Access.WRITE)
    assert contents.touch(topology, 0, range(1, 2), Access.READ) == NEAR


MEET = """
simfs: 1
name: meet
title: four tasks make and remove names
machine: {{profile: server-24, cpus: 4, cpus_per_llc: 4, cpus_per_socket: 4}}
device: nvme
kernel: linux-6.12
filesystem: {{kind: {0}}}
workload:
  kind: mix
  tasks: 4
  operations: [{{op: create}}, {{op: unlink, on: made}}]
  order: in-turn
  files: 0
  file_size: null
  directories: {1}
  binding: compact
"""


@pytest.mark.parametrize(("filesystem", "directories"), [("btrfs", "per-task"), ("ext4", "shared")])
def test_both_machines_fetch_the_same(tmp_path: Path, filesystem: str, directories: str) -> None:
    spec = written_spec(tmp_path / "meet.yaml", MEET.format(filesystem, directories))
    assert_same(spec | {"warmup_ns": 2e5, "duration_ns": 1e6})


def test_who_wipes_a_record_makes_others_fetch_what_is_behind_the_name(tmp_path: Path) -> None:
    spec = written_spec(tmp_path / "meet.yaml", MEET.format("ext4", "shared"))
    spec |= {"warmup_ns": 2e5, "duration_ns": 2e7}
    wipes, leaves = (
        rate(
            simulate(
                spec
                | {
                    "kernel": spec["kernel"]
                    | {"rules": spec["kernel"]["rules"] | {"ext4.wipes_entries": rule}}
                }
            )
        )
        for rule in (True, False)
    )
    assert wipes < 0.995 * leaves
