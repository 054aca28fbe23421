"""CPUs, caches and idle states as Linux tells them in sysfs, and pairs of CPUs by distance."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal, get_args

from simfs.scenario.sections.machine import MAX_CPUS

SYSFS = Path("/sys/devices/system/cpu")
PAIRS = 3
"""How many pairs of CPUs of one distance are measured."""

Distance = Literal["smt", "llc", "socket", "remote"]
DISTANCES: tuple[Distance, ...] = get_args(Distance)


@dataclass(frozen=True)
class Cpu:
    """A CPU and what it shares: the lists of CPUs of its core, last-level cache and socket."""

    number: int
    core: tuple[int, ...]
    llc: tuple[int, ...]
    socket: tuple[int, ...]

    def distance(self, other: Cpu) -> Distance:
        """How far a line travels from one to the other."""
        shared = {"smt": self.core, "llc": self.llc, "socket": self.socket}
        return next((d for d in DISTANCES[:3] if other.number in shared[d]), "remote")


@dataclass(frozen=True)
class DeclaredIdle:
    """An idle state as the idle driver declares it (ns)."""

    name: str
    exit: float
    residency: float


@dataclass(frozen=True)
class Topology:
    """The CPUs this process may use, the sizes of caches (bytes, 0: not told) and the idle states."""

    cpus: tuple[Cpu, ...]
    core_cache: int
    llc: int
    idle: tuple[DeclaredIdle, ...]

    def pairs(self) -> dict[Distance, list[tuple[int, int]]]:
        """A few pairs of each distance that there is, spread over the machine."""
        found: dict[Distance, list[tuple[int, int]]] = {}
        for a, b in combinations(self.cpus[:: max(1, len(self.cpus) // 64)], 2):
            found.setdefault(a.distance(b), []).append((a.number, b.number))
        first = self.cpus[0]
        for b in self.cpus[1:]:  # threads of a core may be far apart in numbers
            found.setdefault(first.distance(b), []).append((first.number, b.number))
        return {d: _spread(found[d], PAIRS) for d in DISTANCES if d in found}

    def shared(self, what: Literal["core", "llc", "socket"]) -> int:
        """How many CPUs most of them share a core, cache or socket with, themselves included."""
        return Counter(len(getattr(cpu, what)) for cpu in self.cpus).most_common(1)[0][0]


def read_topology(sysfs: Path = SYSFS, allowed: Iterable[int] | None = None) -> Topology:
    """Read what this machine tells; what it does not tell is taken as not shared, or as 0 bytes."""
    usable = sorted(os.sched_getaffinity(0) if allowed is None else allowed)[:MAX_CPUS]
    here = frozenset(usable)
    cpus = tuple(_cpu(sysfs, n, here) for n in usable)
    first = sysfs / f"cpu{usable[0]}"
    sizes = {int(_text(c / "level", "0")): _bytes(_text(c / "size")) for c in _data_caches(first)}
    last = max(sizes, default=0)
    return Topology(cpus, sizes.get(2, 0), sizes[last] if last > 2 else 0, _idle(first / "cpuidle"))


def _cpu(sysfs: Path, number: int, here: frozenset[int]) -> Cpu:
    home = sysfs / f"cpu{number}"
    core = _text(home / "topology/core_cpus_list") or _text(home / "topology/thread_siblings_list")
    socket = _text(home / "topology/package_cpus_list") or _text(home / "topology/core_siblings_list")
    caches = sorted(_data_caches(home), key=lambda c: int(_text(c / "level", "0")))
    llc = _text(caches[-1] / "shared_cpu_list") if caches else socket
    lists = (tuple(n for n in _cpus(text) if n in here) or (number,) for text in (core, llc, socket))
    return Cpu(number, *lists)


def _data_caches(cpu: Path) -> list[Path]:
    return [c for c in cpu.glob("cache/index*") if _text(c / "type") in ("Data", "Unified")]


def _idle(folder: Path) -> tuple[DeclaredIdle, ...]:
    states = sorted(folder.glob("state*"), key=lambda s: int(s.name.removeprefix("state")))
    return tuple(
        DeclaredIdle(
            _text(s / "name"), 1e3 * int(_text(s / "latency", "0")), 1e3 * int(_text(s / "residency", "0"))
        )
        for s in states
        if _text(s / "name") != "POLL" and _text(s / "disable", "0") == "0"
    )


def _spread(pairs: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    unique = list(dict.fromkeys(pairs))
    return unique[:: max(1, len(unique) // most)][:most]


def _cpus(text: str) -> list[int]:
    """The numbers of a list such as `0-3,8`."""
    ends = [part.partition("-") for part in text.split(",") if part]
    return [n for low, _, high in ends for n in range(int(low), int(high or low) + 1)]


def _bytes(text: str) -> int:
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    return int(text.rstrip("KMG") or 0) * scale


def _text(path: Path, otherwise: str = "") -> str:
    try:
        return path.read_text("ascii", errors="replace").strip()
    except OSError:
        return otherwise
