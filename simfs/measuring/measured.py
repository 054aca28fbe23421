"""`simfs measure` from end to end: probes, profile, doubts, a file."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pydantic import Field

from simfs.measuring import filesystem
from simfs.measuring.circumstances import Circumstances, Clocks, doubts, look
from simfs.measuring.probes import Samples, gather, machine_plan
from simfs.measuring.profile import taken
from simfs.measuring.scratch import scratch
from simfs.measuring.topology import Topology, read_topology
from simfs.measuring.writing import write_profile
from simfs.results.run import Progress
from simfs.results.run_result import Strict
from simfs.scenario.models import Machine

SECONDS, ROUNDS = 75.0, 5
QUICK_SECONDS, QUICK_ROUNDS = 8.0, 2
CALLS_SHARE = 0.5
"""How long calls of a filesystem are measured, in the time of all else."""


class Measured(Strict):
    """The answer of `simfs measure`."""

    machine: Machine
    doubts: tuple[str, ...] = Field(description="what makes numbers doubtful")
    stand_in: str = Field(description="the shipped machine that numbers which cannot be measured are from")
    not_measured: tuple[str, ...]

    @property
    def remarks(self) -> list[str]:
        """What stands above the profile in its file."""
        return [
            "Measured by `simfs measure`. A value is the median of all samples, its range the 10th to 90th percentile.",
            f"Not measured, as on {self.stand_in}: {', '.join(self.not_measured)}.",
            *(f"Doubtful: {doubt}." for doubt in self.doubts),
        ]

    def write(self, path: Path) -> None:
        """Write the profile; raise `ScenarioError` where it does not load, and OSError."""
        write_profile(self.machine, self.remarks, path)


def measure_machine(
    name: str, *, quick: bool, progress: Progress, calls: tuple[str, Path] | None = None
) -> Measured:
    """Measure this machine, and with `calls` those of a kind of filesystem in a folder.

    Raises ValueError for what cannot be measured here.
    """
    topology, here, before = read_topology(), look(), Clocks.read()
    seconds, rounds = (QUICK_SECONDS, QUICK_ROUNDS) if quick else (SECONDS, ROUNDS)
    samples = gather(machine_plan(topology, here.memory), seconds, rounds, progress)
    found = taken(samples, topology, here, name)
    machine, missing = found.machine, found.unmeasured
    if calls is not None:
        kind, at = calls
        times = _calls(kind, at, topology, seconds * CALLS_SHARE, rounds, progress)
        machine = with_calls(machine, kind, times, here)
        missing = tuple(what for what in missing if what != "costs.speed")
    told = doubts(here, before, Clocks.read(), found.figures)
    return Measured(machine=machine, doubts=tuple(told), stand_in=found.stand_in, not_measured=missing)


def _calls(
    kind: str, at: Path, topology: Topology, seconds: float, rounds: int, progress: Progress
) -> Samples:
    with scratch(at) as own:
        plan = filesystem.call_plan(kind, own, topology.cpus[0].number)
        return gather(plan, seconds, rounds, progress)


def with_calls(machine: Machine, kind: str, times: Samples, here: Circumstances) -> Machine:
    """The machine with the times of calls, and the speed at which it runs traced steps of that filesystem."""
    micro = machine.micro | {
        name: figure.quantity() for name, figure in filesystem.call_figures(kind, times, here.source).items()
    }
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "machine.yaml"
        write_profile(machine, (), draft)
        ns = filesystem.simulated(kind, draft)
    speed = filesystem.speed(kind, times, ns, here.source).quantity()
    return machine.model_copy(
        update={"micro": micro, "costs": machine.costs.model_copy(update={"speed": speed})}
    )
