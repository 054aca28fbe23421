"""A user's own lock: found, run on the reference machine, held to the laws, refused in one line where it is wrong."""

from __future__ import annotations

import gc
import json
import re
import sys
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner, Result

from simfs import machine
from simfs.cli import app
from simfs.scenario import expand, load, paths, to_run_spec
from simfs.scenario.reading.files import syntax_tree

RUNNER = CliRunner()
TWO_PHASE = (paths.SCENARIOS / "mylocks.py").read_text("utf-8")
SHORT = [
    "--set",
    "measure.warmup=0.1 ms",
    "--set",
    "measure.duration=1 ms",
    "--set",
    "measure.replications=1",
]

SCENARIO = """\
simfs: 1
name: mine
title: A lock of one's own
machine: {profile: server-24, cpus: 4}
kernel: linux-6.11
locks: {mylock: REFERENCE}
workload: {kind: lock_cycle, tasks: 6, lock: mylock, think: {exponential: 5 us}, hold: {exponential: 2 us}}
measure: {warmup: 0, duration: 1 ms, replications: 1}
"""


def write(folder: Path, code: str, reference: str = "mine.py:TwoPhase") -> Path:
    (folder / "mine.py").write_text(code, "utf-8")
    (folder / "mine.yaml").write_text(SCENARIO.replace("REFERENCE", reference), "utf-8")
    return folder / "mine.yaml"


def run(*options: object) -> Result:
    answer = RUNNER.invoke(app, ["run", *map(str, options)])
    assert "Traceback" not in answer.output
    return answer


@pytest.mark.slow
def test_the_shipped_lock_is_compared_with_built_in_ones_in_one_command() -> None:
    answer = run("own-lock", *SHORT, "--format", "json")
    assert answer.exit_code == 0
    assert "reference machine" in answer.stderr
    points = json.loads(answer.stdout)["points"]
    kinds = {point["variant"]: point["locks"][0]["type"] for point in points if point["tasks"] == 8}
    assert kinds == {
        "two-phase": "two-phase", "semaphore": "semaphore", "mutex": "mutex", "qspinlock": "spinlock",
    }  # fmt: skip


def test_the_shipped_lock_spins_first_and_sleeps_where_that_did_not_help() -> None:
    """In a window of some ticks: see the next test."""
    spec = to_run_spec(
        expand(
            load(
                "own-lock",
                ["workload.tasks=16", "workload.hold=5 us", *SHORT[1::2], "measure.duration=10 ms"],
            )
        )[0],
        0,
    )
    locks = json.loads(machine.run(json.dumps(spec)))["locks"]
    assert locks[0]["resolved_spinning"] > 0
    assert locks[0]["slept"] > 0


def test_who_is_woken_first_may_wait_for_its_cpu_until_the_tick() -> None:
    """It stands behind the one task that still runs, which finds the lock free again and again while all others sleep.

    An idle CPU takes it away with the next tick (`nohz_balancer_kick`), every 4 ms: no wake-up is lost. Few runs
    come to that: it hangs on where the tasks stand when the first of them sleep.
    """
    point = expand(load("own-lock", ["workload.tasks=16", "workload.hold=20 us"]))[0]

    def until(replication: int, ns: float) -> dict[str, int]:
        spec = to_run_spec(point, replication) | {"warmup_ns": 1e5, "duration_ns": ns}
        lock: dict[str, int] = json.loads(machine.run(json.dumps(spec)))["locks"][0]
        return lock

    def alone(lock: dict[str, int]) -> bool:
        return (lock["resolved_spinning"], lock["slept"], lock["still_waiting"]) == (0, 0, 15)

    runs = ((replication, until(replication, 3e6)) for replication in range(10))
    replication, before = next(run for run in runs if alone(run[1]))
    assert before["wakeups"] > 50
    assert until(replication, 1e7)["slept"] > 50


