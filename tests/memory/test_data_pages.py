"""Pages of file data that have left the caches are copied from memory, as fast as one core reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, read_answer, window, written_spec

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
    assert assert_same(given | window(1e6)) > 50


WRITERS = """\
simfs: 1
name: writers
title: Two tasks on two CPUs write over the beginning of a file
machine: {profile: server-24, cpus: 2}
kernel: linux-6.12
filesystem: {kind: ext4, size: 8 GiB}
device: nvme
workload:
  kind: mix
  tasks: 2
  directories: shared
  file_set: shared
  files: 2
  binding: compact
  order: in-turn
  operations: [{op: read, on: first}, {op: overwrite, on: last}]
measure: {warmup: 200 us, duration: 4 ms, replications: 1}
"""


def written(tmp_path: Path, size: str, *options: str) -> Spec:
    """Both tasks read so many bytes of a file and write as many over another."""
    sizes = (f"workload.operations.{place}.size={size}" for place in (0, 1))
    return written_spec(tmp_path / "writers.yaml", WRITERS, *sizes, *options)


def time_of_turn(given: Spec) -> float:
    """Nanoseconds from one turn of a task to the next."""
    result: dict[str, Any] = read_answer(given)
    return float(2 * result["window_ns"] / result["operations"])


def test_a_writer_fetches_the_lines_that_another_cpu_has_written(tmp_path: Path) -> None:
    """A page of 64 lines that both write takes longer than one line, although the copying takes the same here."""
    one, all_of_it = (time_of_turn(written(tmp_path, size)) for size in ("64 B", "4 KiB"))
    assert all_of_it - one > 100


def test_a_page_that_nobody_else_writes_is_with_its_writer(tmp_path: Path) -> None:
    own = ("workload.file_set=own",)
    one, all_of_it = (time_of_turn(written(tmp_path, size, *own)) for size in ("64 B", "4 KiB"))
    assert all_of_it == pytest.approx(one, rel=0.02)


def test_both_machines_move_the_same_lines_of_pages(tmp_path: Path) -> None:
    assert_same(written(tmp_path, "4 KiB") | {"warmup_ns": 2e5, "duration_ns": 1e6})


GROWING = """\
simfs: 1
name: growing
title: A file grows, or is made and removed again and again
machine: {profile: server-24, cpus: 1}
kernel: linux-6.12
filesystem: {kind: tmpfs, size: 8 GiB}
workload: {kind: mix, tasks: 1, order: in-turn, files: 1, operations: [{op: append, on: first}]}
measure: {warmup: 2 ms, duration: 20 ms, replications: 1}
"""
MADE_AND_REMOVED = "workload.operations=[{op: create}, {op: append}, {op: unlink}]"
NEW = (4096 + 64) / CACHES["memory_bandwidth"] * 1e9
"""Of a page and its `struct page`."""


def growing(tmp_path: Path, *options: str, **caches: float) -> Spec:
    given = written_spec(tmp_path / "growing.yaml", GROWING, *options)
    given["machine"]["caches"] = CACHES | caches
    given["machine"]["costs"]["step_cv"] = 0.0
    return given


def cost_of_memory(tmp_path: Path, *options: str) -> float:
    """How much longer an operation takes than with memory that takes no time, in nanoseconds."""
    slow, fast = (time_of_one(growing(tmp_path, *options, memory_bandwidth=rate)) for rate in (1e10, 1e15))
    return slow - fast


@pytest.mark.parametrize(("size", "pages"), [("4 KiB", 1.0), ("256 KiB", 64.0), ("1 KiB", 0.25)])
def test_each_page_of_a_file_that_grows_comes_from_memory(tmp_path: Path, size: str, pages: float) -> None:
    cost = cost_of_memory(tmp_path, f"workload.operations.0.size={size}")
    assert cost == pytest.approx(pages * NEW, rel=0.01)


@pytest.mark.parametrize("kind", ["tmpfs", "ext4", "xfs", "btrfs"])
def test_a_page_that_was_given_back_a_moment_ago_is_in_a_cache(tmp_path: Path, kind: str) -> None:
    device = () if kind == "tmpfs" else ("device=nvme",)
    assert cost_of_memory(tmp_path, MADE_AND_REMOVED, f"filesystem.kind={kind}", *device) == pytest.approx(
        0, abs=1
    )


@pytest.mark.parametrize(("footprint", "cold"), [(0, 0.0), (2**26, NEW)])
def test_one_that_was_given_back_long_ago_is_not(tmp_path: Path, footprint: int, cold: float) -> None:
    """A loop uses none or twice as much as the last-level cache has between the turns."""
    loop = f"workload={{kind: tmpfile, tasks: 1, write: 4 KiB, params: {{footprint_bytes: {footprint}}}}}"
    assert cost_of_memory(tmp_path, loop) == pytest.approx(cold, rel=0.05, abs=10)


def test_pages_of_a_file_that_was_emptied_are_used_again(tmp_path: Path) -> None:
    emptied = "workload.operations=[{op: append, on: first, size: 256 KiB}, {op: truncate, on: first}]"
    assert cost_of_memory(tmp_path, emptied) == pytest.approx(0, abs=1)


@pytest.mark.parametrize("kind", ["tmpfs", "xfs"])
def test_both_machines_make_the_same_pages(tmp_path: Path, kind: str) -> None:
    device = () if kind == "tmpfs" else ("device=nvme",)
    two = "workload.operations=[{op: create}, {op: append, size: 20 KiB}, {op: append, on: first}, {op: unlink}]"
    options = (two, f"filesystem.kind={kind}", "workload.tasks=2", "machine.cpus=2", *device)
    assert_same(growing(tmp_path, *options, llc_ns=30.0, memory_ns=90.0) | window(1e6))
