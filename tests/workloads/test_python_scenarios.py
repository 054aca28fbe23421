"""Scenarios whose program is written in Python: found, run, refused, and part of what a run is known by."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from places import ROOT
from typer.testing import CliRunner, Result

from simfs import _engine
from simfs._engine import Task
from simfs.cli import app
from simfs.scenario import expand, load, to_run_spec
from simfs.scenario.program import with_programs
from simfs.scenario.reading.imports import modules_of

SCENARIO = """\
simfs: 1
name: mine
title: A program of one's own
machine: {profile: server-24, cpus: 2}
kernel: linux-6.11
locks: {door: mutex}
workload:
  kind: python
  program: mine.py:worker
  tasks: 2
  params: {think: 10 us, hold: 500 ns}
measure: {warmup: 0, duration: 1 ms, replications: 2}
"""

MINE = """\
def setup(machine):
    return machine.new_lock("door")


def worker(task):
    think, hold = task.run(task.exponential(task.params["think"])), task.run(task.params["hold"], "system")
    section, end = task.steps(task.lock(task.shared), hold, task.unlock(task.shared)), task.end("visit")
    while True:
        yield think
        yield section
        yield end
"""


def written(folder: Path, program: str | None = MINE, scenario: str = SCENARIO) -> Path:
    path = folder / "mine.yaml"
    path.write_text(scenario, "utf-8")
    if program is not None:
        (folder / "mine.py").write_text(program, "utf-8")
    return path


def ran(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["run", str(path), *arguments])


def test_a_scenario_runs_the_program_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    monkeypatch.chdir("/")
    answer = ran(path, "--format", "json")
    assert answer.exit_code == 0, answer.stderr
    assert "visit" in answer.stdout
    assert '"door"' in answer.stdout


def test_a_scenario_runs_its_program_on_either_machine_with_the_same_result(tmp_path: Path) -> None:
    path = written(tmp_path)
    native, simpy = (ran(path, "--format", "csv", "--engine", engine) for engine in ("native", "simpy"))
    assert native.exit_code == 0, native.stderr
    assert simpy.stdout == native.stdout


SPINLOCK = """\
def setup(machine):
    return machine.new_word(), machine.new_word()


def worker(task):
    lock, guarded = task.shared
    take, count = task.exchange(lock, 1), task.fetch_add(guarded, 1)
    mode = "system" if task.params["system"] else "user"
    pause, enter = task.run(5000, mode), task.run(10, mode)
    begin, end = task.steps(task.begin(), enter), task.steps(task.store(lock, 0), task.end("hold"))
    while True:
        yield begin
        while (yield take):
            yield pause
        for _ in range(100):
            yield count
        yield end
        yield task.run(1000)
