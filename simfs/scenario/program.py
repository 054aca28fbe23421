"""Programs written in Python: `FILE:FUNCTION` of a scenario becomes the functions that a machine runs."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Generator
from functools import cache
from hashlib import sha256
from inspect import isgeneratorfunction
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from simfs.scenario.suggest import nearest

Worker = Callable[..., Generator[Any, Any, Any]]


class Program(NamedTuple):
    """What the tasks of a python workload run, and what is done once before: `setup(machine)`, if there is one."""

    worker: Worker
    setup: Callable[..., object] | None


def load_program(place: str) -> Program:
    """Load `FILE:FUNCTION`; raise `ValueError` for what is not there, does not load or never yields."""
    path, name = _parted(place)
    module = _module(path, digest(place))
    worker = getattr(module, name, None)
    if worker is None:
        near = nearest(name, [known for known, value in vars(module).items() if isgeneratorfunction(value)])
        raise ValueError(f"{path}: has no function '{name}'" + (f"; did you mean '{near}'?" if near else ""))
    if not isgeneratorfunction(worker):
        raise ValueError(f"{path}: '{name}' is not a generator function: it must yield its steps")
    return Program(worker, getattr(module, "setup", None))


def digest(place: str) -> str:
    """The SHA-256 of the file of `FILE:FUNCTION`; raise `ValueError` where there is none."""
    path, _ = _parted(place)
    try:
        return sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def with_programs(run: Callable[..., str]) -> Callable[[str], str]:
    """An engine for all RunSpecs from one that is given the program of a python workload besides."""

    def engine(spec: str) -> str:
        return run(spec, *(program_of(spec) or ()))

    return engine


def program_of(spec: str) -> Program | None:
    """The program of a RunSpec (JSON text); None for a workload that is built in."""
    if '"python"' not in spec:  # parsing a spec takes as long as a hundredth of a run
        return None
    workload = json.loads(spec).get("workload", {})
    return load_program(workload["program"]) if workload.get("kind") == "python" else None


def _parted(place: str) -> tuple[Path, str]:
    path, colon, name = place.rpartition(":")
    if not (path and colon and name.isidentifier()):
        raise ValueError(f"'{place}' names no function: write it as FILE.py:FUNCTION")
    return Path(path), name


@cache
def _module(path: Path, digest: str) -> ModuleType:
    # Not the import system's business: no bytecode beside the user's file, and a changed file is a new module.
    module = ModuleType(f"simfs_program_{digest[:16]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    except SyntaxError as error:
        raise ValueError(f"{path}:{error.lineno}:{error.offset}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        where = f"{path}:{lines[-1]}" if lines else str(path)
        raise ValueError(f"{where}: {type(error).__name__}: {error}") from error
    return module
