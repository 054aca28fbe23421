"""XFS compares its count of free inodes with zero, which adds up the parts of all CPUs while it is small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same
from operations import holds

from engine import Spec, rate, simulate
from simfs.scenario import expand, load, to_run_spec


def spec(path: Path, kernel: str | dict[str, Any], tasks: int = 1, *, cpus: int = 24, files: int = 0) -> Spec:
    """Tasks that create and unlink files, each in a directory and a group of its own."""
    workload: dict[str, Any] = {
        "kind": "mix",
        "tasks": tasks,
        "binding": "compact",
        "directories": "per-task",
        "order": "in-turn",
        "files": 0,
        "initial_files": files,
        "operations": [{"op": "create"}, {"op": "unlink"}],
    }
    machine = {"profile": "server-24", "cpus": cpus, "cpus_per_llc": cpus, "cpus_per_socket": cpus}
    scenario = path / "counts.yaml"
    scenario.write_text(
        f"simfs: 1\nname: m\ntitle: m\nmachine: {json.dumps(machine)}\nkernel: {json.dumps(kernel)}\n"
        f"filesystem: {{kind: xfs, size: 64 GiB, agcount: 16}}\nworkload: {json.dumps(workload)}\n"
    )
    (point,) = expand(load(scenario))
    return to_run_spec(point, 0) | {"warmup_ns": 1e6, "duration_ns": 5e6}


@pytest.mark.parametrize(("kernel", "compares"), [("linux-4.0", 0), ("linux-5.7", 2), ("linux-5.8", 0)])
def test_who_takes_or_frees_an_inode_compares_the_count(tmp_path: Path, kernel: str, compares: int) -> None:
    assert holds(simulate(spec(tmp_path, kernel)), "vfs.percpu_counter") == pytest.approx(compares, rel=0.02)


def test_a_machine_with_few_cpus_and_many_free_inodes_does_not_add_them_up(tmp_path: Path) -> None:
    run = simulate(spec(tmp_path, "linux-5.7", cpus=1, files=10))  # 54 are free in the chunk, 32 are enough
    assert holds(run, "vfs.percpu_counter") == 0


def test_adding_up_takes_a_time_for_each_cpu_and_tasks_wait_for_each_other(tmp_path: Path) -> None:
    def more(tasks: int) -> float:
        before, after = (
            simulate(
                spec(tmp_path, {"profile": "linux-5.7", "rules": {"xfs.ifree_compare": compares}}, tasks)
            )
            for compares in (True, False)
        )
        return tasks * (1 / rate(before) - 1 / rate(after))

    alone = more(1)
    assert alone == pytest.approx(2 * 24 * 14.6, rel=0.3)  # and the lock
    assert more(16) > 4 * alone


def test_both_machines_agree(tmp_path: Path) -> None:
    assert_same(spec(tmp_path, "linux-5.7", 4) | {"duration_ns": 1e5})
