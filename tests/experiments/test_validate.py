"""`simfs validate`: rows beside their predictions, fits on calibrate rows alone, scores, exit codes, resuming."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from validating import DATASET, RUNNER, SCENARIO, invoke, rows_of, write

from simfs.cli import app
from simfs.experiments.validate import held_to_sources, place_of, points_of_rows, unpredicted, validate
from simfs.results.run import native_engine
from simfs.results.validation import COLUMNS
from simfs.scenario import ScenarioError, load, paths, placed_rows
from simfs.scenario.checks.source_ranges import source_range
from simfs.scenario.measured.dataset import with_bases
from simfs.scenario.measured.predicting import predicted, predictor

# What is validated


def test_every_shipped_data_set_is_predicted_by_one_scenario() -> None:
    assert [name for name in paths.names(paths.MEASURED) if predictor(name) is None] == []


@pytest.mark.parametrize("name", paths.names(paths.MEASURED))
def test_every_row_of_a_shipped_data_set_has_a_point(name: str) -> None:
    (pair,) = predicted([name])
    assert pair.scenario is not None
    pairs = with_bases(pair.scenario.measured)
    rows = [row for pair in pairs for row in pair if row]
    points, refused = points_of_rows(pair.scenario, rows)
    assert refused == []
    assert set(points) == {place_of(row) for row in rows}
    assert len(pairs) == len(pair.dataset.rows)


def test_a_data_set_its_scenario_and_their_paths_are_the_same_question(tmp_path: Path) -> None:
    dataset, scenario = write(tmp_path)
    by_dataset, by_scenario = predicted([str(dataset)]), predicted([str(scenario)])
    assert by_dataset == by_scenario == predicted([str(scenario), str(dataset)])
    (shipped,) = predicted(["compile-24", "seed-xfs-compile-2024"])
    assert shipped.scenario is not None
    assert shipped.scenario.name == "compile-24"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("seed-xfs-compile-2042", "did you mean 'seed-xfs-compile-2024'"),
        ("compile-42", "did you mean 'compile-24'"),
        ("./no/such.yaml", "no such file"),
        ("lock-cycle", "has no measured data"),
        ("", "there is no data set"),
    ],
)
def test_a_name_that_stands_for_nothing_is_two_and_no_traceback(name: str, says: str) -> None:
    done = invoke(name)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert says in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


def test_a_data_set_of_several_scenarios_or_none_is_refused(tmp_path: Path) -> None:
    dataset, scenario = write(tmp_path)
    (tmp_path / "other.yaml").write_text(scenario.read_text())
    with pytest.raises(ScenarioError, match="asked and other; name one"):
        predicted([str(dataset)])
    for file in tmp_path.glob("*.yaml"):
        file.unlink()
    assert "no scenario names this data set" in invoke(dataset).stderr.replace("\n", " ")
    assert invoke(dataset).exit_code == 2


def test_a_data_set_of_which_no_row_can_be_simulated_is_two(tmp_path: Path) -> None:
    _, scenario = write(tmp_path, {"x": "workload.taks"}, {"calibrate": []})
    done = invoke(scenario)
    assert done.exit_code == 2
    assert "did you mean 'tasks'" in done.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"series": "aftr"}, "rows.0.series: there is no series 'aftr' (did you mean 'after'?)"),
        ({"role": "predct"}, "rows.0.role: predct is not one of"),
        ({"metric": "io_per_sec"}, "(did you mean 'io_per_s'?)"),
    ],
)
def test_what_is_wrong_with_the_only_row_is_told_once_and_at_its_place(
    changes: dict[str, str], says: str, tmp_path: Path
) -> None:
    _, scenario = write(tmp_path, {"rows": [DATASET["rows"][2] | changes]})
    (line,) = invoke(scenario).stderr.splitlines()
    assert "mine.yaml:" in line
    assert says in line
    assert "rows:" not in line


# What is printed


def test_json_is_a_list_of_all_rows_with_exactly_these_keys(tmp_path: Path) -> None:
    dataset, _ = write(tmp_path)
    done = invoke(dataset, "--format", "json")
    assert done.exit_code == 0, done.stderr
    rows = rows_of(done)
    assert [tuple(row) for row in rows] == [COLUMNS] * 4
    assert [(r["series"], r["x"], r["role"]) for r in rows] == [
        ("before", 1, "calibrate"), ("before", 16, "predict"), ("after", 16, "predict"), ("after", 3, "info"),
    ]  # fmt: skip
    for row in rows:
        assert row["error"] == pytest.approx((row["predicted"] - row["measured"]) / row["measured"])
        assert row["ci_low"] <= row["predicted"] <= row["ci_high"]
    assert abs(rows[0]["error"]) < 0.02  # fitted on


def test_a_row_off_the_scenarios_sweep_is_simulated_at_its_own_place(tmp_path: Path) -> None:
    _, scenario = write(tmp_path)
    assert 3 not in SCENARIO["sweep"]["workload.tasks"]
    row = rows_of(invoke(scenario, "--format", "json"))[3]
    assert row["predicted"] == pytest.approx(100 - 100 * 3 / 24, abs=3)


def test_points_with_fewer_files_are_run_first(tmp_path: Path) -> None:
    load = {"kind": "fs_mark", "tasks": 2, "initial_files": 300}
    parts: dict[str, Any] = {
        "workload": load,
        "filesystem": {"kind": "btrfs", "size": "10 GiB"},
        "variants": [{"name": name} for name in ("semaphore", "mutex")],
        "sweep": {"workload.initial_files": [100, 300]},
        "measure": {"warmup": "1 ms", "duration": "1 ms", "replications": 1, "seed": 1},
        "calibrate": [],
    }
    rows = [
        {"series": series, "x": x, "metric": "files_per_s", "unit": "1/s", "value": 1, "role": "predict"}
        for series in ("before", "after")
        for x in (300, 100)
    ]
    write(tmp_path, {"x": "workload.initial_files", "rows": rows}, parts)
    begun: list[int] = []

    def engine(spec: str) -> str:
        begun.append(json.loads(spec)["workload"]["params"]["initial_files"])
        return native_engine()(spec)

    found = validate(predicted([str(tmp_path / "asked.yaml")], [])[0], threads=1, engine=engine)
    assert begun == [100, 100, 300, 300]
    assert [row.x for row in found.rows] == [300, 100, 300, 100]


def test_csv_has_the_baselines_beside_the_rows(tmp_path: Path) -> None:
    dataset, _ = write(tmp_path)
    rows = list(csv.DictReader(io.StringIO(invoke(dataset, "--format", "csv").stdout)))
    assert list(rows[0]) == [*COLUMNS, "approx", "usl", "nothing_changes", "counted"]
    assert [row["nothing_changes"] for row in rows] == ["30000.0"] * 3 + [""]


def test_text_says_what_was_fitted_and_how_far_off_the_rest_is(tmp_path: Path) -> None:
    dataset, _ = write(tmp_path)
    text = " ".join(invoke(dataset).stdout.split())
    assert "fitted: workload.think.exponential" in text
    assert "simfs: 2 rows to be predicted; 2 of 2 signs of change right" in text
    assert "nothing changes: 2 rows to be predicted; 0 of 2 signs" in text
    assert "~85" in text


def test_details_are_one_object_of_rows_scores_fits_and_intervals(tmp_path: Path) -> None:
    dataset, _ = write(tmp_path)
    found = json.loads(invoke(dataset, "--format", "json", "--details").stdout)
    assert [{key: row[key] for key in COLUMNS} for row in found["rows"]] == rows_of(
        invoke(dataset, "--format", "json")
    )
    assert [row["nothing_changes"] for row in found["rows"]] == [30000.0] * 3 + [None]
    assert {(s["dataset"], s["predictor"]) for s in found["scores"]} >= {
        ("mine", "simfs"),
        ("overall", "USL"),
    }
    assert list(found["fits"][0]["values"]) == ["workload.think.exponential"]
    assert found["not_counted"] == found["not_predicted"] == {}
    refused = invoke(dataset, "--details")
    assert refused.exit_code == 2
    assert "--format json" in refused.stderr


# A fit outside the range of its source


def with_fit_of_a_line(bounds: list[str]) -> dict[str, Any]:
    """A fit of what a line transfer costs, so far out that the fitted value must be."""
    line = {"parameter": "machine.costs.line_llc", "bounds": bounds, "rows": [{"series": "before", "x": 16}]}
    return {"machine": {"profile": "server-24", "costs": {"line_llc": "5 us"}}, "calibrate": [line]}


@pytest.mark.slow
def test_a_fit_outside_its_sources_range_does_not_count_as_predicted(tmp_path: Path) -> None:
    rows = [dict(row) for row in DATASET["rows"]]
    rows[0]["role"], rows[1]["role"], rows[1]["value"] = "predict", "calibrate", 50000
    dataset, _ = write(tmp_path, {"rows": rows}, with_fit_of_a_line(["1 us", "20 us"]))
    done = invoke(dataset, "--format", "json", "--details")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["counted"] for row in found["rows"]] == [False] * 4
    [said] = found["not_counted"]["mine"]
    assert "machine.costs.line_llc" in said
    assert "outside the range of its source" in said
    counts = {s["dataset"]: s["rows"] for s in found["scores"] if s["predictor"] == "simfs"}
    assert (counts["overall"], counts["all rows"]) == (0, 2)
    text = " ".join(invoke(dataset).stdout.split())
    assert "not counted: machine.costs.line_llc" in text
    assert "0 of 2" in text


@pytest.mark.parametrize(
    ("scenario", "key", "span"),
    [
        ("btrfs-rwsem", "machine.speed", (0.36, 1.5)),
        ("emulated-create", "variants.xfs-shared.machine.speed", (2, 6)),
        ("compile-24", "workload.user_cpu", (6e6, 16.19e6)),
        ("xfs-rangelock", "device.read.time", (75e3, 120e3)),
        ("fxmark-dwom", "filesystem.costs.journal.stop", (130, 250)),
        ("lock-cycle", "workload.think.exponential", None),
    ],
)
def test_the_range_of_a_source_is_found_by_the_key_of_the_scenario(
    scenario: str, key: str, span: tuple[float, float] | None
) -> None:
    assert source_range(load(scenario), key) == (span and pytest.approx(span))


def test_a_fit_of_one_variant_spoils_the_rows_of_that_variant_alone() -> None:
    [pair] = predicted(["emulated-create"])
    assert pair.scenario is not None
    fits = {"variants.xfs-shared.machine.speed": (7.0, ""), "variants.ext4-per-task.machine.speed": (3.0, "")}
    held = held_to_sources(unpredicted(pair), pair.scenario, fits)
    spoilt = {place.variant for row, place in zip(held.rows, placed_rows(pair.scenario.measured), strict=True)
              if not row.counted}  # fmt: skip
    assert spoilt == {"xfs-shared"}


def test_values_of_predict_rows_do_not_change_what_is_predicted(tmp_path: Path) -> None:
    dataset, _ = write(tmp_path)
    before = rows_of(invoke(dataset, "--format", "json"))
    rows = [row | ({"value": 1.0} if row.get("role") == "predict" else {}) for row in DATASET["rows"]]
    dataset, _ = write(tmp_path / "again", {"rows": rows})
    after = rows_of(invoke(dataset, "--format", "json"))
    assert [row["predicted"] for row in after] == [row["predicted"] for row in before]
    assert [row["measured"] for row in after] != [row["measured"] for row in before]


def test_a_row_without_a_simulated_point_is_null_and_said(tmp_path: Path) -> None:
    lost = {"series": "gone", "x": 2, "metric": "cycles_per_s", "unit": "1/s", "value": 5, "role": "predict"}
    timed = {"series": "after", "x": 16, "metric": "sync_max_latency_ms", "unit": "ms", "value": 5}
    series = DATASET["series"] | {"gone": {"variant": "muutex"}}
    dataset, _ = write(tmp_path, {"rows": [*DATASET["rows"], lost, timed], "series": series})
    done = invoke(dataset, "--format", "json")
    assert done.exit_code == 0
    for row in rows_of(done)[4:]:
        assert {row[key] for key in ("predicted", "ci_low", "ci_high", "error")} == {None}
    said = done.stderr.replace("\n", " ")
    assert "did you mean 'mutex'" in said
    assert "gone, 2, cycles_per_s: it has no simulated point" in said
    assert "its simulation has no sync_max_latency_ms" in said
    assert "1 of 2" not in done.stdout
    assert "2 of 3" in invoke(dataset).stdout


@pytest.mark.slow
def test_out_has_rows_scores_and_a_figure_for_each_data_set(tmp_path: Path) -> None:
    dataset, _ = write(tmp_path)
    out = tmp_path / "out"
    done = invoke(dataset, "--out", out, "--format", "json")
    assert json.loads((out / "rows.json").read_text()) == rows_of(done)
    scores = {(r["dataset"], r["predictor"]): r for r in csv.DictReader((out / "scores.csv").open())}
    assert scores["overall", "simfs"]["rows"] == "2"
    (fit,) = csv.DictReader((out / "fits.csv").open())
    assert (fit["dataset"], fit["parameter"], fit["unit"]) == ("mine", "workload.think.exponential", "ns")
    assert 1e3 < float(fit["value"]) < 1e6
    for name in ("mine", "overview"):
        assert (out / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / "figures" / f"{name}.svg").is_file()


# Scores


def test_a_data_set_without_a_scenario_keeps_its_rows_and_baselines(tmp_path: Path) -> None:
    dataset, _ = write(tmp_path)
    (pair,) = predicted([str(dataset)])
    alone = validate(replace(pair, scenario=None))
    assert alone.rows == unpredicted(pair).rows
    assert alone.problem == "no scenario names this data set under 'measured:'"


def test_predictions_are_those_of_simfs_run(tmp_path: Path) -> None:
    _, scenario = write(tmp_path, {}, {"calibrate": []})
    run = json.loads(RUNNER.invoke(app, ["run", str(scenario), "--format", "json"]).stdout)
    beside = {
        c["row"]["series"]: c["simulated"]["mean"]
        for p in run["points"]
        if p["tasks"] == 16
        for c in p["measured"]
    }
    held = rows_of(invoke(scenario, "--format", "json"))
    assert {r["series"]: r["predicted"] for r in held if r["x"] == 16} == beside


# Ratios

BASE = {"series": "before", "x": 16}
RATIO = {"series": "after", "x": 16, "metric": "cycles_per_s", "unit": "ratio", "value": 1.4, "over": BASE}


def test_a_ratio_is_predicted_by_the_ratio_of_its_two_points(tmp_path: Path) -> None:
    write(tmp_path, {"rows": [*DATASET["rows"], RATIO | {"role": "predict"}]})
    _, before, after, _, ratio = rows_of(invoke(tmp_path / "asked.yaml", "--format", "json"))
    assert ratio["unit"] == "ratio"
    assert ratio["predicted"] == pytest.approx(after["predicted"] / before["predicted"])
    assert ratio["ci_low"] < ratio["predicted"] < ratio["ci_high"]
    assert ratio["error"] == pytest.approx(ratio["predicted"] / 1.4 - 1)


def test_a_ratio_is_not_shown_beside_a_run(tmp_path: Path) -> None:
    _, scenario = write(tmp_path, {"rows": [*DATASET["rows"], RATIO]})
    assert len(placed_rows(load(scenario).measured)) == len(DATASET["rows"])


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"unit": "1/s"}, "is given in ratio"),
        ({"over": BASE | {"series": "befor"}}, "did you mean 'before'"),
        ({"metric": "idle_percent"}, "is a share already"),
        ({"role": "calibrate"}, "nothing is fitted to a ratio"),
    ],
)
def test_a_ratio_that_cannot_be_is_refused(tmp_path: Path, changed: dict[str, Any], says: str) -> None:
    write(tmp_path, {"rows": [*DATASET["rows"], RATIO | changed]})
    done = invoke(tmp_path / "asked.yaml")
    assert done.exit_code == 2
    assert says in done.stderr
