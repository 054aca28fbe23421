"""Pages of file data that have left the caches are copied from memory, as fast as one core reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, read_answer, written_spec

SCENARIO = """\
simfs: 1
name: pages
title: Random reads and writes of a file in the page cache
machine: {profile: server-24, cpus: 1}
kernel: linux-6.12
filesystem: {kind: tmpfs}
workload: {kind: fio, tasks: 1, rw: randread, block_size: 4 KiB, size: 256 MiB}
measure: {warmup: 40 ms, duration: 40 ms, replications: 1}
"""
CACHES = {
    "core_bytes": 2.0**20, "llc_bytes": 2.0**25, "llc_ns": 0.0, "memory_ns": 0.0, "memory_bandwidth": 1e10,
    "code_lines": 1e-6,
}  # fmt: skip
COPY = 4096 / CACHES["memory_bandwidth"] * 1e9


def spec(tmp_path: Path, *options: str, **caches: float) -> Spec:
    made = written_spec(tmp_path / "pages.yaml", SCENARIO, *options)
    made["machine"]["caches"] = CACHES | caches
    made["machine"]["costs"]["step_cv"] = 0.0
    return made


def time_of_one(given: Spec) -> float:
    """Nanoseconds."""
    result: dict[str, Any] = read_answer(given)
    assert result["stall"] is None
    return float(result["window_ns"] / result["operations"])


@pytest.mark.parametrize("rw", ["randread", "randwrite"])
def test_a_page_that_is_in_memory_only_takes_what_a_core_needs_to_read_it(tmp_path: Path, rw: str) -> None:
    asked = f"workload.rw={rw}"
    warm = time_of_one(spec(tmp_path, asked, "workload.size=512 KiB"))
    cold = time_of_one(spec(tmp_path, asked, "workload.size=4 GiB"))
    assert cold - warm == pytest.approx(COPY, rel=0.02)


def test_of_a_file_twice_as_large_as_the_cache_half_the_pages_come_from_memory(tmp_path: Path) -> None:
    warm = time_of_one(spec(tmp_path, "workload.size=512 KiB"))
    half = time_of_one(spec(tmp_path, "workload.size=64 MiB"))
    assert half - warm == pytest.approx(COPY / 2, rel=0.1)


def test_the_last_level_cache_is_as_fast_as_the_copy_but_for_the_look_at_the_page(tmp_path: Path) -> None:
    in_core = time_of_one(spec(tmp_path, "workload.size=512 KiB"))
    in_llc = time_of_one(spec(tmp_path, "workload.size=16 MiB"))
    looked = time_of_one(spec(tmp_path, "workload.size=16 MiB", llc_ns=30.0, memory_ns=30.0))
    assert in_llc == pytest.approx(in_core, rel=0.01)
    assert looked - in_llc == pytest.approx(2 * 30.0, rel=0.1)  # most of 16 MiB is not in the core's 1 MiB


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tmpfs", "ext4", "xfs", "btrfs"])
def test_both_machines_copy_the_same(tmp_path: Path, kind: str) -> None:
    device = () if kind == "tmpfs" else ("device=nvme",)
    given = spec(
        tmp_path,
        f"filesystem.kind={kind}",
        *device,
        "workload.rw=randrw",
        "workload.cached=true",
        llc_ns=30.0,
    )
    assert assert_same(given | {"warmup_ns": 0.0, "duration_ns": 1e6}) > 50
