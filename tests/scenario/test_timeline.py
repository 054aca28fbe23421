"""The timeline of kernels: any release by name, each with what it had, and one thing changed changes nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simfs.scenario import ScenarioError, expand, load, to_run_spec
from simfs.scenario.models import available, load_kernel, load_timeline
from simfs.scenario.models.timeline import Timeline, linux, parse_version
from simfs.vocabulary import vocabulary

RELEASES = load_timeline().versions()

Eras = dict[tuple[int, ...], str]
MUTEXES: Eras = {(3, 0): "mutex-3.0", (3, 10): "mutex-3.10", (4, 10): "mutex-4.10"}
RWSEMS: Eras = {
    (3, 0): "rwsem-2.6", (3, 9): "rwsem-3.10", (3, 16): "rwsem-3.16", (4, 8): "rwsem-4.8", (5, 3): "rwsem-5.3",
    (5, 4): "rwsem-5.4", (5, 11): "rwsem-5.11", (5, 16): "rwsem-5.16",
}  # fmt: skip
RWLOCKS: Eras = {(3, 0): "rwlock-2.6", (3, 16): "qrwlock-3.16", (4, 3): "qrwlock"}
SPINLOCKS: Eras = {(3, 0): "ticket", (4, 2): "qspinlock"}
ERAS: dict[str, Eras] = {
    "vfs.i_rwsem": {(3, 0): "mutex-3.0", (3, 10): "mutex-3.10", (4, 7): "rwsem-3.16"}
    | {era: kind for era, kind in RWSEMS.items() if era >= (4, 8)},
    "vfs.freeze": {(3, 0): "percpu-rwsem"},
    "futex.bucket": SPINLOCKS,
    "user.pick_lock": {(3, 0): "pthread-mutex"},
    "xfs.buffer": {(3, 0): "semaphore"},
    "ext4.buffer": {(3, 0): "bit-lock"},
    "mm.folio_lock": {(3, 0): "bit-lock"},
    **dict.fromkeys(("ext4.i_es_lock", "ext4.j_state_lock"), RWLOCKS),
    **dict.fromkeys(("ext4.j_list_lock", "ext4.s_md_lock"), SPINLOCKS),
    **dict.fromkeys(("ext4.j_checkpoint_mutex", "xfs.inodegc_wq", "xfs.cil_wq"), MUTEXES),
    "btrfs.tree": {
        (3, 0): "btrfs-tree-2", (3, 1): "btrfs-tree-3-biased", (3, 16): "btrfs-tree-3", (5, 11): "rwsem-5.11",
        (5, 16): "rwsem-5.16",
    },
    **dict.fromkeys(("xfs.ilock", "xfs.iolock", "xfs.cil_ctx", "ext4.i_data_sem"), RWSEMS),
    **dict.fromkeys(("vfs.inode_hash", "vfs.inode_list", "vfs.isec_list", "vfs.wb_list", "mm.lru_lock"), SPINLOCKS),
    **dict.fromkeys(("vfs.d_lock", "vfs.flc_lock", "vfs.file_lock", "xfs.i_flags_lock"), SPINLOCKS),
    "vfs.rename_lock": {(3, 0): "seqlock"},
    **dict.fromkeys(("tmpfs.stat_lock", "vfs.blocked_lock_lock"), SPINLOCKS),
    **dict.fromkeys(("vfs.dentry_lru", "block.private_lock", "ext4.next_generation"), SPINLOCKS),
    **dict.fromkeys(("ext4.group_spin", "btrfs.log_csum_range", "btrfs.delayed_refs", "btrfs.space_info"), SPINLOCKS),
    **dict.fromkeys(("btrfs.inode_lock", "btrfs.trans_lock", "btrfs.delalloc_lock", "btrfs.block_rsv"), SPINLOCKS),
    **dict.fromkeys(("xfs.cil_lock", "xfs.push_lock", "xfs.icloglock", "xfs.log_wait", "xfs.grant_lock"), SPINLOCKS),
    **dict.fromkeys(("brd.lock", "md.lock", "vfs.percpu_counter", "btrfs.root_item_lock"), SPINLOCKS),
    **dict.fromkeys(("ext4.orphan", "btrfs.delayed_node", "btrfs.log_mutex"), MUTEXES),
    **dict.fromkeys(("vfs.s_vfs_rename_mutex", "vfs.s_sync_lock"), MUTEXES),
    **dict.fromkeys(("vfs.s_umount", "vfs.wb_switch_rwsem"), RWSEMS),
    **dict.fromkeys(("btrfs.delayed_ref_head", "btrfs.free_space_lock", "btrfs.objectid_mutex"), MUTEXES),
}  # fmt: skip
"""The kind of each role's lock, by the first kernel that has it: told again here, so that a slip shows."""


def test_every_release_from_3_0_to_6_18_is_a_kernel() -> None:
    names = available("kernels")
    assert names[0] == "linux-3.0"
    assert names[-1] == "linux-6.18"
    assert len(names) == 20 + 21 + 20 + 19
    for name in names:
        assert load_kernel(name).name == name


