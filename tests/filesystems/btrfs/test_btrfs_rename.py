"""Where the time of a rename on btrfs lies: between its six searches, as counted in the laboratory."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from typer.testing import CliRunner

from simfs.cli import app

ROOT = "btrfs.fs tree L0"
COUNTED = [1961, 1590, 963, 464, 3034]
"""Instructions before a search: for a collision, the reference, old entry, its reference, new entry."""


def events() -> list[dict[str, Any]]:
    options = ["emulated-metadata", "--variant", "btrfs-rename-per-task", "--set", "workload.tasks=1"]
    answer = CliRunner().invoke(app, ["trace", *options, "--length", "2 ms", "--format", "json"])
    return [event for event in json.loads(answer.stdout) if ROOT in event["about"]]


def renames() -> list[list[float]]:
    """The times between a search's last unlock and the next one's first lock, of each whole rename."""
    searches: list[list[float]] = []
    for event in events():
        what, time = event["what"], event["time_ns"]
        if what == "acquire shared":
            searches.append([time, time])
        elif what.startswith("release") and searches:
            searches[-1][1] = time
    gaps = [after[0] - before[1] for before, after in pairwise(searches)]
    entries = [n for n, gap in enumerate(gaps) if gap > 8_000]  # out of the call and into the next one
    return [gaps[n + 1 : n + 6] for n in entries[:-1]]


def test_a_rename_is_spread_between_its_searches_as_counted() -> None:
    found = renames()
    assert len(found) > 30
    means = [sum(gaps) / len(found) for gaps in zip(*found, strict=True)]
    assert means == pytest.approx(COUNTED, rel=0.15, abs=100)
