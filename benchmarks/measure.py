"""Processor time and memory of the engine's example programs, as ratios within one run.

Everything that is compared is run in turns (a, b, c, a, b, c, ...) so that other load on the computer meets
all alike; the minimum is the figure, the median tells how far to trust it.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simfs import _engine
from simfs.scenario import expand, load, to_run_spec

ROOT = Path(__file__).resolve().parent.parent
ENGINE = ROOT / "engine"
RUN = ("--example", "run")
#: Runs the spec on standard input by the engine that is installed.
RUN_INSTALLED = "import sys; from simfs import _engine; print(_engine.run(sys.stdin.read()))"

Spec = dict[str, Any]

#: 24 tasks and one lock on server-24 under linux-6.11, as the scenario has them.
BASE: Spec = to_run_spec(expand(load("lock-cycle", ["workload.tasks=24"]))[0], 0) | {
    "warmup_ns": 0,
    "duration_ns": 1e6,
}


@dataclass(frozen=True)
class Run:
    """What one run took and did."""

    #: Processor time, user and system (ns).
    cpu_ns: float
    #: Largest resident set (bytes).
    rss_bytes: int
    #: Lock cycles done.
    cycles: int
    #: Events processed.
    events: int
    #: Share of simulated time during which the lock was held.
    utilisation: float

    @property
    def cpu_ns_per_cycle(self) -> float:
        """Processor time per lock cycle (ns)."""
        return self.cpu_ns / self.cycles


@dataclass(frozen=True)
class Counted:
    """What valgrind counted of one run."""

    instructions: int
    #: Lock cycles done.
    cycles: int


@dataclass(frozen=True)
class Sample:
    """Repeated measurements of one thing."""

    values: tuple[float, ...]

    @property
    def minimum(self) -> float:
        """The least disturbed measurement."""
        return min(self.values)

    @property
    def median(self) -> float:
        """The usual measurement."""
        return statistics.median(self.values)


def lock_cycle(lock: str, *, tasks: int = 24, duration_ns: float = 1e7, **params: float | str) -> Spec:
    """Return the spec of a lock cycle with exponential times that thinks on the CPU, but for `params`."""
    spec = copy.deepcopy(BASE)
    spec["duration_ns"] = duration_ns
    spec["kernel"]["locks"] = {"lock": lock}
    spec["workload"]["tasks"] = tasks
    spec["workload"]["params"] = {
        "think": "cpu",
        "think_ns": 1000,
        "think_distribution": "exponential",
        "hold_ns": 50,
        "hold_distribution": "exponential",
        **params,
    }
    return spec


def lasting(spec: Spec, cycles: int) -> Spec:
    """Return `spec` with the simulated time in which it does about `cycles` cycles."""
    spec["duration_ns"] *= cycles / run_engine(spec).cycles
    return spec


def target() -> Path:
    """Return where the example programs are compiled to."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ENGINE / "target"))


def build() -> None:
    """Compile the engine's example program and the loop, optimised."""
    _cargo(ENGINE, target(), RUN)
    build_floor()


def build_floor() -> None:
    """Compile the loop that models nothing, optimised. It takes seconds; the engine takes a minute."""
    _cargo(ENGINE, target(), ("--package", "simfs-floor"))


def build_revision(revision: str) -> Path:
    """Compile the engine of a git revision; return its example program."""
    name = subprocess.run(
        ["git", "rev-parse", "--short", f"{revision}^{{commit}}"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    place = target() / "revisions" / name
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, name], cwd=ROOT, check=True)
        try:
            _cargo(tree / "engine", place, RUN)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
    return place / "release" / "examples" / "run"


def _cargo(engine: Path, into: Path, chosen: tuple[str, ...]) -> None:
    command = ["cargo", "build", "--release", "--locked", "--quiet", *chosen]
    subprocess.run(command, cwd=engine, env=os.environ | {"CARGO_TARGET_DIR": str(into)}, check=True)


def run_engine(spec: Spec, program: Path | None = None) -> Run:
    """Run `spec` in a process of its own: by the engine of this tree, or by another example program."""
    return _run([str(program or target() / "release" / "examples" / "run")], json.dumps(spec))


def run_floor(tasks: int, cycles: int) -> Run:
    """Run the loop that models nothing."""
    return _run([str(_floor()), str(tasks), str(cycles)], "")


def _floor() -> Path:
    return target() / "release" / "simfs-floor"


def count_floor(tasks: int, cycles: int) -> float:
    """Count the instructions that a cycle of the loop takes (valgrind)."""

    def counted(cycles: int) -> Counted:
        return _count([str(_floor()), str(tasks), str(cycles)])

    return _marginal(counted(cycles), counted(2 * cycles))


def count_engine(spec: Spec, cycles: int) -> float:
    """Count the instructions that a cycle takes on the engine that is installed (valgrind)."""

    def counted(duration_ns: float) -> Counted:
        return _count([sys.executable, "-c", RUN_INSTALLED], json.dumps(spec | {"duration_ns": duration_ns}))

    duration = spec["duration_ns"] * cycles / json.loads(_engine.run(json.dumps(spec)))["operations"]
    return _marginal(counted(duration), counted(2 * duration))


