"""Durations in the columns of a CSV file."""

from __future__ import annotations

import csv
from pathlib import Path

from simfs.scenario.reading.files import FileError, read
from simfs.scenario.sections.section import refusal
from simfs.scenario.suggest import nearest

MAX_VALUES = 100_000
"""The most values that a distribution may have."""

KEYS = ("empirical", "column", "unit", "weight_column")


def from_file(given: dict[str, object]) -> dict[str, object]:
    """Return the values, and perhaps the weights, of columns of a CSV file whose first line names them.

    Raises `ValueError` for a file that cannot be read, and for a column that it lacks.
    """
    if unknown := next((key for key in given if key not in KEYS), None):
        raise refusal(f"a file of durations has no '{unknown}'", nearest(unknown, KEYS))
    path, column, unit = Path(str(given["empirical"])), given.get("column"), str(given.get("unit", "ns"))
    if not isinstance(column, str):
        raise refusal(f"column: which column of {path.name} has the durations?")
    rows = _rows(path)
    found: dict[str, object] = {"empirical": [f"{value} {unit}" for value in _column(path, rows, column)]}
    if isinstance(weights := given.get("weight_column"), str):
        found["weights"] = [_number(path, value) for value in _column(path, rows, weights)]
    return found


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        return list(csv.DictReader(read(path).decode("utf-8-sig").splitlines()))
    except FileError as error:
        raise refusal(f"{path.name} {error}") from None
    except (UnicodeDecodeError, csv.Error):
        raise refusal(f"{path.name} is no CSV file") from None


def _column(path: Path, rows: list[dict[str, str]], name: str) -> list[str]:
    if not rows:
        raise refusal(f"{path.name} has no values")
    if name not in rows[0]:
        columns = [str(column) for column in rows[0]]
        raise refusal(f"{path.name} has no column '{name}'", nearest(name, columns))
    return [str(row[name]).strip() for row in rows]


def _number(path: Path, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise refusal(f"{path.name}: '{text[:20]}' is no weight") from None
