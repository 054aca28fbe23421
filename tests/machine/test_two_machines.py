"""The native and the reference machine do the same, event for event, and report the same."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from generated.independent import INDEPENDENT
from generated.programs import GeneratedProgram, programs
from generated.scenarios import Drawn, file_scenarios, lock_scenarios
from hypothesis import given, settings
from machines import ALL, assert_same, short

from engine import Spec, window
from simfs.machine.own import is_own
from simfs.scenario import expand, load, paths, to_run_spec

SHIPPED = sorted(paths.names(paths.SCENARIOS))

PREEMPTED_IN_DEBT = Drawn(
    scenario={
        "simfs": 1,
        "name": "drawn",
        "title": "Drawn",
        "machine": {"profile": "server-24", "cpus": 6},
        "kernel": {
            "profile": "linux-6.7",
            "tick": "100 us",
            "base_slice": "1 us",
            "preemption": "host",
            "rules": {
                "sched.place_deadline_initial": True,
                "xfs.dio_size_check": "lockless",
                "sched.groups": "cgroup",
                "sched.run_to_parity": False,
                "sched.kthread_stacking": False,
                "vfs.dentry_line": "apart",
                "xfs.cil": "per-cpu",
            },
            "kernel_threads": True,
            "constants": {
                "rwsem_handoff_wait": "3200 ns",
                "percpu_rwsem_grace_period": "3600 ns",
                "numa_spinlock_threshold": "50000 ns",
            },
        },
        "filesystem": {
            "kind": "xfs",
            "agcount": 4,
            "iolock": "rwsem",
            "buffered_io": "prewarmed",
            "size": "8 GiB",
            "log_size": "10 MiB",
        },
        "device": None,
        "locks": {"xfs.i_flags_lock": "qrwlock"},
        "workload": {"kind": "create_unlink", "directories": "shared", "tasks": 12, "nice": 0},
        "measure": {"seed": 1215097, "duration": "1 ms", "warmup": "0 ns"},
    },
    machine={
        "cpus": 6,
        "cpus_per_core": 1,
        "cpus_per_llc": 2,
        "cpus_per_socket": 3,
        "costs": {
            "line_hit": 91.39285951973285,
            "line_smt": 0.0,
            "line_llc": 0.0,
            "line_socket": 123.34909599047948,
            "line_remote": 0.0,
            "line_overlap": 10.0,
            "step_cv": 0.06,
            "smt_speed": 0.6,
            "cpu_relax": 0.0,
            "context_switch": 0.0,
            "wakeup": 3499.941167103959,
            "ipi_send": 1000.0,
            "ipi_deliver": 1000.0,
            "speed": 1.0,
        },
        "idle_states": [{"name": "C1", "exit_ns": 1200.0, "residency_ns": 500.0, "watts": 1.5}],
        "watts_active": 4.0,
        "watts_spin": 3.0,
    },
)
"""Found by `python -m tests.agree`: somebody who still pays for line misses when it has taken a lock loses its CPU."""


NO_TIMES = window(0)

EVENTS = 1_250
"""Of a drawn scenario without files, about. `python -m tests.agree` takes 4,000."""

FEW_EVENTS = 600
"""Of one with files, which sets up some hundred before."""

MOST_CPUS = 24
"""Of a shipped scenario: kernel threads for each CPU are most of Python's time. A thousand are compared once, below."""


def share(part: float, backend: str = "hypothesis") -> settings:
    """So many of the examples of this run, 1 is all; `python -m tests.agree` compares on more."""
    return settings(max_examples=round(part * settings().max_examples), backend=backend)


@pytest.mark.slow
@share(0.4)
@given(lock_scenarios())
def test_both_machines_give_the_same_trace_of_any_locks(drawn: Drawn) -> None:
    assert_same(short(drawn.spec(), EVENTS))


@pytest.mark.slow
@share(0.15, INDEPENDENT)
@given(programs())
def test_both_machines_give_the_same_trace_of_any_python_program(program: GeneratedProgram) -> None:
    assert_same(program.spec, program.worker, program.setup)


@pytest.mark.slow
def test_both_machines_agree_where_a_task_is_preempted_while_it_owes_time() -> None:
    assert_same(short(PREEMPTED_IN_DEBT.spec(), 4_000), most=ALL)


THOUSAND = {
    "simfs": 1,
    "name": "thousand",
    "title": "More CPUs than fit into a set without room elsewhere",
    "machine": {
        "profile": "server-24",
        "cpus": 1024,
        "cpus_per_core": 2,
        "cpus_per_llc": 64,
        "cpus_per_socket": 128,
    },
    "kernel": "linux-6.12",
    "workload": {
        "kind": "lock_cycle",
        "lock": "rwsem",
        "readers": 0.9,
        "think": {"exponential": "40 us"},
        "hold": "1 us",
        "tasks": 600,
    },
    "measure": {"warmup": "10 us", "duration": "60 us", "replications": 1},
}


@pytest.mark.slow
def test_both_machines_give_the_same_trace_of_a_thousand_cpus() -> None:
    (point,) = expand(load(THOUSAND))
    assert assert_same(to_run_spec(point, 0)) > 2_000


@pytest.mark.slow
@share(0.2, INDEPENDENT)
@given(file_scenarios())
def test_both_machines_give_the_same_trace_of_any_filesystem_on_any_kernel(drawn: Drawn) -> None:
    assert_same(short(drawn.spec(), FEW_EVENTS))


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_both_machines_give_the_same_trace_of_every_shipped_scenario(name: str) -> None:
    events = 0
    for spec in _few(points(name)):
        if events < 2 * FEW_EVENTS:  # of compiles, even four points have few
            events += assert_same(short(spec, FEW_EVENTS))
    assert events > 100


@cache
def points(name: str) -> list[Spec]:
    """The points of a shipped scenario that both machines can run."""
    specs = [to_run_spec(point, 0) for point in expand(load(name))]
    return [spec for spec in specs if not any(map(is_own, spec["kernel"]["locks"].values()))]


def _few(specs: list[Spec]) -> list[Spec]:
    """At most four points of a scenario that differ where all are small, first those far apart (variants, sweep)."""
    small = [_small(spec) for spec in specs]
    different = list({json.dumps(spec | NO_TIMES): spec for spec in small}.values())
    some = different[:: -(-len(different) // 4)]
    return some[::2] + some[1::2]


def _small(spec: Spec) -> Spec:
    """The same with few CPUs, tasks and directories, and few and small files."""
    workload, machine = dict(spec["workload"]), spec["machine"]
    workload["tasks"] = min(workload["tasks"], 6)
    params = workload["params"]
    for key, most in {
        "initial_files": 2_000,
        "files": 3,
        "subdirectories": 4,
        "size": 256 << 10,
        "file_bytes": 256 << 10,
        "begin_ns": 100_000,
    }.items():
        if isinstance(params.get(key), int | float):  # fio's files are a word
            params = params | {key: min(params[key], most)}
    workload["params"] = params
    return spec | {"workload": workload, "machine": machine | _fewer_cpus(machine)}


def _fewer_cpus(machine: dict[str, Any]) -> dict[str, int]:
    """Whole cores, in as many caches and sockets as there are."""
    unit, times = machine["cpus_per_core"], -(-machine["cpus"] // MOST_CPUS)
    levels: dict[str, int] = {}
    for level in ("cpus_per_llc", "cpus_per_socket", "cpus"):
        unit = levels[level] = max(machine[level] // times // unit, 1) * unit
    return levels
