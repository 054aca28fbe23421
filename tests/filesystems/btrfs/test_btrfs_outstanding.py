"""Room for metadata that dirty data of btrfs keep reserved, and who writes them back where it is short."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from machines import assert_same

from engine import Spec, simulate_whole, window, written_spec
from simfs.results.run_result import RunResult


def writing(
    size: str, *, rw: str = "randwrite", kernel: str = "linux-6.12", duration_ns: float = 2e7
) -> Spec:
    """Eight tasks that write files of their own through the page cache, without a limit of dirty pages."""
    text = (
        "simfs: 1\nname: write\ntitle: write\n"
        "machine: {profile: server-24, cpus: 4, costs: {step_cv: 0}}\n"
        f"kernel: {kernel}\n"
        f"filesystem: {{kind: btrfs, size: {size}}}\n"
        "device: ramdisk\n"
        f"workload: {{kind: fio, tasks: 8, rw: {rw}, block_size: 4 KiB, size: 16 MiB, files: per-task}}\n"
    )
    with TemporaryDirectory() as folder:
        spec = written_spec(Path(folder) / "write.yaml", text)
    return spec | window(duration_ns)


@cache
def run(size: str, rw: str = "randwrite", kernel: str = "linux-6.12") -> RunResult:
    return simulate_whole(writing(size, rw=rw, kernel=kernel))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["linux-6.12", "linux-4.4"])
def test_pages_that_are_dirty_each_by_itself_take_the_room_of_a_small_filesystem(kernel: str) -> None:
    """Each keeps 256 KiB reserved: 24 times 1 GiB and more are promised of 1 TiB, and some 100 MiB of 2 GiB."""
    small, large = run("2 GiB", kernel=kernel), run("1 TiB", kernel=kernel)
    assert small.operations < large.operations / 2


@pytest.mark.slow
def test_pages_beside_each_other_are_one_extent() -> None:
    small, large = run("2 GiB", "write"), run("1 TiB", "write")
    assert small.operations > large.operations * 0.8


@pytest.mark.slow
def test_both_machines_do_the_same_where_dirty_data_are_written_for_room() -> None:
    assert assert_same(writing("2 GiB", duration_ns=3e6), most=6_000) > 100
