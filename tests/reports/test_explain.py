"""`simfs explain`: a scenario in words, and the order in which its programs take locks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from simfs import _engine, machine
from simfs.cli import app
from simfs.experiments.lock_order import WINDOWS_NS, LockOrder, Taken, lock_order
from simfs.experiments.points import the_point
from simfs.reports.explain import waits_by, words
from simfs.scenario import load

RUNNER = CliRunner()


def explain(*options: str) -> Result:
    return RUNNER.invoke(app, ["explain", *options])


def order(scenario: str, variant: str) -> LockOrder:
    return lock_order(the_point(load(scenario), variant))


def test_locks_stand_in_the_order_in_which_create_takes_them() -> None:
    """`vfs_create` under the directory's `i_rwsem`; `xfs_create`: ILOCK of the directory, then the AGI."""
    found = order("compile-24", "xfs")
    names = [lock.lock for lock in found.locks]
    outer = ["vfs.freeze", "vfs.i_rwsem (directory)", "xfs.ILOCK (directory)", "xfs.AGI", "xfs.xc_ctx_lock"]
    assert [name for name in names if name in outer] == outer
    assert ("xfs.ILOCK (directory)", "xfs.AGI") in {(each.outer, each.inner) for each in found.nested}
    assert not any(name.endswith(".wait_lock") for name in names)
    agi = next(lock for lock in found.locks if lock.lock == "xfs.AGI")
    assert {"create", "unlink", "inodegc"} <= set(agi.sites)


def test_a_setting_that_each_variant_sets_itself_is_told() -> None:
    answer = explain("open-one-fd", "--set", "kernel.rules.vfs.fd_search=bitmap")
    assert "--set kernel.rules.vfs.fd_search has no effect: each variant or point sets it" in answer.stderr
    assert "no effect" not in explain("compile-24", "--set", "filesystem.kind=xfs").stderr


@pytest.mark.slow
def test_a_lock_of_ones_own_is_explained_too() -> None:
    done = explain("own-lock")
    assert done.exit_code == 0, done.stderr
    assert "Locks in the order" in done.stdout


def test_a_lock_is_told_with_the_role_and_kind_that_a_scenario_may_set() -> None:
    group = next(
        lock for lock in order("ext4-mballoc", "base").locks if lock.lock.startswith("ext4.group lock")
    )
    assert (group.role, group.kind, group.type) == ("ext4.group_spin", "qspinlock", "spinlock")


def test_how_one_waits_is_of_the_kernel_s_own_kind() -> None:
    """An rwsem of Linux 3.0 spins for nobody, an rwlock always; both by their kind, not by what `perf` calls them."""

    def waits(kind: str, kernel_type: str) -> str:
        return waits_by(Taken("a", "a", kind, kernel_type, (), 1))

    assert waits("rwsem-2.6", "rwsem") == "sleeps"
    assert waits("rwsem-5.11", "rwsem") == "spins, then sleeps"
    assert waits("qrwlock", "rwlock") == "spins"
    assert waits("bit-lock", "bit") == "sleeps"
    assert waits("spinlock", "spinlock") == "spins"  # the wait lock inside another


def test_where_more_happens_than_a_trace_takes_less_time_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []
    trace = machine.trace

    def short(spec: str, *program: object) -> object:
        asked.append(json.loads(spec)["duration_ns"])
        if asked[-1] > WINDOWS_NS[-1]:
            raise ValueError("trace: more than 1000000 events: ask for less time")
        return trace(spec)

    monkeypatch.setattr(_engine, "trace", short)
    assert order("lock-cycle", "mutex").locks
    assert asked == list(WINDOWS_NS)


def test_the_words_say_what_is_simulated() -> None:
    told = explain("lock-cycle", "--variant", "mutex").stdout
    assert "first-come-first-served" in told
    assert (
        "24-CPU server, one socket, bare metal (24 CPUs, 1 a core, 24 a last-level cache, 24 a socket)"
        in " ".join(told.split())
    )
    assert "linux-6.11: EEVDF" in told
    assert "think exponential 100 us" in told
    assert "spins, then sleeps" in told


def test_a_fitted_time_and_a_switch_are_told_as_people_write_them() -> None:
    """A letter said `user_cpu 11178941.3 ns`, and `simfs explain` of ext4 `journal True`."""
    found = load("compile-24", ["workload.user_cpu=11178941.3 ns", "workload.tasks=24"])
    told = words(found, the_point(found, "ext4"))
    assert "user_cpu 11.2 ms" in told["load"]
    assert "journal yes" in told["filesystem"]


def test_operations_of_a_mix_are_told_in_words() -> None:
    asked = {"simfs": 1, "name": "mixed", "title": "Mixed", "machine": "server-24", "kernel": "linux-6.12"}
    operations = [{"op": "append", "size": "16 KiB"}, {"op": "fsync"}]
    asked |= {
        "filesystem": {"kind": "xfs"},
        "workload": {"kind": "mix", "tasks": 2, "operations": operations},
    }
    found = load(asked)
    assert words(found, the_point(found))["load"] == "2 tasks of mix: operations [append size 16 KiB, fsync]"


def test_json_has_words_locks_and_order() -> None:
    found: dict[str, Any] = json.loads(explain("compile-24", "--variant", "xfs", "--format", "json").stdout)
    assert found["words"]["held against"] == "seed-xfs-compile-2024"
    assert {"lock", "role", "kind", "type", "sites", "times"} == set(found["locks"][0])
    assert {"outer", "inner", "times"} == set(found["nested"][0])


def test_dot_has_an_arrow_from_the_outer_lock_to_the_inner_one() -> None:
    text = explain("compile-24", "--variant", "xfs", "--format", "dot").stdout
    assert text.startswith("digraph locks {")
    assert '"xfs.ILOCK (directory)" -> "xfs.AGI";' in text
    assert text.count("{") == text.count("}") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compile-24", "--variant", "xsf"), "did you mean 'xfs'"),
        (("compil-24",), "did you mean 'compile-24'"),
        (("lock-cycle", "--set", "workload.task=3"), "workload.task"),
    ],
)
def test_wrong_input_is_two_and_says_what_is_near(words: tuple[str, ...], said: str) -> None:
    done = explain(*words)
    assert done.exit_code == 2
    assert said in done.stderr.replace("\n", " ")
