"""Rules of a kernel: what one lock guards, and who does the work; and the locks of all inodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import run_scenario
from simfs.results.run_result import LockStats, RunResult
from simfs.scenario.models import load_filesystem
from simfs.vocabulary import vocabulary

HEAD = "simfs: 1\nname: d\ntitle: d\n"
MACHINE = "profile: dual-socket-48, cpus: 16"


def run(
    tmp_path: Path,
    filesystem: str,
    workload: str,
    kernel: str = "linux-6.12",
    rules: str = "",
    machine: str = MACHINE,
) -> RunResult:
    text = (
        f"{HEAD}machine: {{{machine}}}\nkernel: {{profile: {kernel}, rules: {{{rules}}}}}\n"
        f"filesystem: {filesystem}\nworkload: {{{workload}}}\n"
    )
    return run_scenario(tmp_path / "d.yaml", text, warmup_ns=3e6, duration_ns=20e6)


def lock(result: RunResult, name: str) -> LockStats | None:
    return next((lock for lock in result.locks if lock.name == name), None)


CREATE = "kind: create, tasks: 16, directories: per-task"
CYCLE = "kind: create_unlink, tasks: 16, directories: per-task"


@pytest.mark.slow
def test_ext4_passes_every_inode_through_one_hash_lock_and_xfs_through_none(tmp_path: Path) -> None:
    ext4, xfs = run(tmp_path, "{kind: ext4}", CREATE), run(tmp_path, "{kind: xfs, agcount: 16}", CREATE)
    hashed = lock(ext4, "vfs.inode_hash_lock")
    assert hashed is not None
    assert hashed.instances == 1
    assert hashed.acquired == pytest.approx(ext4.operations, rel=0.02)
    assert lock(xfs, "vfs.inode_hash_lock") is None
    assert lock(xfs, "vfs.s_inode_list_lock") is not None


def test_an_unlinked_inode_passes_both_locks_twice(tmp_path: Path) -> None:
    result = run(tmp_path, "{kind: ext4}", CYCLE)
    for name in ("vfs.inode_hash_lock", "vfs.s_inode_list_lock"):
        found = lock(result, name)
        assert found is not None
        assert found.acquired == pytest.approx(2 * result.operations, rel=0.02)


def test_a_long_hold_of_the_hash_lock_ends_the_scaling_and_a_lock_for_each_chain_gives_it_back(
    tmp_path: Path,
) -> None:
    slow = "{kind: ext4, costs: {inode_hash: 2 us}}"
    one = run(tmp_path, slow, CREATE)
    many = run(tmp_path, slow, CREATE, rules="vfs.inode_hash: per-chain")
    assert one.throughput_per_s < 1e9 / 2000  # no more than one hold after the other
    assert many.throughput_per_s > 1.15 * one.throughput_per_s  # 1.2 to 1.35 by seed


WALK = (
    "kind: mix, tasks: 16, directories: per-task, operations: [{op: walk}], files: 0, subdirectories: 10, "
    "initial_files: 320000"
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ext4", "btrfs"])
def test_a_file_that_comes_into_memory_is_looked_for_under_the_hash_lock_until_6_10(
    tmp_path: Path, kind: str
) -> None:
    for kernel, times in (("linux-6.10", 2), ("linux-6.11", 1)):
        result = run(tmp_path, f"{{kind: {kind}}}", WALK, kernel)
        hashed = lock(result, "vfs.inode_hash_lock")
        assert hashed is not None
        assert hashed.acquired == pytest.approx(times * result.operations, rel=0.02)


@pytest.mark.slow
def test_chains_of_the_inode_hash_are_as_long_as_inodes_are_many_and_memory_is_small(tmp_path: Path) -> None:
    """16 million inodes in 2^20 buckets: 15.3 loads of 90 ns; in 2^23 1.9."""
    holds = []
    for inodes, memory in ((0, "16 GiB"), (16_000_000, "16 GiB"), (16_000_000, "256 GiB")):
        filesystem = f"{{kind: ext4, cached_inodes: {inodes}}}"
        found = lock(
            run(tmp_path, filesystem, CREATE, machine=f"profile: server-24, memory: {memory}"),
            "vfs.inode_hash_lock",
        )
        assert found is not None
        holds.append(found.hold_total_ns / found.acquired)
    none, long, short = holds
    assert long - none == pytest.approx(15.26 * 90, rel=0.05)
    assert short - none == pytest.approx(1.91 * 90, rel=0.2)


@pytest.mark.slow
def test_lists_by_cpu_take_the_waiting_off_the_inode_list(tmp_path: Path) -> None:
    slow = "{kind: tmpfs, costs: {inode_list: 1 us}}"
    one = run(tmp_path, slow, CREATE)
    many = run(tmp_path, slow, CREATE, rules="vfs.inode_list: per-cpu")
    waited = [lock(result, "vfs.s_inode_list_lock") for result in (one, many)]
    assert waited[0] is not None
    assert waited[1] is not None
    assert waited[1].contended < waited[0].contended / 20
    assert many.throughput_per_s > 1.5 * one.throughput_per_s


@pytest.mark.parametrize("kind", ["tmpfs", "ext4", "xfs", "btrfs"])
def test_selinux_without_a_policy_lists_who_comes_and_takes_out_who_goes(tmp_path: Path, kind: str) -> None:
    without = run(tmp_path, f"{{kind: {kind}}}", CYCLE)
    assert lock(without, "vfs.isec_lock") is None
    result = run(tmp_path, f"{{kind: {kind}}}", CYCLE, rules="vfs.isec_list: global")
    found = lock(result, "vfs.isec_lock")
    assert found is not None
    assert found.contended > 0
    assert found.acquired == pytest.approx(2 * result.operations, abs=32)
    by_cpu = run(tmp_path, f"{{kind: {kind}}}", CYCLE, rules="vfs.isec_list: per-cpu")
    apart = lock(by_cpu, "vfs.isec_lock")
    assert apart is not None
    assert apart.contended < found.contended / 20


@pytest.mark.parametrize("kind", ["tmpfs", "xfs"])
def test_who_checks_a_list_waits_for_its_neighbours_with_the_lock_held(tmp_path: Path, kind: str) -> None:
    two_sockets = "profile: dual-socket-48, cpus: 16, cpus_per_socket: 8, cpus_per_llc: 8"
    holds = []
    for rules in ("", "lock.debug_list: true"):
        result = run(tmp_path, f"{{kind: {kind}}}", CYCLE, rules=rules, machine=two_sockets)
        found = lock(result, "vfs.s_inode_list_lock")
        assert found is not None
        holds.append(found.hold_total_ns / found.acquired)
    unchecked, checked = holds
    assert checked > unchecked + 30  # one transfer more, of 49 or 120 ns, where a neighbour is another CPU's


@pytest.mark.slow
def test_each_step_out_of_the_cil_lock_leaves_fewer_acquisitions_or_shorter_holds(tmp_path: Path) -> None:
    def held(design: object) -> tuple[int, float]:
        result = run(tmp_path, "{kind: xfs, agcount: 16}", CYCLE, rules=f"xfs.cil: {design}")
        found = lock(result, "xfs.xc_cil_lock")
        per = result.operations
        return (0, 0.0) if found is None else (found.acquired, found.hold_total_ns / per)

    steps = [held(design) for design in vocabulary().rules["xfs.cil"].values]
    assert steps[0][1] > steps[1][1] > steps[2][1]
    assert steps[0][0] > 10 * steps[2][0]
    assert steps[3] == (0, 0.0)


def test_who_frees_unlinked_inodes_shows_in_the_worker(tmp_path: Path) -> None:
    def sites(design: object) -> tuple[float, set[str]]:
        result = run(
            tmp_path,
            "{kind: xfs, agcount: 4}",
            "kind: create_unlink, tasks: 4",
            rules=f"xfs.inodegc: {design}",
        )
        agi = lock(result, "xfs.AGI")
        assert agi is not None
        return agi.acquired / result.operations, {site.site for site in agi.sites}

    assert "inodegc" not in sites("task")[1]
    for design in vocabulary().rules["xfs.inodegc"].values:
        assert sites(design)[0] == pytest.approx(3, rel=0.25)  # create, unlink, free: whoever does it


@pytest.mark.slow
def test_inodes_that_wait_for_a_worker_are_on_unlinked_lists_that_run_through_their_buffers(
    tmp_path: Path,
) -> None:
    """A CPU for each task and none for the workers: else they take turns at the AGI, and few inodes ever wait."""

    def buffers(inodegc: str, iunlink: str) -> float:
        result = run(
            tmp_path,
            "{kind: xfs, agcount: 16}",
            CYCLE,
            rules=f"xfs.inodegc: {inodegc}, xfs.iunlink: {iunlink}",
            machine=f"{MACHINE}, costs: {{wakeup: 0 ns, ipi_deliver: 0 ns}}",
        )
        found = lock(result, "xfs.inode cluster")
        return 0 if found is None else found.acquired / result.operations

    assert buffers("task", "in-memory") == pytest.approx(0, abs=0.01)  # alone on its list: the AGI knows it
    assert buffers("task", "on-disk") == pytest.approx(1, abs=0.05)  # read, to see what comes next
    assert buffers("per-group", "in-memory") > 0.1
    assert buffers("per-group", "on-disk") > 0.9 * (1 + buffers("per-group", "in-memory"))


def test_ext4_without_a_journal_starts_no_handles(tmp_path: Path) -> None:
    synced = "kind: tmpfile, fsync: true, tasks: 4, directories: per-task"
    with_one, without = (run(tmp_path, f"{{kind: ext4, journal: {on}}}", synced) for on in ("true", "false"))
    assert without.throughput_per_s > with_one.throughput_per_s


def test_who_creates_waits_for_who_asks_with_the_leaf_locked(tmp_path: Path) -> None:
    def waited(design: object) -> float:
        result = run(
            tmp_path,
            "{kind: btrfs, nodatacow: true, costs: {cross_ref: 1 ms}}",
            "kind: mix, tasks: 8, operations: [{op: overwrite}, {op: fsync}, {op: create}], order: in-turn, "
            "files: 1, file_size: 4 KiB, directories: per-task",
            rules=f"btrfs.nocow_check: {design}",
        )
        leaves = [lock.wait_total_ns for lock in result.locks if lock.name.startswith("btrfs.fs tree")]
        return sum(leaves) / result.operations

    assert waited("path-held") > 2 * waited("path-released")


def test_the_leaf_is_held_shared_for_the_search_of_the_extent_tree(tmp_path: Path) -> None:
    """Besides: a head is looked for under the spinlock of the delayed refs, and the checksum tree is searched."""

    def asked(design: object) -> tuple[float, dict[str, float]]:
        result = run(
            tmp_path,
            "{kind: btrfs, nodatacow: true}",
            "kind: fio, tasks: 4, rw: randwrite, size: 1 MiB, files: per-task, cached: true, fsync: 1",
            rules=f"btrfs.nocow_check: {design}",
        )
        leaf = lock(result, "btrfs.fs tree L0")
        assert leaf is not None
        taken = {lock.name: lock.acquired / result.operations for lock in result.locks}
        return leaf.hold_shared_total_ns / leaf.acquired_shared, taken

    (held, taken), (released, _) = asked("path-held"), asked("path-released")
    assert held - released > load_filesystem("btrfs").constants["cross_ref"].ns / 2
    for name in ("btrfs.extent tree L0", "btrfs.delayed_refs", "btrfs.csum tree L0"):
        assert taken[name] == pytest.approx(1, rel=0.05)


def test_a_path_that_stays_blocking_takes_its_locks_inside_once(tmp_path: Path) -> None:
    """Clearing a blocking path takes each rwlock again; with fair rwlocks that must not end in a deadlock."""

    def taken_inside(design: object) -> float:
        result = run(tmp_path, "{kind: btrfs}", CREATE, "linux-5.9", f"btrfs.path_clearing: {design}")
        inside, outside = lock(result, "btrfs.fs tree L0.lock"), lock(result, "btrfs.fs tree L0")
        assert inside is not None
        assert outside is not None
        return inside.acquired / outside.acquired

    assert taken_inside("blocking-first") > 1.005 * taken_inside("never")
