"""Reading the files that users name, and remembering what was read for manifests.

Only regular files and standard input are read: opening a named pipe could wait for ever.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from hashlib import sha256
from pathlib import Path
from threading import Lock

from simfs.scenario import paths

MAX_BYTES = 1 << 20

NO_CODE = "SIMFS_NO_CODE"
"""The environment variable that refuses Python programs and locks, unless it is 0 or empty."""

STANDARD_INPUT = Path("/dev/stdin")

_DESCRIPTOR = re.compile(r"/(dev|proc/self)/fd/\d+")

_digests: dict[str, str] = {}

_ONE_AT_A_TIME = Lock()


class FileError(ValueError):
    """A file that cannot be read; the message says why, without its name."""


def is_stream(path: Path) -> bool:
    """Tell standard input and other open descriptors, such as a shell's `<(command)`, from files."""
    return path == STANDARD_INPUT or _DESCRIPTOR.fullmatch(str(path)) is not None


def read(path: Path) -> bytes:
    """Return what is in a file, or comes from a stream; raise `FileError`."""
    try:
        content = _content(path)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise FileError("is not a path") from None
    if len(content) > MAX_BYTES:
        raise FileError(f"is larger than {MAX_BYTES >> 20} MiB")
    _digests[str(path)] = sha256(content).hexdigest()
    return content


def read_code(path: Path) -> bytes:
    """Return the Python code in a file; raise `FileError` also where code that does not come with simfs is refused."""
    forbidden = os.environ.get(NO_CODE, "0") not in ("", "0")
    if forbidden and not path.resolve().is_relative_to(paths.SCENARIOS.resolve()):
        raise FileError(f"is Python code, which --no-code or {NO_CODE} refuses to run")
    return read(path)


def syntax_tree(code: bytes, name: str = "<unknown>") -> ast.Module:
    """Parse Python, in one thread at a time; raise what `ast.parse` raises.

    CPython 3.11 counts the depth of all trees that are made at once together, and raises SystemError where a garbage
    collection lets another thread make one in between.
    """
    with _ONE_AT_A_TIME:
        return ast.parse(code, name)


def digests() -> dict[str, str]:
    """The SHA-256 of every file that this process has read, as it was then; shipped ones by their name in simfs."""
    shipped = f"{paths.DATA}/"
    return {name.removeprefix(shipped): _digests[name] for name in sorted(_digests)}


def _content(path: Path) -> bytes:
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise FileError("is closed")
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    if path.is_dir():
        raise FileError("is a directory, not a file")
    if path.exists() and not path.is_file() and not is_stream(path):
        raise FileError("is not a file")
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)
