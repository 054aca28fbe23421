"""From samples to a machine profile: what is measured, what is derived from it, and what is taken from a shipped one.

Derived costs add up to what was measured from end to end, as in `models/machines/guest-2cpu.yaml`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from simfs.measuring.circumstances import Circumstances
from simfs.measuring.figures import Figure
from simfs.measuring.idle import Idle, idle_states
from simfs.measuring.probes import IDLE_NS, OVERLAPPED, SLEEP_NS, Samples
from simfs.measuring.topology import DISTANCES, Topology
from simfs.scenario.models import Caches, IdleState, Machine, MachineCosts, available, load_machine
from simfs.scenario.models import Topology as Shares
from simfs.scenario.sections.quantity import Quantity

WHAT = {
    "clock": "a read of the clock",
    "syscall": "getppid",
    "atomic": "an atomic add that nobody contends for",
    "pause": "a pause instruction",
    "wake_nobody": "FUTEX_WAKE with nobody waiting",
    "yield": "sched_yield of two threads on one CPU",
    "pipe_alone": "a byte written to a pipe and read by the same task",
    "pipe": "a byte to another process on the same CPU through a pipe, half of there and back",
    "pipe_other": "a byte to a process on another CPU through a pipe, half of there and back",
    "tick": "resolution of the coarse clock: the tick",
    "sleep_beyond": f"how much longer than asked a sleep of {SLEEP_NS / 1e6:g} ms takes: timer slack and wake-up",
    "membarrier": "membarrier with one other busy CPU: an interrupt and its answer",
    "wake_same_run": "FUTEX_WAKE until the sleeper runs on the same CPU",
    "load_l1": "a load that depends on the one before, 16 KiB",
    "load_l2": "the same, half of L2",
    "load_llc": "the same, within the last-level cache",
    "load_memory": "the same, in memory, in random order",
    "load_memory_by_page": "the same, each page finished before the next: without most lookups of addresses",
}
KEPT = ("syscall", "clock", "wake_nobody", "yield", "pipe", "pipe_other", "pipe_alone", "wake_same_run")
_NEARNESS = 50.0
"""Nanoseconds below which two costs do not differ, for how near two machines are."""


@dataclass(frozen=True)
class Taken:
    """A measured machine: its profile, and what had to be taken from a shipped one."""

    machine: Machine
    stand_in: str
    unmeasured: tuple[str, ...]
    figures: Mapping[str, Figure] = field(repr=False, default_factory=dict)


def figures_of(samples: Samples, here: Circumstances) -> dict[str, Figure]:
    """The medians and ranges of all samples."""
    return {
        name: Figure.of(values, f"{_what(name)}: median of {len(values)}; {here.source}")
        for name, values in samples.items()
    }


def _what(name: str) -> str:
    if name.startswith("lines_"):
        _, distance, lines = name.split("_")
        beside = "" if lines == "1" else f", {int(lines) - 1} neighbouring lines written before it"
        return f"one line handed over in strict alternation, distance {distance}{beside}"
    if name.startswith("contended_"):
        return f"an atomic add to a line that {name.removeprefix('contended_')} CPUs add to, as one of them sees it"
    if name.startswith("wake_") and name[5].isdigit():
        _, ns, part = name.split("_")
        until = "until the sleeper runs" if part == "run" else "as the call takes the waker"
        return f"FUTEX_WAKE of a sleeper on another CPU that idled {int(ns) / 1e3:g} us, {until}"
    return WHAT.get(name, name)


def taken(samples: Samples, topology: Topology, here: Circumstances, name: str) -> Taken:
    """The profile of the machine that was measured; what cannot be measured is that of the nearest shipped one."""
    seen = figures_of(samples, here)
    costs = _costs(seen)
    caches = _caches(seen, topology)
    near = nearest_profile({**costs, **caches})
    default, missing = load_machine(near), list[str]()
    idle = idle_states(seen, costs, topology.idle, default, near)
    whole_costs = _filled("costs", costs, default.costs, near, missing)
    whole_caches = _filled("caches", caches, default.caches or _any_caches(), near, missing)
    missing += ["watts of idle states, watts_active, watts_spin"]
    machine = Machine(
        name=name,
        title=f"{len(topology.cpus)} CPUs, {here.model}{', a guest' if here.hypervisor else ''}, measured {here.date}",
        topology=_shares(topology),
        costs=MachineCosts(**whole_costs),
        caches=Caches(**whole_caches),
        memory=Figure.exactly(here.memory, "MemTotal of /proc/meminfo", "bytes").quantity(),
        micro={key: figure.quantity() for key, figure in _micro(seen).items()},
        idle_states=tuple(_state(x) for x in idle),
        watts_active=_like(default.watts_active, near),
        watts_spin=_like(default.watts_spin, near),
    )
    return Taken(machine, near, tuple(missing), seen)


def nearest_profile(costs: Mapping[str, Figure]) -> str:
    """The shipped machine whose measured costs are nearest, by the mean of the logarithms of their ratios."""
    return min((distance(costs, load_machine(name)), name) for name in available("machines"))[1]


def distance(costs: Mapping[str, Figure], other: Machine) -> float:
    """How far a machine is from costs that were measured (ns): the mean |ln ratio| of what both have."""
    theirs = dict(other.costs) | dict(other.caches or {})
    compared = [
        abs(math.log((figure.value + _NEARNESS) / (theirs[name].ns + _NEARNESS)))
        for name, figure in costs.items()
        if figure.unit == "ns" and name in theirs and theirs[name].is_time
    ]
    return sum(compared) / len(compared) if compared else math.inf


def _costs(seen: Mapping[str, Figure]) -> dict[str, Figure]:
    """The costs that samples give."""
    found = {f"line_{d}": seen[f"lines_{d}_1"] for d in DISTANCES if f"lines_{d}_1" in seen}
    if "line_socket" not in found and "line_llc" in found:
        found["line_socket"] = found["line_llc"].said("as line_llc: a socket has one last-level cache here")
    half = seen["syscall"] * 0.5
    wakeup = seen["wake_same_run"] - seen["wake_nobody"] - seen["yield"] - half - seen["clock"]
    switch = seen["pipe"] - seen["pipe_alone"] - wakeup
    between_threads = seen["yield"] - seen["syscall"]
    found |= {
        "line_hit": seen["atomic"],
        "line_atomic": seen["atomic"],
        "cpu_relax": seen["pause"],
        "wakeup": wakeup.said(
            "wake_same_run less wake_nobody, yield (a switch and its call), half of syscall and clock (all in micro)"
        ),
        "context_switch": switch.said(
            "pipe less pipe_alone and wakeup (in micro): a switch between processes"
        ),
        "switch_mm": (switch - between_threads).said(
            "context_switch less yield, which is between threads of one process, without its call (in micro)"
        ),
    }
    counted = load_machine("emulated").costs.wakeup.ns  # an instruction takes a nanosecond there
    found["instruction"] = (wakeup * (1 / counted)).said(
        f"wakeup over the {counted:g} instructions that one takes in the laboratory (machine emulated)"
    )
    return found | _overlap(seen, found) | _interrupt(seen, wakeup, between_threads, half)


def _overlap(seen: Mapping[str, Figure], found: Mapping[str, Figure]) -> dict[str, Figure]:
    where = next(
        (d for d in ("llc", "socket", "remote") if f"line_{d}" in found and f"lines_{d}_1" in seen), None
    )
    if where is None:
        return {}
    one, many = seen[f"lines_{where}_1"].value, seen[f"lines_{where}_{OVERLAPPED}"]
    more = OVERLAPPED - 1
    value, low, high = (
        min(max(more * one / max(x - one, 1e-9), 1.0), 1000.0) for x in (many.value, many.high, many.low)
    )
    source = f"{more} lines handed over with one at distance {where} take {many.value:.0f} ns, one alone {one:.0f} ns"
    return {"line_overlap": Figure(value, low, high, source, "derived", "ratio")}


def _interrupt(seen: Mapping[str, Figure], wakeup: Figure, switch: Figure, half: Figure) -> dict[str, Figure]:
    first = f"wake_{IDLE_NS[0]}"
    if f"{first}_run" not in seen:
        return {}
    send = seen[f"{first}_call"] - seen["wake_nobody"] - wakeup
    entry = seen["wake_nobody"] - half
    deliver = seen[f"{first}_run"] - entry - wakeup - send - switch - half - seen["clock"]
    return {
        "ipi_send": send.said(
            f"{first}_call less wake_nobody and wakeup: what the waker pays to interrupt an idle CPU"
        ),
        "ipi_deliver": deliver.said(
            f"{first}_run less its other parts: wake_nobody, wakeup, ipi_send, context_switch without switch_mm "
            "and clock; the exit that the idle driver declares is still in it and is taken out below"
        ),
    }


def _caches(seen: Mapping[str, Figure], topology: Topology) -> dict[str, Figure]:
    found = {"memory_latency": seen["load_memory"]}
    if topology.core_cache:
        found["core"] = Figure.exactly(topology.core_cache, "L2 of a core, from sysfs", "bytes")
    if topology.llc:
        found["llc"] = Figure.exactly(topology.llc, "last-level cache, from sysfs", "bytes")
        found["llc_latency"] = seen["load_llc"]
    return found


def _any_caches() -> Caches:
    caches = load_machine("server-24").caches
    assert caches is not None  # a shipped file
    return caches


def _filled(
    section: str,
    found: Mapping[str, Figure],
    default: MachineCosts | Caches,
    near: str,
    missing: list[str],
) -> dict[str, Quantity]:
    whole = {}
    for name, quantity in default:
        if name in found:
            whole[name] = found[name].quantity()
        elif quantity is not None:
            whole[name] = _like(quantity, near)
            missing.append(f"{section}.{name}")
    return whole


def _like(quantity: Quantity, near: str) -> Quantity:
    return quantity.model_copy(
        update={"source": f"not measured: as on {near}, the nearest shipped machine: {quantity.source}"}
    )


def _shares(topology: Topology) -> Shares:
    told = {
        "cpus": len(topology.cpus),
        "cpus_per_core": topology.shared("core"),
        "cpus_per_llc": topology.shared("llc"),
        "cpus_per_socket": topology.shared("socket"),
    }
    return Shares(
        **{
            name: Figure.exactly(n, "sysfs; the CPUs that this process may use", "CPUs").quantity()
            for name, n in told.items()
        }
    )


def _micro(seen: Mapping[str, Figure]) -> dict[str, Figure]:
    """Everything that was measured, under its own name, but what stands in `costs` and `caches` as it is."""
    shares = {name: figure for name, figure in seen.items() if name.endswith("_share")}
    as_they_are = {"atomic", "pause", "load_memory", "load_llc", *shares}
    as_they_are |= {f"lines_{d}_1" for d in DISTANCES}
    half = seen["syscall"] * 0.5
    return {name: figure for name, figure in seen.items() if name not in as_they_are} | {
        "half_syscall": half.said("half of syscall: the way back to user space")
    }


def _state(idle: Idle) -> IdleState:
    return IdleState(
        name=idle.name, exit=idle.exit.quantity(), residency=idle.residency.quantity(), watts=idle.watts
    )
