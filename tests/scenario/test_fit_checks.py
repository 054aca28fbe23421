"""What a scenario may fit: a refusal has its place in the file, and says what a fit can move instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from places import ROOT

from simfs.scenario import ScenarioError, load

BASE: dict[str, Any] = {
    "simfs": 1, "name": "fits", "title": "Fits", "kernel": "linux-6.12",
    "machine": {"profile": "server-24", "cpus": 8},
    "filesystem": {"kind": "xfs", "size": "8 GiB"},
    "device": {"profile": "nvme", "parallelism": 90},
    "workload": {"kind": "dbench", "tasks": 1},
    "sweep": {"workload.tasks": [1, 8]},
    "measure": {"warmup": "1 ms", "duration": "1 ms", "replications": 1},
}  # fmt: skip


ROWS = [{"series": "ext4", "x": 24.0, "metric": "compiles_per_s"}]


def refused(
    parameter: str, bounds: list[object], prior: object = None, *, times: int = 1, measured: str = "guest-gcc"
) -> str:
    fit = {"parameter": parameter, "bounds": bounds, "rows": ROWS, "prior": prior}
    document = BASE | {
        "variants": [{"name": "nvme"}],
        "calibrate": [fit] * times,
        "measured": {"dataset": measured},
    }
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
    assert refused(parameter, bounds, bounds[0]) == ""


@pytest.mark.parametrize(
    "parameter", ["machine.speed", "variants.nvme.machine.speed", "machine.costs.wakeup"]
)
def test_what_has_no_value_needs_a_prior(parameter: str) -> None:
    """Two of them were a KeyError."""
    bounds: list[object] = ["1 us", "2 us"] if parameter.endswith("wakeup") else [1, 2]
    assert "has no value of its own in the scenario to start from: give a prior" in refused(parameter, bounds)
    assert refused(parameter, bounds, bounds[1]) == ""


def test_a_cost_that_nothing_reads_cannot_be_fitted() -> None:
    assert "unknown cost 'foo'" in refused("filesystem.costs.foo", ["1 us", "2 us"], "1 us")


@pytest.mark.parametrize(
    ("prior", "says"),
    [
        (5, "lies outside of the bounds: 5"),
        ("1 us", "no value as the bounds are: 1 us"),
        ([1], "no value as the bounds are: a list"),
    ],
)
def test_a_prior_is_a_value_within_the_bounds(prior: object, says: str) -> None:
    why = refused("machine.speed", [0.5, 2], prior)
    assert why.startswith("dict['calibrate'][0]['prior']: ")
    assert says in why


def test_only_what_the_data_set_lets_be_fitted(tmp_path: Path) -> None:
    whole = (ROOT / "scenarios/measured/guest-gcc.yaml").read_text("utf-8")
    (tmp_path / "own.yaml").write_text(f"{whole}fit: [device.flush.time]\n", "utf-8")
    own = f"{tmp_path}/own.yaml"
    assert refused("machine.speed", [0.5, 2], 1, measured=own).endswith(
        "on this data set only device.flush.time may be fitted, not 'machine.speed'"
    )
    assert refused("device.flush.time", ["1 us", "9 us"], "2 us", measured=own) == ""


def test_a_parameter_is_fitted_once() -> None:
    why = refused("machine.speed", [0.5, 2], 1, times=2)
    assert why == "dict['calibrate'][1]['parameter']: 'machine.speed' is fitted already"
