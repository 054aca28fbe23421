"""A small data set, its scenario, and `simfs validate` of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from typer.testing import CliRunner, Result

from simfs.cli import app

RUNNER = CliRunner()

DATASET: dict[str, Any] = {
    "name": "mine",
    "title": "Two locks measured",
    "source": {"author": "A", "date": "2026", "where": "here"},
    "machine": "24 CPUs",
    "kernel": "6.11",
    "series": {"before": {"variant": "semaphore"}, "after": {"variant": "mutex"}},
    "rows": [
        {
            "series": "before",
            "x": 1,
            "metric": "cycles_per_s",
            "unit": "1/s",
            "value": 30000,
            "role": "calibrate",
        },
        {
            "series": "before",
            "x": 16,
            "metric": "cycles_per_s",
            "unit": "1/s",
            "value": 90000,
            "role": "predict",
        },
        {
            "series": "after",
            "x": 16,
            "metric": "cycles_per_s",
            "unit": "1/s",
            "value": 120000,
            "role": "predict",
        },
        {"series": "after", "x": 3, "metric": "idle_percent", "unit": "%", "value": 85, "approx": True},
    ],
}
SCENARIO: dict[str, Any] = {
    "simfs": 1,
    "name": "asked",
    "title": "Two locks",
    "machine": "server-24",
    "kernel": "linux-6.11",
    "workload": {
        "kind": "lock_cycle",
        "tasks": 1,
        "think": {"exponential": "30 us"},
        "hold": {"exponential": "5 us"},
    },
    "variants": [{"name": name, "workload": {"lock": name}} for name in ("semaphore", "mutex")],
    "sweep": {"workload.tasks": [1, 16]},
    "measure": {"warmup": "2 ms", "duration": "20 ms", "replications": 2, "seed": 1},
    "measured": "measured/mine.yaml",
    "calibrate": [
        {
            "parameter": "workload.think.exponential",
            "bounds": ["1 us", "1 ms"],
            "rows": [{"series": "before", "x": 1}],
        }
    ],
}


def write(
    folder: Path, dataset: dict[str, Any] | None = None, scenario: dict[str, Any] | None = None
) -> tuple[Path, Path]:
    (folder / "measured").mkdir(exist_ok=True, parents=True)
    files = folder / "measured" / "mine.yaml", folder / "asked.yaml"
    for file, default, changed in zip(files, (DATASET, SCENARIO), (dataset, scenario), strict=True):
        with file.open("w", encoding="utf-8") as out:
            YAML(typ="safe").dump(default | (changed or {}), out)
    return files


def invoke(*words: object) -> Result:
    return RUNNER.invoke(app, ["validate", *map(str, words)])


def rows_of(done: Result) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
