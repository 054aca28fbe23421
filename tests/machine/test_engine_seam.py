"""The engine takes every number from its spec: what is missing or unknown is refused, never replaced by a default."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
from places import ROOT

from engine import CONSTANTS, answer, lock_cycle, refused
from simfs.scenario import expand, load, to_run_spec
from simfs.scenario.models import load_kernel


@pytest.mark.parametrize("name", sorted(CONSTANTS))
def test_a_missing_constant_is_refused_by_name(name: str) -> None:
    constants = {key: value for key, value in CONSTANTS.items() if key != name}
    assert name in refused(lock_cycle(kernel={"constants": constants}))


def test_a_constant_that_the_engine_does_not_know_is_refused() -> None:
    assert "rcu_grace_period" in refused(
        lock_cycle(kernel={"constants": {**CONSTANTS, "rcu_grace_period": 1}})
    )


@pytest.mark.parametrize("kernel", ["linux-3.0", "linux-5.11", "linux-6.18"])
def test_every_kernel_profile_gives_exactly_the_constants_of_the_engine(kernel: str) -> None:
    answer(lock_cycle(think_ns=1, hold_ns=1, kernel={"constants": load_kernel(kernel).spec(4)["constants"]}))


def shipped(filesystem: str, *more: str) -> dict[str, Any]:
    settings = [f"filesystem.kind={filesystem}", "variants=[]", "calibrate=[]", "measured=null", *more]
    point = expand(load("guest-2cpu", [*settings, "measure.duration=1 ms", "measure.warmup=0 ms"]))[0]
    return to_run_spec(point, 0)


def first_point(scenario: str) -> dict[str, Any]:
    short = ["measure.duration=1 ms", "measure.warmup=0 ms"]
    return to_run_spec(expand(load(scenario, short))[0], 0)


@pytest.mark.parametrize("filesystem", ["xfs", "btrfs", "ext4", "tmpfs"])
def test_a_filesystem_whose_lock_has_no_role_in_the_kernel_is_refused(filesystem: str) -> None:
    spec = shipped(filesystem)
    del spec["kernel"]["locks"]["vfs.i_rwsem"]
    assert "vfs.i_rwsem" in refused(spec)


@pytest.mark.slow
def test_every_role_of_a_kernel_profile_is_taken_by_some_program() -> None:
    programs = [shipped(filesystem) for filesystem in ("xfs", "btrfs", "ext4", "tmpfs")]
    programs += [
        first_point(name)
        for name in (
            "ext4-dio",
            "xfs-rangelock",
            "xfs-cil",
            "xfs-rename-statfs",
            "xfs-sync-disk-rw",
            "fxmark-mwcl",
            "cna-open1",
            "filebench-webproxy",
        )
    ]
    programs.append(
        shipped("xfs", "workload={kind: mix, operations: [{op: sync}]}", "sweep={workload.tasks: [1]}")
    )
    asks_blocked = first_point("file-locks-blocked")
    asks_blocked["kernel"]["rules"]["vfs.asks_blocked"] = True  # of no release
    programs.append(asks_blocked)
    lists_inodes = shipped("xfs")
    lists_inodes["kernel"]["rules"]["vfs.isec_list"] = "global"  # of a configuration, not of a release
    programs.append(lists_inodes)
    every = load_kernel("linux-6.11").spec(4)["locks"]
    del every["futex.bucket"]  # of words of Python programs (tests/locks/test_words.py)
    for role in every:
        # Those of its own filesystem first: who is refused does not run.
        likely = sorted(programs, key=lambda program: role.split(".")[0] != program["filesystem"]["kind"])
        assert any(asks_for(role, program, every) for program in likely), f"nothing takes {role}"


def asks_for(role: str, program: dict[str, Any], every: dict[str, str]) -> bool:
    """Whether a program says that a role is missing, before it runs or when it comes to it."""
    locks = {**every, **program["kernel"]["locks"]}
    del locks[role]
    try:
        said = answer(program | {"kernel": program["kernel"] | {"locks": locks}})
    except ValueError as error:
        said = str(error)
    return f"no role '{role}'" in said


def test_the_inodegc_limits_come_from_the_model() -> None:
    spec = shipped("xfs")
    del spec["filesystem"]["costs"]["inodegc_batch"]
    assert "inodegc_batch" in refused(spec)


def test_the_stub_has_every_method_that_programs_call_on_a_machine_in_python() -> None:
    source = "".join(path.read_text() for path in ROOT.glob("engine/python/reference/src/*.rs"))
    called = set(re.findall(r'(?:ask|tell|call_method1)\("(\w+)"', source))
    stub = ast.parse((ROOT / "simfs/_engine.pyi").read_text()).body
    machine = next(node for node in stub if isinstance(node, ast.ClassDef) and node.name == "_Machine")
    assert called == {node.name for node in machine.body if isinstance(node, ast.FunctionDef)} - {
        "cpus",
        "now",
    }
