"""Where the code of a lock stands: its line, its variables, and its end."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType, GeneratorType

from simfs.teach.lock import Code, call

HIDDEN = 200
"""Lines in a step after which others may come between in any case."""


def _frames(code: Code | None) -> Iterator[FrameType]:
    """Where the lock's own code stands, the innermost method last."""
    at: object = code
    while isinstance(at, GeneratorType):
        frame = at.gi_frame
        if frame and at.gi_code is not call.__code__ and frame.f_lineno != at.gi_code.co_firstlineno:
            yield frame
        at = at.gi_yieldfrom


def line_of(code: Code | None) -> int | None:
    """The line of the lock's own file in which its code stands."""
    lines = [frame.f_lineno for frame in _frames(code)]
    return lines[-1] if lines else None


def state_of(code: Code | None) -> object:
    """Where code stands, exactly, and with which variables."""
    return tuple((f.f_lasti, *((k, _plain(v)) for k, v in f.f_locals.items())) for f in _frames(code))


def _plain(value: object) -> object:
    return value if isinstance(value, int | float | str | None) else id(value)


def close(code: Code | None) -> None:
    """End code that is not needed any more; a `finally` of the lock's runs to its end."""
    for _ in range(HIDDEN if code else 0):
        try:
            assert code is not None
            code.close()
            return
        except RuntimeError:
            continue  # it wants to wait
        except Exception:
            return
