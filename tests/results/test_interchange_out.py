"""`run --as`: what simfs prints as a tool reads back, and has the layout of that tool's own output."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from places import SAMPLES
from typer.testing import CliRunner

from simfs import interchange
from simfs.cli import app
from simfs.experiments.answer import run_points
from simfs.interchange import WRITERS
from simfs.interchange.locks_out import the_one, traced
from simfs.interchange.reading import UnreadableError
from simfs.interchange.symbols import sort
from simfs.results.model import ScenarioResult
from simfs.scenario import expand, load

RUNNER = CliRunner()
SCENARIO = """\
simfs: 1
name: busy
title: Create and unlink on two filesystems
machine: {profile: server-24, cpus: 4}
kernel: linux-6.12
workload: {kind: create_unlink, tasks: 4, directories: shared}
variants:
  - {name: xfs, filesystem: {kind: xfs, size: 4 GiB, agcount: 2}}
  - {name: btrfs, filesystem: {kind: btrfs}}
sweep: {workload.tasks: [1, 4]}
measure: {warmup: 1 ms, duration: 4 ms, replications: 2}
"""


JOBS = SCENARIO.replace(
    "{kind: create_unlink, tasks: 4, directories: shared}",
    "{kind: fio, tasks: 4, rw: randrw, size: 64 MiB, direct: true}\ndevice: nvme",
)
"""The same with operations that fio knows."""


def run_of(text: str, folder: Path) -> ScenarioResult:
    path = folder / "busy.yaml"
    path.write_text(text, "utf-8")
    asked = load(str(path))
    return run_points(asked, expand(asked), tuple(asked.sweep))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> ScenarioResult:
    return run_of(SCENARIO, tmp_path_factory.mktemp("as"))


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> ScenarioResult:
    return run_of(JOBS, tmp_path_factory.mktemp("jobs"))


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("variant", ["xfs", "btrfs"])
def test_the_importer_reads_it_back_whole(
    result: ScenarioResult, jobs: ScenarioResult, name: str, variant: str
) -> None:
    text = interchange.write(jobs if name == "fio" else result, name, variant)
    reading = interchange.read(text)
    assert reading.format == name.removesuffix("-x")
    notes = 1 if name == "klockstat" else 0  # `Tracing lock events...` has nothing to read
    assert reading.skipped == notes
    assert reading.figures or reading.waits


@pytest.mark.parametrize("name", ["will-it-scale", "fxmark", "fs_mark", "fio", "lkp"])
def test_rates_come_back(result: ScenarioResult, jobs: ScenarioResult, name: str) -> None:
    written = jobs if name == "fio" else result
    figures = interchange.read(interchange.write(written, name, "xfs")).figures
    for point in written.of("xfs"):
        rates = [f.value for f in figures if f.tasks == point.tasks and f.metric.endswith("_per_s")]
        rates = [r for r in rates if r > 100]
        assert any(r == pytest.approx(point.throughput.mean, rel=0.02) for r in rates) or (
            name == "fs_mark" and min(rates) <= point.throughput.mean <= max(rates)
        )


@pytest.mark.parametrize("name", ["perf-lock", "perf-lock-x", "lock_stat", "klockstat"])
def test_waits_come_back_by_lock(result: ScenarioResult, name: str) -> None:
    """A `wait_lock` is no more told apart in a table than perf does it; XFS's buffers are unknown to lockdep."""
    point = the_one(result.of("btrfs"))
    found = sort(interchange.read(interchange.write(result, name, "btrfs")).waits).by_lock
    sleeps = ("rwsem", "mutex", "semaphore", "percpu-rwsem")
    checked = 0
    for lock in point.locks:
        count, ns = traced(lock) if name.startswith("perf") else (lock.contended, lock.wait_total_ns)
        counted = count and (name != "klockstat" or lock.type in sleeps)
        if not counted or lock.name.endswith("wait_lock") or " tree" in lock.name:
            continue
        checked += 1
        waits = found[lock.name]
        assert waits.count == (lock.acquired if name == "klockstat" else count)
        assert waits.total_ns == pytest.approx(ns, rel=0.01, abs=10)
    assert checked > 0


def sample(name: str) -> list[str]:
    return (SAMPLES / name).read_text("utf-8").splitlines()


