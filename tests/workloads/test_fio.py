"""fio's jobs on XFS: who excludes whom, what is under way at once, and what each kernel locks besides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fio_jobs import SCENARIO, run, spec
from machines import assert_same

from engine import acquired, per_second, read_answer, read_whole_answer, window
from simfs.scenario import ScenarioError, expand, load
from simfs.scenario.sections.fio import Fio


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_overwriting_pages_in_memory_takes_what_the_call_takes_that_was_measured(
    tmp_path: Path, filesystem: str
) -> None:
    """As in a mix, where its own loop takes as long; new pages, which memory has to be found for, take longer."""
    kind = f"filesystem.kind={filesystem}"
    write = (
        kind,
        "workload.direct=false",
        "workload.rw=randwrite",
        "workload.tasks=1",
        "workload.size=1 MiB",
    )
    cached = per_second(run(tmp_path, *write, "workload.cached=true", "workload.params.user_ns=5"))
    mix = SCENARIO.replace(
        "{kind: fio, tasks: 4, direct: true, size: 64 MiB}", "{kind: mix, tasks: 1, OPS}"
    ).replace("OPS", "operations: [{op: overwrite}], file_size: 4 KiB, params: {user_ns: 5 ns}")
    again = spec(tmp_path, kind, text=mix)
    assert cached == pytest.approx(per_second(read_whole_answer(again)), rel=0.1)


DIRECT = [("xfs", kind) for kind in ("rwsem", "none", "interval-tree", "btree", "optimistic")]


@pytest.mark.parametrize(
    ("filesystem", "direct"),
    [
        *((kind, True) for kind in ("xfs", "ext4", "tmpfs")),
        *((kind, False) for kind in ("xfs", "ext4", "btrfs", "tmpfs")),
    ],
)
def test_each_request_moves_its_bytes_once(tmp_path: Path, filesystem: str, direct: bool) -> None:
    result = run(tmp_path, f"filesystem.kind={filesystem}", f"workload.direct={str(direct).lower()}")
    # requests under way at either end of the window count in one of the two only
    assert abs(result["bytes"] / 4096 - result["operations"]) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("workload.iodepth=4",), ("workload.fsync=3", "device=hdd")])
@pytest.mark.parametrize(("filesystem", "iolock"), DIRECT)
def test_both_machines_do_the_same_direct_io(
    tmp_path: Path, filesystem: str, iolock: str, options: tuple[str, ...]
) -> None:
    places = ("workload.size=16 KiB", "kernel=linux-5.1", f"filesystem.iolock={iolock}")  # ranges collide
    assert assert_same(spec(tmp_path, *places, *options) | window(2e6)) > 50


@pytest.mark.slow
@pytest.mark.parametrize("filesystem", ["xfs", "ext4", "btrfs", "tmpfs"])
def test_both_machines_do_the_same_buffered_io(tmp_path: Path, filesystem: str) -> None:
    options = ("workload.direct=false", "workload.fsync=20", f"filesystem.kind={filesystem}")
    assert assert_same(spec(tmp_path, *options) | window(1e6)) > 50


@pytest.mark.parametrize("rw", ["randread", "randwrite", "randrw"])
def test_direct_reads_and_writes_share_the_iolock(tmp_path: Path, rw: str) -> None:
    alone = per_second(run(tmp_path, f"workload.rw={rw}", "workload.tasks=1"))
    assert per_second(run(tmp_path, f"workload.rw={rw}")) == pytest.approx(4 * alone, rel=0.03)


@pytest.mark.parametrize("iolock", ["interval-tree", "btree", "optimistic"])
def test_writes_of_the_same_block_take_turns_under_a_range_lock(tmp_path: Path, iolock: str) -> None:
    """The block is locked for 50 us of device time and more, so there are at most 20,000 turns a second."""
    one_block = ("workload.size=4 KiB", f"filesystem.iolock={iolock}")
    assert 10_000 < per_second(run(tmp_path, *one_block, "workload.rw=randwrite")) < 20_000
    assert per_second(run(tmp_path, *one_block, "workload.rw=randread")) > 60_000


def test_buffered_writes_exclude_each_other_and_reads(tmp_path: Path) -> None:
    buffered = ("workload.direct=false", "workload.rw=randrw", "workload.size=1 MiB")
    result = run(tmp_path, *buffered)
    (iolock,) = [lock for lock in result["locks"] if lock["name"] == "xfs.IOLOCK"]
    assert iolock["contended"] > 0.3 * iolock["acquired"]
    assert per_second(result) < 2 * per_second(run(tmp_path, *buffered, "workload.tasks=1"))


MODES = ["locked", "reads-unlocked", "writes-shared", "prewarmed"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_both_machines_do_the_same_io_through_the_page_cache(tmp_path: Path, mode: str) -> None:
    options = ("workload.direct=false", "workload.readers=2", f"filesystem.buffered_io={mode}")
    length = {"duration_ns": 1e5 if mode == "prewarmed" else 1e6}  # reads that nobody makes wait are many
    assert assert_same(spec(tmp_path, *options) | {"warmup_ns": 0.0} | length) > 50


def test_who_waits_for_the_iolock_is_the_modes_choice(tmp_path: Path) -> None:
    """Two readers of a file that is in memory, two writers."""
    options = (
        "workload.direct=false",
        "workload.readers=2",
        "workload.cached=true",
        "measure.duration=10 ms",
    )
    waits = {}
    for mode in MODES:
        result = run(tmp_path, *options, f"filesystem.buffered_io={mode}")
        (lock,) = [lock for lock in result["locks"] if lock["name"] == "xfs.IOLOCK"]
        waits[mode] = {site["site"] for site in lock["sites"] if site["contended"]}
    both = {"read", "write"}
    assert waits == {"locked": both, "reads-unlocked": {"write"}, "writes-shared": set(), "prewarmed": both}


def test_a_writer_waits_for_the_device_of_a_reader_unless_its_pages_come_before_the_lock(
    tmp_path: Path,
) -> None:
    options = ("workload.direct=false", "workload.tasks=2", "workload.readers=1", "workload.size=8 GiB")
    locked, prewarmed = (
        run(tmp_path, *options, f"filesystem.buffered_io={mode}")["latency"]["write"]["max_ns"]
        for mode in ("locked", "prewarmed")
    )
    assert locked > 50e3 > 20e3 > prewarmed  # the device takes 50 us


def test_a_buffered_read_of_what_is_not_in_memory_holds_the_iolock_while_the_device_works(
    tmp_path: Path,
) -> None:
    """Each page is read once: in a small file the device is soon idle, in a large one nearly every read waits."""
    read = ("workload.direct=false", "workload.rw=randread", "workload.tasks=1")
    assert per_second(run(tmp_path, *read, "workload.size=256 KiB")) > 300_000
    assert per_second(run(tmp_path, *read, "workload.size=8 GiB")) < 20_000


def test_a_job_with_o_sync_syncs_each_write(tmp_path: Path) -> None:
    job = ("workload.rw=randwrite", "workload.direct=false", "workload.tasks=1", "workload.cached=true")
    synced = run(tmp_path, *job, "workload.sync=true")["latency"]
    apart = run(tmp_path, *job, "workload.fsync=1")["latency"]
    both = apart["write"]["mean_ns"] + apart["fsync"]["mean_ns"]
    assert synced["write"]["mean_ns"] == pytest.approx(both, rel=0.03)


def test_the_time_of_a_file_changes_once_a_tick(tmp_path: Path) -> None:
    """Each change is a transaction; tasks that meet a new tick together may each make one."""
    result = run(tmp_path, "workload.rw=randwrite", "kernel.tick=1 ms")
    assert 40 <= acquired(result, "xfs.xc_ctx_lock") <= 4 * 41


def test_writes_looked_at_the_size_under_a_spinlock_before_5_13(tmp_path: Path) -> None:
    old = run(tmp_path, "workload.rw=randwrite", "kernel=linux-5.9")
    assert acquired(old, "xfs.i_flags_lock") == pytest.approx(2 * old["operations"], abs=8)
    assert acquired(run(tmp_path, "workload.rw=randread", "kernel=linux-5.9"), "xfs.i_flags_lock") == 0
    assert acquired(run(tmp_path, "workload.rw=randwrite"), "xfs.i_flags_lock") == 0


@pytest.mark.slow
def test_that_spinlock_ends_what_one_file_can_take(tmp_path: Path) -> None:
    """Every CPU is kept busy by requests in memory: with the lock, a third more CPUs do no more.

    Without it they do more, up to where the readers of the ILOCK meet.
    """
    write = ("device=ramdisk", "filesystem.iolock=none", "workload.rw=randwrite", "measure.duration=5 ms")

    def gain(kernel: str) -> float:
        few, many = (
            per_second(run(tmp_path, *write, f"kernel={kernel}", f"machine.cpus={n}", f"workload.tasks={n}"))
            for n in (12, 16)
        )
        return many / few

    assert gain("linux-5.9") < 1.05 < 1.2 < gain("linux-6.1")


def test_some_tasks_read_and_all_others_write(tmp_path: Path) -> None:
    counts = {name: data["count"] for name, data in run(tmp_path, "workload.readers=3")["latency"].items()}
    assert counts["read"] == pytest.approx(3 * counts["write"], rel=0.03)


def test_a_fragmented_file_has_a_deeper_extent_map(tmp_path: Path) -> None:
    """A level of 15 records, 16 children each: three levels hold 3,840. Looking up reads them, which nobody writes."""
    flat, deep = (
        per_second(run(tmp_path, "device=ramdisk", "workload.tasks=1", f"workload.extents={n}"))
        for n in (15, 3840)
    )
    assert 0.98 < deep / flat < 0.9995


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("direct: true", "direct: true, iodepth: 0", "8:.*greater than or equal to 1"),
        ("direct: true", "written: 50 %", "8:.*written is for rw: write, not for rand"),
        ("direct: true", "iodepth: 2", "8:.*iodepth above 1 needs direct: true"),
        ("direct: true, size: 64 MiB", "direct: true, size: 1 KiB", "8:.*does not hold a block"),
        ("64 MiB", "9 GiB", "8:53: the files have 9.0 GiB together, and filesystem.size is 8.0"),
        ("64 MiB", "3 GiB, files: per-task", "8:53: the files have 12.0 GiB together"),
        ("direct: true", "rw: randread, readers: 1", "8:.*readers are for randrw"),
        ("direct: true", "readers: 1, rwmixread: 30 %", "8:.*rwmixread: with readers a task only reads or"),
        ("tasks: 4", "numjobs: 4", "8:.*unknown key 'numjobs': write tasks"),
        ("direct: true", "bs: 4k", "8:.*unknown key 'bs': write block_size"),
        ("direct: true", "bssplit: 4k/50:8k/50", "8:.*operations of a mix can have sizes with weights"),
        ("direct: true", "ioengine: libaio", "8:.*or has iodepth under way with direct: true"),
    ],
)
def test_jobs_that_cannot_be_are_refused_with_their_place(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    with pytest.raises(ScenarioError, match=says):
        spec(tmp_path, text=SCENARIO.replace(old, new))


def transfers(result: dict[str, Any], lock: str) -> float:
    """Transfers of the lock's line, a request."""
    return float(
        sum(one["line_transfers"] for one in result["locks"] if one["name"] == lock) / result["operations"]
    )


