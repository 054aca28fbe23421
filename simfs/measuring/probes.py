"""Which probes are run, in which order, and what they give: samples by name.

The whole plan is gone through several times, so that what changes meanwhile shows up in the ranges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from simfs._engine import measure
from simfs.measuring.topology import Topology
from simfs.results.run import Progress

IDLE_NS = tuple(round(us * 1000) for us in (5, 10, 20, 30, 50, 100, 200, 1000, 10_000))
"""How long a CPU idles before it is woken."""

OVERLAPPED = 17
"""Lines handed over together to see how far their transfers overlap."""

MIB = 1 << 20
DRAM_CACHES = 4
"""How many times the last-level cache what is walked to reach the memory is."""

LEAST_DRAM = 256 * MIB
MOST_DRAM = 2048 * MIB
SLEEP_NS = 1_000_000

Samples = dict[str, list[float]]
Measure = Callable[..., dict[str, list[float]]]


@dataclass(frozen=True)
class Probe:
    """One thing measured: the name of its samples, what the engine does, where and how much."""

    name: str
    what: str
    cpus: tuple[int, ...]
    amount: int = 0
    at: str | None = None
    weight: float = 1.0


def machine_plan(topology: Topology, memory: int) -> list[Probe]:
    """What is measured of the machine itself."""
    cpus = [cpu.number for cpu in topology.cpus]
    one = (cpus[0],)
    alone = ("clock", "syscall", "atomic", "pause", "wake_nobody", "yield", "pipe_alone", "tick")
    plan = [Probe(what, what, one) for what in alone]
    plan += [Probe("sleep", "sleep", one, SLEEP_NS), Probe("pipe", "pipe", one * 2)]
    plan += [Probe("wake_same", "wake", one * 2)]
    pairs = topology.pairs()
    for distance, some in pairs.items():
        for lines in (1, 2, OVERLAPPED):
            plan += [
                Probe(f"lines_{distance}_{lines}", "ping_pong", p, lines, weight=1 / len(some)) for p in some
            ]
    sizes = [n for n in (2, 4, 8, 16, 32, 64, 128) if n < len(cpus)]
    plan += [Probe(f"contended_{n}", "contended", tuple(cpus[:n])) for n in (*sizes, len(cpus)) if n > 1]
    if pairs:
        pair = wake_pair(topology)
        plan += [Probe("membarrier", "membarrier", pair), Probe("pipe_other", "pipe", pair)]
        plan += [Probe(f"wake_{ns}", "wake", pair, ns, weight=1 + ns / 5e6) for ns in IDLE_NS]
    return plan + _memory_plan(topology, memory, one)


def wake_pair(topology: Topology) -> tuple[int, int]:
    """Two CPUs near each other that are not threads of one core, if there are any."""
    pairs = topology.pairs()
    nearest = next(d for d in ("llc", "socket", "remote", "smt") if d in pairs)
    return pairs[nearest][0]


def _memory_plan(topology: Topology, memory: int, one: tuple[int, ...]) -> list[Probe]:
    core, llc = topology.core_cache or MIB, topology.llc or 8 * MIB
    dram = min(max(LEAST_DRAM, DRAM_CACHES * llc), MOST_DRAM, memory // 8)
    plan = [Probe("load_l1", "memory", one, 16 << 10), Probe("load_l2", "memory", one, core // 2)]
    if topology.llc:
        plan.append(Probe("load_llc", "memory", one, min(4 * core, llc // 2)))
    plan.append(Probe("load_memory", "memory", one, dram))
    return [*plan, Probe("load_memory_by_page", "memory_by_page", one, dram)]


def gather(
    plan: Sequence[Probe], seconds: float, rounds: int, progress: Progress, measure: Measure = measure
) -> Samples:
    """Run all probes `rounds` times, for so many seconds in all, and return their samples.

    Raises ValueError for what cannot be measured here.
    """
    samples = defaultdict[str, list[float]](list)
    slot = seconds / rounds / sum(probe.weight for probe in plan)
    for turn in range(rounds):
        for number, probe in enumerate(plan):
            progress(turn * len(plan) + number, rounds * len(plan), probe.name)
            time = slot * probe.weight
            got = measure(probe.what, list(probe.cpus), amount=probe.amount, seconds=time, at=probe.at)
            for series, values in got.items():
                samples[probe.name if series == "each" else f"{probe.name}_{series}"] += values
    return dict(samples)
