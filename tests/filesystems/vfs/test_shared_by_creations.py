"""What creations in own directories share, by era: lists of unused dentries, names in lookup, ext4's superblock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simfs import _engine
from simfs.scenario import expand, load, to_run_spec

SCENARIO = """\
simfs: 1
name: shared
title: Files in directories of their own
machine: {profile: dual-socket-48, cpus: 4, cpus_per_socket: 2, cpus_per_llc: 2}
filesystem: {kind: ext4, size: 8 GiB}
device: nvme
workload: {kind: create, tasks: 4, directories: per-task, binding: compact}
measure: {warmup: 1 ms, duration: 10 ms, replications: 1}
"""
PER_CREATE = ("vfs.dentry_lru_lock", "ext4.s_next_gen_lock", "block.private_lock")


def run(tmp_path: Path, kernel: str, *options: str, kind: str = "ext4") -> dict[str, Any]:
    path = tmp_path / "shared.yaml"
    text = SCENARIO.replace("kind: ext4", f"kind: {kind}") + f"kernel: {kernel}\n"
    path.write_text(text if kind != "tmpfs" else text.replace("device: nvme\n", ""))
    result: dict[str, Any] = json.loads(
        _engine.run(json.dumps(to_run_spec(expand(load(str(path), options))[0], 0)))
    )
    assert all(law["ok"] for law in result["laws"])
    return result


def acquired(result: dict[str, Any]) -> list[float]:
    """How often a create takes each of these locks."""
    each = {lock["name"]: lock["acquired"] / result["operations"] for lock in result["locks"]}
    return [each.get(name, 0.0) for name in PER_CREATE]


@pytest.mark.parametrize(
    ("kernel", "locks"),
    [
        ("linux-4.9", [1, 1, 0]),
        ("linux-4.14", [1, 1, 0]),
        ("linux-4.15", [1, 0, 0]),
        ("linux-6.18", [1, 0, 0]),
    ],
)
def test_a_create_on_ext4_takes_the_locks_of_its_era(tmp_path: Path, kernel: str, locks: list[int]) -> None:
    assert acquired(run(tmp_path, kernel)) == pytest.approx(locks, abs=0.05)


@pytest.mark.parametrize(("kernel", "looks"), [("linux-6.14", 1), ("linux-6.15", 0)])
def test_a_cpu_does_not_know_the_leaves_of_large_directories(tmp_path: Path, kernel: str, looks: int) -> None:
    large = run(tmp_path, kernel, "workload.initial_files=20000")
    assert acquired(large)[2] == pytest.approx(looks, abs=0.05)


@pytest.mark.parametrize(("kind", "each"), [("xfs", 1), ("btrfs", 1), ("tmpfs", 0)])
def test_a_new_dentry_that_nobody_uses_is_listed_unless_it_is_in_no_cache(
    tmp_path: Path, kind: str, each: int
) -> None:
    assert acquired(run(tmp_path, "linux-6.12", kind=kind))[0] == pytest.approx(each, abs=0.05)


def test_each_node_has_a_list_of_unused_dentries(tmp_path: Path) -> None:
    """Who shares it with the other socket's tasks waits more often for its lock."""
    many = [f"machine.{of}" for of in ("cpus=16", "cpus_per_socket=8", "cpus_per_llc=8")]
    by_node, one = (
        next(
            lock
            for lock in run(tmp_path, kernel, "workload.tasks=16", *many)["locks"]
            if lock["name"] == PER_CREATE[0]
        )
        for kernel in ("linux-6.12", "{profile: linux-6.12, rules: {vfs.dentry_lru: global}}")
    )
    assert 0 < by_node["contended"] < one["contended"]


@pytest.mark.slow
def test_names_that_are_looked_up_are_in_one_table(tmp_path: Path) -> None:
    """A line that another CPU wrote last, so that a create takes longer, if it does not wait for other locks anyway."""
    many = [f"machine.{of}" for of in ("cpus=16", "cpus_per_socket=8", "cpus_per_llc=8")]
    cpus = "{profile: linux-6.12, rules: {vfs.parallel_lookups: %s}}"
    without, with_it = (
        run(tmp_path, cpus % rule, "workload.tasks=16", "measure.duration=40 ms", *many, kind="tmpfs")[
            "operations"
        ]
        for rule in ("false", "true")
    )
    assert 0.95 * without < with_it < without
