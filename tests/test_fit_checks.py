"""What a scenario may fit: a refusal has its place in the file, and says what a fit can move instead."""

from __future__ import annotations

from typing import Any

import pytest

from simfs.scenario import ScenarioError, load

BASE: dict[str, Any] = {
    "simfs": 1, "name": "fits", "title": "Fits", "kernel": "linux-6.12",
    "machine": {"profile": "server-24", "cpus": 8},
    "filesystem": {"kind": "xfs", "size": "8 GiB"},
    "device": {"profile": "nvme", "parallelism": 90},
    "workload": {"kind": "dbench", "tasks": 1},
    "sweep": {"workload.tasks": [1, 8]},
    "measure": {"warmup": "1 ms", "duration": "1 ms", "replications": 1},
    "measured": {"dataset": "xfs-dbench-flush-2022", "variants": {}},
}  # fmt: skip


def refused(parameter: str, bounds: list[object]) -> str:
    rows = [{"series": "nvme", "x": 1.0, "metric": "throughput_mb_per_s"}]
    fit = {"parameter": parameter, "bounds": bounds, "rows": rows}
    document = BASE | {"variants": [{"name": "nvme"}], "calibrate": [fit]}
    try:
        load(document)
    except ScenarioError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "parameter", ["device.parallelism", "device.depth", "machine.cpus", "workload.tasks"]
)
def test_a_whole_number_cannot_be_fitted(parameter: str) -> None:
    why = refused(parameter, [1, 100])
    assert f"'{parameter}' is a whole number, and a fit tries values in between" in why
    assert f"sweep '{parameter}'" in why
    assert why.startswith("dict['calibrate'][0]['parameter']: ")


def test_the_refusal_names_what_of_the_section_can_be_fitted() -> None:
    why = refused("device.parallelism", [1, 100])
    assert "device.submit" in why
    assert "device.write.time" in why
    assert "device.read.cv" in why
    assert "device.profile" not in why
    assert "device.depth" not in why
    assert "machine.speed" in refused("machine.cpus", [1, 8])


def test_a_size_cannot_be_fitted() -> None:
    assert "is no plain number and no time; " in refused("filesystem.size", ["1 GiB", "2 GiB"])


@pytest.mark.parametrize(
    ("parameter", "bounds"),
    [("machine.speed", [1, 4]), ("device.write.time", ["10 us", "90 us"]), ("device.read.cv", [1, 2])],
)
def test_plain_numbers_and_times_can_be_fitted(parameter: str, bounds: list[object]) -> None:
    assert refused(parameter, bounds) == ""
