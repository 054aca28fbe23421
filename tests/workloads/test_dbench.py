"""dbench: the calls of its load file in their proportions, bytes, and the table in its own columns."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from engine import Spec, answer
from simfs.experiments.answer import answer as run_scenario
from simfs.reports.text import print_report
from simfs.results.run_result import RunResult
from simfs.scenario import expand, load, to_run_spec
from simfs.scenario.models import load_workload

PARAMS = load_workload("dbench").spec()
PLAYED = {
    "NTCreateX": ("ntcreatex_open", "ntcreatex_missing", "ntcreatex_create"),
    "Qpathinfo": ("qpathinfo", "qpathinfo_missing"),
    **{
        name: (name.lower(),)
        for name in ("Close", "Rename", "Unlink", "Qfileinfo", "Find", "WriteX", "ReadX", "Flush")
    },
}
"""Operations as dbench reports them, and the counts of the load file they are made of."""


def spec(filesystem: str, clients: int = 2) -> Spec:
    overrides = [f"workload.tasks={clients}", "sweep={}"]
    (point,) = (p for p in expand(load("guest-dbench", overrides)) if p.variant == filesystem)
    return to_run_spec(point, 0) | {"warmup_ns": 1e7, "duration_ns": 2e8}


@pytest.mark.parametrize("filesystem", ["tmpfs", "xfs", "ext4", "btrfs"])
def test_calls_come_in_the_proportions_of_the_load_file(filesystem: str) -> None:
    result = RunResult.model_validate_json(answer(spec(filesystem)))
    assert [law for law in result.laws if not law.ok] == []
    whole = sum(PARAMS[name] for names in PLAYED.values() for name in names)
    played = sum(result.latency[name].count for name in PLAYED)
    for operation, names in PLAYED.items():
        share = sum(PARAMS[name] for name in names) / whole
        deviation = (share / played) ** 0.5  # of a drawn share
        assert result.latency[operation].count / played == pytest.approx(share, abs=4 * deviation), operation


def test_throughput_is_the_bytes_of_reads_and_writes() -> None:
    latency = RunResult.model_validate_json(text := answer(spec("tmpfs"))).latency
    moved = latency["ReadX"].count * PARAMS["read_bytes"] + latency["WriteX"].count * PARAMS["write_bytes"]
    assert json.loads(text)["bytes"] == pytest.approx(moved, rel=0.001)


def test_a_client_that_syncs_waits_for_the_device_and_one_on_tmpfs_does_not() -> None:
    flush = {
        filesystem: RunResult.model_validate_json(answer(spec(filesystem, 1))).latency["Flush"].p50_ns
        for filesystem in ("tmpfs", "xfs")
    }
    assert flush["xfs"] > 30_000 > 100 * flush["tmpfs"]


def test_the_report_lists_the_calls_in_dbenchs_own_columns(tmp_path: Path) -> None:
    text = Path("scenarios/guest-dbench.yaml").read_text()
    path = tmp_path / "short.yaml"
    path.write_text(text.replace("duration: 1 s, replications: 3", "duration: 100 ms, replications: 1"))
    asked = load(path, ["sweep.workload.tasks=[1]", "measured=null"])
    asked = asked.model_copy(update={"variants": asked.variants[:1]})
    out = io.StringIO()
    print_report(run_scenario(asked)[1], Console(file=out, width=118))
    lines = [line.split() for line in out.getvalue().splitlines()]
    head = lines.index(["Operation", "Count", "AvgLat", "MaxLat"])
    rows = lines[head + 2 : head + 16]
    assert [row[0] for row in rows] == [
        *("NTCreateX", "Close", "Rename", "Unlink", "Qpathinfo", "Qfileinfo", "Qfsinfo", "Sfileinfo", "Find"),
        *("WriteX", "ReadX", "LockX", "UnlockX", "Flush"),
    ]
    assert all(float(row[2]) <= float(row[3]) for row in rows)
    assert "MB/s" in out.getvalue()


def test_reads_write_the_inode_as_often_as_the_load_file_has_it_with_an_exact_clock() -> None:
    """For each unlink 0.7 of files and 1.3 of directories, as a trace of one real client on XFS (6.18) has too."""
    result = RunResult.model_validate_json(answer(spec("xfs", 1)))
    (freeze,) = (lock for lock in result.locks if lock.name == "vfs.freeze")
    taken = {site.site: site.acquired / result.latency["Unlink"].count for site in freeze.sites}
    assert taken["read"] == pytest.approx(0.7, rel=0.6)
    assert taken["readdir"] == pytest.approx(1.3, rel=0.6)


def with_options(filesystem: str, device: str = "loop-tmpfs", **options: bool) -> RunResult:
    overrides = [
        "workload.tasks=1",
        "sweep={}",
        f"device={device}",
        *(f"workload.{key}=true" for key, on in options.items() if on),
    ]
    (point,) = (p for p in expand(load("guest-dbench", overrides)) if p.variant == filesystem)
    made = to_run_spec(point, 0) | {"warmup_ns": 1e7, "duration_ns": 2e8}
    result = RunResult.model_validate_json(answer(made))
    assert [law for law in result.laws if not law.ok] == []
    return result


@pytest.mark.parametrize("filesystem", ["xfs", "ext4", "btrfs"])
def test_with_s_each_write_waits_for_the_device_and_a_flush_finds_nothing(filesystem: str) -> None:
    """`O_SYNC` of all files."""
    plain, synced = with_options(filesystem), with_options(filesystem, sync=True)
    assert synced.latency["WriteX"].p50_ns > 3 * plain.latency["WriteX"].p50_ns
    assert synced.latency["Flush"].p50_ns < 0.7 * plain.latency["Flush"].p50_ns
    assert synced.latency["NTCreateX"].p50_ns < 2 * plain.latency["NTCreateX"].p50_ns


@pytest.mark.parametrize("filesystem", ["xfs", "ext4", "btrfs"])
def test_with_capital_s_who_unlinks_or_renames_waits_for_the_directory(filesystem: str) -> None:
    """`sync_parent` of fileio.c; a create is not synced."""
    plain, synced = with_options(filesystem), with_options(filesystem, sync_directories=True)
    for call in ("Unlink", "Rename"):
        assert synced.latency[call].p50_ns > plain.latency[call].p50_ns + 5000, call
    assert synced.latency["WriteX"].p50_ns < 2 * plain.latency["WriteX"].p50_ns


def test_an_fdatasync_of_a_directory_of_ext4_commits_nothing_unless_it_has_grown() -> None:
    """`i_datasync_tid`: the device is flushed, and next to nothing written."""
    plain, synced = (with_options("ext4", "sata-ssd", sync_directories=on) for on in (False, True))

    def each(result: RunResult, request: str) -> float:
        return result.requests[request].count / result.operations

    names = sum(synced.latency[call].count for call in ("Unlink", "Rename")) / synced.operations
    assert each(synced, "flush") > each(plain, "flush") + 0.6 * names
    assert each(synced, "write") < each(plain, "write") + 0.5 * names
