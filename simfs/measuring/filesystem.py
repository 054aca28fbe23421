"""Calls of a filesystem one by one, and how fast this machine runs them beside the one on which steps were traced."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from simfs._engine import run
from simfs.measuring.figures import Figure
from simfs.measuring.probes import MIB, Probe, Samples
from simfs.scenario import load, to_run_spec
from simfs.scenario.models import available, load_timeline
from simfs.scenario.models.timeline import linux
from simfs.scenario.points import expand

KINDS = ("xfs", "ext4", "btrfs", "tmpfs")
STATES = {"": 0, "_after_2mib": 2 * MIB, "_after_16mib": 16 * MIB, "_after_exec": 1}
"""What comes before each call: nothing, a walk through memory, a program; and how the engine is told."""

_SAID = {
    "": "hot", "_after_2mib": "after a walk of 2 MiB", "_after_16mib": "after a walk of 16 MiB",
    "_after_exec": "after fork and exec of true",
}  # fmt: skip
CALLS = (
    "create", "close", "unlink", "write", "close_written", "stat", "rename", "open", "unlink_written", "fsync",
)  # fmt: skip
"""What the engine's probe times."""

_CALLS_WEIGHT = 4.0


def kind_at(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The kind of the filesystem that a folder is on."""
    at = folder.resolve()
    best, kind = -1, ""
    for line in mounts.read_text("utf-8", errors="replace").splitlines():
        _device, point, its_kind, *_ = line.split(" ")
        where = Path(point.encode().decode("unicode_escape"))
        if at.is_relative_to(where) and len(where.parts) >= best:
            best, kind = len(where.parts), its_kind
    return kind


def refusal(kind: str, folder: Path) -> str | None:
    """Say why calls of this kind cannot be measured in a folder."""
    if kind not in KINDS:
        return f"--filesystem {kind}: simfs has {', '.join(KINDS)}"
    if not folder.is_dir():
        return f"--at {folder}: is not a folder"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"--at {folder}: no files can be made there"
    real = kind_at(folder)
    return None if real == kind else f"--at {folder}: is on {real}, not on {kind}"


def call_plan(kind: str, at: Path, cpu: int) -> list[Probe]:
    """What is measured of a filesystem."""
    calls = [
        Probe(f"{kind}{state}", "calls", (cpu,), amount, str(at), _CALLS_WEIGHT)
        for state, amount in STATES.items()
    ]
    return [*calls, Probe(f"{kind}_load", "load", (cpu,), 0, str(at), _CALLS_WEIGHT)]


def call_figures(kind: str, samples: Samples, where: str) -> dict[str, Figure]:
    """The times of calls, by `<kind>_<call>` and what came before."""
    found = {}
    for state, call in product(STATES, CALLS):
        times = samples[f"{kind}{state}_{call}"]
        what = call.replace("_written", " of a file with 4 KiB")
        source = f"{what} by one process on {kind}, {_SAID[state]}: median of {len(times)}; {where}"
        found[f"{kind}_{call}{state}"] = Figure.of(times, source)
    return found


def speed(kind: str, samples: Samples, simulated_ns: float, where: str) -> Figure:
    """How long create, close and unlink take here, as a multiple of what the traced steps say at speed 1."""
    each = np.array(samples[f"{kind}_load_seconds"]) / np.array(samples[f"{kind}_load_operations"]) * 1e9
    low, value, high = (float(x) / simulated_ns for x in (each.min(), np.median(each), each.max()))
    source = (
        f"create, close and unlink by one process on {kind} take {np.median(each):.0f} ns, "
        f"median of {len(each)} runs; "
        f"with the traced steps, simulated at speed 1 on this machine, {simulated_ns:.0f} ns; {where}"
    )
    return Figure(value, low, high, source, "measured", "ratio")


def simulated(kind: str, profile: Path | str) -> float:
    """ns that one turn of create, close and unlink takes one process in simulation at speed 1."""
    point = expand(load(one_process(kind, profile)))[0]
    result = json.loads(run(json.dumps(to_run_spec(point, 0))))
    return float(result["window_ns"]) / int(result["operations"])


def one_process(kind: str, profile: Path | str) -> Mapping[str, Any]:
    """The scenario of one process that creates and unlinks."""
    return {
        "simfs": 1,
        "name": f"{kind}-one-process",
        "title": f"One process creates and unlinks on {kind}",
        "machine": {"profile": str(profile), "speed": 1.0},
        "kernel": kernel_here(),
        "filesystem": {"kind": kind} | ({} if kind == "tmpfs" else {"size": "8 GiB"}),
        "workload": {"kind": "create_unlink", "tasks": 1, "pin_to_cpu": 0},
        "measure": {"warmup": "20 ms", "duration": "100 ms", "replications": 1},
    }


def kernel_here(release: str | None = None) -> str:
    """The kernel of simfs that is nearest to the running one."""
    numbers = (release or platform.release()).split("-")[0].split(".")
    version = tuple(int(n) for n in numbers[:2] if n.isdigit())
    name = linux(version)
    return name if name in available("kernels") else linux(load_timeline().nearest(version))
