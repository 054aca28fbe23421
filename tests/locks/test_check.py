"""The judge of locks: it finds each fault in a short schedule, passes what is right, and says true things of it."""

from __future__ import annotations

import ast
import json
import time
from pathlib import Path
from typing import Any

import pytest
from places import TESTS
from typer.testing import CliRunner, Result

from simfs.cli import app
from simfs.machine.own import own_design
from simfs.scenario import paths
from simfs.teach import Lock
from simfs.teach.explore import Case, Explored, explore

FAULTY_FILE = TESTS / "support/faulty_locks.py"
SHIPPED = paths.SCENARIOS / "teachlocks.py"
FAULTY = {
    node.name: ast.get_docstring(node)
    for node in ast.parse(FAULTY_FILE.read_text("utf-8")).body
    if isinstance(node, ast.ClassDef) and ast.get_docstring(node)
}
SMALL = (Case(1, 2, 0), Case(2, 1, 2), Case(2, 2, 2), Case(3, 1, 1), Case(4, 2))


def explored(file: Path, name: str, budget: int = 20_000, cases: tuple[Case, ...] = SMALL) -> Explored:
    design = own_design(f"{file}:{name}")
    assert issubclass(design, Lock)
    return explore(design, budget, cases)


def check(*options: object) -> Result:
    answer = CliRunner().invoke(app, ["check", *map(str, options)])
    assert "Traceback" not in answer.output
    return answer


def verdicts(*options: object) -> dict[str, tuple[str, str]]:
    document: dict[str, Any] = json.loads(check(*options, "--format", "json").stdout)
    return {verdict["question"]: (verdict["status"], verdict["says"]) for verdict in document["verdicts"]}


def test_there_are_twenty_faults_of_all_kinds() -> None:
    assert len(FAULTY) >= 20
    assert set(FAULTY.values()) == {"mutual exclusion", "deadlock", "lost wake-up", "FIFO", "error"}


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_is_found_within_ten_seconds(name: str) -> None:
    began = time.process_time()
    found = explored(FAULTY_FILE, name).found
    assert FAULTY[name] in found
    assert time.process_time() - began < 10
    fault = found[FAULTY[name] or ""]
    assert fault.disturbances <= 2
    assert fault.case.tasks <= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Spinning", "Ticket", "Mcs", "Clh", "Sleeping"])
def test_a_right_lock_passes_in_all_schedules(name: str) -> None:
    result = explored(SHIPPED, name)
    assert not result.found
    assert all(complete for case, _, complete in result.covered if case.disturbances is not None)
    assert (result.barged is None) == (name in ("Ticket", "Mcs", "Clh"))
    assert (max(result.passed[4], 3) == 3) == (name in ("Ticket", "Mcs", "Clh"))


def test_the_same_schedules_are_tried_each_time() -> None:
    first, second = (explored(FAULTY_FILE, "ForgetsThatOthersSleep") for _ in range(2))
    assert first == second


def test_the_schedule_of_a_check_and_a_store_is_the_shortest() -> None:
    """Both look before either writes: one line of each is between."""
    found = explored(FAULTY_FILE, "NoAtomicity").found["mutual exclusion"]
    lines = [(event.task, event.line) for event in found.events if event.line]
    assert lines == [(1, 36), (2, 36), (2, 37), (1, 37)]
    assert found.disturbances == 2


TEXT = """\
from simfs.teach import Lock, Word


class Mine(Lock):
    def __init__(self):
        self.taken = Word(0)

    def acquire(self, task):
        task.spin_until(lambda: self.taken.exchange(1) == 0)

    def release(self, task):
        self.taken.store(0)
"""


def mine(folder: Path, old: str = "", new: str = "") -> str:
    (folder / "mine.py").write_text(TEXT.replace(old, new) if old else TEXT, "utf-8")
    return f"{folder / 'mine.py'}:Mine"


@pytest.mark.slow
def test_a_condition_may_try_to_take_the_lock(tmp_path: Path) -> None:
    answer = check(mine(tmp_path), "--schedules", 500, "--schedules-only")
    assert answer.exit_code == 0, answer.output


CLH = """\
from simfs.teach import Lock, Word


class Mine(Lock):
    fifo = True

    def __init__(self):
        self.tail = Word(Word(0))

    def acquire(self, task):
        task.node = Word(1)
        before = self.tail.exchange(task.node)
        for _ in range(6):
            before.load()
        try:
            task.spin_until(lambda: before.load() == 0)
        finally:
            before.load()

    def release(self, task):
        task.node.store(0)
"""


@pytest.mark.slow
def test_a_loop_that_ends_is_no_wait(tmp_path: Path) -> None:
    """Who has not queued yet may be passed, however long the loops are that it runs through."""
    (tmp_path / "mine.py").write_text(CLH, "utf-8")
    result = explored(tmp_path / "mine.py", "Mine", cases=SMALL[:3])
    assert not result.found
    assert not result.barged
    assert not result.busy