def test_a_lock_may_stand_for_a_role_of_the_kernel(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    write(tmp_path, TWO_PHASE)
    scenario.write_text(
        "simfs: 1\nname: mine\ntitle: t\nmachine: guest-2cpu\nkernel: linux-6.18\nfilesystem: {kind: xfs}\n"
        "locks: {my: mine.py:TwoPhase, xfs.ilock: my}\nworkload: {kind: create, tasks: 2}\n"
        "measure: {warmup: 0, duration: 1 ms, replications: 1}\n",
        "utf-8",
    )
    answer = run(scenario, "--format", "json")
    assert answer.exit_code == 0, answer.stderr
    types = {
        lock["type"]
        for lock in json.loads(answer.stdout)["points"][0]["locks"]
        if lock["role"] == "xfs.ilock"
    }
    assert types == {"two-phase"}


def test_the_native_machine_refuses_it_and_names_the_one_that_can(tmp_path: Path) -> None:
    answer = run(write(tmp_path, TWO_PHASE), "--engine", "native")
    assert answer.exit_code == 2
    assert "--engine simpy" in answer.stderr


BROKEN = {
    "that lets two in": TWO_PHASE.replace("if self.holder:", "if self.holder and self.readers:"),
    "that only says it is taken": TWO_PHASE.replace("        self.begin_hold(task)\n", ""),
}


@pytest.mark.parametrize("code", BROKEN.values(), ids=BROKEN)
def test_a_lock_that_breaks_mutual_exclusion_is_reported(code: str, tmp_path: Path) -> None:
    answer = run(write(tmp_path, code), "--format", "json")
    assert answer.exit_code == 1
    assert "mutual exclusion" in answer.stderr


KEPT = TWO_PHASE.replace("        self.end_hold()\n", "")
SPINS = KEPT.replace("self.machine.now < deadline and ", "").replace("task, deadline=deadline", "task")


@pytest.mark.parametrize(("code", "tasks"), [(KEPT, 6), (SPINS, 4)], ids=["sleeping", "spinning"])
def test_a_lock_that_is_never_free_again_is_a_stall(code: str, tasks: int, tmp_path: Path) -> None:
    """Who spins does so on a CPU that ticks, but ticks alone change nothing."""
    answer = run(write(tmp_path, code), "--set", "measure.duration=20 ms", "--set", f"workload.tasks={tasks}")
    assert answer.exit_code == 3
    assert "stall" in answer.stderr


WAKE = """        if self.sleepers:
            self.wake(task, self.sleepers[0])
"""


def test_a_lock_that_loses_wake_ups_is_a_stall_although_one_task_goes_on(tmp_path: Path) -> None:
    """Whoever has the lock finds it free again and again; all others sleep for it."""
    scenario = write(tmp_path, TWO_PHASE.replace(WAKE, ""))
    kernel = "kernel={profile: linux-6.11, tick: 1 ms}"
    answer = run(scenario, "--set", kernel, "--set", "workload.tasks=4", "--format", "json")
    assert answer.exit_code == 3
    (found,) = json.loads(answer.stdout)["findings"]
    assert len(found["stall"]["cycle"]) == 3
    said = r"task (\d) sleeps for lock#0, which task (\d) released at [\d.]+ ns without waking anybody"
    for told in (re.fullmatch(said, line) for line in found["stall"]["cycle"]):
        assert told
        assert told[1] != told[2]
    assert found["stall"]["cycle"][0] in answer.stderr


@pytest.mark.parametrize("role", ["xfs.ilock", "xfs.ilok"])
def test_a_class_for_a_role_without_a_name_is_refused(role: str, tmp_path: Path) -> None:
    """It would be the name of a lock that nothing uses, and the run one with the kernel's own."""
    scenario = write(tmp_path, TWO_PHASE)
    scenario.write_text(SCENARIO.replace("{mylock: REFERENCE}", f"{{{role}: mine.py:TwoPhase}}"), "utf-8")
    answer = run(scenario)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert f"mine.yaml:6:9: locks.{role}: a lock of your own needs a name without a point" in answer.stderr
    assert "locks: {mine: mine.py:TwoPhase, xfs.ilock: mine}" in answer.stderr


@pytest.mark.parametrize("name", ["spinlock", "rwsem"])
def test_a_class_for_a_primitive_without_a_name_is_refused(name: str, tmp_path: Path) -> None:
    scenario = write(tmp_path, TWO_PHASE)
    files = "filesystem: {kind: xfs}\nworkload: {kind: create, tasks: 2}\n"
    text = SCENARIO.replace("{mylock: REFERENCE}", f"{{{name}: mine.py:TwoPhase}}")
    scenario.write_text(re.sub(r"(?ms)^workload:.*?(?=^\w)", files, text), "utf-8")
    answer = run(scenario)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert f"locks.{name}: a lock of your own needs a name" in answer.stderr
    assert f"locks: {{mine: mine.py:TwoPhase, {name}: mine}}" in answer.stderr


def test_a_lock_that_nothing_uses_is_told_and_needs_no_other_machine(tmp_path: Path) -> None:
    answer = run(write(tmp_path, TWO_PHASE), "--set", "workload.lock=mutex")
    assert answer.exit_code == 0
    assert "locks.mylock is not used: 'workload: {lock: mylock}' takes it" in answer.stderr
    assert "reference machine" not in answer.stderr


def test_a_lock_that_no_role_has_is_told_with_the_nearest_role(tmp_path: Path) -> None:
    scenario = write(tmp_path, TWO_PHASE)
    files = "filesystem: {kind: xfs}\nworkload: {kind: create, tasks: 2}\n"
    text = SCENARIO.replace("{mylock: REFERENCE}", "{spinlocks: mine.py:TwoPhase}")
    scenario.write_text(re.sub(r"(?ms)^workload:.*?(?=^\w)", files, text), "utf-8")
    answer = run(scenario)
    assert answer.exit_code == 0
    assert (
        "locks.spinlocks is not used: a role or a primitive gets it, 'locks: {spinlock: spinlocks}'"
        in answer.stderr
    )


def test_a_class_instead_of_a_kind_is_refused_with_the_way_to_name_it(tmp_path: Path) -> None:
    scenario = write(tmp_path, TWO_PHASE)
    scenario.write_text(
        scenario.read_text("utf-8").replace("lock: mylock", "lock: mine.py:TwoPhase"), "utf-8"
    )
    answer = run(scenario)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "workload.lock: a lock of your own needs a name: locks: {mine: mine.py:TwoPhase}" in answer.stderr


REFUSED = {
    "missing file": (TWO_PHASE, "other.py:TwoPhase", "mine.yaml:6:17", "cannot be read"),
    "missing class": (TWO_PHASE, "mine.py:TwoFase", "mine.yaml:6:17", "did you mean 'TwoPhase'?"),
    "not a lock": ("class TwoPhase: ...\n", "mine.py:TwoPhase", "mine.yaml:6:17", "does not derive from"),
    "not a class": ("TwoPhase = 3\n", "mine.py:TwoPhase", "mine.yaml:6:17", "does not derive from"),
    "half a lock": (
        "from simfs.machine.lock import Lock\nclass TwoPhase(Lock):\n    pass\n",
        "mine.py:TwoPhase", "mine.yaml:6:17", "does not define try_fast, wait, release",
    ),
    "not Python": (TWO_PHASE.replace("if self.holder:", "if self.holder"), "mine.py:TwoPhase", "mine.py:21:", "':'"),
    "fails when read": ("import simfs\n\nx = simfs.nothing\n", "mine.py:TwoPhase", "mine.py:3:5", "AttributeError"),
    "leaves when read": ("import sys\nsys.exit('no')\n", "mine.py:TwoPhase", "mine.py:2:1", "SystemExit: no"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "reference", "where", "what"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_told_with_its_place(
    code: str, reference: str, where: str, what: str, tmp_path: Path
) -> None:
    answer = run(write(tmp_path, code, reference))
    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert where in answer.stderr
    assert what in answer.stderr
    assert len(answer.stderr.splitlines()) <= 2


FAILING = {
    "in try_fast": (TWO_PHASE.replace("if self.holder:", "if 1 / 0:"), "mine.py:21:12: ZeroDivisionError"),
    "in wait": (TWO_PHASE.replace("forget_wakeups", "forget_everything"), "mine.py:35:9: AttributeError"),
    "below it": (TWO_PHASE.replace("task.atomic(self.line)", "task.atomic(None)"), "mine.py:20:9: AttributeError"),
    "its value error": (TWO_PHASE.replace("if self.holder:", "if int('x'):"), "mine.py:21:12: ValueError"),
    "no generator": (
        TWO_PHASE.replace("        yield from ()\n", ""), "mine.py:TwoPhase: TypeError",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "message"), FAILING.values(), ids=FAILING)
def test_what_fails_in_a_run_is_told_with_the_last_line_of_the_users_code(
    code: str, message: str, tmp_path: Path
) -> None:
    answer = run(write(tmp_path, code))
    assert answer.exit_code == 2
    assert message in answer.stderr.replace("\n", "")


def test_a_mistyped_name_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    answer = run(write(tmp_path, TWO_PHASE), "--set", "workload.lock=myluck")
    assert answer.exit_code == 2
    assert "did you mean 'mylock'?" in answer.stderr


def test_a_built_in_lock_cannot_be_renamed(tmp_path: Path) -> None:
    scenario = write(tmp_path, TWO_PHASE)
    scenario.write_text(scenario.read_text("utf-8").replace("mylock", "mutex"))
    answer = run(scenario)
    assert answer.exit_code == 2
    assert "mine.yaml:6:9" in answer.stderr
    assert "built-in" in answer.stderr


def test_a_lock_of_others_can_be_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "raise SystemExit(0)")
    monkeypatch.setenv("SIMFS_NO_CODE", "1")
    answer = RUNNER.invoke(app, ["run", str(tmp_path / "mine.yaml")])
    assert answer.exit_code == 2
    assert "mine.py is Python code, which --no-code or SIMFS_NO_CODE refuses to run" in answer.stderr
    load("own-lock")  # what comes with simfs is trusted


def test_many_threads_may_read_a_lock_at_once() -> None:
    """`ast.parse` in 3.11 fails where a garbage collection changes threads."""
    code, raised = TWO_PHASE.encode(), list[SystemError]()

    def let_others_run(phase: str, info: dict[str, int]) -> None:
        for _ in range(50):
            pass

    def parse() -> None:
        try:
            for _ in range(30):
                syntax_tree(code)
        except SystemError as error:
            raised.append(error)

    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    gc.callbacks.append(let_others_run)
    try:
        sys.setswitchinterval(1e-6)
        gc.set_threshold(5)
        threads = [Thread(target=parse) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.callbacks.remove(let_others_run)
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)
    assert not raised
