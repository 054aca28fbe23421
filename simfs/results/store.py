"""A content-addressed store of engine runs: what was run once is not run again, after whatever ending.

A run is named by the SHA-256 of its RunSpec (seed and replication are in it) and of the versions of package
and engine, so nothing in the store can be out of date and stores can be poured together. An entry is written
to a temporary file and renamed; a kill leaves it whole or absent. Entries carry a checksum and their own name, and are
not synced one by one: one that a power cut tore, or that lies under another's name, reads as absent and is run again.
One that is whole and yet no result was written by something else, and is refused.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import simfs

Engine = Callable[[str], str]

DISK_FAILURES = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""What is wrong with the disk when a place could be written to: it is full, or broken."""


class MissingRunError(ValueError):
    """A run that a store ought to have."""


class ForeignRunError(ValueError):
    """An entry that no engine wrote."""


class Store:
    """A directory of runs."""

    def __init__(self, folder: Path, version: str | None = None) -> None:
        """Open `folder`, which is made with the first entry; `version` names who ran the runs."""
        self.folder = folder
        self.version = version or engine_version()

    def remembering(self, engine: Engine) -> Engine:
        """An engine that looks here first, and leaves here what it had to run."""

        def run(spec: str) -> str:
            key = self.key(spec)
            known = self.get(key)
            if known is None:
                known = engine(spec)
                self.put(key, known)
            return known

        return run

    def recalling(self, why: str) -> Engine:
        """An engine that only looks here; raises MissingRunError with `why` for what was never run."""

        def run(spec: str) -> str:
            known = self.get(self.key(spec))
            if known is None:
                raise MissingRunError(why)
            return known

        return run

    def key(self, spec: str) -> str:
        """The name of the run of a canonical RunSpec (`simfs.results.request`)."""
        return sha256(f"{self.version}\n{spec}".encode()).hexdigest()

    def get(self, key: str) -> str | None:
        """The result of a run; None where it is absent, torn or another run's. Raises ForeignRunError."""
        path = self._path(key)
        try:
            name, _, result = zlib.decompress(path.read_bytes()).decode().partition("\n")
        except (FileNotFoundError, zlib.error, UnicodeDecodeError):
            return None
        if name != key:
            return None
        if not _is_result(result):
            why = "is no result of a run of this simfs; delete it, and the run is done again"
            raise ForeignRunError(f"{path}: {why}")
        return result

    def put(self, key: str, result: str) -> None:
        """Keep a result."""
        write_whole(self._path(key), zlib.compress(f"{key}\n{result}".encode(), 1))

    def adopt(self, other: Store) -> int:
        """Copy what `other` has and this one has not; return how many runs that were."""
        new = [path for path in other.entries() if not self._path(path.name).exists()]
        for path in new:
            target = self._path(path.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = _draft(target)
            shutil.copyfile(path, draft)
            draft.replace(target)
        return len(new)

    def entries(self) -> Iterator[Path]:
        """The files of all runs."""
        return (path for path in sorted(self.folder.glob("??/*")) if not path.name.startswith("."))

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key


def _is_result(text: str) -> bool:
    from simfs.results.run_result import RunResult  # commands are to help without pydantic

    try:
        RunResult.read(text)
    except RuntimeError:
        return False
    return True


def engine_version() -> str:
    """Package and engine with the digest of its source: runs of the same text by the same version are the same."""
    engine = import_module("simfs._engine")
    return f"simfs {simfs.__version__}, engine {engine.__version__}+{engine.__source__}"


def write_whole(path: Path, data: bytes, *, sync: bool = False) -> None:
    """Replace a file as a whole; with `sync`, also a power cut leaves the old or the new one.

    Raises OSError with the file's name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = _draft(path)
    try:
        with draft.open("wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None  # a write names no file
    finally:
        draft.unlink(missing_ok=True)


def _draft(path: Path) -> Path:
    # In the same directory, because a rename is atomic only within one filesystem.
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
