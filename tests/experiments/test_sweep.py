"""Sweeps: kills, shards and refusals leave no trace in the tables."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import fakes
import pytest
from pictures import assert_no_overlap
from pyarrow import csv
from typer.testing import CliRunner

import simfs
from simfs.cli import app
from simfs.reports.figures.factors import factors
from simfs.results.run import Runs, run_scenario
from simfs.results.store import Store
from simfs.scenario import expand, load, points_at
from simfs.scenario.sections.lock_tasks import LockCycle

RUNNER = CliRunner()
SMALL = ["lock-cycle", "--set", "measure={duration: 4 ms, warmup: 0.4 ms, replications: 2}"]
"""Short runs: what a sweep does around them is looked at."""


def sweep(*options: object) -> Any:  # noqa: ANN401
    return RUNNER.invoke(app, ["sweep", *map(str, options)])


def files(folder: Path) -> dict[str, bytes]:
    """What must be the same bytes however a sweep was run."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "store" not in path.parts and path.name != "manifest.json"
    }


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--vary", "workload.taks=1,2"], "did you mean 'tasks'"),
        (["--vary", "worklod.tasks=1,2"], "did you mean 'workload.tasks'"),
        (["--vary", "workload.tasks=0..9"], "--vary workload.tasks: should be greater than or equal to 1"),
        (["--vary", "measure.seed=1,2"], "cannot be swept"),
        (["--vary", "workload.tasks=1..9", "--design", "lhs"], "--points"),
        (["--design", "lhs", "--points", "4"], "--vary"),
        (["--shard", "3/2"], "--shard 3/2"),
        (["--shard", "half"], "--shard half"),
        (["--executor", "steam"], "--executor steam"),
        (["--list", "no-such.csv"], "no such file"),
        (["--vary", "workload.hold=5 us", "--refine", "knee"], "at least three numbers"),
        (["--refine", "crossover"], "--between"),
        (["--refine", "crossover", "--between", "mutex,futex"], "no such variant"),
        (["--refine", "knee", "--shard", "1/2"], "merge"),
    ],
)
def test_bad_input_is_two_and_names_the_option(options: list[str], says: str, tmp_path: Path) -> None:
    answer = sweep(*SMALL, "--out", tmp_path / "out", *options)
    assert answer.exit_code == 2, answer.stderr
    assert says in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("workload.taks\n4\n", "2: column workload.taks: unknown key 'taks' (did you mean 'tasks'?)"),
        ("workload.tasks\n4\nmany\n", "3: column workload.tasks: should be a valid integer, got many"),
        ("workload.tasks,workload.hold\n4,5 us\n\n8\n", "4: has 1 cell, where the heading has 2"),
        ("workload.tasks,workload.hold\n4,5 us\n8,{a\n", "3: column workload.hold: not valid YAML: expected"),
        ("", " is empty; it needs a heading of keys and a row for each point"),
    ],
)
def test_a_list_that_is_refused_is_named_with_its_column(table: str, says: str, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text(table)
    answer = sweep(*SMALL, "--out", tmp_path / "out", "--list", rows)
    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"--list {rows}:{says}")
    assert len(answer.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
def test_another_sweep_or_a_foreign_directory_is_refused(tmp_path: Path) -> None:
    assert sweep(*SMALL, "--vary", "workload.tasks=1,2", "--out", tmp_path / "a").exit_code == 0
    for options, says in (
        (["--vary", "workload.tasks=1,2,3"], "points differ"),
        (["--vary", "workload.tasks=1,2", "--seed", "2"], "settings differ"),
    ):
        answer = sweep(*SMALL, *options, "--out", tmp_path / "a")
        assert answer.exit_code == 2
        assert says in answer.stderr
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").write_text("years of work")
    answer = sweep(*SMALL, "--out", tmp_path / "b")
    assert answer.exit_code == 2
    assert "not empty" in answer.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
def test_the_table_has_swept_durations_as_numbers(tmp_path: Path) -> None:
    options = ("--vary", "workload.hold=5 us,7 us", "--vary", "workload.tasks=1,2", "--out", tmp_path)
    assert sweep(*SMALL, *options).exit_code == 0
    head, first, *_ = (tmp_path / "tables" / "points.csv").read_text().splitlines()
    row = dict(zip(head.replace('"', "").split(","), first.split(","), strict=True))
    assert float(row["workload.hold_ns"]) == 5000


@pytest.mark.parametrize(
    ("vary", "says"),
    [
        ("workload.lock=mutex,mutx", "did you mean 'mutex'?"),
        ("locks.xfs.bufer=mutex", "did you mean 'xfs.buffer'?"),
        ("kernel.constants.foo=1", "unknown constant 'foo'"),
    ],
)
def test_names_that_there_are_not_are_refused_as_in_files(vary: str, says: str, tmp_path: Path) -> None:
    answer = sweep(*SMALL, "--vary", vary, "--out", tmp_path / "out")
    assert answer.exit_code == 2
    assert f"--vary {vary.partition('=')[0]}: " in answer.stderr
    assert says in answer.stderr
    assert not (tmp_path / "out").exists()


def test_points_do_not_depend_on_what_else_is_swept() -> None:
    asked = load("lock-cycle")
    few = points_at(asked, [{"workload.tasks": 4}])
    many = points_at(asked, [{"workload.tasks": 2}, {"workload.tasks": 4}])
    assert few == tuple(p for p in many if p.values["workload.tasks"] == 4)


# --- The store ---------------------------------------------------------------------------------------------


def spec_of(seed: int) -> str:
    return json.dumps(fakes.to_spec(fakes.FakePoint(), 0) | {"seed": seed})


def test_a_store_runs_nothing_twice_and_what_is_torn_again(tmp_path: Path) -> None:
    calls: list[str] = []

    def engine(spec: str) -> str:
        calls.append(spec)
        return fakes.engine(spec)

    run = Store(tmp_path, "one").remembering(engine)
    a, b = spec_of(1), spec_of(2)
    assert [run(a), run(b), run(a)] == [fakes.engine(a), fakes.engine(b), fakes.engine(a)]
    assert calls == [a, b]
    for path in Store(tmp_path, "one").entries():
        path.write_bytes(path.read_bytes()[:-2])
    assert run(a) == fakes.engine(a)
    assert calls == [a, b, a]


def test_another_version_of_the_engine_runs_again(tmp_path: Path) -> None:
    first, second = (fakes.engine(spec_of(seed)) for seed in (1, 2))
    assert Store(tmp_path, "one").remembering(lambda _: first)("a") == first
    assert Store(tmp_path, "two").remembering(lambda _: second)("a") == second


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
@pytest.mark.parametrize("forged", ["no result", '{"operations": -1}'])
def test_an_entry_that_no_engine_wrote_is_named_and_refused(forged: str, tmp_path: Path) -> None:
    command = (*SMALL, "--vary", "workload.tasks=1", "--out", tmp_path)
    assert sweep(*command).exit_code == 0
    store = Store(tmp_path / "store")
    (entry, *_) = store.entries()
    store.put(entry.name, forged)
    answer = sweep(*command)
    assert answer.exit_code == 2
    assert f"{entry}: is no result of a run" in answer.stderr
    entry.unlink()
    assert sweep(*command).exit_code == 0


# --- Kills, shards -----------------------------------------------------------------------------------------

BIG = [*SMALL, "--vary", "workload.tasks=1..40", "--vary", "workload.hold=2 us..20 us:log"]
BIG += ["--design", "sobol", "--points", "8", "--set", "measure.replications=3", "--threads", "2"]


def process(out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from simfs.cli import main; main()", "sweep", *BIG, "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def stop(running: subprocess.Popen[bytes], out: Path, entries: int, how: int) -> int:
    """Send a signal as soon as the store has this many runs; return the exit code."""
    deadline = time.monotonic() + 300
    while running.poll() is None and time.monotonic() < deadline:
        if sum(1 for _ in out.glob("store/??/*")) >= entries:
            running.send_signal(how)
            break
        time.sleep(0.01)  # the store is looked through each time
    return running.wait(300)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, png_alone_in_file: None) -> Path:
    """The whole sweep; figures are coarse from here on, also those that it is compared with."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    assert sweep(*BIG, "--out", out).exit_code == 0
    return out


@pytest.mark.slow
def test_killed_three_times_it_resumes_to_the_same_bytes(undisturbed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    total = len(list(Store(undisturbed / "store", "").entries()))
    moments = sorted(random.Random(7).sample(range(1, total // 2), 3))
    kept: dict[str, int] = {}
    for moment in moments:
        assert stop(process(out), out, moment, signal.SIGKILL) == -signal.SIGKILL
        now = {path.name: path.stat().st_mtime_ns for path in Store(out / "store", "").entries()}
        assert kept.items() <= now.items(), "a run that had ended was run again"
        kept = now
    assert len(kept) < total
    assert sweep(*BIG, "--out", out).exit_code == 0
    assert files(out) == files(undisturbed)


@pytest.mark.slow
def test_an_interrupt_keeps_what_has_ended_and_says_so(undisturbed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    running = process(out)
    assert stop(running, out, 20, signal.SIGINT) == 130
    assert running.stderr is not None
    assert b"the same command resumes" in running.stderr.read()
    assert sweep(*BIG, "--out", out).exit_code == 0
    assert files(out) == files(undisturbed)


@pytest.mark.slow
def test_threads_leave_no_trace(undisturbed: Path, tmp_path: Path) -> None:
    assert sweep(*BIG[:-1], "5", "--out", tmp_path / "out").exit_code == 0
    assert files(tmp_path / "out") == files(undisturbed)


@pytest.mark.slow
def test_shards_merge_to_the_same_bytes(undisturbed: Path, tmp_path: Path) -> None:
    shards = [tmp_path / f"shard-{i}" for i in (1, 2, 3)]
    for i, folder in enumerate(shards, 1):
        if i == 3:
            answer = merge(shards[:2], tmp_path / "early")
            assert answer.exit_code == 2
            assert "runs are missing" in answer.stderr
        assert sweep(*BIG, "--shard", f"{i}/3", "--out", folder).exit_code == 0
    assert merge(shards, tmp_path / "whole").exit_code == 0
    assert files(tmp_path / "whole") == files(undisturbed)


@pytest.mark.slow
def test_shards_may_share_a_directory(undisturbed: Path, tmp_path: Path) -> None:
    for part in ("1/2", "2/2"):
        assert sweep(*BIG, "--shard", part, "--out", tmp_path / "out").exit_code == 0
    assert merge([tmp_path / "out"], None).exit_code == 0
    assert files(tmp_path / "out") == files(undisturbed)


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
def test_only_shards_of_one_sweep_merge(undisturbed: Path, tmp_path: Path) -> None:
    assert sweep(*SMALL, "--vary", "workload.tasks=1", "--out", tmp_path / "a").exit_code == 0
    for folders, says in (
        ([undisturbed, tmp_path / "a"], "is no shard of the sweep"),
        ([tmp_path / "nowhere"], "is not the directory of a sweep"),
    ):
        answer = merge(folders, tmp_path / "whole")
        assert answer.exit_code == 2
        assert says in answer.stderr
    plan = tmp_path / "a" / "sweep.json"
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"version": "simfs 0.0.1"}))
    answer = merge([tmp_path / "a"], None)
    assert answer.exit_code == 2
    assert "was run by simfs 0.0.1" in answer.stderr


def merge(folders: Sequence[Path], out: Path | None) -> Any:  # noqa: ANN401
    return RUNNER.invoke(app, ["merge", *map(str, folders), *(["--out", str(out)] if out else [])])


# --- Refinement --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
def test_the_knee_of_a_lock_is_narrowed_to_one_task(tmp_path: Path) -> None:
    """A lock saturates at N* = (Z + S) / S tasks; the machine's costs are part of S, the interval of the place."""
    workload = next(p for p in expand(load("lock-cycle")) if p.variant == "mutex").scenario.workload
    assert isinstance(workload, LockCycle)
    options = ("--vary", "workload.tasks=1,24,40", "--refine", "knee", "--set", "measure.duration=40 ms")
    answer = sweep(*SMALL, *options, "--out", tmp_path)
    assert answer.exit_code == 0, answer.stderr
    text = (tmp_path / "tables" / "points.csv").read_text()
    tasks = [int(line.split(",")[2]) for line in text.splitlines() if line.startswith('"mutex ')]
    assert tasks == sorted(tasks)
    line = next(line for line in answer.stdout.splitlines() if line.startswith("mutex: knee"))
    low, high = int(line.split()[3]), int(line.split()[5])
    assert high - low == 2
    assert len(tasks) <= 16, "40 would be all of them"
    assert low <= (workload.think.mean + workload.hold.mean) / workload.hold.mean + 1
    assert high >= 0.8 * (workload.think.mean + workload.hold.mean) / workload.hold.mean


CROSSING = """
simfs: 1
name: crossing
title: Short thinks against short holds
machine: server-24
kernel: linux-6.11
workload: {kind: lock_cycle, lock: ticket, think: 50 us, hold: 5 us, tasks: 1}
variants:
  - {name: thinks, title: short thinks}
  - {name: holds, title: short holds, workload: {think: 100 us, hold: 1 us}}
measure: {warmup: 2 ms, duration: 20 ms, replications: 2}
"""


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
def test_a_crossing_is_narrowed_to_neighbours(tmp_path: Path) -> None:
    """Short thinks win until the lock is full (11 tasks, 200,000 cycles/s), which short holds pass with 20 tasks."""
    asked = tmp_path / "crossing.yaml"
    asked.write_text(CROSSING)
    options = ("--vary", "workload.tasks=2,12,24", "--refine", "crossover", "--between", "thinks,holds")
    answer = sweep(asked, *options, "--out", tmp_path / "out")
    assert answer.exit_code == 0, answer.stderr
    line = next(line for line in answer.stdout.splitlines() if "cross between" in line)
    words = line.split()
    low, high = int(words[words.index("between") + 1]), int(words[words.index("between") + 3])
    assert high - low == 1


TWO = ["--vary", "workload.tasks=1,2,4", "--vary", "workload.think=5 us,50 us"]


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
def test_two_keys_are_a_matrix_in_the_terminal_and_a_heat_map(tmp_path: Path) -> None:
    answer = sweep(*SMALL, *TWO, "--out", tmp_path / "two")
    points = csv.read_csv(tmp_path / "two" / "tables" / "points.csv").to_pylist()
    matrix = answer.stdout.partition("over tasks and")[2].partition("mutex")[0]
    rates = {f"{p['throughput_per_s']:,.0f}" for p in points if p["variant"] == "semaphore"}
    assert rates <= set(matrix.split())
    assert (tmp_path / "two" / "figures" / "heat.png").is_file()


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
def test_one_key_is_a_table_of_the_points(tmp_path: Path) -> None:
    answer = sweep(*SMALL, "--vary", "workload.tasks=1,2", "--out", tmp_path / "one")
    points = csv.read_csv(tmp_path / "one" / "tables" / "points.csv").to_pylist()
    assert {f"{p['throughput_per_s']:,.0f}" for p in points} <= set(answer.stdout.split())


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
def test_other_programs_read_a_sweep_from_a_pipe(tmp_path: Path) -> None:
    options = [*SMALL, "--vary", "workload.tasks=1,2", "--out", tmp_path / "one", "--format"]
    written = sweep(*options, "csv").stdout
    assert written.encode() == (tmp_path / "one" / "tables" / "points.csv").read_bytes()
    assert len(json.loads(sweep(*options, "json").stdout)["points"]) == 6


@pytest.mark.slow
@pytest.mark.usefixtures("png_alone")
def test_a_key_that_variants_set_themselves_is_told_aloud(tmp_path: Path) -> None:
    options = [*SMALL, "--vary", "workload.tasks=2", "--vary", "workload.lock=mutex,ticket"]
    told = sweep(*options, "--out", tmp_path / "out").stderr
    assert "warning: --vary workload.lock: overrides what mutex, ticket set" in told
    assert "warning" not in sweep(*SMALL, "--vary", "workload.tasks=2", "--out", tmp_path / "other").stderr


@pytest.mark.slow
def test_few_values_have_a_tick_each_and_no_others() -> None:
    settings = ["measure={duration: 1 ms, warmup: 0 ms, replications: 2}"]
    found = simfs.load("lock-cycle", *settings).sweep(
        {"workload.tasks": [2, 3, 4, 64], "workload.think": ["5 us", "50 us"]}
    )
    axes = found.figure("factors").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "3", "4", "64"]
    assert [label.get_text() for label in axes.get_xticklabels(minor=True)] == []


@pytest.mark.slow
def test_values_far_apart_do_not_stand_on_one_another() -> None:
    """Of 0 ns, 1 ns, 10 us and 10 ms three had their words in one place."""
    settings = ["measure={duration: 1 ms, warmup: 0 ms, replications: 2}"]
    found = simfs.load("lock-cycle", *settings).sweep(
        {"workload.think": ["0 ns", "1 ns", "10 us", "10 ms"], "workload.tasks": [2, 4]}
    )
    figure = found.figure("factors")
    assert_no_overlap(figure)
    words = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert words == ["0 ns", "1 ns", "10 us", "10 ms"]


def test_more_variants_than_can_be_told_apart_are_counted_in_the_legend() -> None:
    points = [replace(p, variant=f"variant {n}") for n in range(30) for p in fakes.points(["ext4"], (1, 4))]
    found = run_scenario(
        points, Runs(2), engine=fakes.engine, to_spec=fakes.to_spec, sweep=("workload.tasks",)
    )
    figure = factors(found, ["workload.tasks"])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["30 variants"]
    assert_no_overlap(figure)
