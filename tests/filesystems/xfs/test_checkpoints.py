"""XFS's checkpoints: when the CIL is full, who writes it, and who waits for that."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from machines import assert_same

from engine import Spec, answer, simulate_whole
from simfs.results.run_result import LockStats, RunResult
from simfs.scenario import expand, load, to_run_spec

HEAD = "simfs: 1\nname: c\ntitle: c\nmachine: {profile: dual-socket-48, cpus: 16}\n"
SMALL = {"cil_limit_mib": 1.0}
CREATE = "{kind: create, tasks: 16, directories: per-task}"


def spec_of(
    tmp_path: Path, kernel: str, costs: Mapping[str, float], workload: str = CREATE, ms: float = 60
) -> Spec:
    path = tmp_path / "c.yaml"
    path.write_text(
        f"{HEAD}kernel: {kernel}\nfilesystem: {{kind: xfs, agcount: 16}}\nworkload: {workload}\ndevice: nvme\n"
    )
    (point,) = expand(load(path))
    spec = to_run_spec(point, 0) | {"warmup_ns": 5e6, "duration_ns": ms * 1e6}
    spec["filesystem"]["costs"] |= costs
    return spec


def ctx_lock(result: RunResult) -> LockStats:
    return next(lock for lock in result.locks if lock.name == "xfs.xc_ctx_lock")


@pytest.mark.slow
def test_commits_wait_for_the_context_lock_while_a_worker_takes_the_items(tmp_path: Path) -> None:
    roomy = ctx_lock(simulate_whole(spec_of(tmp_path, "linux-6.12", {}, ms=20)))
    full = ctx_lock(simulate_whole(spec_of(tmp_path, "linux-6.12", SMALL, ms=20)))
    assert roomy.contended == 0
    assert full.contended > 0
    assert "create" in {site.site for site in full.sites}


@pytest.mark.slow
def test_nothing_commits_faster_than_one_worker_ends_the_log_buffers(tmp_path: Path) -> None:
    slow = simulate_whole(
        spec_of(tmp_path, "linux-6.12", SMALL | {"checkpoint.committed": 10_000.0}, ms=1000)
    )
    later = sum(slow.batch_operations[10:])  # in half a second, when all contexts and log buffers are full
    checkpoint = 6_500  # files, which may all count at its end
    assert 25_000 < later < 0.5e9 / 10_000 + checkpoint  # an inode a file, at least, is an item


@pytest.mark.slow
def test_one_checkpoint_after_the_other_is_slower_than_up_to_four_at_a_time(tmp_path: Path) -> None:
    def rate(design: str) -> float:
        kernel = f"{{profile: linux-6.12, rules: {{xfs.cil_push: {design}}}}}"
        return simulate_whole(
            spec_of(tmp_path, kernel, SMALL | {"checkpoint.write": 8_000.0}, ms=100)
        ).throughput_per_s

    assert rate("pipelined") > 1.5 * rate("serial")


@pytest.mark.slow
def test_an_item_that_is_logged_again_takes_no_more_room(tmp_path: Path) -> None:
    names = "{kind: mix, tasks: 16, directories: per-task, operations: [{op: utimes}], files: 20}"
    assert ctx_lock(simulate_whole(spec_of(tmp_path, "linux-6.12", SMALL, names))).contended == 0


@pytest.mark.slow
def test_both_machines_push_the_same(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "linux-6.12", {"cil_limit_mib": 0.02}, ms=0.4) | {"warmup_ns": 0.0}
    assert ctx_lock(simulate_whole(spec)).contended > 0
    assert_same(spec, most=9_000)  # the 3,279th event is the first wait, the 8,088th the next


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["linux-5.9", "linux-6.1"])
def test_a_run_with_checkpoints_repeats(tmp_path: Path, kernel: str) -> None:
    spec = spec_of(tmp_path, kernel, SMALL, ms=20)
    assert answer(spec) == answer(spec)


CHOWNS = (
    "{kind: mix, tasks: 8, directories: shared, file_set: shared, files: 1, order: in-turn, "
    "operations: [{op: chown, repeat: 20}, {op: fsync}]}"
)


@pytest.mark.parametrize(("kernel", "gathers"), [("linux-5.15", False), ("linux-6.12", True)])
def test_a_push_puts_the_parts_of_all_cpus_together_while_nobody_can_commit(
    tmp_path: Path, kernel: str, *, gathers: bool
) -> None:
    """`xlog_cil_push_pcp_aggregate` since 6.0; here it takes 100 us for each CPU that has committed."""
    quick, slow = (
        ctx_lock(simulate_whole(spec_of(tmp_path, kernel, {"checkpoint.part": part}, CHOWNS, ms=20)))
        for part in (0.0, 1e5)
    )
    assert (slow.hold_max_ns > 1e5) == gathers
    assert quick.hold_max_ns < 1e5


def test_both_machines_agree_on_what_a_push_fetches_of_all_cpus(tmp_path: Path) -> None:
    assert assert_same(spec_of(tmp_path, "linux-6.12", {}, CHOWNS, ms=2)) > 100