@pytest.mark.slow
def test_a_loop_of_ones_own_is_a_wait(tmp_path: Path) -> None:
    """A test-and-set without spin_until bars nobody, and waits for no one on the machine."""
    loop = ("task.spin_until(lambda: self.taken.exchange(1) == 0)", "while self.taken.exchange(1): pass")
    file = mine(tmp_path, *loop).removesuffix(":Mine")
    assert explored(Path(file), "Mine").busy
    file = mine(tmp_path, loop[0], f"{loop[1]}\n\n    fifo = True").removesuffix(":Mine")
    assert "FIFO" in explored(Path(file), "Mine").found


@pytest.mark.slow
def test_who_wakes_up_for_no_reason_is_in_no_loop_of_its_own() -> None:
    """It was woken again and again by the judge, not by its code."""
    assert not explored(SHIPPED, "Sleeping").busy


def test_a_fault_is_shown_as_a_time_line_with_the_code(tmp_path: Path) -> None:
    answer = check(FAULTY_FILE.as_posix() + ":WakesBeforeEnqueue")
    assert answer.exit_code == 1
    rows = answer.stdout.splitlines()
    assert rows[1].startswith("FAIL lost wake-up")
    empty = next(i for i, row in enumerate(rows) if "if self.sleepers:" in row)
    enqueue = next(i for i, row in enumerate(rows) if "self.sleepers.append(task)" in row)
    asleep = next(i for i, row in enumerate(rows) if "task.sleep()" in row and "(sleeps)" in row)
    assert empty < enqueue < asleep


def test_graders_get_json() -> None:
    answer = check(f"{FAULTY_FILE}:NeverReleases", "--format", "json")
    assert answer.exit_code == 1
    document = json.loads(answer.stdout)
    assert document["ok"] is False
    assert document["fault"]["kind"] == "deadlock"
    assert {"task", "line", "code", "says", "words"} == set(document["fault"]["schedule"][0])


@pytest.mark.slow
def test_verdicts_on_a_spinning_and_a_sleeping_lock() -> None:
    spinning = verdicts("teachlocks.py:Ticket", "--schedules", 400)
    assert spinning["FIFO"] == ("pass", "as promised: nobody passed who waited before")
    assert spinning["starvation"][1] == "who waits is passed by each other task once at most"
    assert spinning["convoy"][1].startswith("no")
    assert spinning["throughput class"][1].startswith("that of qspinlock, ticket, mutex:")
    assert "lost wake-up" in spinning


@pytest.mark.slow
def test_a_lock_that_is_granted_to_sleepers_is_a_convoy(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GRANTS, "utf-8")
    said = verdicts(f"{tmp_path / 'mine.py'}:Mine", "--schedules", 1000)
    assert said["mutual exclusion"][0] == "pass"
    assert said["FIFO"][0] == "pass"
    assert said["convoy"][1].startswith("yes")
    assert said["throughput class"][1].startswith("that of semaphore:")


GRANTS = """\
from simfs.teach import Lock, Word


class Mine(Lock):
    fifo = True

    def __init__(self):
        self.owner, self.queue = Word(None), []

    def acquire(self, task):
        self.queue.append(task)
        while self.queue[0] is not task:
            task.sleep()

    def release(self, task):
        self.queue.pop(0)
        for first in self.queue[:1]:
            self.wake(first)
"""


@pytest.mark.slow
def test_the_full_interface_is_judged_on_the_machine(tmp_path: Path) -> None:
    code = (paths.SCENARIOS / "mylocks.py").read_text("utf-8")
    path = tmp_path / "mine.py"
    path.write_text(code.replace("if self.holder:", "if self.holder and self.readers:"), "utf-8")
    answer = check(f"{path}:TwoPhase")
    assert answer.exit_code == 1
    assert "mutual exclusion" in answer.stdout


BAD = {
    "no class": ("class Mine", "class Mind", "has no class 'Mine' (did you mean 'Mind'?)"),
    "a mistake that always shows": (
        "self.taken.store(0)",
        "self.takn.store(0)",
        "mine.py:12:9: AttributeError",
    ),
    "a condition without a word": ("self.taken.exchange(1) == 0", "False", "mine.py:9:9: TypeError"),
    "no Python": ("def release", "def release(", "mine.py:11:"),
    "a bad start": ("Word(0)", "Word(1 / 0)", "mine.py:6:27: ZeroDivisionError"),
    "too many parameters": ("__init__(self)", "__init__(self, n)", "mine.py:5:1: write `def __init__(self)`"),
}


@pytest.mark.parametrize(("old", "new", "said"), BAD.values(), ids=BAD)
def test_what_cannot_be_judged_is_bad_input(old: str, new: str, said: str, tmp_path: Path) -> None:
    answer = check(mine(tmp_path, old, new))
    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert said in answer.stderr.replace("\n", "")


@pytest.mark.parametrize("lock", ["mine.py", "Mine", "no.py:Mine", ".py:", ":", "/:x", "teachlocks.py:"])
def test_bad_names_are_refused(lock: str) -> None:
    answer = check(lock)
    assert answer.exit_code == 2
    assert answer.stdout == ""


def test_code_can_be_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMFS_NO_CODE", "1")
    assert check(mine(tmp_path)).exit_code == 2