@pytest.mark.parametrize("version", RELEASES, ids=linux)
def test_every_kernel_has_the_locks_of_its_era(version: tuple[int, ...]) -> None:
    kernel = load_kernel(linux(version))
    assert kernel.locks == {role: eras[max(v for v in eras if v <= version)] for role, eras in ERAS.items()}
    assert ("cfs" in kernel.spec(1)) == (version < (6, 6))


def test_the_timeline_has_the_words_of_the_engine_and_no_others() -> None:
    timeline, words = load_timeline(), vocabulary()
    assert set(timeline.rules) == set(words.rules)
    for name, eras in timeline.rules.items():
        assert {era.is_ for era in eras} <= set(words.rules[name].values), name
    kinds = {*words.lock_kinds, *timeline.primitives}
    assert {str(era.is_) for eras in timeline.roles.values() for era in eras} <= kinds
    assert {str(era.is_) for eras in timeline.primitives.values() for era in eras} <= set(words.lock_kinds)


def test_what_a_spec_does_not_say_is_as_in_linux_6_12() -> None:
    assert load_kernel("linux-6.12").rules == vocabulary().defaults


def test_slices_grow_with_the_cpus_as_the_kernel_scales_them() -> None:
    kernel = load_kernel("linux-6.1")
    times = [kernel.spec(cpus) for cpus in (1, 2, 3, 4, 7, 8, 24)]
    assert [spec["base_slice_ns"] / 750e3 for spec in times] == [1, 2, 2, 3, 3, 4, 4]
    assert [spec["cfs"]["latency_ns"] / 6e6 for spec in times] == [1, 2, 2, 3, 3, 4, 4]


RULES = """
vfs.inode_hash global
vfs.inode_lookup locked 6.11 rcu
vfs.inode_list global
vfs.isec_list none
vfs.dentry_lru global 3.12 per-node
vfs.inode_clock tick 6.13 as-asked
vfs.atime relatime
xfs.cil global 6.0 per-cpu
xfs.cil_push serial 5.15 pipelined
xfs.inodegc task 5.15 per-cpu
xfs.statfs_inodegc nothing 5.15 flush 5.19 push
xfs.iunlink on-disk 6.0 in-memory
xfs.dio_size_check locked 5.13 lockless
xfs.dio_unaligned exclusive 5.12 shared
xfs.ilock_line with-extents 5.8 with-format 6.0 apart
xfs.iolock_line with-block-size 5.19 with-ctime 6.0 with-block-size 6.11 apart
btrfs.nocow_check path-held 5.11 path-released
btrfs.reclaim on-demand 5.12 preemptive
btrfs.path_clearing in-place 3.16 blocking-first 4.20 never
btrfs.tree_log_mutex log-start 5.11 log-super
btrfs.full_commit since-committed 5.11 running 5.12 directory
btrfs.fsync_wait ordered 5.10 writeback
btrfs.direct_write direct 6.15 buffered
btrfs.dio_writes exclusive 3.9 relocked 5.11 shared 6.8 reads-shared
btrfs.commit_start at-once 6.7 after-previous
btrfs.extent_map_release full-sync 5.9 old-maps
btrfs.log_csums replace 5.9 insert
btrfs.log_inode leaf-held 5.16 known 6.1 leaf-cloned
btrfs.log_directory each 5.16 batches 5.17 indices 5.18 new 6.1 delayed
ext4.dio_reads exclusive 4.9 shared
ext4.committed_check nobody 5.5 direct 5.7 locked 6.11 lockless
ext4.transaction_size quarter 6.11 third
ext4.es_stats nowhere 3.18 shared 5.4 per-cpu
"""
"""Rules as the profiles of single kernels had them, which the timeline replaced: a rule more must not move another."""


@pytest.mark.parametrize(
    "name", ["3.6", "3.16", "4.4", "4.9", "5.1", "5.9", "6.1", "6.10", "6.11", "6.12", "6.18"]
)
def test_the_kernels_that_had_profiles_have_the_rules_they_had(name: str) -> None:
    rules = load_kernel(f"linux-{name}").rules
    for line in RULES.split("\n")[1:-1]:
        rule, value, *later = line.split()
        for since, then in zip(later[::2], later[1::2], strict=True):
            value = then if parse_version(since) <= parse_version(name) else value
        assert rules[rule] == value, rule


HEAD = "simfs: 1\nname: t\ntitle: t\nmachine: server-24\n"


def kernel_of(tmp_path: Path, text: str) -> dict[str, Any]:
    """The kernel of the only point of a scenario on btrfs."""
    path = tmp_path / "t.yaml"
    path.write_text(f"{HEAD}{text}\nfilesystem: {{kind: btrfs}}\nworkload: {{kind: create, tasks: 2}}\n")
    (point,) = expand(load(path))
    kernel: dict[str, Any] = to_run_spec(point, 0)["kernel"]
    return kernel


