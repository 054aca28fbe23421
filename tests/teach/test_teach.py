"""Locks of `simfs.teach`: they run in scenarios as own locks do, and mistakes of beginners are told with their line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from simfs.cli import app
from simfs.scenario import paths

LOCKS = (paths.SCENARIOS / "teachlocks.py").read_text("utf-8")
CORRECT = ("Spinning", "Ticket", "Mcs", "Clh", "Sleeping")

SCENARIO = """\
simfs: 1
name: mine
title: A lock in ten lines
machine: {profile: server-24, cpus: 4}
kernel: {profile: linux-6.11, tick: 1 ms}
locks: {mylock: REFERENCE}
workload: {kind: lock_cycle, tasks: 4, lock: mylock, think: {exponential: 5 us}, hold: {exponential: 2 us}}
measure: {warmup: 0, duration: 1 ms, replications: 1}
"""


@pytest.mark.parametrize(
    "module", ["simfs.teach", "simfs.teach.verdicts", "simfs.machine", "simfs.machine.own"]
)
def test_a_file_with_a_lock_can_be_imported_by_itself(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(folder: Path, code: str, name: str, *options: str) -> Result:
    (folder / "mine.py").write_text(code, "utf-8")
    (folder / "mine.yaml").write_text(SCENARIO.replace("REFERENCE", f"mine.py:{name}"), "utf-8")
    answer = CliRunner().invoke(app, ["run", str(folder / "mine.yaml"), "--format", "json", *options])
    assert "Traceback" not in answer.output
    return answer


@pytest.mark.parametrize("name", CORRECT)
def test_a_lock_in_ten_lines_runs_in_a_scenario(name: str, tmp_path: Path) -> None:
    answer = run(tmp_path, LOCKS, name)
    assert answer.exit_code == 0, answer.stderr
    (lock,) = json.loads(answer.stdout)["points"][0]["locks"]
    assert lock["type"] == name
    assert (lock["slept"] > 0) == (name == "Sleeping")
    assert (lock["resolved_spinning"] > 0) == (name != "Sleeping")


@pytest.mark.slow
def test_a_queue_with_words_of_its_own_beats_the_ticket_lock_at_8_tasks(tmp_path: Path) -> None:
    """As docs/how-to/ten-lines.md promises; where waiters can lose their CPUs it stands still at 64 tasks."""
    load = (
        "machine.cpus=8",
        "workload.tasks=8",
        "workload.think.exponential=2 us",
        "workload.hold.exponential=500 ns",
    )
    settings = [option for setting in load for option in ("--set", setting)]
    clh, mcs = (_rate(run(tmp_path, LOCKS, name, *settings)) for name in ("Clh", "Mcs"))
    ticket = _rate(run(tmp_path, LOCKS, "Clh", *settings, "--set", "workload.lock=ticket"))
    assert clh > 1.05 * ticket
    assert mcs > ticket


def _rate(answer: Result) -> float:
    rate: float = json.loads(answer.stdout)["points"][0]["throughput"]["mean"]
    return rate


@pytest.mark.slow
@pytest.mark.parametrize("name", CORRECT)
def test_more_tasks_than_cpus_get_on(name: str, tmp_path: Path) -> None:
    one_cpu = ("--set", "machine.cpus=1", "--set", "measure.duration=12 ms")
    answer = run(tmp_path, LOCKS, name, *one_cpu)
    assert answer.exit_code == 0, answer.stderr
    assert json.loads(answer.stdout)["points"][0]["locks"][0]["acquired"] > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Spinning", "Sleeping"])
def test_replications_in_threads_do_not_see_each_other(name: str, tmp_path: Path) -> None:
    more = ("--set", "measure.replications=3", "--set", "measure.duration=1 ms")
    at_once, in_turn = (run(tmp_path, LOCKS, name, *more, "--threads", n) for n in ("3", "1"))
    assert at_once.exit_code == 0, at_once.stderr
    assert json.loads(at_once.stdout)["points"] == json.loads(in_turn.stdout)["points"]


def test_what_a_word_costs_is_an_access_to_its_line(tmp_path: Path) -> None:
    """A second word that is written costs a transfer more as soon as there are two CPUs."""
    slow = LOCKS.replace("self.taken.store(0)", "self.taken.store(0)\n        self.more.exchange(1)", 1)
    slow = slow.replace("self.taken = Word(0)", "self.taken, self.more = Word(0), Word(0)", 1)
    rates = [
        json.loads(run(tmp_path, code, "Spinning").stdout)["points"][0]["locks"][0]["acquired"]
        for code in (LOCKS, slow)
    ]
    assert rates[1] < rates[0]


@pytest.mark.slow
def test_preemption_can_be_off(tmp_path: Path) -> None:
    off = LOCKS.replace("fifo = True", "fifo = True\n    preemption = False", 1)
    # Holds that are long enough for a tick to fall into one.
    settings = (
        "kernel.preemption=full",
        "workload.tasks=8",
        "workload.think.exponential=20 us",
        "workload.hold.exponential=20 us",
        "measure.duration=10 ms",
    )
    full = [option for setting in settings for option in ("--set", setting)]
    preempted = [
        json.loads(run(tmp_path, code, "Ticket", *full).stdout)["points"][0]["locks"][0]["holder_runnable_ns"]
        for code in (LOCKS, off)
    ]
    assert preempted[0] > 0 == preempted[1]


@pytest.mark.slow
def test_a_lost_wake_up_is_a_stall_in_a_scenario(tmp_path: Path) -> None:
    code = LOCKS.replace("            self.wake(first)", "            pass")
    answer = run(tmp_path, code, "Sleeping", "--set", "measure.duration=20 ms")
    assert answer.exit_code == 3
    assert "without waking anybody" in answer.stderr


def test_classes_may_derive_from_each_other_and_have_methods_of_their_own(tmp_path: Path) -> None:
    more = LOCKS + (
        "\n\nclass Loud(Spinning):\n    def acquire(self, task):\n        self.say(task)\n"
        "        super().acquire(task)\n\n"
        "    def say(self, task):\n        task.spin_until(lambda: self.taken.load() == 0)\n"
    )
    assert run(tmp_path, more, "Loud").exit_code == 0


MISTAKES = {
    "no parentheses": (
        "task.spin_until(lambda: self.taken.load() == 0)",
        "task.sleep",
        "mine.py:14:13: not valid Python: this does nothing; did you mean task.sleep()?",
    ),
    "a yield": (
        "self.taken.store(0)",
        "yield self.taken.store(0)",
        "mine.py:17:9: not valid Python: leave out `yield`",
    ),
    "no lambda": (
        "lambda: self.taken.load() == 0",
        "self.taken.load() == 0",
        "mine.py:14:13: TypeError: spin_until needs a function",
    ),
    "less than no time": (
        "lambda: self.taken.load() == 0",
        "lambda: self.taken.load() == 0, at_most=-5",
        "mine.py:14:13: TypeError: spin_until: at_most is a number of ns, not -5",
    ),
    "a word as a number": (
        "self.taken.exchange(1)",
        "self.taken == 1",
        "mine.py:13:15: TypeError: a Word is read with .load()",
    ),
    "a word written over": (
        "self.taken.store(0)",
        "self.taken = 0",
        "mine.py:17:9: TypeError: self.taken is a Word: write self.taken.store(0)",
    ),
    "a mistyped word": (
        "self.taken.store(0)",
        "self.takn.store(0)",
        "mine.py:17:9: AttributeError: the lock has no 'takn'; did you mean 'taken'?",
    ),
    "a mistyped method": (
        "task.spin_until",
        "task.spin_util",
        "mine.py:14:13: AttributeError: a task has no 'spin_util'; did you mean 'spin_until'?",
    ),
    "waking a number": (
        "self.taken.store(0)",
        "self.wake(1)",
        "mine.py:17:9: TypeError: wake needs a task, not 1",
    ),
    "no word in the condition": (
        "lambda: self.taken.load() == 0",
        "lambda: False",
        "mine.py:14:13: TypeError: spin_until's condition reads no Word",
    ),
    "sleep in a lambda": (
        "lambda: self.taken.load() == 0",
        "lambda: task.sleep()",
        "mine.py:14:37: TypeError: sleep works only in a line",
    ),
    "no task": (
        "def acquire(self, task: Task)",
        "def acquire(self)",
        "mine.py:12:1: write `def acquire(self, task)`",
    ),
    "no release": ("def release", "def relese", "mine.yaml:6:17: Spinning in"),
}


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_of_beginners_are_told_with_their_line(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    code = LOCKS.replace(old, new, 1)
    assert code != LOCKS
    answer = run(tmp_path, code, "Spinning")
    assert answer.exit_code == 2
    assert said in answer.stderr.replace("\n", "")
