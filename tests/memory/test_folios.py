"""What a write of several pages takes, and the file that goes, by whether its pages share a folio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import read_answer, run_scenario, window, written_spec

SCENARIO = """
simfs: 1
name: folios
title: A file of several pages
question: what do large folios save?
machine: {{profile: emulated, cpus: 1, costs: {{step_cv: 0}}}}
kernel: {{profile: linux-6.12, rules: {{{filesystem}.large_folios: {large}}}}}
filesystem: {{kind: {filesystem}, size: 8 GiB}}
device: {{profile: ramdisk}}
workload:
  kind: mix
  tasks: 1
  order: in-turn
  operations: [{{op: create}}, {{op: append, size: {size}}}, {{op: unlink}}]
measure: {{warmup: 1 ms, duration: 30 ms, replications: 1, seed: 1}}
"""


def loop(path: Path, filesystem: str, large: bool, size: str) -> float:
    """Instructions, ns here, of a file that is made, written and removed."""
    text = SCENARIO.format(filesystem=filesystem, large=str(large).lower(), size=size)
    run = run_scenario(path / "folios.yaml", text, warmup_ns=1e6, duration_ns=3e8)  # some checkpoints
    return run.window_ns / run.operations


LISTED = 326
"""Of dropping a folio, putting it on the list of pages before (`code_lru_add`), which is an append's here."""


@pytest.mark.parametrize(
    ("filesystem", "saved"), [("xfs", 3_658 - 659 + 1_538), ("ext4", 2_255)], ids=["xfs", "ext4"]
)
def test_each_page_after_the_first_is_a_folio_that_is_made_and_dropped(
    tmp_path: Path, filesystem: str, saved: int
) -> None:
    """As counted; a page of ext4 was counted as a folio only, so that it saves only what it takes to drop."""
    small, large = (loop(tmp_path, filesystem, large, "64 KiB") for large in (False, True))
    assert small - large == pytest.approx(15 * (saved - LISTED), rel=0.02)


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_a_page_alone_takes_the_same(tmp_path: Path, filesystem: str) -> None:
    small, large = (loop(tmp_path, filesystem, large, "4 KiB") for large in (False, True))
    assert small == large


WRITTEN = """\
simfs: 1
name: written
title: A file that was written by small writes is written over
machine: {{profile: emulated, cpus: 1, costs: {{step_cv: 0}}}}
kernel: {{profile: linux-6.12, rules: {{xfs.large_folios: {large}}}}}
filesystem: {{kind: xfs, size: 8 GiB}}
device: {{profile: ramdisk}}
workload:
  kind: mix
  tasks: 1
  order: in-turn
  operations:
    [{{op: create}}, {{op: append, size: 4 KiB, repeat: 16}}, {{op: overwrite, size: 64 KiB}}, {{op: unlink}}]
measure: {{warmup: 1 ms, duration: 30 ms, replications: 1, seed: 1}}
"""


def test_a_file_of_small_writes_has_small_folios_when_it_is_written_over(tmp_path: Path) -> None:
    """With large folios possible or not, each of its pages is a folio."""

    def turn(large: bool) -> float:
        text = WRITTEN.format(large=str(large).lower())
        run = run_scenario(tmp_path / "written.yaml", text, warmup_ns=1e6, duration_ns=1e8)
        return run.window_ns / run.operations

    assert turn(large=True) == turn(large=False)


OVER = """\
simfs: 1
name: over
title: Writes over a cached file that is larger than the caches
machine: {profile: server-24, cpus: 1, costs: {step_cv: 0}}
kernel: linux-6.18
filesystem: {kind: xfs, size: 8 GiB}
device: nvme
workload: {kind: fio, tasks: 1, rw: write, direct: false, block_size: 64 KiB, size: 256 MiB, cached: true}
measure: {warmup: 20 ms, duration: 20 ms, replications: 1}
"""


@pytest.mark.parametrize("kind", ["xfs", "ext4"])
@pytest.mark.parametrize(("large", "folios"), [(True, 1), (False, 16)])
def test_who_writes_over_large_folios_looks_at_few_pages(
    tmp_path: Path, kind: str, large: bool, folios: int
) -> None:
    """The slot and `struct page` of each folio come from memory, one after the other."""

    def time(memory_ns: float) -> float:
        rules = f"kernel.rules={{{kind}.large_folios: {str(large).lower()}}}"
        made = written_spec(tmp_path / "over.yaml", OVER, f"filesystem.kind={kind}", rules)
        caches = {
            "code_lines": 1e-6,
            "bodies": [],
            "llc_ns": 0.0,
            "memory_ns": memory_ns,
            "memory_bandwidth": 1e15,
        }
        made["machine"]["caches"] |= caches
        result: dict[str, Any] = read_answer(made)
        return float(result["window_ns"] / result["operations"])

    assert time(100) - time(0) == pytest.approx(2 * 100 * folios, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["xfs", "ext4"])
def test_both_machines_write_over_the_same_folios(tmp_path: Path, kind: str) -> None:
    assert_same(written_spec(tmp_path / "over.yaml", OVER, f"filesystem.kind={kind}") | window(1e6))
