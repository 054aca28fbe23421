"""fio's jobs on ext4: who excludes whom in direct I/O, and which writes start a handle of the journal."""

from __future__ import annotations

from pathlib import Path

import pytest
from fio_jobs import run, spec
from machines import assert_same

from engine import acquired, per_second, read_whole_answer, window


@pytest.mark.slow
@pytest.mark.parametrize("journal", [True, False])
@pytest.mark.parametrize("how", ["exclusive", "relocked", "shared"])
def test_both_machines_do_the_same_direct_io_on_ext4(tmp_path: Path, how: str, journal: bool) -> None:
    options = (
        "filesystem.kind=ext4",
        f"kernel.rules.ext4.dio_writes={how}",
        f"filesystem.journal={str(journal).lower()}",
    )
    given = spec(tmp_path, *options, "workload.fsync=3", "kernel.profile=linux-4.9")
    assert assert_same(given | window(2e6)) > 50


@pytest.mark.parametrize(("how", "times"), [("exclusive", 1), ("relocked", 4), ("shared", 4)])
def test_direct_writes_of_ext4_take_turns_only_where_they_hold_the_lock_alone(
    tmp_path: Path, how: str, times: int
) -> None:
    write = ("filesystem.kind=ext4", f"kernel.rules.ext4.dio_writes={how}", "workload.rw=randwrite")
    alone = per_second(run(tmp_path, *write, "workload.tasks=1"))
    assert per_second(run(tmp_path, *write)) == pytest.approx(times * alone, rel=0.15)


@pytest.mark.parametrize("how", ["exclusive", "unlocked", "shared"])
def test_direct_reads_of_ext4_never_take_turns(tmp_path: Path, how: str) -> None:
    read = ("filesystem.kind=ext4", f"kernel.rules.ext4.dio_reads={how}", "workload.rw=randread")
    alone = per_second(run(tmp_path, *read, "workload.tasks=1"))
    assert per_second(run(tmp_path, *read)) == pytest.approx(4 * alone, rel=0.15)


def test_a_direct_read_of_ext4_keeps_writes_waiting_for_its_device_only_where_it_shares_the_lock(
    tmp_path: Path,
) -> None:
    """`do_blockdev_direct_IO` gives the lock back when all is submitted (until 4.8)."""
    mixed = ("filesystem.kind=ext4", "kernel.rules.ext4.dio_writes=exclusive", "workload.rw=randrw")

    def write_ns(how: str) -> float:
        given = spec(tmp_path, *mixed, f"kernel.rules.ext4.dio_reads={how}")
        assert assert_same(given | window(1e6)) > 20
        found = run(tmp_path, *mixed, f"kernel.rules.ext4.dio_reads={how}")
        return float(found["latency"]["write"]["mean_ns"])

    assert write_ns("shared") > 2 * write_ns("exclusive")


@pytest.mark.parametrize(("kernel", "handles"), [("linux-5.4", 0), ("linux-5.5", 1), ("linux-5.6", 0)])
def test_a_direct_write_of_ext4_starts_a_handle_in_5_5(tmp_path: Path, kernel: str, handles: int) -> None:
    write = ("filesystem.kind=ext4", "workload.rw=randwrite", "workload.tasks=1")
    rules = "{ext4.committed_check: nobody}"  # which takes that lock, too
    result = run(tmp_path, *write, f"kernel={{profile: {kernel}, rules: {rules}}}")
    started = acquired(result, "ext4.j_state_lock") / result["operations"]
    assert started == pytest.approx(handles, abs=0.02)


def test_a_journal_handle_in_each_buffered_write_meets_in_the_journal_only_where_there_is_one(
    tmp_path: Path,
) -> None:
    old = (
        "filesystem.kind=ext4", "workload.direct=false", "workload.rw=randwrite", "workload.places=own-block",
        "workload.tasks=1", "kernel.rules.ext4.write_handles=true",
    )  # fmt: skip
    journaled, plain = (
        per_second(run(tmp_path, *old)),
        per_second(run(tmp_path, *old, "filesystem.journal=false")),
    )
    handle = 194 + 195  # ns of a handle that dirties nothing: its start, and journal.stop
    assert 1e9 / journaled - 1e9 / plain == pytest.approx(handle, abs=30)


@pytest.mark.parametrize(("journal", "starts"), [(True, 1), (False, 0)])
def test_who_has_written_pages_back_starts_a_handle_in_vain(
    tmp_path: Path, journal: bool, starts: int
) -> None:
    """Until 5.7 the loop of `ext4_writepages` ends with one that finds no page."""
    synced = (
        "filesystem.kind=ext4", "workload.direct=false", "workload.rw=randwrite", "workload.cached=true",
        "workload.fsync=1", "workload.tasks=1", f"filesystem.journal={str(journal).lower()}",
    )  # fmt: skip
    asked = []
    for vain in ("true", "false"):
        given = spec(tmp_path, *synced, f"kernel.rules.ext4.vain_handle={vain}")
        result = read_whole_answer(given)
        asked.append(acquired(result, "ext4.j_state_lock") / result["operations"])
        assert assert_same(given | window(1e6)) > 10
    assert asked[0] - asked[1] == pytest.approx(starts, abs=0.1)
