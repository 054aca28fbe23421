"""Calibration: known parameters come back inside their intervals; what cannot be told apart is said so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from simfs.cli import app
from simfs.experiments.identify import Calibration, calibration
from simfs.results.model import MeasuredRow
from simfs.results.run import run_scenario
from simfs.scenario import expand, load, placed_rows

RUNNER = CliRunner()

BASE: dict[str, Any] = {
    "simfs": 1,
    "title": "Synthetic",
    "machine": "server-24",
    "kernel": "linux-6.11",
    "workload": {"kind": "lock_cycle", "tasks": 1},
    "measure": {"warmup": "5 ms", "duration": "60 ms", "replications": 5, "seed": 1},
}


def truth(think: float, hold: float, lock: str, tasks: tuple[int, ...]) -> list[dict[str, Any]]:
    """Rows that the simulator measures with other random streams: the mean of five runs, lowest and highest."""
    workload = {
        "kind": "lock_cycle",
        "lock": lock,
        "think": {"exponential": f"{think} us"},
        "hold": {"exponential": f"{hold} us"},
    }
    scenario = load_document(
        BASE | {"name": "truth", "workload": workload, "sweep": {"workload.tasks": list(tasks)}}
    )
    points = run_scenario(expand(scenario), scenario.measure.model_copy(update={"seed": 77})).points
    return [
        {
            "series": "default", "x": n, "metric": "cycles_per_s", "unit": "1/s", "role": "calibrate",
            "value": p.throughput.mean, "low": min(p.replication_throughputs), "high": max(p.replication_throughputs),
        }
        for n, p in zip(tasks, points, strict=True)
    ]  # fmt: skip


def load_document(document: dict[str, Any]) -> Any:  # noqa: ANN401
    from simfs.scenario.reading.document import Document
    from simfs.scenario.reading.loader import check

    return check(Document("synthetic", document | {"measure": document["measure"] | {"seed": 77}}))


def write(
    folder: Path, rows: list[dict[str, Any]], lock: str, fitted: dict[str, tuple[str, str]], **start: str
) -> Path:
    dataset = {
        "name": "synthetic", "title": "Synthetic", "machine": "simulated", "kernel": "simulated",
        "source": {"author": "simfs", "date": "2024", "where": "simulated"},
        "series": {"default": {}}, "rows": rows,
    }  # fmt: skip
    workload = {
        "kind": "lock_cycle", "lock": lock, "tasks": 1,
        "think": {"exponential": start["think"]}, "hold": {"exponential": start["hold"]},
    }  # fmt: skip
    calibrate = [
        {"parameter": key, "bounds": list(bounds), "rows": [{"series": "default"}]}
        for key, bounds in fitted.items()
    ]
    scenario = BASE | {
        "name": "again",
        "workload": workload,
        "calibrate": calibrate,
        "measured": "./data.yaml",
    }
    for name, document in (("data.yaml", dataset), ("again.yaml", scenario)):
        with (folder / name).open("w", encoding="utf-8") as out:
            YAML(typ="safe").dump(document, out)
    return folder / "again.yaml"


THINK = {"workload.think.exponential": ("2 us", "200 us")}
HOLD = {"workload.hold.exponential": ("0.5 us", "50 us")}


def found(path: Path) -> Calibration:
    scenario = load(path)
    return calibration(scenario, [MeasuredRow(**vars(row)) for row in placed_rows(scenario.measured)])


@pytest.mark.slow
@pytest.mark.parametrize("lock", ["semaphore", "mutex", "ticket"])
@pytest.mark.parametrize(("think", "hold"), [(20.0, 4.0), (40.0, 6.0)])
def test_known_parameters_are_recovered_inside_their_intervals(
    tmp_path: Path, lock: str, think: float, hold: float
) -> None:
    rows = truth(think, hold, lock, (1, 4, 16))
    fit = found(write(tmp_path, rows, lock, THINK | HOLD, think="30 us", hold="6 us"))
    parameters = {one.parameter: one for one in fit.parameters}
    for key, value in (("workload.think.exponential", think), ("workload.hold.exponential", hold)):
        one = parameters[key]
        assert one.low <= 1e3 * value <= one.high
        assert one.high / one.low < 2
    assert fit.warnings == ()


@pytest.mark.slow
def test_one_parameter_on_one_row_is_recovered(tmp_path: Path) -> None:
    rows = truth(20.0, 4.0, "mutex", (16,))
    (one,) = found(write(tmp_path, rows, "mutex", HOLD, think="20 us", hold="2 us")).parameters
    assert one.low <= 4e3 <= one.high
    assert one.high / one.low < 1.3


def test_parameters_that_trade_off_are_told(tmp_path: Path) -> None:
    # One task never waits: only think + hold can be seen, however many rows say so.
    rows = truth(20.0, 18.0, "semaphore", (1,)) * 2
    rows[1] = rows[1] | {"x": 1.0, "value": rows[0]["value"] * 1.001, "high": rows[0]["high"] * 1.01}
    fit = found(write(tmp_path, rows, "semaphore", THINK | HOLD, think="25 us", hold="14 us"))
    assert any("trade off" in w or "do not determine" in w for w in fit.warnings)


def test_more_parameters_than_rows_are_refused_with_exit_code_2(tmp_path: Path) -> None:
    path = write(tmp_path, truth(20.0, 4.0, "mutex", (4,)), "mutex", THINK | HOLD, think="30 us", hold="6 us")
    done = RUNNER.invoke(app, ["calibrate", str(path)])
    assert done.exit_code == 2
    assert "2 parameters cannot be fitted on 1 row" in done.stderr.replace("\n", " ")


def test_a_scenario_that_declares_no_fit_is_bad_input() -> None:
    done = RUNNER.invoke(app, ["calibrate", "lock-cycle"])
    assert done.exit_code == 2
    assert "declares no fit" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_provenance_says_all_a_fit_rests_on(tmp_path: Path) -> None:
    path = write(tmp_path, truth(20.0, 4.0, "mutex", (16,)), "mutex", HOLD, think="20 us", hold="2 us")
    out = tmp_path / "fit.json"
    done = RUNNER.invoke(app, ["calibrate", str(path), "--format", "json", "--out", str(out), "--seed", "5"])
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert json.loads(out.read_text()) == document
    assert document["seed"] == 5
    assert document["parameters"][0]["parameter"] == "workload.hold.exponential"
    assert document["rows"][0]["row"]["role"] == "calibrate"
    assert {"simfs", "numpy", "scipy"} <= document["software"]["versions"].keys()
