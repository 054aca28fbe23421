"""At the end of a run the structures of a filesystem are what the files that exist need."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine import window
from simfs import _engine
from simfs.cli import app
from simfs.scenario import expand, load, to_run_spec

AUDIT = "structures fit the files"

SCENARIO = (
    "simfs: 1\nname: a\ntitle: a\nmachine: {{profile: server-24, cpus: 4}}\nkernel: linux-6.12\n"
    "filesystem: {{kind: {filesystem}}}\n"
    "workload: {{kind: mix, tasks: 4, files: 20, directories: per-task, operations: [{{op: create}}, "
    "{{op: append}}, {{op: rename}}, {{op: fsync}}, {{op: overwrite}}, {{op: unlink}}]}}\n"
    "measure: {{warmup: 1 ms, duration: 3 ms, replications: 1}}\n"
)

FILESYSTEMS = ("xfs", "btrfs", "ext4", "tmpfs")


def scenario(tmp_path: Path, filesystem: str) -> Path:
    path = tmp_path / "a.yaml"
    device = "" if filesystem == "tmpfs" else "device: nvme\n"
    path.write_text(SCENARIO.format(filesystem=filesystem) + device)
    return path


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_the_structures_of_every_filesystem_are_looked_at_and_right(tmp_path: Path, filesystem: str) -> None:
    (point,) = expand(load(scenario(tmp_path, filesystem)))
    result = json.loads(_engine.run(json.dumps(to_run_spec(point, 0)), check=True))
    assert {law["law"]: law["detail"] for law in result["laws"]}[AUDIT] == ""
    assert result["operations"] > 100


@pytest.mark.parametrize("duration_ms", [2, 3, 4, 5])
def test_structures_of_btrfs_are_right_where_transactions_are_committed_often(
    tmp_path: Path, duration_ms: int
) -> None:
    """Each 1 ms: then entries are deleted in another transaction than they were made in, and space is given back."""
    (point,) = expand(load(scenario(tmp_path, "btrfs")))
    spec = to_run_spec(point, 0) | {"duration_ns": duration_ms * 1e6}
    spec["filesystem"]["costs"]["commit_interval"] = 1e6
    result = json.loads(_engine.run(json.dumps(spec), check=True))
    assert {law["law"]: law["detail"] for law in result["laws"]}[AUDIT] == ""


def test_a_directory_of_btrfs_whose_names_only_go_is_to_be_written(tmp_path: Path) -> None:
    """What made its names was committed, so its inode is there only because of the deletions since."""
    path = scenario(tmp_path, "btrfs")
    path.write_text(path.read_text().replace("files: 20,", "files: 400,"))
    settings = ["workload.operations=[{op: unlink}]", "workload.tasks=1"]
    (point,) = expand(load(path, settings))
    spec = to_run_spec(point, 0)
    spec["filesystem"]["costs"]["commit_interval"] = 1e7
    result = json.loads(_engine.run(json.dumps(spec), check=True))
    assert {law["law"]: law["detail"] for law in result["laws"]}[AUDIT] == ""
    assert 50 < result["operations"] < 300


@pytest.mark.parametrize("duration_ms", [1, 2, 3])
def test_structures_of_btrfs_are_looked_at_when_no_worker_has_delayed_items(
    tmp_path: Path, duration_ms: int
) -> None:
    """A worker takes a directory or inode before it has a handle, and holds no lock then."""
    settings = ["machine.cpus=2", "kernel=linux-4.4", "workload.tasks=8", "workload.operations=[{op: chown}]"]
    (point,) = expand(load(scenario(tmp_path, "btrfs"), settings))
    spec = to_run_spec(point, 0) | window(duration_ms * 1e6)
    for seed in range(1, 21):
        result = json.loads(_engine.run(json.dumps(spec | {"seed": seed}), check=True))
        assert {law["law"]: law["detail"] for law in result["laws"]}[AUDIT] == ""


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
@pytest.mark.parametrize("size", [1, 2048, 2049, 5000])
@pytest.mark.parametrize(
    "operations", ["{op: fsync}", "{op: overwrite}, {op: fsync}", "{op: append}, {op: fsync}"]
)
def test_small_files_stay_where_they_are_until_they_are_written(
    tmp_path: Path, filesystem: str, size: int, operations: str
) -> None:
    """Of a file in the tree of btrfs, an fsync without anything to write made one with an extent."""
    settings = [
        f"workload.operations=[{operations}]",
        f"workload.file_size={size} B",
        "workload.order=in-turn",
    ]
    (point,) = expand(load(scenario(tmp_path, filesystem), settings))
    result = json.loads(_engine.run(json.dumps(to_run_spec(point, 0)), check=True))
    assert {law["law"]: law["detail"] for law in result["laws"]}[AUDIT] == ""


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_looking_at_structures_changes_nothing_else(
    tmp_path: Path, filesystem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SIMFS_CHECK")
    (point,) = expand(load(scenario(tmp_path, filesystem)))
    spec = json.dumps(to_run_spec(point, 0))
    with_it, without = (json.loads(_engine.run(spec, check=check)) for check in (True, False))
    assert [law["law"] for law in with_it["laws"]] == [law["law"] for law in without["laws"]] + [AUDIT]
    assert {**with_it, "laws": 0} == {**without, "laws": 0}


@pytest.mark.parametrize(
    ("change", "audited"), [("remove", False), ({"split": 4}, False), ({"kind": "mutex"}, True)]
)
def test_structures_behind_a_lock_that_excludes_nobody_are_not_looked_at(
    change: object, audited: bool
) -> None:
    """Without the AGI's lock two tasks change the list of unlinked inodes at once, and a look at it found no end."""
    short = ["workload.tasks=24", "measure={duration: 10 ms, warmup: 5 ms}"]
    point = next(point for point in expand(load("compile-24", short)) if point.variant == "xfs")
    spec = to_run_spec(point, 0) | {"whatif": {"lock": "xfs.AGI", "change": change}}
    result = json.loads(_engine.run(json.dumps(spec), check=True))
    assert (AUDIT in {law["law"] for law in result["laws"]}) is audited


def test_run_check_is_for_the_native_machine(tmp_path: Path) -> None:
    arguments = ["run", str(scenario(tmp_path, "xfs")), "--check"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    refused = CliRunner().invoke(app, [*arguments, "--engine", "simpy"])
    assert refused.exit_code == 2
    assert "--check: only the native machine" in refused.output
