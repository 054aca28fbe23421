"""Who serves a device's requests decides whether tasks wait, how many are served at once, and which CPU pays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import window
from simfs import _engine
from simfs.scenario import ScenarioError, expand, load, to_run_spec
from simfs.scenario.models import available, load_device

SCENARIO = """\
simfs: 1
name: syncs
title: Files that are synced before they are closed
machine: {profile: server-24, cpus: 4}
kernel: linux-6.12
filesystem: {kind: ext4}
device: {profile: nvme, write: {time: 50 us, cv: 0}, flush: {time: 10 us, cv: 0}}
workload: {kind: tmpfile, tasks: 2, directories: per-task, fsync: true}
measure: {warmup: 2 ms, duration: 20 ms, replications: 1}
"""


def spec(tmp_path: Path, *options: str, text: str = SCENARIO) -> dict[str, Any]:
    path = tmp_path / "syncs.yaml"
    path.write_text(text)
    return to_run_spec(expand(load(str(path), options))[0], 0)


def run(given: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(_engine.run(json.dumps(given)))
    assert all(law["ok"] for law in result["laws"])
    return result


def test_a_scenario_lays_its_settings_over_the_profile(tmp_path: Path) -> None:
    device = spec(tmp_path, "device.submit=3 us", "device.write.cv=0.2", "device.parallelism=7")["device"]
    assert device["write"] == {"time_ns": 50e3, "cv": 0.2, "per_kib_ns": load_device("nvme").write.per_kib.ns}
    assert (device["submit_ns"], device["parallelism"], device["served_by"]) == (3e3, 7, "hardware")
    assert device["read"] == load_device("nvme").read.spec()


def test_a_scenario_says_whether_a_device_has_a_cache(tmp_path: Path) -> None:
    assert not spec(tmp_path, "device.write_cache=none")["device"]["write_cache"]
    assert spec(tmp_path, "device.write_cache=volatile")["device"]["write_cache"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("profile: nvme", "profile: nvm", "syncs.yaml:7:.*unknown device 'nvm' .did you mean 'nvme'"),
        ("write: {time", "wrote: {time", "7:.*unknown key 'wrote'.*write"),
        ("cv: 0}, flush", "cv: -1}, flush", "7:.*greater than or equal to 0"),
        ("{kind: ext4}", "{kind: none}", "7:1.*no filesystem that would use a device"),
        ("time: 50 us", "time: 50", "7:.*has no unit"),
    ],
)
def test_what_is_wrong_with_a_device_is_told_with_its_place(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    with pytest.raises(ScenarioError, match=says):
        spec(tmp_path, text=SCENARIO.replace(old, new))


@pytest.mark.slow
@pytest.mark.parametrize("filesystem", ["xfs", "ext4", "btrfs"])
@pytest.mark.parametrize("name", available("devices"))
def test_both_machines_agree_about_every_device_under_every_filesystem(
    tmp_path: Path, filesystem: str, name: str
) -> None:
    given = spec(tmp_path, f"device={name}", f"filesystem.kind={filesystem}")
    assert assert_same(given | window(3e6)) > 10


def test_a_slower_device_makes_a_sync_slower_by_as_much(tmp_path: Path) -> None:
    """One task's fsync writes its page, then the changed blocks, flushes, and writes the commit record past the cache.

    That takes a flush more. So little slower that no CPU sleeps deeper meanwhile.
    """

    def latency(*options: str) -> float:
        result = run(spec(tmp_path, "workload.tasks=1", *options))
        return float(result["window_ns"] / result["operations"])

    fast = latency("device.write.time=10 us", "measure.duration=50 ms")
    slow = latency("device.write.time=15 us", "device.flush.time=20 us", "measure.duration=50 ms")
    assert slow - fast == pytest.approx(3 * 5e3 + 2 * 10e3, rel=0.05)


def test_a_submitter_that_copies_never_waits(tmp_path: Path) -> None:
    """A sync on memory waits twice, for the conversion's worker and for the commit; a disk has kblockd besides."""
    memory = run(spec(tmp_path, "device=ramdisk", "filesystem.kind=ext4", "workload.tasks=1"))
    disk = run(spec(tmp_path, "filesystem.kind=ext4", "workload.tasks=1"))
    per_operation = [r["context_switches"] / r["operations"] for r in (memory, disk)]
    assert per_operation[0] == pytest.approx(8, abs=0.5)  # each wakes two CPUs from idle, and both idle again
    assert per_operation[1] == pytest.approx(16, abs=0.5)


