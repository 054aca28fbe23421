"""Programs written in Python: `FILE:FUNCTION` of a scenario becomes the functions that a machine runs."""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import cache_from_source
from inspect import isgeneratorfunction
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from simfs.scenario.reading.files import FileError, read_code
from simfs.scenario.reading.imports import modules_of
from simfs.scenario.suggest import nearest

Worker = Callable[..., Generator[Any, Any, Any]]


class Program(NamedTuple):
    """What the tasks of a python workload run, and what is done once before: `setup(machine)`, if there is one."""

    worker: Worker
    setup: Callable[..., object] | None


def load_program(place: str) -> Program:
    """Load `FILE:FUNCTION`; raise `ValueError` for what is not there, does not load or never yields."""
    path, name = _parted(place)
    module = _loaded(path).module
    worker = getattr(module, name, None)
    if worker is None:
        near = nearest(name, [known for known, value in vars(module).items() if isgeneratorfunction(value)])
        raise ValueError(f"{path}: has no function '{name}'" + (f"; did you mean '{near}'?" if near else ""))
    if not isgeneratorfunction(worker):
        raise ValueError(f"{path}: '{name}' is not a generator function: it must yield its steps")
    return Program(worker, getattr(module, "setup", None))


def digest(place: str) -> str:
    """The SHA-256 of the file of `FILE:FUNCTION` and of the modules beside it that it imports.

    Raises `ValueError` for what is not there or does not load.
    """
    path, _ = _parted(place)
    return sha256("".join(_loaded(path).files.values()).encode()).hexdigest()


def with_programs(run: Callable[..., str]) -> Callable[[str], str]:
    """An engine for all RunSpecs from one that is given the program of a python workload besides."""

    def engine(spec: str) -> str:
        return run(spec, *(program_of(spec) or ()))

    return engine


def program_of(spec: str) -> Program | None:
    """The program of a RunSpec (JSON text); None for a workload that is built in.

    Raises `ValueError` as `load_program`, and for a program that is not the one the spec was made with.
    """
    if '"python"' not in spec:  # parsing a spec takes as long as a hundredth of a run
        return None
    workload = json.loads(spec).get("workload", {})
    if workload.get("kind") != "python":
        return None
    place = workload["program"]
    if workload.get("program_sha256", wanted := digest(place)) != wanted:
        raise ValueError(
            f"{place}: is not the program that the scenario was loaded with, or has been changed since"
        )
    return load_program(place)


def _parted(place: str) -> tuple[Path, str]:
    path, colon, name = place.rpartition(":")
    if not (path and colon and name.isidentifier()):
        raise ValueError(f"'{place}' names no function: write it as FILE.py:FUNCTION")
    return Path(path), name


@dataclass(frozen=True)
class _Loaded:
    """A program's module, and the SHA-256 of the files that it came from when it was run."""

    module: ModuleType
    files: Mapping[Path, str]


_programs: dict[Path, _Loaded] = {}


def _loaded(path: Path) -> _Loaded:
    known = _programs.get(path)
    if known is not None:
        if known.files == {file: _sha256(file) for file in known.files}:
            return known
        _forget(set(known.files) - {path})
    module = _run(path, _content(path))
    files = {file: _sha256(file) for file in (path, *sorted(modules_of(path)))}
    _programs[path] = _Loaded(module, files)
    return _programs[path]


def _forget(files: set[Path]) -> None:
    """Let the next import of these files find what is in them now.

    Their bytecode goes: Python takes it for fresh if a file has kept its size and the second of its last change.
    """
    for name, module in list(sys.modules.items()):
        if (file := getattr(module, "__file__", None)) and Path(file) in files:
            del sys.modules[name]
            with suppress(OSError):
                Path(cache_from_source(file)).unlink()
    importlib.invalidate_caches()


def _content(path: Path) -> bytes:
    try:
        return read_code(path)
    except FileError as error:
        raise ValueError(f"{path}: {error}") from None


def _sha256(path: Path) -> str:
    return sha256(_content(path)).hexdigest()


def _run(path: Path, content: bytes) -> ModuleType:
    # Not the import system's business: no bytecode beside the user's files, and a changed file is a new module.
    module = ModuleType(f"simfs_program_{sha256(content).hexdigest()[:16]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    wrote, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        exec(compile(content, str(path), "exec"), vars(module))
    except SyntaxError as error:
        raise ValueError(f"{path}:{error.lineno}:{error.offset}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        where = f"{path}:{lines[-1]}" if lines else str(path)
        raise ValueError(f"{where}: {type(error).__name__}: {error}") from error
    finally:
        sys.dont_write_bytecode = wrote
    return module