LAYOUTS = {
    "perf-lock": ("perf-lock-xfs.txt", r" contended", r"^.{10}( .{9} .{2}){3}   .{10}   \S+\+0x[0-9a-f]+$"),
    "perf-lock-x": ("perf-lock-x-xfs.csv", r"# output", r"^\d+, \d+, \d+, \d+, [\w:-]+, \S+\+0x[0-9a-f]+$"),
    "lock_stat": ("lock_stat-doc.txt", r"lock_stat version|-{100}|.*class name", r"^.{40}:( *[\d.]+){12}$"),
    "klockstat": ("klockstat-doc.txt", r" +Caller", r"^.{40} .{10} .{6} .{10} .{10}$"),
    "fs_mark": ("fs_mark-xfs.txt", r"FSUse%", r"^.{6} .{12} .{12} .{12} .{16}$"),
    "dbench": ("dbench-2-ext4.txt", r" Operation +Count|^ -{20}", r"^ .{12} .{7} .{9} .{9}$"),
    "will-it-scale": ("will-it-scale-open1.csv", r"tasks,", r"^\d+,-?\d+,\d+(\.\d\d)?,-?\d+,\d+(\.\d\d)?,\d+$"),
    "fxmark": ("fxmark-tmpfs.log", r"# ncpu", r"^\d+ \d+\.\d{6} \d+\.\d{6} \d+\.\d{6}( [\d.e+-]+){19,20}$"),
    "lkp": ("lkp-will-it-scale.txt", r" +%stddev| +\\|-{16} ", r"^.{10}.{6}.{11}.{11}.{6}  \S+$"),
}  # fmt: skip
"""Of a tool: a sample of its own, which lines are headings, what a row looks like."""


def rows_of(lines: list[str], pattern: str) -> list[str]:
    return [line for line in lines if re.match(pattern, line) and re.search(r"\d", line)]


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_layout_is_that_of_the_tool(result: ScenarioResult, name: str) -> None:
    file, heading, row = LAYOUTS[name]
    real, ours = sample(file), interchange.write(result, name, None if name == "lkp" else "xfs").splitlines()
    headings = [{x.rstrip() for x in lines if re.match(heading, x.lstrip("\n"))} for lines in (real, ours)]
    assert headings[0] == headings[1] != set()
    assert rows_of(real, row)
    assert rows_of(ours, row)
    if name == "lock_stat":
        assert {len(x) for x in rows_of(ours, row)} <= {len(x) for x in rows_of(real, row)}


def shape(value: Any, deep: int = 3) -> Any:  # noqa: ANN401
    if isinstance(value, dict) and deep:
        return {key: shape(item, deep - 1) for key, item in value.items()}
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def contains(real: Any, ours: Any) -> bool:  # noqa: ANN401
    if isinstance(ours, dict) and isinstance(real, dict):
        return all(key in real and contains(real[key], item) for key, item in ours.items())
    return bool(real == ours)


def test_fio_prints_no_create_as_a_write(result: ScenarioResult) -> None:
    with pytest.raises(UnreadableError, match="has neither, but create-unlink"):
        interchange.write(result, "fio", "xfs")


def test_the_keys_of_fio_are_fios(jobs: ScenarioResult) -> None:
    text = "\n".join(sample("fio-xfs.json"))
    real = json.loads(text[text.index("{\n") :])
    ours = json.loads(interchange.write(jobs, "fio", "xfs"))
    assert contains(shape(real), shape(ours))
    for job in ours["jobs"]:
        assert contains(shape(real["jobs"][0]), shape(job))


def test_times_of_perf_have_the_largest_unit_that_they_fill(result: ScenarioResult) -> None:
    rows = interchange.write(result, "perf-lock", "xfs").splitlines()[2:]
    waits = interchange.read("\n".join(interchange.write(result, "perf-lock", "xfs").splitlines())).waits
    assert all(float(re.findall(r"([\d.]+) [nums]", row)[0]) < 1000 for row in rows)
    assert all((a.total_ns or 0) >= (b.total_ns or 0) * 0.99 for a, b in pairwise(waits))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--as", "perf-lok"], "did you mean 'perf-lock'?"),
        (["--as", "perf-lock"], "name one of"),
        (["--as", "perf-lock", "--variant", "mutx"], "did you mean 'mutex'?"),
        (["--as", "fio", "--variant", "mutex"], "has neither, but lock_cycle"),
    ],
)
def test_what_cannot_be_printed_is_bad_input_before_anything_is_run(
    options: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simfs.results.run.native_engine", None)
    answer = RUNNER.invoke(app, ["run", "lock-cycle", *options])
    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert said in answer.stderr


def test_the_command_prints_a_table() -> None:
    short = ["--set", "measure.duration=1 ms", "--set", "measure.replications=1", "--set", "workload.tasks=4"]
    answer = RUNNER.invoke(app, ["run", "lock-cycle", *short, "--as", "perf-lock-x", "--variant", "mutex"])
    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout.startswith("# output: contended, total wait")
