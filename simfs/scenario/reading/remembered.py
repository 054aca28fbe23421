"""What was loaded from a file is kept for as long as the file says the same.

In a notebook a model or a data set changes between two runs of one process; a sweep asks for the same a thousand times.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from simfs.scenario import paths
from simfs.scenario.reading.files import FileError, is_stream, read

P = ParamSpec("P")
T = TypeVar("T")

N = TypeVar("N", str, str | Path)
Loader = Callable[Concatenate[N, P], T]


def remembered(folder: Path) -> Callable[[Loader[N, P, T]], Loader[N, P, T]]:
    """Keep what a loader returns for a name in `folder`, or for a path as long as that file has the same text.

    A stream can be read once only: what came from it is kept.
    """

    def decorate(load: Loader[N, P, T]) -> Loader[N, P, T]:
        kept = cache(lambda _file, name, args, named: load(name, *args, **dict(named)))

        @wraps(load)
        def loads(name: N, /, *args: P.args, **named: P.kwargs) -> T:
            beside = [given for given in (*args, *named.values()) if isinstance(given, Path)]
            file = _file(str(name), folder, *beside)
            result: T = kept(file, name, args, tuple(named.items()))
            return result

        return loads

    return decorate


def _file(name: str, folder: Path, beside: Path | None = None) -> tuple[Path, bytes] | None:
    """Which file it is, and what is in it, if it may change."""
    if paths.is_name(name):
        return None
    path = paths.find(name, folder, beside)
    if path is None or is_stream(path):
        return None
    try:
        return path.absolute(), read(path)
    except FileError:
        return None
