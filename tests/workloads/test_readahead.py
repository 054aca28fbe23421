"""Reads of a file block after block, none of which is in memory: what is read ahead, and who waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, per_second, read_whole_answer, window, written_spec

DEVICE = "{profile: nvme, read: {time: 100 us, cv: 0, per_kib: 0}, bandwidth: {read: 100 GB, write: 100 GB}}"

SCENARIO = """\
simfs: 1
name: ahead
title: Reads of a cold file
machine: {profile: server-24, cpus: 4}
kernel: linux-6.12
filesystem: {kind: ext4}
device: {device}
workload: {kind: fio, tasks: 1, rw: read, size: 64 MiB, block_size: 4 KiB, cached: false}
measure: {warmup: 5 ms, duration: 20 ms, replications: 1}
"""


def spec(tmp_path: Path, *options: str, device: str = DEVICE) -> Spec:
    return written_spec(tmp_path / "ahead.yaml", SCENARIO.replace("{device}", device), *options)


def run(tmp_path: Path, *options: str) -> dict[str, Any]:
    return read_whole_answer(spec(tmp_path, *options))


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_the_device_reads_the_next_64_pages_while_these_are_copied(tmp_path: Path, kind: str) -> None:
    rate = per_second(run(tmp_path, f"filesystem.kind={kind}"))
    assert 50 * 10_000 < rate < 64 * 10_000  # a window each 100 us, and what its submission takes


def test_at_random_places_each_read_waits_for_the_device(tmp_path: Path) -> None:
    assert per_second(run(tmp_path, "workload.rw=randread")) < 10_000


def test_a_call_of_64_pages_has_the_next_window_submitted_in_its_middle(tmp_path: Path) -> None:
    pages = 64 * per_second(run(tmp_path, "workload.block_size=256 KiB"))
    assert 1.1 * per_second(run(tmp_path)) < pages < 2 * 64 * 10_000


def test_readers_of_one_file_wait_for_each_others_pages(tmp_path: Path) -> None:
    shared = ("workload.tasks=2", "workload.files=shared")
    assert per_second(run(tmp_path, *shared)) > 20 * per_second(
        run(tmp_path, *shared, "workload.rw=randread")
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ext4", "xfs"])
@pytest.mark.parametrize("device", ["nvme", "ramdisk", "loop-tmpfs"])
def test_both_machines_read_ahead(tmp_path: Path, kind: str, device: str) -> None:
    options = (f"filesystem.kind={kind}", "workload.tasks=3", "workload.files=shared")
    given = spec(tmp_path, *options, device=device)
    assert assert_same(given | window(2e6)) > 50
