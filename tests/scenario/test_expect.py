"""`expect:` in a scenario: what is read, what holds, and what `simfs run` makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simfs.cli import app
from simfs.scenario import ScenarioError, load
from simfs.scenario.sections.expectation import Number, Term, instances, value_of
from simfs.scenario.sections.expectation_parser import parse

TEXT = """\
simfs: 1
name: exp
title: Expectations
machine: server-24
kernel: linux-6.11
workload: {kind: lock_cycle, tasks: 4, lock: qspinlock, think: 10 us, hold: 1 us}
variants:
  - {name: spin}
  - {name: sleep, workload: {lock: mutex}}
sweep: {workload.tasks: [1, 4]}
measure: {warmup: 1 ms, duration: 2 ms, replications: 2}
expect:
"""


def _written(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "exp.yaml"
    path.write_text(TEXT + "".join(f"  - {line}\n" for line in lines))
    return str(path)


def test_sums_bind_less_than_products_and_units_are_carried() -> None:
    (side, limit) = parse("2 us + p99_latency_us * 3 <= 1 ms").sides
    found = value_of(side, lambda term: Number(4, 3, 5, "us"))
    assert (found.mean, found.low, found.high, found.unit) == (14, 11, 17, "us")
    assert isinstance(limit, Number)
    assert limit.to("us").mean == 1000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("throughput", "nothing is compared"),
        ("1 < 2", "names no metric"),
        ("throughputt > 1", "did you mean 'throughput'"),
        ("throughput > 1 sec", "there is no unit 'sec'"),
        ("idle_percent > 1 ms", "% and ms are not the same"),
        ("throughput * throughput > 1", "a product of /s and /s"),
        ("1 / throughput > 1", "divided by /s"),
        ("throughput > 1 / 0", "divides by 0"),
        ("(throughput > 1", "a ')' is missing"),
        ("throughput > > 1", "'>' stands where"),
        ("throughput > 1 !", "cannot read '!'"),
        ("throughput >", "ends where"),
        ("throughput[nobody] > 1", "no point has 'nobody'; there are 1, 4, sleep, spin"),
        ("throughput[spni] > 1", "did you mean 'spin'"),
        ("throughput[threads=1] > 1", "'threads' is not a key of the points"),
        ("throughput[1, 4] > 1", "two values of workload.tasks"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_stands(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load(_written(tmp_path, "idle_percent > 0", f"'{text.replace(chr(39), chr(34))}'"))
    (problem,) = refused.value.problems
    assert problem.where.endswith("exp.yaml:14:5"), problem
    assert says in str(problem)


def test_what_no_term_fixes_is_the_same_in_all() -> None:
    points = [{"variant": v, "n": n, "tasks": 8} for v in ("a", "b") for n in (1, 2)]
    found = list(instances(parse("throughput[a] > throughput[b, 2]"), points, ["n"]))
    a, b = parse("throughput[a] > throughput[b, 2]").terms
    assert isinstance(a, Term)
    assert [(here, at[a], at[b]) for here, at in found] == [({"n": 1}, 0, 3), ({"n": 2}, 1, 3)]


def test_a_run_tells_what_does_not_hold_and_ends_with_1(tmp_path: Path) -> None:
    path = _written(
        tmp_path,
        "throughput[spin, 4] / throughput[spin, 1] > 3",
        "0.9 < throughput[spin] / throughput[sleep] < 1.1",
        "idle_percent[sleep] < 90 %",
    )
    found = CliRunner().invoke(app, ["run", path, "--format", "json"])
    assert found.exit_code == 1
    assert "expected idle_percent[sleep] < 90 % at tasks 1, but found 95.8 %" in found.stderr
    first, second, third = json.loads(found.stdout)["expected"]
    assert [case["holds"] for case in first["cases"]] == [True]
    assert [case["at"] for case in second["cases"]] == [{"workload.tasks": 1}, {"workload.tasks": 4}]
    assert [case["holds"] for case in third["cases"]] == [False, True]


def test_what_is_left_out_is_not_checked_and_what_has_no_value_fails(tmp_path: Path) -> None:
    path = _written(tmp_path, "throughput[spin, 4] > 1", "lock_p99_wait_us[1] < 1 ms")
    runner = CliRunner()
    fixed = runner.invoke(app, ["run", path, "--variant", "sleep", "--set", "workload.tasks=1", "--wide"])
    assert fixed.exit_code == 1
    assert "its points were not run" in fixed.stdout
    assert "lock_p99_wait_us[1] < 1 ms" in fixed.stderr
    assert "no value" in fixed.stderr
