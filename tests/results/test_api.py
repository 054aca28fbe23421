"""The Python API: questions and answers, tables with units, arrays, figures, the doctest."""

from __future__ import annotations

import doctest
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

import simfs
from simfs import api
from simfs.scenario import ScenarioError

pytest.importorskip("pandas")
pytest.importorskip("xarray")

SHORT = ("measure.duration=20 ms", "measure.warmup=2 ms", "measure.replications=2")


@pytest.fixture(scope="module")
def answer() -> api.Answer:
    return simfs.load("lock-cycle", *SHORT).sweep(
        {"workload.tasks": [1, 4, 16], "workload.hold": ["5 us", "9 us"]}
    )


def test_the_examples_of_the_module_run() -> None:
    assert doctest.testmod(api).failed == 0


def test_everything_public_is_there_and_importing_simfs_is_light() -> None:
    assert all(hasattr(simfs, name) for name in simfs.__all__)
    code = "import sys, simfs; print([m for m in ('pandas', 'pydantic', 'matplotlib') if m in sys.modules])"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"


def test_a_run_answers_as_the_command_line_does() -> None:
    ran = simfs.load("lock-cycle", "workload.tasks=4", *SHORT).run()
    assert list(ran.points["variant"]) == ["semaphore", "mutex", "ticket"]
    assert (ran.points["tasks"] == 4).all()
    assert ran.exit_code == 0


def test_bad_input_is_told_as_in_a_file() -> None:
    with pytest.raises(ScenarioError, match="did you mean 'lock-cycle'"):
        simfs.load("lock-cycel")
    with pytest.raises(ScenarioError, match=r"--vary workload\.taks"):
        simfs.load("lock-cycle").sweep({"workload.taks": [1]})
    with pytest.raises(ValueError, match="two ends of one unit"):
        simfs.load("lock-cycle").sweep({"workload.tasks": "1..5 ms"})


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda q: simfs.load("lock-cycle", ["workload.tasks=3"]), "settings: .* is no text"),  # type: ignore[arg-type]
        (lambda q: q.run(variants=["mutx"]), "variants: 'mutx' is not known; .*did you mean 'mutex'"),
        (lambda q: q.run(variants="mutex"), "variants: a list"),
        (lambda q: q.run(threads=0), "threads: a whole number from 1"),
        (lambda q: q.sweep({}), "vary: names no key"),
        (lambda q: q.sweep("workload.tasks"), "vary: for each key its values"),
        (lambda q: q.sweep({"workload.tasks": []}), "workload.tasks needs at least one value"),
        (lambda q: q.sweep({"workload.tasks": 3}), "workload.tasks needs at least one value, not 3"),
        (lambda q: q.sweep({"workload.tasks": "1..8"}, design="lsh"), "did you mean 'lhs'"),
        (lambda q: q.sweep({"workload.tasks": "1..8"}, design="lhs", points=0), "points: a whole number"),
        (
            lambda q: q.whatif("mutex", changes=[("lock", "remov")]),
            "change 'remov': is none; there are 'remove'",
        ),
        (lambda q: q.whatif("mutex", changes=[("lock", {"kind": "mutx"})]), "there is no lock of this kind"),
        (lambda q: q.whatif("mutex", changes=[("lock", {"hold_scale": -1})]), "a number from 0 to 1,000"),
        (lambda q: q.whatif("mutex", changes=[("lock", {"split": 0})]), "a number from 1 to 4,096"),
        (
            lambda q: q.whatif("mutex", changes=[("lock", {"split": 2, "kind": "mutex"})]),
            "is none; there are",
        ),
        (lambda q: q.timeline("mutex", start="-1 ms"), "start: a duration must be at least 0"),
        (lambda q: q.timeline("mutex", length="abc"), "length: 'abc' is not a duration"),
        (lambda q: q.timeline("mutex", length="0"), "length: must be more than nothing"),
    ],
)
def test_what_cannot_be_asked_is_said_before_anything_runs(ask: Callable[[Any], object], said: str) -> None:
    """A variant that there is not came to an empty list, a wrong change to the engine's reader of JSON."""
    with pytest.raises((ValueError, TypeError), match=said):
        ask(simfs.load("lock-cycle", *SHORT))


def test_tables_are_pandas_with_units(answer: api.Answer) -> None:
    points = answer.points
    assert len(points) == 18
    assert sorted(points["workload.hold_ns"].unique()) == [5000, 9000]
    assert points.attrs["units"]["throughput_per_s"] == "1/s"
    assert answer.locks.attrs["units"]["wait_total_ns"] == "ns"
    with pytest.raises(ValueError, match=r"did you mean 'points'\? There are points, locks"):
        answer.table("pints")


def test_a_grid_is_an_array_over_its_keys(answer: api.Answer) -> None:
    arrays = answer.to_xarray()
    assert dict(arrays.sizes) == {"variant": 3, "tasks": 3, "workload.hold_ns": 2}
    assert arrays["throughput_per_s"].attrs["units"] == "1/s"
    one = arrays["throughput_per_s"].sel({"variant": "mutex", "tasks": 4, "workload.hold_ns": 9000})
    points = answer.points.set_index("point")
    assert float(one) == points.loc["mutex workload.tasks=4 workload.hold=9 us", "throughput_per_s"]


def test_drawn_points_are_an_array_over_points() -> None:
    drawn = simfs.load("lock-cycle", *SHORT).sweep(
        {"workload.tasks": "1..24", "workload.hold": "2 us..9 us"}, design="lhs", points=4
    )
    assert drawn.to_xarray().sizes["point"] == len(drawn.points)


def test_a_sweep_in_a_directory_is_the_command_lines(answer: api.Answer, tmp_path: Path) -> None:
    vary: dict[str, list[Any]] = {"workload.tasks": [1, 4, 16], "workload.hold": ["5 us", "9 us"]}
    again = simfs.load("lock-cycle", *SHORT).sweep(vary, out=tmp_path)
    assert again.result.model_dump_json() == answer.result.model_dump_json()
    assert (tmp_path / "sweep.json").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
def test_figures_are_matplotlibs(answer: api.Answer, tmp_path: Path) -> None:
    assert isinstance(answer.figure("factors"), Figure)
    with pytest.raises(ValueError, match="factors"):
        answer.figure("factor")
    assert tmp_path / "tables" / "points.csv" in answer.write(tmp_path)


def test_html_is_a_table_of_the_points(answer: api.Answer) -> None:
    html = answer._repr_html_()
    assert html.count("<tr>") == 19
    assert "lock cycles per second" in html
    assert "ticket spinlock" in simfs.load("lock-cycle", *SHORT).run()._repr_html_()
    assert "24" in simfs.load("compile-24")._repr_html_()


# ---- progress -------------------------------------------------------------------------------------------------------


def test_a_function_of_ones_own_is_told_how_far_it_is() -> None:
    told: list[tuple[int, int, str]] = []
    simfs.load("lock-cycle", *SHORT).run(progress=lambda *how_far: told.append(how_far))
    assert told[-1][0] == told[-1][1] > 0
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)


@pytest.mark.slow
def test_a_bar_is_drawn_where_somebody_looks_and_nowhere_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    question = simfs.load("lock-cycle", *SHORT)
    question.run()
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    question.run()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "tasks" in shown.err or "running" in shown.err
    question.run(progress=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("options", [{"between": ("a", "b")}, {"points": 3}, {"points": 3, "design": "zip"}])
def test_what_would_have_no_effect_on_a_sweep_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"goes with refine|is for ranges"):
        simfs.load("lock-cycle", *SHORT).sweep({"workload.tasks": [1, 2]}, **options)
