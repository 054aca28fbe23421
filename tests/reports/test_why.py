"""`simfs why`: what is made of chains, the graph at a moment, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from simfs.cli import app
from simfs.experiments.waits_at import NoTaskError, WaitGraph, graph_of
from simfs.reports.wait_graph import dot, text
from simfs.results.chains import OnPath, Why, does, folded
from simfs.results.run_result import HolderTime, LineStats, Link, SleepTime, WaitChain

QUICK = ("lock-cycle", "--variant", "semaphore", "--set", "measure.duration=200 us", "--quick")


def why(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["why", *arguments])


AGI = Link(lock="xfs.AGI", side="", holder="create")
DIRECTORY = Link(lock="i_rwsem", side="write", holder="unlink")

FOUND = Why(
    point="now",
    variant="now",
    replications=1,
    task_time_ns=1000,
    waits=(
        WaitChain(waiter="rename", links=(DIRECTORY, AGI), reason="timer", function="xfs_iget", wait_ns=60),
        WaitChain(waiter="unlink", links=(AGI,), reason="timer", function="xfs_iget", wait_ns=30),
        WaitChain(waiter="rename", links=(DIRECTORY,), reason="running", function="", wait_ns=10),
    ),
    holders=(
        HolderTime(
            lock="xfs.AGI", holder="create", reason="timer", function="xfs_iget", waits_for="", time_ns=45
        ),
        HolderTime(lock="xfs.AGI", holder="create", reason="running", function="", waits_for="", time_ns=15),
    ),
)


def test_the_answer_names_the_lock_and_the_reason() -> None:
    assert FOUND.sentence == (
        "90 % of all waiting is for xfs.AGI; the largest cause (90 %): create sleeps until a timer rings (xfs_iget)"
    )


def test_where_locks_are_not_the_reason_the_line_that_tasks_wait_for_is_named() -> None:
    lines = (
        LineStats(name="vfs.d_lock", transfers=100, waited_ns=60_000),
        LineStats(name="vfs.i_writecount", transfers=10, waited_ns=5_000),
    )
    fetched = FOUND.model_copy(update={"task_time_ns": 100_000, "lines": lines})
    said = "tasks wait 65 % of their time for cache lines that others use, mostly for that of vfs.d_lock"
    assert fetched.sentence.endswith(f"mostly for xfs.AGI; {said}")
    nobody = fetched.model_copy(update={"waits": ()})
    assert nobody.sentence == f"no task waited for a lock; {said}"
    little = fetched.model_copy(update={"task_time_ns": 1_000_000})
    assert "cache lines" not in little.sentence


def test_why_names_the_line_of_the_dentry_that_all_open() -> None:
    done = why("open-refs", "--variant", "before", "--quick")
    assert done.exit_code == 0
    assert "mostly for that of vfs.d_lock" in " ".join(done.stdout.split("\n\n")[0].split())
    assert "Cache lines that tasks waited for" in done.stdout


def test_waits_that_are_next_to_nothing_are_not_called_the_reason() -> None:
    """Whose tasks wait 0.1 % of their time for locks sleeps for something else, or works."""
    little = FOUND.model_copy(update={"task_time_ns": 100_000})
    assert little.sentence == (
        "locks are not the reason: tasks wait for them 0.10 % of their time, mostly for xfs.AGI"
    )
    slept = SleepTime(sleeper="fsync", reason="wake-up", function="xlog_wait_on_iclog", time_ns=80_000)
    asleep = (
        "they sleep 80 % of their time, most of it because fsync waits for a log write (xlog_wait_on_iclog)"
    )
    assert little.model_copy(update={"sleeps": (slept,)}).sentence == f"{little.sentence}; {asleep}"
    none = little.model_copy(update={"waits": (), "sleeps": (slept,)})
    assert none.sentence == f"no task waited for a lock; {asleep}"


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("xlog_grant_head_wait", "create waits for log space, which xfsaild frees (xlog_grant_head_wait)"),
        ("jbd2_log_wait_commit", "create waits for a commit (jbd2_log_wait_commit)"),
        ("xfs_iget", "create sleeps until somebody wakes it (xfs_iget)"),
    ],
)
def test_who_waits_for_the_log_is_told_in_words(function: str, says: str) -> None:
    assert does("create", "wake-up", function) == says
    assert does("create", "woken", function) == f"create was woken and waits for a CPU ({function})"


def test_a_lock_is_on_the_path_of_every_chain_that_passes_it() -> None:
    assert FOUND.on_path() == [OnPath("xfs.AGI", 90, 90), OnPath("i_rwsem", 70, 10)]
    assert [(owner.lock, owner.reason, owner.percent) for owner in FOUND.owners()] == [
        ("xfs.AGI", "timer", 90),
        ("i_rwsem", "running", 10),
    ]
    assert [percent for _, percent in FOUND.holder_times("xfs.AGI")] == [75, 25]


def test_folded_stacks_begin_with_the_waiter() -> None:
    assert folded(FOUND.waits).splitlines() == [
        "rename;i_rwsem (write);[unlink];xfs.AGI;[create];xfs_iget;timer 60",
        "unlink;xfs.AGI;[create];xfs_iget;timer 30",
        "rename;i_rwsem (write);[unlink];running 10",
    ]


def test_the_command_answers_first() -> None:
    result = why(*QUICK)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("-> 100 % of all waiting is for lock; the largest cause (")
    assert "Locks on the critical path" in result.stdout


def test_all_formats_have_the_same_waits() -> None:
    document = json.loads(why(*QUICK, "--format", "json").stdout)
    stacks = why(*QUICK, "--format", "folded").stdout.splitlines()
    rows = why(*QUICK, "--format", "csv").stdout.splitlines()[1:]
    assert sum(int(line.rsplit(" ", 1)[1]) for line in stacks) == pytest.approx(document["wait_ns"], abs=10)
    assert len(rows) == len(document["waits"])
    assert sum(owner["percent"] for owner in document["owners"]) == pytest.approx(100)


EVENTS = [
    (0, 7, 0, "acquire", "a#1"),
    (5, 7, 0, "sleep", ""),
    (1, 8, 1, "acquire", "b#2"),
    (10, 8, 1, "wait", "a#1"),
    (11, 8, 1, "sleep", ""),
    (20, 9, 2, "wait", "b#2"),
    (21, 9, 2, "run", ""),
    (30, 5, 3, "run", ""),
]


def graph() -> WaitGraph:
    return graph_of([(time * 1000, *rest) for time, *rest in EVENTS], 40_000)  # type: ignore[misc]


def test_the_graph_at_a_moment_says_who_waits_for_whom() -> None:
    assert graph().holders == {"a#1": (7,), "b#2": (8,)}
    assert text(graph()).splitlines() == [
        "at 40 ns 2 tasks wait for 2 locks",
        "",
        "a#1: task 7 has it, which sleeps",
        "  task 8 waits for 30 ns",
        "",
        "b#2: task 8 has it, which waits for a#1",
        "  task 9 waits for 20 ns",
    ]
    assert '"task 9" -> "b#2"' in dot(graph())
    assert '"b#2" -> "task 8"' in dot(graph())


def test_the_chain_of_a_task_is_what_it_waits_for() -> None:
    assert set(graph().chain_of(8).holders) == {"a#1"}
    assert set(graph().chain_of(9).does) == {7, 8, 9}
    with pytest.raises(NoTaskError, match="task 7, task 8, task 9 do"):
        graph().chain_of(5)


def test_the_graph_of_a_run_has_all_who_wait() -> None:
    at = ("lock-cycle", "--variant", "semaphore", "--at", "1 ms")
    found = json.loads(why(*at, "--format", "json").stdout)
    assert found["at_ns"] == 1e6
    assert {"lock"} == {wait["lock"].rsplit("#", 1)[0] for wait in found["waits"]}
    first = str(found["waits"][0]["task"])
    assert f"task {first} waits for" in why(*at, "--task", first).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lock-cycle",), "--variant: this scenario has several"),
        (("lock-cycle", "--variant", "mutx"), "mutex"),
        (("lock-cycle", "--variant", "mutex", "--task", "3"), "--at '120 ms'"),
        (("lock-cycle", "--variant", "mutex", "--format", "dot"), "--format folded"),
        (("lock-cycle", "--variant", "mutex", "--at", "5"), "has no unit"),
        (
            ("lock-cycle", "--variant", "mutex", "--at", "900 s"),
            "(warm-up and measure.duration); --set 'measure",
        ),
        (("lock-cycle", "--variant", "mutex", "--at", "5 us", "--format", "csv"), "text, json and dot"),
        (("lock-cycle", "--variant", "mutex", "--at", "5 us", "--task", "9999"), "--task 9999"),
        (("lock-cicle",), "lock-cycle"),
    ],
)
def test_wrong_input_is_told_with_what_is_right(arguments: tuple[str, ...], said: str) -> None:
    result = why(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.slow
def test_a_run_writes_its_chains(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "out"), "--format", "json")
    result = CliRunner().invoke(app, ["run", *QUICK, "--set", "workload.tasks=24", "--why", *out])
    assert result.exit_code == 0, result.output
    (point,) = json.loads(result.stdout)["points"]
    rows = (tmp_path / "out" / "tables" / "chains.csv").read_text().splitlines()
    assert rows[0].replace('"', "").endswith("wait_ns,waiter,chain,holder,reason,function")
    assert len(rows) == 1 + len(point["chains"]["waits"])
