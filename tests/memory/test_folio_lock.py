"""On tmpfs, users of one page of a file meet at its folio's lock, elsewhere only at its count of references."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same
from operations import holds, spec

from engine import Spec, rate, simulate, window
from simfs.scenario import expand, load, to_run_spec


def shared(path: Path, op: str, tasks: int, kind: str = "tmpfs") -> Spec:
    """Tasks that read one page of one file, or write over it."""
    made = spec(path, op, tasks, file_set="shared", files=1)
    scenario = path / "threads.yaml"
    scenario.write_text(scenario.read_text().replace("kind: tmpfs", f"kind: {kind}"))
    (point,) = expand(load(scenario))
    return to_run_spec(point, 0) | {key: made[key] for key in ("warmup_ns", "duration_ns")}


@pytest.mark.parametrize("op", ["read", "overwrite"])
def test_a_call_locks_the_folio_once_on_tmpfs(tmp_path: Path, op: str) -> None:
    """`shmem_get_folio_gfp`."""
    assert holds(simulate(shared(tmp_path, op, 1)), "mm.folio_lock") == pytest.approx(1, rel=0.02)


def test_readers_of_one_page_sleep_for_each_other_on_tmpfs_and_not_on_ext4(tmp_path: Path) -> None:
    tmpfs, ext4 = (simulate(shared(tmp_path, "read", 16, kind)) for kind in ("tmpfs", "ext4"))
    (lock,) = (lock for lock in tmpfs.locks if lock.name == "mm.folio_lock")
    assert lock.slept > 0
    assert rate(tmpfs) < rate(ext4) / 2
    assert all(lock.name != "mm.folio_lock" for lock in ext4.locks)


def test_both_machines_agree_on_the_folio_lock(tmp_path: Path) -> None:
    assert_same(shared(tmp_path, "read", 5) | window(3e4))