def test_another_lock_changes_that_lock_and_nothing_else(tmp_path: Path) -> None:
    plain = kernel_of(tmp_path, "kernel: linux-5.9")
    other = kernel_of(tmp_path, "kernel: linux-5.9\nlocks: {btrfs.tree: rwsem-5.4}")
    assert other == plain | {"locks": plain["locks"] | {"btrfs.tree": "rwsem-5.4"}}
    assert plain["rules"]["btrfs.early_unlock"] is False
    assert plain["rules"]["btrfs.delays_new_inodes"] is True


@pytest.mark.parametrize("rule", vocabulary().rules.values(), ids=lambda rule: rule.name)
def test_another_rule_changes_that_rule_and_nothing_else(tmp_path: Path, rule: Any) -> None:  # noqa: ANN401
    plain = kernel_of(tmp_path, "kernel: linux-6.12")
    for value in rule.values:
        text = str(value).lower()
        other = kernel_of(tmp_path, f"kernel: {{profile: linux-6.12, rules: {{{rule.name}: {text}}}}}")
        other.pop("cfs", None)  # the other scheduler's times
        assert other == plain | {"rules": plain["rules"] | {rule.name: value}}


OWN = """
name: enterprise
title: Linux 4.18 with later btrfs
version: "4.18"
numbers: {tick: {value: 1, unit: ms, range: [1, 1], evidence: read, source: "its configuration, CONFIG_HZ=1000"}}
config: {preemption: {is: full, source: "its configuration"}}
locks: {btrfs.tree: {is: rwsem, source: "backported, as its changelog says"}}
rules: {btrfs.early_unlock: {is: true, source: "backported, as its changelog says"}}
"""


def test_a_kernel_of_ones_own_says_only_what_differs_from_its_version(tmp_path: Path) -> None:
    path = tmp_path / "enterprise.yaml"
    path.write_text(OWN)
    own, plain = load_kernel(path).spec(1), load_kernel("linux-4.18").spec(1)
    assert own == plain | {
        "name": "enterprise",
        "tick_ns": 1e6,
        "preemption": "full",
        "locks": plain["locks"] | {"btrfs.tree": "rwsem-4.8"},
        "rules": plain["rules"] | {"btrfs.early_unlock": True},
    }


@pytest.mark.parametrize(
    ("was", "wrong", "place", "told", "nearest"),
    [
        ("{btrfs.early", "{btrfs.earli", "8:9", "unknown key 'btrfs.earli_unlock'", "btrfs.early_unlock"),
        ("is: true", "is: late", "8:34", "rules.btrfs.early_unlock.is: late is not one of false, true", None),
        ("is: rwsem", "is: rwsen", "7:26", "locks.btrfs.tree.is: rwsen is not one of", "rwsem"),
        (
            "is: full",
            "is: ful",
            "6:27",
            "config.preemption.is: ful is not one of none, voluntary, full",
            "full",
        ),
        ("unit: ms", "unit: lines", "5:17", "numbers.tick: cannot be in lines", None),
        ("{value: 1, unit: ms, range: [1", "{value: 0, unit: ms, range: [0", "5:17", "at least 1 us", None),
        ('version: "4.18"', "version: 4.18", "4:10", "4.18 is not a version; write it quoted", None),
        ('version: "4.18"', 'version: "7.0"', "4:10", "no Linux 7.0 here; the last before it is 6.18", None),
    ],
)
def test_what_is_wrong_in_a_kernel_of_ones_own_is_told_with_its_place(
    tmp_path: Path, was: str, wrong: str, place: str, told: str, nearest: str | None
) -> None:
    path = tmp_path / "enterprise.yaml"
    assert was in OWN
    path.write_text(OWN.replace(was, wrong))
    with pytest.raises(ScenarioError) as refused:
        load_kernel(path)
    (problem,) = refused.value.problems
    assert problem.where == f"{path}:{place}"
    assert told in problem.message
    assert problem.suggestion == nearest


@pytest.mark.parametrize(
    "starts", [(None, None), (None, "5.9", "5.8"), (None, "5.9", "5.9"), ("3.1",)], ids=str
)
def test_eras_that_leave_something_open_are_refused(starts: tuple[str | None, ...]) -> None:
    eras = [{"since": since, "is": True, "source": "of this test"} for since in starts]
    tables: dict[str, Any] = {name: {} for name in ("primitives", "roles", "config", "numbers")}
    with pytest.raises(ValueError, match="eras must begin one after the other"):
        Timeline.model_validate({**tables, "releases": {"3": 19}, "rules": {"btrfs.early_unlock": eras}})


def test_a_release_names_what_it_changed() -> None:
    assert load_timeline().changes((5, 13)) == [
        "xfs.release",
        "xfs.dio_size_check",
        "btrfs.preempt_sums",
        "btrfs.fsync_asks_ordered",
        "btrfs.log_joins_last_csums",
        "ext4.wipes_entries",
    ]
    assert "btrfs.tree" in load_timeline().changes((5, 11))
    assert load_timeline().changes((4, 19)) == ["btrfs.rename_syncs_log"]
    assert load_timeline().changes((4, 17)) == ["idle.polling"]
    assert load_timeline().changes((4, 18)) == []