def count_an_event(spec: Spec, duration_ns: float) -> float:
    """Count the instructions of the installed engine for an event (valgrind), in the second such time of a run."""

    def counted(duration_ns: float) -> tuple[int, int]:
        text = json.dumps(spec | {"warmup_ns": 0, "duration_ns": duration_ns})
        events: int = json.loads(_engine.run(text))["events"]
        return _count([sys.executable, "-c", RUN_INSTALLED], text).instructions, events

    (short, few), (long, many) = counted(duration_ns), counted(2 * duration_ns)
    return (long - short) / (many - few)


def _marginal(short: Counted, long: Counted) -> float:
    """Leave out what is the same in both runs: start, layout, the report."""
    return (long.instructions - short.instructions) / (long.cycles - short.cycles)


def _count(command: list[str], text: str = "") -> Counted:
    quiet = ("--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
    ran = subprocess.run(
        ["valgrind", *quiet, *command],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "0"},
    )
    told = re.search(r"I\s+refs:\s+([\d,]+)", ran.stderr)
    if told is None:
        raise RuntimeError(f"valgrind counted no instructions: {ran.stderr}")
    return Counted(int(told[1].replace(",", "")), json.loads(ran.stdout)["operations"])


def interleaved(repeats: int, measurements: Mapping[str, Callable[[], float]]) -> dict[str, Sample]:
    """Take every measurement `repeats` times, in turns."""
    values: dict[str, list[float]] = {name: [] for name in measurements}
    for _ in range(repeats):
        for name, measurement in measurements.items():
            values[name].append(measurement())
    return {name: Sample(tuple(taken)) for name, taken in values.items()}


@dataclass
class Report:
    """Figures and what is asked of them: printed as text as they come, or all together as JSON."""

    as_json: bool
    samples: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: list[dict[str, Any]] = field(default_factory=list)

    def table(self, title: str, samples: Mapping[str, Sample]) -> None:
        """Add repeated measurements; the title says of what."""
        for name, sample in samples.items():
            figures = {"minimum": sample.minimum, "median": sample.median, "values": sample.values}
            self.samples[name] = {"of": title, **figures}
        self._say(f"{title:<58}   minimum    median")
        for name, sample in samples.items():
            self._say(f"{name:<58} {sample.minimum:9.1f} {sample.median:9.1f}")
        self._say("")

    def figure(self, name: str, value: float, unit: str = "") -> None:
        """Add a figure of which nothing is asked."""
        self.figures.append({"name": name, "value": value, "unit": unit.strip()})
        self._say(f"{name:<58} {value:9.2f}{unit}")

    def verdict(
        self, name: str, value: float, bound: float, *, at_most: bool = False, unit: str = ""
    ) -> None:
        """Add a figure beside what is asked of it."""
        holds = value <= bound if at_most else value >= bound
        asked = {"bound": bound, "at_most": at_most, "holds": holds}
        self.figures.append({"name": name, "value": value, "unit": unit.strip(), **asked})
        wanted = f"at {'most' if at_most else 'least'} {bound:g}{unit}"
        self._say(f"{name:<58} {value:9.2f}{unit}   {wanted:<18} {'yes' if holds else 'NO'}")

    def end(self) -> int:
        """Print what is not printed yet. Return 1 if a figure misses its mark, else 0."""
        if self.as_json:
            print(json.dumps({"samples": self.samples, "figures": self.figures}, indent=1))
        return 0 if all(figure.get("holds", True) for figure in self.figures) else 1

    def _say(self, line: str) -> None:
        if not self.as_json:
            print(line)


def options(about: str | None, repeats: int = 0) -> argparse.ArgumentParser:
    """Return the options that all benchmarks have; `repeats` is the default number of runs of each kind."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how figures are printed")
    if repeats:
        parser.add_argument("--repeats", type=int, default=repeats, help="runs of each kind")
    return parser


def report(asked: argparse.Namespace) -> Report:
    """Return the report that the options ask for."""
    return Report(as_json=asked.format == "json")


def _peak_of(text: str) -> int:
    """Largest resident set (bytes) as the program saw it: `wait4` counts this process's, carried over `exec`."""
    told = re.search(r"VmHWM:\s*(\d+) kB", text)
    return int(told[1]) * 1024 if told else 0


def _run(command: list[str], text: str) -> Run:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(text)
        process.stdin.close()
        printed, said = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {said}")
    result = json.loads(printed)
    if result.get("stall") is not None:
        raise RuntimeError(f"{command[0]} failed: {result['stall']}")
    held = sum(lock["hold_total_ns"] for lock in result.get("locks", []) if lock["name"] == "lock")
    return Run(
        cpu_ns=(usage.ru_utime + usage.ru_stime) * 1e9,
        rss_bytes=_peak_of(said),
        cycles=result["operations"],
        events=result.get("events", 0),
        utilisation=held / result["window_ns"],
    )
