"""Machines: those that are shipped, and any with few CPUs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from engine import FREE
from simfs.scenario.models import available, load_machine
from simfs.scenario.models.touched import touched

times = st.one_of(st.just(0.0), st.integers(1, 40).map(lambda n: n * 100.0), st.floats(0.5, 5e4))
"""Nanoseconds: nothing (ties), round numbers (ties again), anything."""

LINES = ("line_hit", "line_atomic", "line_smt", "line_llc", "line_socket", "line_remote")
SWITCHES = ("context_switch", "switch_mm", "wakeup", "ipi_send", "ipi_deliver")

sizes = st.sampled_from([64.0, 2.0**16, 2.0**21, 2.0**25])
"""Bytes of a cache."""

caches = st.fixed_dictionaries(
    {
        "core_bytes": sizes,
        "llc_bytes": sizes,
        "llc_ns": times.map(lambda ns: min(ns, 1e4)),
        "memory_ns": st.floats(0, 300),
        "memory_bandwidth": st.sampled_from([1e9, 1.3e10]),
        "code_lines": st.sampled_from([0.0, 33.3, 510.0]),
        "bodies": st.sampled_from([[], touched("xfs"), touched("btrfs")]),
    }
)

deeper_states = st.sampled_from(
    [
        [],
        [{"name": "C6", "exit_ns": 9e4, "core_exit_ns": 2e4, "residency_ns": 2e5, "watts": 0.2}],
        [
            {"name": "C1E", "exit_ns": 1e4, "residency_ns": 2e4, "watts": 0.8},
            {"name": "C6", "exit_ns": 9e4, "residency_ns": 5e6, "watts": 0.2},
        ],
    ]
)
"""Without any a governor has no choice; 5 ms are longer than most ticks."""

cpu_numbers = st.one_of(st.integers(1, 8), st.sampled_from([12, 16, 24]))


@st.composite
def machines(draw: st.DrawFn) -> dict[str, Any]:
    """`machine` of a RunSpec."""
    if draw(st.integers(0, 3)) == 0:
        return load_machine(draw(st.sampled_from(available("machines")))).spec(draw(cpu_numbers))
    cpus = draw(cpu_numbers)
    shares = [1]  # each part is made up of whole ones below it, or a scenario is refused
    for _ in range(3):
        shares.append(shares[-1] * draw(st.integers(1, cpus // shares[-1])))
    cheap = st.one_of(st.just(0.0), st.floats(0.1, 300))
    states = [
        {"name": "C1", "exit_ns": draw(times), "residency_ns": 500.0, "watts": 1.5},
        *draw(deeper_states),
    ]
    return {
        "cpus": cpus,
        **dict(zip(("cpus_per_core", "cpus_per_llc", "cpus_per_socket"), shares[1:], strict=True)),
        "costs": {**FREE}
        | {name: draw(cheap) for name in (*LINES, "cpu_relax", "instruction")}
        | {name: draw(st.one_of(st.just(0.0), st.just(1000.0), st.floats(1, 5000))) for name in SWITCHES}
        | {"line_migrates": draw(st.sampled_from([0.0, 1.0]))}
        | {"line_overlap": 10.0, "step_cv": draw(st.sampled_from([0.0, 0.06, 0.5]))}
        | {"smt_speed": draw(st.sampled_from([0.5, 0.6, 1.0])), "speed": draw(st.sampled_from([1.0, 0.4]))},
        "caches": draw(st.one_of(st.none(), caches)),
        "idle_states": draw(st.sampled_from([[], states])),
        "watts_active": 4.0,
        "watts_spin": 3.0,
    }