def test_what_lies_beside_the_iolock_is_read_for_each_request_and_costs_a_transfer_where_the_lock_is_written(
    tmp_path: Path,
) -> None:
    """Between two accesses of a CPU others have had the line: 2 transfers for the lock, until 6.10 1 for `i_blkbits`.

    Who had to queue for the line fetches it once more for the owner word.
    """
    busy = ("device=ramdisk", "workload.rw=randread", "workload.tasks=8", "measure.duration=5 ms")
    beside = "kernel.rules.xfs.iolock_line=with-block-size"
    assert 3 <= transfers(run(tmp_path, *busy, beside), "xfs.IOLOCK") < 4
    assert 2 <= transfers(run(tmp_path, *busy), "xfs.IOLOCK") < 3
    assert transfers(run(tmp_path, *busy, "filesystem.iolock=none"), "xfs.IOLOCK") < 0.01


def test_the_extent_map_lay_beside_the_ilock_before_5_13(tmp_path: Path) -> None:
    busy = ("device=ramdisk", "workload.rw=randread", "workload.tasks=8", "measure.duration=5 ms")
    later, then = (
        transfers(run(tmp_path, *busy, *o), "xfs.ILOCK (file)") for o in ((), ("kernel=linux-5.1",))
    )
    assert later < 2
    assert then > later + 0.2


