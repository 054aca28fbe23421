"""The locks around the extents of an inode of ext4: `i_data_sem`, and the tree of extents in memory before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from lock_steps import operations
from machines import assert_same

from engine import Spec, acquired_each, audited, read_answer, scenario_spec, window, written_spec
from simfs.scenario import expand, load, to_run_spec

JOBS = """\
simfs: 1
name: jobs
title: Jobs on one file
machine: {profile: server-24, cpus: 8}
kernel: linux-6.12
filesystem: {kind: ext4}
device: {profile: nvme, read: {time: 50 us, cv: 0}, write: {time: 50 us, cv: 0}}
workload: {kind: fio, tasks: 4, direct: true, size: 64 MiB}
measure: {warmup: 5 ms, duration: 40 ms, replications: 1}
"""


def mix(folder: Path, kernel: str, *operations: str, tasks: int = 1) -> Spec:
    listed = ", ".join(f"{{op: {operation}}}" for operation in operations)
    path = folder / "mix.yaml"
    path.write_text(
        f"simfs: 1\nname: mix\ntitle: a\nmachine: {{profile: server-24, cpus: 8}}\nkernel: {kernel}\ndevice: nvme\n"
        f"filesystem: {{kind: ext4}}\nworkload: {{kind: mix, tasks: {tasks}, files: 16, order: in-turn,"
        f" operations: [{listed}]}}\n"
    )
    (point,) = expand(load(path))
    return to_run_spec(point, 0) | {"warmup_ns": 1e6, "duration_ns": 5e6}


@pytest.mark.parametrize(
    ("kernel", "i_data_sem", "es_lock"), [("linux-3.8", 1, 0), ("linux-3.9", 0, 1), ("linux-6.12", 0, 1)]
)
def test_who_reads_asks_the_tree_in_memory_since_3_9(
    tmp_path: Path, kernel: str, i_data_sem: int, es_lock: int
) -> None:
    read = ("workload.rw=randread", f"kernel={kernel}")
    result = audited(written_spec(tmp_path / "jobs.yaml", JOBS, *read))
    assert acquired_each(result, "ext4.i_data_sem") == pytest.approx(i_data_sem, abs=0.02)
    assert acquired_each(result, "ext4.i_es_lock") == pytest.approx(es_lock, abs=0.02)


@pytest.mark.parametrize(("kernel", "looks"), [("linux-5.4", 1), ("linux-5.6", 2), ("linux-6.12", 2)])
def test_a_direct_write_that_shares_the_file_looks_first_whether_it_overwrites(
    tmp_path: Path, kernel: str, looks: int
) -> None:
    write = ("workload.rw=randwrite", f"kernel={kernel}", "workload.tasks=1")
    result = audited(written_spec(tmp_path / "jobs.yaml", JOBS, *write))
    assert acquired_each(result, "ext4.i_es_lock") == pytest.approx(looks, abs=0.02)


@pytest.mark.parametrize(
    ("kernel", "direct", "fiemap"),
    [
        ("linux-5.4", 0, 0),
        ("linux-5.6", 1, 0),
        ("linux-5.7", 1, 1),
        ("linux-6.10", 1, 1),
        ("linux-6.11", 0, 0),
    ],
)
def test_who_maps_blocks_asks_under_j_state_lock_whether_the_last_change_is_over(
    tmp_path: Path, kernel: str, direct: int, fiemap: int
) -> None:
    jobs = written_spec(tmp_path / "jobs.yaml", JOBS, "workload.rw=randread", f"kernel={kernel}")
    for given, times in ((jobs, direct), (mix(tmp_path, kernel, "fiemap"), fiemap)):
        assert acquired_each(audited(given), "ext4.j_state_lock") == pytest.approx(times, abs=0.05)
    assert_same(mix(tmp_path, kernel, "fiemap", tasks=3) | window(1e5))


def test_a_count_by_cpu_still_moves_the_line_that_all_read(tmp_path: Path) -> None:
    """`percpu_counter_add_batch`: one lookup in 32 writes the common count, in whose line lies what all others read."""

    def per_second(design: str) -> float:
        kernel = f"{{profile: linux-6.12, rules: {{ext4.es_stats: {design}}}}}"
        return float(read_answer(mix(tmp_path, kernel, "fiemap", tasks=8))["operations"])

    nowhere, by_cpu, shared = map(per_second, ("nowhere", "per-cpu", "shared"))
    assert nowhere > by_cpu > shared


LATER = {
    "linux-3.8": "~i_data_sem -i_data_sem",
    "linux-6.10": "~i_es_lock -i_es_lock ~i_data_sem +i_es_lock -i_es_lock -i_data_sem",
    "linux-6.11": "~i_es_lock -i_es_lock +i_data_sem ~i_es_lock -i_es_lock +i_es_lock -i_es_lock -i_data_sem",
}
"""What a new page takes in each era, once the tree in memory knows that nothing is behind the first."""


@pytest.mark.parametrize("kernel", LATER)
def test_a_page_that_has_no_block_yet_is_delayed_with_the_lock_of_its_era(kernel: str) -> None:
    appends = operations("ext4", "append", "open", kernel=kernel)["append"]
    locks = [
        " ".join(step for step in steps.split() if "i_data_sem" in step or "i_es" in step)
        for steps in appends
    ]
    assert LATER[kernel] in locks


def test_a_writer_that_closes_waits_for_the_write_back_that_allocates(tmp_path: Path) -> None:
    """Nobody else has the file, but for the task that syncs it at the same time."""
    shared = mix(tmp_path, "linux-6.12", "append", "fsync", "open", tasks=6)
    shared["workload"]["params"]["file_set"] = "shared"
    result = audited(shared)
    (lock,) = [lock for lock in result.locks if lock.name == "ext4.i_data_sem"]
    assert lock.contended > 0


def test_blocks_are_allocated_and_freed_under_i_data_sem() -> None:
    for sequences in operations("ext4", "fallocate", "shorten", kernel="linux-6.12").values():
        for steps in sequences:
            held = False
            for step in steps.split():
                held = step == "+i_data_sem" or (held and step != "-i_data_sem")
                assert held or step != "+group_lock", steps


def test_the_file_of_one_page_is_evicted_without_the_lock_until_it_has_blocks(tmp_path: Path) -> None:
    """A page that was never written back has none (`i_blocks`); after an fsync `ext4_truncate` frees them."""
    without = operations("ext4", "create", "append", "unlink", kernel="linux-6.12")["unlink"]
    synced = operations("ext4", "create", "append", "fsync", "unlink", kernel="linux-6.12")["unlink"]
    assert not any("i_data_sem" in steps for steps in without)
    assert any("i_data_sem" in steps for steps in synced)


@pytest.mark.parametrize("kernel", ["linux-3.8", "linux-5.10", "linux-6.12"])
def test_both_machines_do_the_same(tmp_path: Path, kernel: str) -> None:
    work = ("create", "append", "fsync", "fallocate", "shorten", "open", "unlink")
    made = mix(tmp_path, kernel, *work, tasks=3)
    assert assert_same(made | window(5e5)) > 100


def test_a_run_with_all_of_it_leaves_its_structures_right(tmp_path: Path) -> None:
    work = ("create", "append", "fsync", "fallocate", "shorten", "truncate", "unlink")
    assert read_answer(mix(tmp_path, "linux-6.12", *work, tasks=8))["stall"] is None


def test_who_drops_the_pages_of_a_closed_file_waits_until_its_extent_is_converted() -> None:
    """Compilers replace files (`auto_da_alloc`), whose extents a worker converts; no other file may have the slot."""
    spec = scenario_spec(
        "emulated-compile",
        "ext4-6.12-noautogroup",
        "sweep.workload.tasks=[24]",
        warmup_ns=71e6,
        duration_ns=2e6,
    )
    assert all(law["ok"] for law in read_answer(spec | {"replication": 1})["laws"])
