"""XFS with parent pointers, whose changes of names have a transaction more, and with larger directory blocks."""

from __future__ import annotations

from pathlib import Path

import lock_steps
import pytest
from machines import assert_same

import simfs
from engine import Spec, simulate, simulate_whole
from simfs.scenario import ScenarioError, expand, load, to_run_spec

LOADS = {
    "create": "[{op: create}, {op: unlink, on: made}]",
    "link": "[{op: link, on: first}, {op: unlink, on: first}]",
    "rename": "[{op: rename}]",
    "move": "[{op: move}]",
    "mkdir": "[{op: mkdir}, {op: rmdir, on: made}]",
}
COSTS = {"create": 2, "link": 2, "rename": 1, "mkdir": 2}


def text(load_: str, parent: bool, tasks: int = 1, kernel: str = "linux-6.18", more: str = "") -> str:
    return (
        "simfs: 1\nname: p\ntitle: p\nmachine: {profile: guest-2cpu, costs: {step_cv: 0}}\n"
        f"kernel: {kernel}\n"
        f"filesystem: {{kind: xfs, parent: {str(parent).lower()}{more}}}\ndevice: nvme\n"
        f"workload: {{kind: mix, tasks: {tasks}, files: 30, order: in-turn, subdirectories: 2, operations: {load_}}}\n"
    )


def spec_of(tmp_path: Path, *args: object, ms: float = 20, **more: object) -> Spec:
    path = tmp_path / "p.yaml"
    path.write_text(text(*args, **more))  # type: ignore[arg-type]
    (point,) = expand(load(path))
    return to_run_spec(point, 0) | {"warmup_ns": 5e6, "duration_ns": ms * 1e6}


@pytest.mark.parametrize(
    ("name", "operation", "commits"),
    [
        ("create", "create", 1),
        ("link", "link", 1),
        ("link", "unlink", 1),
        ("rename", "rename", 2),
        ("mkdir", "mkdir", 1),
    ],
)
def test_an_operation_on_a_name_commits_as_often_more(name: str, operation: str, commits: int) -> None:
    def taken(parent: bool) -> int:
        ways = lock_steps.traced(text(LOADS[name], parent), warmup_ms=20, run_ms=5)[operation]
        return ways.most_common(1)[0][0].count("~xc_ctx_lock")

    assert taken(parent=True) - taken(parent=False) == commits


def test_the_agi_is_given_back_before_the_attribute_is_set() -> None:
    ways = lock_steps.traced(text(LOADS["create"], True), warmup_ms=20, run_ms=5)["create"]
    steps = ways.most_common(1)[0][0]
    assert steps.index("-AGI") < steps.rindex("~xc_ctx_lock") < steps.rindex("-ILOCK(dir)")


@pytest.mark.parametrize("name", COSTS)
def test_each_call_takes_some_two_and_a_half_microseconds_more(tmp_path: Path, name: str) -> None:
    """A rename, with a transaction more, five."""
    off, on = (
        1e9 / simulate(spec_of(tmp_path, LOADS[name], parent)).throughput_per_s for parent in (False, True)
    )
    assert on - off == pytest.approx(5000, rel=0.15)


@pytest.mark.parametrize("name", LOADS)
def test_a_filesystem_with_them_is_sound(tmp_path: Path, name: str) -> None:
    assert simulate_whole(spec_of(tmp_path, LOADS[name], True, 4)).operations > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", ["create", "rename"])
def test_both_machines_do_the_same(tmp_path: Path, name: str) -> None:
    assert_same(spec_of(tmp_path, LOADS[name], True, 3, ms=3, more=", dirblksize: 16 KiB"))


def test_kernels_before_6_10_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ScenarioError, match=r"p\.yaml:6:\d+: .*parent pointers since 6\.10, and the kernel is linux-6\.9"
    ):
        spec_of(tmp_path, LOADS["create"], True, kernel="linux-6.9")
    spec = spec_of(tmp_path, LOADS["create"], True)
    spec["kernel"]["rules"]["xfs.parent_pointers"] = False
    with pytest.raises(ValueError, match=r"filesystem\.parent: this kernel has no parent pointers"):
        simulate(spec)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("dirblksize: 2 KiB", "dirblksize: 4, 8, 16, 32 or 64 KiB"),
        ("dirblksize: 64 KiB, log_size: 8 MiB, size: 200 MiB", "log of 8696 KiB at least"),
    ],
)
def test_directory_blocks_that_mkfs_does_not_make_are_refused(
    tmp_path: Path, options: str, message: str
) -> None:
    with pytest.raises(ScenarioError, match=message):
        spec_of(tmp_path, LOADS["create"], False, more=f", {options}")


def test_a_directory_with_a_large_index_logs_all_of_it() -> None:
    """A commit copies all that was logged of the leaf and of the block of names: with 64 KiB some 2 us."""
    filled = simfs.load("guest-dirblksize", "sweep.workload.initial_files=[18000]")
    rows = filled.run(variants=["fill"], threads=1, progress=False).table("points").to_dict("records")
    four, sixteen, most = (1e6 / float(row["throughput_per_s"]) for row in rows)
    assert 0.2 < sixteen - four < 1
    assert 1.5 < most - four < 4
