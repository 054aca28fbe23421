"""What a write of several pages takes, and the file that goes, by whether its pages share a folio."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import run_scenario

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