"""


def test_user_code_that_touches_words_gives_way_and_kernel_code_does_not(tmp_path: Path) -> None:
    """Four threads on one CPU: who waits for a holder that was preempted spins until its slice is over."""

    def path_of(mode: str) -> Path:
        scenario = SCENARIO.replace("cpus: 2", "cpus: 1, costs: {line_atomic: 1 us}").replace(
            "tasks: 2", "tasks: 4"
        )
        scenario = scenario.replace("locks: {door: mutex}\n", "").replace("duration: 1 ms", "duration: 60 ms")
        scenario = scenario.replace("{think: 10 us, hold: 500 ns}", f"{{system: {int(mode == 'system')}}}")
        (tmp_path / mode).mkdir()
        return written(tmp_path / mode, SPINLOCK, scenario)

    user, system = (path_of(mode) for mode in ("user", "system"))
    specs = [json.dumps(to_run_spec(expand(load(str(path)))[0], 0)) for path in (user, system)]
    preempted, whole = (json.loads(with_programs(_engine.run)(spec))["operations"] for spec in specs)
    assert preempted < 0.6 * whole, (preempted, whole)
    native, simpy = (ran(user, "--format", "csv", "--engine", engine) for engine in ("native", "simpy"))
    assert simpy.stdout == native.stdout


def test_the_program_of_the_documentation_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "extending.md").read_text("utf-8")
    section = page.partition("## Write a workload in Python")[2]
    program = section.partition("```python\n")[2].partition("```")[0]
    answer = ran(written(tmp_path, program), "--format", "json")
    assert answer.exit_code == 0, answer.stderr
    assert "visit" in answer.stdout


def test_every_step_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "extending.md").read_text("utf-8")
    steps = [name for name, method in vars(Task).items() if not name.startswith("_") and callable(method)]
    assert len(steps) > 15
    assert [name for name in steps if f"{name}(" not in page] == []


def test_the_shipped_program_is_the_built_in_lock_cycle() -> None:
    def rates(name: str, *overrides: str) -> list[float]:
        settings = ["measure.warmup=1 ms", "measure.duration=5 ms", "workload.tasks=8", *overrides]
        points = [p for p in expand(load(name, settings)) if p.variant in ("default", "semaphore")]
        texts = [json.dumps(to_run_spec(point, 0)) for point in points]
        return [json.loads(with_programs(_engine.run)(text))["operations"] for text in texts]

    assert rates("python-lock-cycle") == rates("lock-cycle")
    assert len(rates("python-lock-cycle")) == 1


def test_a_changed_program_is_another_run(tmp_path: Path) -> None:
    def run_spec() -> str:
        return json.dumps(to_run_spec(expand(load(written(tmp_path, program)))[0], 0))

    program = MINE
    before = run_spec()
    program = MINE.replace("visit", "call")
    assert run_spec() != before
    assert "call" in json.loads(with_programs(_engine.run)(run_spec()))["latency"]


def test_a_changed_module_of_a_program_is_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its store had the results of before: the name of a run knew only the program's own file."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    program = MINE.replace('task.end("visit")', "task.end(words_of_mine.WORD)")
    for late in (False, True):
        head = "" if late else "import words_of_mine\n"
        text = program.replace("    think, ", "    import words_of_mine\n    think, ") if late else program
        specs = []
        for word in ("visit", "calls"):  # as long, and within a second: bytecode would be thought fresh
            (tmp_path / "words_of_mine.py").write_text("from words_of_others import WORD\n")
            (tmp_path / "words_of_others.py").write_text(f"WORD = '{word}'\n")
            specs.append(json.dumps(to_run_spec(expand(load(written(tmp_path, head + text)))[0], 0)))
            assert word in json.loads(with_programs(_engine.run)(specs[-1]))["latency"]
        assert specs[0] != specs[1]


def test_a_spec_runs_only_the_program_that_it_was_made_with(tmp_path: Path) -> None:
    spec = json.dumps(to_run_spec(expand(load(written(tmp_path)))[0], 0))
    (tmp_path / "mine.py").write_text(MINE.replace("visit", "call"))
    with pytest.raises(ValueError, match="has been changed since"):
        with_programs(_engine.run)(spec)


def test_relative_imports_are_followed(tmp_path: Path) -> None:
    package = tmp_path / "parts"
    (package / "deep").mkdir(parents=True)
    (package / "deep" / "a.py").write_text("from . import b\nfrom ..c import x\nimport json, missing\n")
    for name in ("deep/b.py", "c.py"):
        (package / name).write_text("x = 1\n")
    assert modules_of(package / "deep" / "a.py") == {package / "deep" / "b.py", package / "c.py"}


def test_code_of_others_can_be_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "raise SystemExit(0)")
    monkeypatch.setenv("SIMFS_NO_CODE", "0")  # the option sets it
    answer = CliRunner().invoke(app, ["--no-code", "run", str(path)])
    assert answer.exit_code == 2
    assert "mine.yaml:9:12: " in answer.stderr
    assert "which --no-code or SIMFS_NO_CODE refuses to run" in answer.stderr
    path = written(tmp_path)
    for value, code in (("1", 2), ("0", 0), ("", 0)):
        monkeypatch.setenv("SIMFS_NO_CODE", value)
        assert ran(path, "--quick").exit_code == code
    monkeypatch.setenv("SIMFS_NO_CODE", "1")
    load("nfs-create")  # what comes with simfs is trusted


BROKEN = [
    ("a missing file", None, "9:12", "mine.py: cannot be read: No such file"),
    (
        "a missing function",
        MINE.replace("worker", "wrker"),
        "9:12",
        "has no function 'worker' (did you mean 'wrker'?)",
    ),
    ("no generator", "def worker(task):\n    return 5\n", "9:12", "'worker' is not a generator function"),
    ("a syntax error", "def worker(task:\n", "9:12", "mine.py:1:11: "),
    ("an error when loaded", "import json\njson.loads('')\n", "9:12", "mine.py:2: JSONDecodeError"),
]


@pytest.mark.parametrize(("what", "program", "place", "says"), BROKEN, ids=[case[0] for case in BROKEN])
def test_a_program_that_cannot_be_loaded_is_told_with_its_place(
    what: str, program: str | None, place: str, says: str, tmp_path: Path
) -> None:
    answer = ran(written(tmp_path, program))
    assert answer.exit_code == 2, what
    assert f"mine.yaml:{place}: " in answer.stderr.replace("\n", "")
    assert says in answer.stderr


@pytest.mark.parametrize("place", ["mine.py", "mine.py:", ":worker", "mine.py:two words"])
def test_a_program_is_named_by_file_and_function(place: str, tmp_path: Path) -> None:
    answer = ran(written(tmp_path, scenario=SCENARIO.replace("mine.py:worker", f"'{place}'")))
    assert answer.exit_code == 2
    assert "write it as FILE.py:FUNCTION" in answer.stderr


def test_an_error_while_a_program_runs_is_bad_input_with_its_line(tmp_path: Path) -> None:
    answer = ran(written(tmp_path, MINE.replace('task.params["hold"]', 'task.params["held"]')))
    assert answer.exit_code == 2
    assert "mine.py:6: in worker: KeyError: 'held'" in answer.stderr
    assert "Traceback" not in answer.stderr
