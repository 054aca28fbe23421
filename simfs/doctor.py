"""What `simfs doctor` looks at: whether this installation can run, and what to do where it cannot."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from simfs import __version__
from simfs.results.run_result import Strict
from simfs.scenario import ScenarioError, expand, load, paths, to_run_spec
from simfs.scenario.measured.dataset import load_dataset
from simfs.scenario.measured.predicting import predictor

PACKAGES = ("matplotlib", "numpy", "pyarrow", "pydantic", "rich", "ruamel.yaml", "scipy", "simpy", "typer")
MODELS = ("machines", "kernels", "filesystems", "devices", "workloads")
OPTIONAL_TOOLS = {
    "mkfs.xfs": "compares the modelled geometry with the real one (package xfsprogs)",
    "mkfs.btrfs": "compares modelled trees with real ones (package btrfs-progs)",
    "perf": "measures a real machine to hold a prediction against",
}


@dataclass(frozen=True)
class Finding:
    """One thing looked at: whether it is well, what was seen, and what to do where it is not."""

    name: str
    ok: bool
    seen: str
    advice: str = ""
    required: bool = True

    @property
    def mark(self) -> str:
        """In a word."""
        return "ok" if self.ok else "missing" if self.required else "absent"


class Examined(Strict):
    """All that was looked at; `healthy` where nothing that is required is missing."""

    healthy: bool
    findings: tuple[Finding, ...]


def examine() -> Iterator[Finding]:
    """Look at the interpreter, the engine, the packages, the data and optional tools."""
    yield Finding("simfs", True, f"{__version__} on Python {platform.python_version()}, {platform.machine()}")
    yield _engine()
    yield from map(_package, PACKAGES)
    yield from map(_folder, MODELS)
    yield from map(_scenario, paths.names(paths.SCENARIOS))
    yield from map(_dataset, paths.names(paths.MEASURED))
    for tool, purpose in OPTIONAL_TOOLS.items():
        where = shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        yield Finding(tool, where is not None, where or "not found", f"optional: {purpose}", required=False)


def _engine() -> Finding:
    try:
        engine = import_module("simfs._engine")
    except ImportError as error:
        advice = "build it with `pip install -e .` in a clone (this needs Rust), or install a released wheel"
        return Finding("engine", False, str(error), advice)
    return Finding("engine", True, f"native, {getattr(engine, '__version__', 'version unknown')}")


def _package(name: str) -> Finding:
    try:
        return Finding(name, True, version(name))
    except PackageNotFoundError:
        return Finding(name, False, "not installed", f"`pip install {name}`")


def _folder(kind: str) -> Finding:
    count = len(paths.names(paths.MODELS / kind))
    advice = "install simfs again, or run from a whole checkout"
    return Finding(f"models/{kind}", count > 0, f"{count} files", advice)


def _scenario(name: str) -> Finding:
    try:
        points = expand(load(name))
        to_run_spec(points[0], 0)
    except (ScenarioError, ValueError) as error:
        return Finding(
            f"scenario {name}", False, str(error).splitlines()[0], "correct the file or its models"
        )
    return Finding(f"scenario {name}", True, f"{len(points)} points")


def _dataset(name: str) -> Finding:
    what, advice = f"measured {name}", "correct the file, or name it in one scenario"
    try:
        rows, by = len(load_dataset(name).rows), predictor(name)
    except ScenarioError as error:
        return Finding(what, False, str(error).splitlines()[0], advice)
    if by is None:
        return Finding(what, False, "no scenario names it under 'measured:'", advice)
    return Finding(what, True, f"{rows} rows, predicted by {by.stem}")
