"""What is being measured, and what makes its numbers doubtful: a hypervisor, changing frequencies, other work."""

from __future__ import annotations

import os
import platform
import resource
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from simfs.measuring.figures import Figure

OTHERS = 0.05
"""Share of CPU time used by others above which numbers are doubtful."""

STOLEN = 0.01
WIDE = 2.5
"""90th over 10th percentile of a number above which it is called doubtful."""


@dataclass(frozen=True)
class Circumstances:
    """The machine and the day."""

    model: str
    kernel: str
    date: str
    hypervisor: bool
    governor: str
    memory: int

    @property
    def source(self) -> str:
        """What a measured number is said to be from."""
        guest = ", a guest" if self.hypervisor else ""
        return f"{self.model}{guest}, Linux {self.kernel}, {self.date}"


@dataclass(frozen=True)
class Clocks:
    """CPU time of the machine and of this process up to now, in seconds."""

    at: float
    busy: float
    stolen: float
    own: float

    @classmethod
    def read(cls) -> Clocks:
        """Read them (proc_stat(5): times of all CPUs in ticks)."""
        line = Path("/proc/stat").read_text("ascii").partition("\n")[0].split()
        user, nice, system, _idle, _iowait, irq, softirq, stolen = (int(x) for x in line[1:9])
        tick = os.sysconf("SC_CLK_TCK")
        uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        own = sum(use.ru_utime + use.ru_stime for use in uses)
        busy = (user + nice + system + irq + softirq) / tick
        return cls(time.monotonic(), busy, stolen / tick, own)


def look(proc: Path = Path("/proc"), sysfs: Path = Path("/sys/devices/system/cpu")) -> Circumstances:
    """See what machine this is."""
    info = dict(_pairs((proc / "cpuinfo").read_text("utf-8", errors="replace")))
    memory = dict(_pairs((proc / "meminfo").read_text("ascii"))).get("MemTotal", "0 kB")
    governor = sysfs / "cpu0/cpufreq/scaling_governor"
    return Circumstances(
        model=info.get("model name") or info.get("CPU part") or platform.machine(),
        kernel=platform.release(),
        date=datetime.now(UTC).date().isoformat(),
        hypervisor="hypervisor" in info.get("flags", "").split(),
        governor=governor.read_text("ascii").strip() if governor.exists() else "",
        memory=int(memory.split()[0]) * 1024,
    )


def doubts(
    here: Circumstances, before: Clocks, after: Clocks, figures: Mapping[str, Figure]
) -> Iterator[str]:
    """Say what makes which numbers doubtful."""
    if here.hypervisor:
        yield "a hypervisor is below: wake-ups, interrupts and lines may cost what its other guests make of them"
    if here.governor and here.governor != "performance":
        yield f"the frequency governor is '{here.governor}': clocks of CPUs change; set 'performance' and repeat"
    room = (after.at - before.at) * (os.cpu_count() or 1)
    others = (after.busy - before.busy - (after.own - before.own)) / room
    if others > OTHERS:
        yield f"other work used {others:.0%} of the CPUs: repeat on an idle machine"
    stolen = (after.stolen - before.stolen) / room
    if stolen > STOLEN:
        yield f"the host took {stolen:.0%} of the CPUs' time away"
    wide = [name for name, x in figures.items() if x.low > 0 and x.high > WIDE * x.low]
    if wide:
        yield f"these vary by more than {WIDE:g} times from their 10th to their 90th percentile: {', '.join(wide)}"


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in reversed(text.splitlines()):  # of repeated keys the first counts
        key, colon, value = line.partition(":")
        if colon:
            yield key.strip(), value.strip()
