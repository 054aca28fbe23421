"""A result as files: manifest, JSON, tables and figures in one directory."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simfs.results.manifest import manifest
from simfs.results.model import ScenarioResult
from simfs.results.store import write_whole
from simfs.results.tournament import is_tournament

if TYPE_CHECKING:  # who wants JSON alone waits for neither tables nor figures
    import pyarrow as pa

    from simfs.reports.figures.result import Makers

MARKS = ("manifest.json", "sweep.json")
"""Files of simfs: a directory with one of them may be written to."""

MANIFEST = MARKS[0]
"""The file that marks a directory as a simfs result, with the SHA-256 of all others.

It is written first, so that a result whose writing was cut short is known as one and can be replaced.
"""


class ExportError(OSError):
    """A directory that must not be written to; `strerror` says why."""

    def __init__(self, directory: Path, why: str) -> None:
        """Refuse `directory`."""
        super().__init__(None, why, str(directory))
        self.strerror = why


def write(
    result: ScenarioResult,
    directory: Path,
    *,
    scenario: str,
    seed: int,
    command: Sequence[str] = (),
    resolved: Mapping[str, Any] | None = None,
    engine: str = "native",
) -> list[Path]:
    """Write everything about `result` into `directory` and return the files; arguments as for `manifest`.

    Each file is replaced as a whole, so a kill leaves old or new files but no half ones. An earlier result there is
    replaced: files of it that this one does not have are removed, unless somebody has changed them. Raises
    ExportError for a file, and for a directory with something other than a simfs result in it.
    """
    refuse_foreign(directory)  # before the figures, which take seconds
    about = manifest(result, scenario=scenario, seed=seed, command=command, resolved=resolved, engine=engine)
    return write_files(directory, about, dict(_files(result)))


def write_files(directory: Path, about: Mapping[str, Any], files: Mapping[str, bytes]) -> list[Path]:
    """Write `files` by name and a manifest of `about` and their SHA-256 into `directory`, as `write` does."""
    refuse_foreign(directory)
    earlier = _listed(directory)
    sums = {name: sha256(data).hexdigest() for name, data in files.items()}
    whole = {MANIFEST: _json({**about, "files": sums}), **files}
    written = [_write(directory / name, data) for name, data in whole.items()]
    for name, digest in earlier.items():
        if name not in whole and _is_inside(directory, name):
            _remove(directory / name, digest)
    return written


def to_json(result: ScenarioResult) -> str:
    """The result as JSON; the same bytes for the same inputs."""
    return result.model_dump_json(indent=2) + "\n"


def to_csv(result: ScenarioResult, table: str = "points") -> str:
    """One of the result's tables as CSV; the curve unless told otherwise."""
    from simfs.results.tables import tables

    return _csv(tables(result)[table]).decode()


def _files(result: ScenarioResult) -> Iterator[tuple[str, bytes]]:
    from simfs.results.tables import tables

    yield "result.json", to_json(result).encode()
    for name, table in tables(result).items():
        yield f"tables/{name}.csv", _csv(table)
        yield f"tables/{name}.parquet", _parquet(table)
    yield from _figures(result)


def _figures(result: ScenarioResult) -> Iterator[tuple[str, bytes]]:
    from simfs.reports.figures.drawing import pictures

    for name, make in makers_of(result).items():
        yield from pictures(name, make()).items()


def makers_of(result: ScenarioResult) -> Makers:
    """What makes the figures that are written, by their names."""
    from simfs.reports.figures.factors import sweep_makers
    from simfs.reports.figures.result import makers
    from simfs.reports.figures.tournament import tournament_figure

    if is_tournament(result):
        return {"tournament": partial(tournament_figure, result)}
    return makers(result) | sweep_makers(result)


def refuse_foreign(directory: Path) -> None:
    """Raise ExportError for a file, and for a directory with something other than a simfs result in it."""
    if directory.exists() and not directory.is_dir():
        raise ExportError(directory, "is a file, not a directory")
    if directory.is_dir() and any(directory.iterdir()) and not _is_result(directory):
        raise ExportError(directory, "is not empty and not a simfs result; choose another directory")


def _is_result(directory: Path) -> bool:
    return any(_is_ours(directory / name) for name in MARKS)


def _is_ours(path: Path) -> bool:
    return "simfs" in _document(path)


def _document(path: Path) -> dict[str, Any]:
    """The JSON object in a file; an empty one if there is none."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _listed(directory: Path) -> dict[str, str]:
    """The files of the result in `directory` with their SHA-256."""
    files = _document(directory / MANIFEST).get("files")
    return files if isinstance(files, dict) else {}


def _is_inside(directory: Path, name: str) -> bool:
    """Tell a file in `directory`: somebody else's manifest may name any file."""
    try:
        return (directory / name).resolve().is_relative_to(directory.resolve())
    except (OSError, ValueError):
        return False


def _remove(path: Path, digest: str) -> None:
    if path.is_file() and sha256(path.read_bytes()).hexdigest() == digest:
        path.unlink()


def _write(path: Path, data: bytes) -> Path:
    write_whole(path, data, sync=True)
    return path


def _json(document: object) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def _csv(table: pa.Table) -> bytes:
    from pyarrow import csv

    out = io.BytesIO()
    csv.write_csv(table, out, csv.WriteOptions(quoting_style="needed"))
    return out.getvalue()


def _parquet(table: pa.Table) -> bytes:
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(table, out, compression="zstd")
    return out.getvalue()