def test_an_interrupt_takes_its_time_from_the_cpu_that_submitted(tmp_path: Path) -> None:
    def irq(*options: str) -> float:
        result = run(spec(tmp_path, "workload.tasks=1", *options))
        return float(result["cpu_ns"]["irq"] / result["operations"])

    assert irq("device.interrupt=5 us") - irq("device.interrupt=0 us") == pytest.approx(4 * 5e3, rel=0.05)


@pytest.mark.parametrize(("filesystem", "writes"), [("xfs", 2), ("ext4", 3)])
def test_tasks_that_sync_together_share_log_writes(tmp_path: Path, filesystem: str, writes: int) -> None:
    """A device that does one request at a time, in 100 us; each sync alone has its data and one or two log writes."""
    one_by_one = ("device.parallelism=1", "device.write.time=100 us", "device.flush.time=1 us")
    given = spec(
        tmp_path, "workload.tasks=16", "machine.cpus=16", f"filesystem.kind={filesystem}", *one_by_one
    )
    result = run(given | {"duration_ns": 50e6})
    assert result["operations"] / result["window_ns"] > 1.4 / (writes * 100e3)


def test_flushes_of_two_cpus_meet_only_in_a_device_with_one_queue(tmp_path: Path) -> None:
    """A sync is mostly flushes. In one queue they wait for that of the other task, which began before."""
    text = SCENARIO.replace(
        "workload: {kind: tmpfile, tasks: 2, directories: per-task, fsync: true}",
        "workload: {kind: fio, tasks: 2, binding: compact, rw: randwrite, direct: true, size: 1 MiB, fsync: 1}",
    )
    given = spec(tmp_path, "device.write.time=1 us", "device.flush.time=1 ms", text=text)

    def synced(*, per_cpu: bool) -> int:
        return int(
            run(given | {"duration_ns": 50e6, "device": given["device"] | {"queue_per_cpu": per_cpu}})[
                "operations"
            ]
        )

    assert synced(per_cpu=True) == pytest.approx(2 * synced(per_cpu=False), rel=0.15)


def test_a_device_without_a_volatile_cache_is_sent_no_flushes(tmp_path: Path) -> None:
    """Direct writes and a sync each: those of `nvme` end at once, and with a time of flushes it has a cache."""
    cached = SCENARIO.replace(
        "workload: {kind: tmpfile, tasks: 2, directories: per-task, fsync: true}",
        "workload: {kind: fio, tasks: 1, binding: compact, rw: randwrite, direct: true, size: 1 MiB, fsync: 1}",
    )
    without = cached.replace(", flush: {time: 10 us, cv: 0}", "")
    specs = [spec(tmp_path, text=text) for text in (cached, without)]
    assert [given["device"].get("write_cache", True) for given in specs] == [True, False]
    times = [result["window_ns"] / result["operations"] for result in map(run, specs)]
    assert times[1] > 50e3  # the write itself
    assert times[0] - times[1] > 10e3
    assert_same(specs[1] | window(3e6))


SYNCED = SCENARIO.replace(
    "workload: {kind: tmpfile, tasks: 2, directories: per-task, fsync: true}",
    "workload: {kind: fio, tasks: 4, binding: compact, rw: randwrite, direct: true, size: 1 MiB, fsync: 1}",
).replace("profile: nvme, write: {time: 50 us", "profile: sata-ssd, write: {time: 1 ms")


def test_a_flush_of_sata_is_done_alone(tmp_path: Path) -> None:
    """Writes of 1 ms and flushes of 1 ms: what some write while others flush comes later where flushes are alone."""
    given = spec(tmp_path, "device.flush.time=1 ms", "filesystem.kind=xfs", text=SYNCED)
    assert given["device"]["flush_alone"]
    alone = run(given | {"duration_ns": 200e6})
    beside = run(given | {"duration_ns": 200e6, "device": given["device"] | {"flush_alone": False}})
    assert alone["operations"] < 0.7 * beside["operations"]
    assert_same(given | window(20e6))


def test_a_result_says_what_the_device_served(tmp_path: Path) -> None:
    """Four reads of 1 ms each, beside each other or one after the other, from submission to interrupt."""
    reads = ("workload.rw=randread", "workload.fsync=0", "device.read.time=1 ms", "device.read.cv=0")
    for parallelism, ns in ((4, 1e6), (1, 4e6)):
        given = spec(tmp_path, *reads, f"device.parallelism={parallelism}", text=SYNCED)
        result = run(given | {"duration_ns": 400e6})
        assert list(result["requests"]) == ["read"]
        assert result["requests"]["read"]["count"] == pytest.approx(result["operations"], abs=4)
        assert result["requests"]["read"]["mean_ns"] == pytest.approx(ns, rel=0.1)


def test_what_a_submitter_serves_is_no_request(tmp_path: Path) -> None:
    assert "requests" not in run(spec(tmp_path, "device=ramdisk"))
