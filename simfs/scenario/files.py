"""Reading the files that users name, and remembering what was read for manifests.

Only regular files and standard input are read: opening a named pipe could wait for ever.
"""

from __future__ import annotations

import re
import sys
from hashlib import sha256
from pathlib import Path

MAX_BYTES = 1 << 20

STANDARD_INPUT = Path("/dev/stdin")

_DESCRIPTOR = re.compile(r"/(dev|proc/self)/fd/\d+")

_digests: dict[str, str] = {}


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


def digest_read(path: Path | str) -> str | None:
    """The SHA-256 of a file when it was last read here; None if it never was."""
    return _digests.get(str(path))


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
