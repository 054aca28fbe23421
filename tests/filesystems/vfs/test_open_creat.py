"""`open` with `O_CREAT` of a file that is there: until 6.11 with its directory locked."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same

from engine import Spec, acquired_each, audited, window
from simfs.scenario import expand, load, to_run_spec

FILESYSTEMS = ("xfs", "btrfs", "ext4", "tmpfs")


def spec(
    folder: Path, kernel: str, *operations: str, tasks: int = 1, filesystem: str = "tmpfs", files: str = "own"
) -> Spec:
    listed = ", ".join(f"{{op: {operation}}}" for operation in operations)
    device = "" if filesystem == "tmpfs" else "device: nvme\n"
    path = folder / "open.yaml"
    path.write_text(
        f"simfs: 1\nname: open\ntitle: a\nmachine: {{profile: server-24, cpus: 16}}\nkernel: {kernel}\n{device}"
        f"filesystem: {{kind: {filesystem}}}\nworkload: {{kind: mix, tasks: {tasks}, files: 16, file_set: {files},"
        f" order: in-turn, operations: [{listed}]}}\n"
    )
    (point,) = expand(load(path))
    return to_run_spec(point, 0) | {"warmup_ns": 5e5, "duration_ns": 3e6}


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
@pytest.mark.parametrize(("kernel", "locked"), [("linux-3.10", 1), ("linux-6.11", 1), ("linux-6.12", 0)])
def test_before_6_12_the_directory_is_locked_exclusively(
    tmp_path: Path, filesystem: str, kernel: str, locked: int
) -> None:
    """`do_last`, `open_last_lookups`; since then `lookup_fast_for_open`. Without `O_CREAT` nobody locks it."""
    creating = audited(spec(tmp_path, kernel, "open_creat", filesystem=filesystem))
    assert acquired_each(creating, "vfs.i_rwsem (directory)") == pytest.approx(locked, abs=0.02)
    assert acquired_each(creating, "vfs.freeze") == pytest.approx(locked, abs=0.02)
    plain = audited(spec(tmp_path, kernel, "open", filesystem=filesystem))
    assert acquired_each(plain, "vfs.i_rwsem (directory)") == 0


def test_the_lock_takes_part_of_the_walk_and_no_more(tmp_path: Path) -> None:
    """A name is looked up once, under the lock or not; a free lock whose line is here takes next to nothing."""
    creating, plain = (
        audited(spec(tmp_path, "linux-6.11", operation)) for operation in ("open_creat", "open")
    )
    took = creating.latency["open_creat"].mean_ns
    assert took == pytest.approx(plain.latency["open"].mean_ns, rel=0.03)


def test_many_who_open_with_o_creat_in_one_directory_wait_for_each_other_until_6_11(tmp_path: Path) -> None:
    rates = {}
    for kernel in ("linux-6.11", "linux-6.12"):
        for operation in ("open_creat", "open"):
            result = audited(spec(tmp_path, kernel, operation, tasks=16))
            rates[kernel, operation] = result.throughput_per_s
    assert rates["linux-6.11", "open_creat"] < 0.5 * rates["linux-6.11", "open"]
    assert rates["linux-6.12", "open_creat"] == pytest.approx(rates["linux-6.12", "open"], rel=0.05)


@pytest.mark.parametrize("kernel", ["linux-6.11", "linux-6.12"])
@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_both_machines_do_the_same(tmp_path: Path, filesystem: str, kernel: str) -> None:
    made = spec(tmp_path, kernel, "create", "open_creat", "append", tasks=3, filesystem=filesystem)
    assert assert_same(made | window(1e5)) > 50
