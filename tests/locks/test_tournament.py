"""`simfs run lock-tournament`: locks are compared under the same loads, on one page."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import simfs
from simfs.cli import app
from simfs.machine.locks.policy import POLICIES, UNGUARDED
from simfs.reports import tournament
from simfs.reports.export import write
from simfs.reports.layout import WIDTH
from simfs.reports.text import report
from simfs.results.model import ScenarioResult
from simfs.scenario import expand, load

LOCKS = ["semaphore", "qspinlock", "rwsem-5.11"]
SMALL = [
    f"sweep={{workload.lock: [{', '.join(LOCKS)}], workload.tasks: [16, 32]}}",
    "measure={warmup: 1 ms, duration: 3 ms, replications: 2}",
]


@pytest.fixture(scope="module")
def small() -> ScenarioResult:
    return simfs.load("lock-tournament", *SMALL).run().result


def text(result: ScenarioResult) -> str:
    out = io.StringIO()
    Console(file=out, width=WIDTH).print(report(result))
    return out.getvalue()


def test_all_locks_that_keep_others_out_take_part() -> None:
    """But for the spinlock of guests."""
    entrants = {p.values["workload.lock"] for p in expand(load("lock-tournament"))}
    assert entrants == set(POLICIES) - {*UNGUARDED, "pvqspinlock"}


@pytest.mark.slow
def test_each_load_has_one_table_with_a_row_a_lock_best_first(small: ScenarioResult) -> None:
    shown = text(small)
    for variant in small.variants:
        title = small.title(variant)
        table = shown[shown.index(f"{title}; 16, 32 tasks on 16 CPUs") :]
        rates = {
            str(p.values["workload.lock"]): p.throughput.mean for p in small.of(variant) if p.tasks == 16
        }
        best_first = sorted(LOCKS, key=lambda lock: -rates[lock])
        assert sorted(LOCKS, key=lambda lock: table.index(f" {lock} ")) == best_first
    assert "locks by total wait" not in shown


def test_the_tables_fit_and_cut_no_number_off(small: ScenarioResult) -> None:
    shown = text(small)
    assert max(map(len, shown.splitlines())) <= WIDTH
    assert "…" not in shown


def test_cpu_time_of_an_operation_and_its_energy_agree_where_nobody_idles(small: ScenarioResult) -> None:
    """All CPUs busy: energy is CPU time times the 4 W of a running CPU."""
    busy = [p for p in small.points if p.shares.idle.mean == 0]
    assert busy
    for point in busy:
        us, joules = tournament.cpu_us_per_operation(point), point.joules_per_operation
        assert us is not None
        assert joules is not None
        # the one is a mean over replications, the other a ratio of sums
        assert joules.mean * 1e6 == pytest.approx(4.0 * us, rel=0.02)


@pytest.mark.slow
def test_the_picture_of_a_tournament_has_a_panel_a_load(small: ScenarioResult, tmp_path: Path) -> None:
    written = write(small, tmp_path / "out", scenario="", seed=1)
    figures = {path.name for path in written if path.parent.name == "figures"}
    assert figures == {"tournament.png", "tournament.svg", "tournament.pdf"}


@pytest.mark.slow
def test_a_short_run_has_all_locks() -> None:
    """A writer of `percpu-rwsem` waits longer for RCU than the others' short window is."""
    settings = ("sweep.workload.tasks=[16]", "measure.replications=2")
    options = [word for setting in settings for word in ("--set", setting)]
    answer = CliRunner().invoke(app, ["run", "lock-tournament", "--quick", *options])
    assert answer.exit_code == 0, answer.output
