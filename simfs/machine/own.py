"""Locks written by users: a class that derives from `Lock`, in a file of its own, given as `FILE.py:CLASS`.

Whatever is wrong with such a file is told with its place in it; a traceback through simfs would help nobody.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from inspect import isfunction, signature
from pathlib import Path
from types import ModuleType
from typing import cast

from simfs.machine.lock import Lock
from simfs.scenario.reading.files import FileError, read_code, syntax_tree
from simfs.teach.lock import Lock as TeachLock
from simfs.teach.rewrite import rewritten
from simfs.teach.simulated import Taught, simulated

_MODULE = "simfs own lock "
"""How the modules of users' files are called in `sys.modules`, before their path."""


class OwnLockError(ValueError):
    """A user's lock that cannot be used; `where` is its `file:line:column` where the file itself is wrong."""

    def __init__(self, message: str, where: str | None = None, suggestion: str | None = None) -> None:
        """Keep what is wrong, where, and what was probably meant."""
        super().__init__(f"{where}: {message}" if where else message)
        self.message, self.where, self.suggestion = message, where, suggestion


def is_own(name: str) -> bool:
    """Tell `FILE.py:CLASS` from the name of a built-in lock."""
    return ".py:" in name


def own_design(reference: str) -> type[Lock] | type[TeachLock]:
    """The class of `FILE.py:CLASS` as it is written: the machine's kind of lock, or one of `simfs.teach`."""
    lock = own_lock(reference)
    return lock.design_kind if issubclass(lock, Taught) else lock


def own_lock(reference: str) -> type[Lock]:
    """The lock class of `FILE.py:CLASS`; the file is run anew each time. Raises OwnLockError."""
    file, _, name = reference.rpartition(":")
    lock = _class(file, name)
    if issubclass(lock, TeachLock):
        _check_taught(lock, file)
        return simulated(lock)
    if not issubclass(lock, Lock):
        raise OwnLockError(
            f"{name} in {file} does not derive from simfs.machine.lock.Lock or simfs.teach.Lock"
        )
    missing = [m for m in ("try_fast", "wait", "release") if getattr(lock, m) is getattr(Lock, m)]
    if missing:
        raise OwnLockError(f"{name} in {file} does not define {', '.join(missing)}")
    return lock


def _class(file: str, name: str) -> type:
    found = vars(_module(Path(file)))
    classes = [
        key for key, value in found.items() if isinstance(value, type) and value not in (Lock, TeachLock)
    ]
    if name not in found:
        near = get_close_matches(name, classes, n=1, cutoff=0.55)
        raise OwnLockError(f"{file} has no class '{name}'", suggestion=near[0] if near else None)
    if not isinstance(found[name], type):
        raise OwnLockError(
            f"{name} in {file} does not derive from simfs.machine.lock.Lock or simfs.teach.Lock"
        )
    return cast(type, found[name])


def _check_taught(lock: type[TeachLock], file: str) -> None:
    """Refuse a lock of a beginner that lacks a method, or has one with other parameters."""
    wanted = {"__init__": "self", "acquire": "self, task", "release": "self, task"}
    missing = [m for m in ("acquire", "release") if getattr(lock, m) is getattr(TeachLock, m)]
    if missing:
        raise OwnLockError(f"{lock.__name__} in {file} does not define {', '.join(missing)}")
    for name, parameters in wanted.items():
        method = getattr(lock, name)
        if not isfunction(method):
            continue  # object's own __init__
        try:
            signature(method).bind(*parameters.split(", "))
        except TypeError:
            where = f"{method.__code__.co_filename}:{method.__code__.co_firstlineno}:1"
            raise OwnLockError(f"write `def {name}({parameters})`", where) from None


def _module(file: Path) -> ModuleType:
    try:
        tree = syntax_tree(read_code(file), str(file))
        helpers = rewritten(tree, str(file))
        code = compile(tree, str(file), "exec", dont_inherit=True)
    except FileError as error:
        raise OwnLockError(f"{file} {error}") from None
    except SyntaxError as error:
        where = f"{file}:{error.lineno or 1}:{error.offset or 1}"
        raise OwnLockError(f"not valid Python: {error.msg}", where) from None
    except ValueError as error:
        raise OwnLockError(f"not valid Python: {error}", f"{file}:1:1") from None
    module = ModuleType(f"{_MODULE}{file}")
    vars(module).update(helpers)
    sys.modules[module.__name__] = module  # where dataclasses look for the names in annotations
    with errors_of_own_locks():
        exec(code, vars(module))
    return module


@contextmanager
def errors_of_own_locks(reference: str | None = None) -> Iterator[None]:
    """Turn what users' code raises into an OwnLockError at its last line of theirs.

    `reference` is the lock to name where the failure has no line of its own: a `wait` that is no generator, say.
    """
    try:
        yield
    except OwnLockError:
        raise
    except (Exception, SystemExit) as error:
        message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if where := place_in_own_lock(error):
            raise OwnLockError(message, where) from None
        if reference is None or isinstance(error, ValueError):
            raise
        raise OwnLockError(f"{message} (wait and release must be generators)", reference) from None


def place_in_own_lock(error: BaseException | None) -> str | None:
    """The last place in users' code that an exception, or what caused it, came through."""
    while error is not None:
        frames = [f for f, _ in traceback.walk_tb(error.__traceback__)]
        summaries = traceback.extract_tb(error.__traceback__)
        own = [
            f"{line.filename}:{line.lineno}:{(line.colno or 0) + 1}"
            for frame, line in zip(frames, summaries, strict=True)
            if frame.f_globals.get("__name__", "").startswith(_MODULE)
        ]
        if own:
            return own[-1]
        error = error.__cause__  # SimPy raises a copy of what a process raised
    return None
