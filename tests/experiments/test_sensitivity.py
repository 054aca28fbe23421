"""Sensitivity: Morris and Sobol find what a known function hangs on; ranges are the models' own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from simfs.cli import app
from simfs.experiments.points import the_point
from simfs.experiments.sensitivity import (
    Parameter,
    Sensitivity,
    morris,
    parameters,
    sensitivity,
    sobol_shares,
)
from simfs.reports.sensitivity import bands, screening
from simfs.results.statistics import Estimate
from simfs.scenario import expand, load
from simfs.scenario.models import load_machine

RUNNER = CliRunner()
SHORT = ["workload.tasks=16", "measure.duration=10 ms", "measure.warmup=1 ms", "measure.replications=3"]
Vector = NDArray[np.float64]


def three() -> list[Parameter]:
    return [Parameter(name, (name,), 0.5, 0.0, 1.0, "by definition") for name in "abc"]


def test_a_linear_function_has_its_slopes_as_effects_and_no_spread() -> None:
    def function(xs: Sequence[Vector]) -> list[float]:
        return [4 * x[0] - 2 * x[1] for x in xs]

    found = {s.parameter: s for s in morris(three(), function, 1.0, 6, 1, 0.0)}
    assert [found[n].mu for n in "abc"] == pytest.approx([400, -200, 0])
    assert [found[n].mu_star.mean for n in "abc"] == pytest.approx([400, 200, 0])
    assert [found[n].sigma for n in "abc"] == pytest.approx([0, 0, 0])
    assert [found[n].matters for n in "abc"] == [True, True, False]


def test_an_interaction_shows_as_spread() -> None:
    found = morris(three(), lambda xs: [x[0] * x[1] for x in xs], 1.0, 20, 1, 0.0)
    assert {s.parameter for s in found if s.sigma > 10} == {"a", "b"}


@pytest.mark.slow
def test_sobol_indices_of_the_ishigami_function_are_the_published_ones() -> None:
    def ishigami(xs: Sequence[Vector]) -> list[float]:
        y = [np.pi * (2 * x - 1) for x in xs]
        return [float(np.sin(v[0]) + 7 * np.sin(v[1]) ** 2 + 0.1 * v[2] ** 4 * np.sin(v[0])) for v in y]

    found = {s.parameter: s for s in sobol_shares(three(), ishigami, 1024, 1)}
    assert [found[n].first.mean for n in "abc"] == pytest.approx([0.314, 0.442, 0.0], abs=0.03)
    assert [found[n].total.mean for n in "abc"] == pytest.approx([0.558, 0.442, 0.244], abs=0.03)


def test_ranges_are_those_of_the_models_in_the_units_of_the_run_spec() -> None:
    point = the_point(load("lock-cycle", SHORT), "mutex")
    known = {p.name: p for p in parameters(point)}
    wakeup = load_machine("server-24").costs.wakeup
    found = known["machine.costs.wakeup"]
    assert (found.low, found.value, found.high, found.source) == (700, 1000, 2700, wakeup.source)
    assert known["kernel.tick_ns"].low == 1e6


def test_what_the_scenario_sets_itself_is_not_varied() -> None:
    point = the_point(load("lock-cycle", [*SHORT, "machine.costs={wakeup: 900 ns}"]), "mutex")
    assert "machine.costs.wakeup" not in [p.name for p in parameters(point)]


def test_what_a_load_chooses_is_no_uncertain_number() -> None:
    """How much memory a loop uses is for the scenario to say, whatever is possible."""
    asked = {
        "simfs": 1,
        "name": "creates",
        "title": "Creates",
        "machine": "server-24",
        "kernel": "linux-6.12",
    }
    asked |= {"filesystem": {"kind": "xfs", "size": "8 GiB"}, "workload": {"kind": "create", "tasks": 2}}
    point = the_point(load(asked))
    assert not [
        p.name for p in parameters(point) if p.name.startswith("workload.") and p.name.endswith("_bytes")
    ]


def test_where_a_machine_has_caches_what_programs_use_of_them_is_a_number_like_others() -> None:
    """Footprints, sizes and latencies decide what a call after a compile finds cold."""
    scenario = load("compile-24", ["sweep.workload.tasks=[2]"])
    found = {p.name: p for p in parameters(the_point(scenario, "xfs"))}
    footprint = found["workload.params.footprint_bytes"]
    assert (footprint.low, footprint.value, footprint.high) == (5726720, 8388608, 10842112)
    assert "workload.params.code_bytes" in found
    caches = {
        "core_bytes",
        "llc_bytes",
        "llc_ns",
        "memory_ns",
        "code_lines",
        "front_end_bytes",
        "front_end_ns",
    }
    assert {f"machine.caches.{name}" for name in caches} <= found.keys()


@pytest.mark.slow
def test_the_command_lists_footprints_with_their_effects() -> None:
    """More data and more code of a compiler make compiles longer, as calls are colder."""
    settings = ["workload.tasks=2", "workload.user_cpu=1 ms", "measure.duration=20 ms", "measure.warmup=1 ms"]
    options = [x for setting in (*settings, "measure.replications=2") for x in ("--set", setting)]
    names = ["workload.params.code_bytes", "workload.params.footprint_bytes"]
    command = ["sensitivity", "compile-24", "--variant", "xfs", *options, "--trajectories", "2"]
    command += [x for name in names for x in ("--parameter", name)]
    done = RUNNER.invoke(app, [*command, "--metric", "compile_avg_latency_us", "--format", "json"])
    assert done.exit_code == 0, done.stderr
    effects = {each["parameter"]: each["mu"] for each in json.loads(done.stdout)["screened"]}
    assert sorted(effects) == names
    assert min(effects.values()) > 0


def test_a_semaphore_hangs_on_the_price_of_waking_and_not_on_idle_hands(tmp_path: Path) -> None:
    scenario = load("lock-cycle", SHORT)
    point = the_point(scenario, "semaphore")
    found = sensitivity(
        point, scenario.measure, scenario="lock-cycle", trajectories=4, bands=4, curve=[point],
        patterns=["machine.costs.context_switch", "machine.costs.line_remote"],
    )  # fmt: skip
    assert [(s.parameter, s.matters) for s in found.screened] == [
        ("machine.costs.context_switch", True),
        ("machine.costs.line_remote", False),
    ]
    assert found.screened[0].mu < 0
    (band,) = found.bands
    assert band.low < band.median < band.high
    assert screening(found).axes[0].get_xlabel().endswith("(%)")
    wide = Estimate(mean=4, low=-900, high=908, n=2)
    unsure = found.model_copy(
        update={"screened": tuple(s.model_copy(update={"mu_star": wide}) for s in found.screened)}
    )
    assert screening(unsure).axes[0].get_xlim() == (0, 12)
    assert bands(found).axes[0].get_xlabel() == "tasks"


def test_a_pattern_that_matches_nothing_and_a_metric_that_is_none_are_bad_input() -> None:
    options = [x for setting in SHORT for x in ("--set", setting)]
    for extra, says in (
        (["--parameter", "machine.coats.*"], "matches none of machine.costs"),
        (
            ["--metric", "speed", "--trajectories", "2", "--parameter", "machine.costs.wakeup"],
            "'speed' is no metric",
        ),
        (["--sobol", "12"], "must be a power of two"),
    ):
        done = RUNNER.invoke(app, ["sensitivity", "lock-cycle", "--variant", "mutex", *options, *extra])
        assert done.exit_code == 2
        assert says in done.stderr.replace("\n", " ")
        assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_json_is_one_document_and_the_same_twice() -> None:
    settings = [*SHORT, "workload.tasks=4", "measure.duration=2 ms"]
    options = [x for setting in settings for x in ("--set", setting)]
    command = ["sensitivity", "lock-cycle", "--variant", "mutex", *options]
    command += ["--trajectories", "2", "--format", "json"]
    first, second = RUNNER.invoke(app, command), RUNNER.invoke(app, command)
    assert Sensitivity.model_validate(json.loads(first.stdout)).screened
    assert first.stdout == second.stdout


def test_the_whole_curve_is_what_bands_are_drawn_on() -> None:
    scenario = load("lock-cycle", [*SHORT[1:], "sweep={workload.tasks: [1, 8]}"])
    curve = [p for p in expand(scenario) if p.variant == "mutex"]
    found = sensitivity(
        the_point(scenario, "mutex"), scenario.measure, scenario="x", trajectories=2, bands=3, curve=curve,
        patterns=["machine.costs.wakeup"],
    )  # fmt: skip
    assert [b.tasks for b in found.bands] == [1, 8]
