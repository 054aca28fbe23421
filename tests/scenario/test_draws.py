"""Times and choices that are drawn: lists of values, columns of files, Zipf's law."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machines import assert_same, short
from scipy import stats

from engine import lock_cycle, simulate, window
from simfs import _engine
from simfs.scenario import ScenarioError, expand, load, to_run_spec

CYCLE = """\
simfs: 1
name: a
title: a
machine: server-24
kernel: linux-6.12
workload: {kind: lock_cycle, tasks: 2, think: 1 us, hold: HOLD}
measure: {warmup: 0, duration: 1 ms, replications: 1}
"""
MIX = """\
simfs: 1
name: a
title: a
machine: {profile: server-24, cpus: 4}
kernel: linux-6.12
filesystem: {kind: tmpfs}
workload:
  kind: mix
  tasks: 3
  files: 50
  random_distribution: CHOICE
  operations: [{op: stat, think: {empirical: [1 us, 3 us], weights: [2, 1]}}, {op: open}]
measure: {warmup: 0, duration: 1 ms, replications: 1}
"""


def spec_of(text: str, folder: Path) -> dict[str, Any]:
    path = folder / "a.yaml"
    path.write_text(text, "utf-8")
    return to_run_spec(expand(load(path))[0], 0)


def holds(times: list[float], weights: list[float] | None) -> Counter[int]:
    """How often each hold was drawn, in picoseconds, of a task that is alone."""
    spec = lock_cycle("semaphore", 1, duration_ns=2e6, think_ns=100, hold_ns=1, hold_distribution="empirical")
    given = {"hold_values": times} | ({"hold_weights": weights} if weights else {})
    spec["workload"]["params"] |= given
    _, trace = _engine.trace(json.dumps(spec))
    found, since = Counter[int](), 0
    for time, _, _, what, about in trace:
        if about == "lock#1" and what == "acquire":
            since = time
        elif about == "lock#1" and what == "release":
            found[time - since] += 1
    return found


@pytest.mark.parametrize("weights", [None, [5.0, 0.0, 3.0, 2.0]])
def test_values_are_drawn_as_often_as_their_weights_say(weights: list[float] | None) -> None:
    times = [100.0, 250.0, 400.0, 1000.0]
    found = holds(times, weights)
    share = np.array(weights or [1.0] * 4) / sum(weights or [1.0] * 4)
    counts = [found[round(time * 1000)] for time in times]
    assert sum(counts) == found.total() > 2000
    drawn = share > 0
    assert [count > 0 for count in counts] == list(drawn)
    test = stats.chisquare(np.array(counts)[drawn], share[drawn] * sum(counts))
    assert test.pvalue > 0.001


@pytest.mark.parametrize("theta", [0.5, 1.0, 1.8])
@pytest.mark.parametrize("count", [1, 7, 1000])
def test_zipf_is_that_of_scipy(theta: float, count: int) -> None:
    stream = _engine.Stream(7, 0, "zipf")
    found = np.bincount([stream.zipf(count, theta) for _ in range(20_000)], minlength=count)
    law = stats.zipfian.pmf(np.arange(1, count + 1), theta, count)
    many = law * 20_000 >= 5
    rest = [found[~many].sum()] if not many.all() else []
    expected = [*(law[many] * 20_000), *([law[~many].sum() * 20_000] if rest else [])]
    observed = [*found[many], *rest]
    assert (
        len(expected) == 1
        or stats.chisquare(observed, np.array(expected) * 20_000 / sum(expected)).pvalue > 0.001
    )


def test_a_popular_file_is_taken_more_often(tmp_path: Path) -> None:
    """Tasks that share fifty files meet at the few that most of them want."""
    text = MIX.replace("operations: [{op: stat,", "file_set: shared\n  operations: [{op: overwrite,")
    waits = {}
    for choice in ("random", "zipf:2"):
        result = simulate(spec_of(text.replace("CHOICE", choice).replace("tasks: 3", "tasks: 4"), tmp_path))
        waits[choice] = sum(lock.contended for lock in result.locks)
    assert waits["zipf:2"] > 2 * waits["random"]


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["random", "zipf:0.9", "zipf:1"])
def test_both_machines_draw_the_same(choice: str, tmp_path: Path) -> None:
    assert assert_same(short(spec_of(MIX.replace("CHOICE", choice), tmp_path), 2000)) > 500
    hold = "{empirical: [1 us, 300 ns, 5 us], weights: [1, 5, 0.5]}"
    assert assert_same(short(spec_of(CYCLE.replace("HOLD", hold), tmp_path), 2000)) > 500


def test_blocks_of_fio_by_zipf_are_spread_over_the_file(tmp_path: Path) -> None:
    job = "{kind: fio, tasks: 1, rw: randread, size: 4 MiB, cached: true, random_distribution: 'zipf:1.2'}"
    text = CYCLE[: CYCLE.index("workload")] + f"filesystem: {{kind: tmpfs}}\nworkload: {job}\n"
    assert simulate(spec_of(text, tmp_path) | window(1e6)).operations > 100


def test_a_column_of_a_file_is_a_list(tmp_path: Path) -> None:
    (tmp_path / "holds.csv").write_text("lock,hold,n\na,1.5,3\nb,20,1\n", "utf-8")
    columns = "{empirical: holds.csv, column: hold, unit: us, weight_column: n}"
    params = spec_of(CYCLE.replace("HOLD", columns), tmp_path)["workload"]["params"]
    assert params["hold_values"] == [1500, 20_000]
    assert params["hold_weights"] == [3, 1]
    assert params["hold_ns"] == (3 * 1500 + 20_000) / 4


@pytest.mark.parametrize(
    ("hold", "said"),
    [
        ("{empirical: none.csv, column: hold}", "none.csv cannot be read: No such file"),
        ("{empirical: holds.csv, column: hlod}", "holds.csv has no column 'hlod' (did you mean 'hold'?)"),
        ("{empirical: holds.csv}", "column: which column of holds.csv has the durations?"),
        ("{empirical: holds.csv, column: hold, units: us}", "has no 'units' (did you mean 'unit'?)"),
        ("{empirical: holds.csv, column: lock}", "a us"),
        ("{empirical: [1 us, 2 us], weights: [1]}", "weights: one for each of the durations of empirical"),
        ("{empirical: [1 us], weights: [0]}", "weights: one at least must be above 0"),
        ("{exponential: 1 us, weights: [1]}", "weights: one for each of the durations of empirical"),
        ("{empirical: []}", "at least 1"),
    ],
)
def test_wrong_lists_are_refused_where_they_stand(hold: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "holds.csv").write_text("lock,hold\na,1.5\n", "utf-8")
    path = tmp_path / "a.yaml"
    path.write_text(CYCLE.replace("HOLD", hold.replace("lock}", "lock, unit: us}")), "utf-8")
    with pytest.raises(ScenarioError) as refused:
        load(path)
    assert "a.yaml:6:" in str(refused.value)
    assert said in str(refused.value)


@pytest.mark.parametrize("choice", ["zipf", "zipf:0", "zipf:-1", "zipf:a", "pareto:0.2"])
def test_other_distributions_of_choices_are_refused(choice: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"a.yaml:11:\d+: workload.random_distribution"):
        spec_of(MIX.replace("CHOICE", f"'{choice}'"), tmp_path)