def test_all_tasks_of_the_guests_fio_jobs_use_one_file() -> None:
    """The measurement had one file of 256 MiB for n processes on every filesystem; some once had a file each."""
    loads = [point.scenario.workload for point in expand(load("guest-fio"))]
    assert {load.files if isinstance(load, Fio) else None for load in loads} == {"shared"}


def test_a_write_of_less_than_a_block_is_alone_on_its_file_until_5_11(tmp_path: Path) -> None:
    """Alone, each write of 50 us also waits for the reads before it: no more than one pair of both in 50 us."""
    job = ("workload.tasks=1", "workload.iodepth=16", "workload.rw=randrw", "workload.block_size=512 B")
    alone, shared = (
        per_second(run(tmp_path, f"kernel.profile={kernel}", *job)) for kernel in ("linux-5.11", "linux-5.12")
    )
    whole = per_second(run(tmp_path, "kernel.profile=linux-5.11", *job[:3]))
    assert alone < 2 / 50e-6
    assert shared > 3 * alone
    assert whole > 3 * alone


def test_synchronous_writes_of_less_than_a_block_by_several_tasks_take_turns_until_5_11(
    tmp_path: Path,
) -> None:
    """Whoever has the lock alone knows that nothing is under way: the others wait for their requests under the lock."""
    job = ("kernel.profile=linux-5.11", "workload.rw=randwrite", "workload.block_size=512 B")
    alone, four = (per_second(run(tmp_path, *job, f"workload.tasks={tasks}")) for tasks in (1, 4))
    assert four == pytest.approx(alone, rel=0.15)


@pytest.mark.slow
def test_both_machines_do_the_same_writes_of_less_than_a_block(tmp_path: Path) -> None:
    job = (
        "workload.tasks=2",
        "workload.files=per-task",
        "workload.iodepth=4",
        "workload.rw=randrw",
        "workload.block_size=512 B",
    )
    given = spec(tmp_path, "kernel.profile=linux-5.11", *job)
    assert assert_same(given | window(2e6)) > 50


def test_who_writes_less_than_a_block_of_a_file_of_others_and_does_not_wait_is_told_that_it_cannot(
    tmp_path: Path,
) -> None:
    job = ("workload.rw=randwrite", "workload.block_size=512 B", "workload.iodepth=4")
    given = spec(tmp_path, "kernel.profile=linux-5.11", *job)
    assert "need Linux 5.12" in str(read_answer(given)["stall"])
