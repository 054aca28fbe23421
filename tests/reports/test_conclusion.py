"""The answer of a run: made from its numbers, no surer than they are, and the same in text, JSON and Python."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import simfs
from simfs.cli import app
from simfs.experiments.conclusion import conclusion
from simfs.results.model import Finding, ScenarioResult, once_a_point
from simfs.results.run_result import Stall
from simfs.results.statistics import interval

RUNNER = CliRunner()
SMALL = ("workload.tasks=16", "measure={duration: 20 ms, warmup: 2 ms, replications: 3}")
ANSWER = simfs.load("lock-cycle", *SMALL).run()
RESULT = ANSWER.result


def with_rates(**rates: tuple[float, ...]) -> ScenarioResult:
    """The result with other throughputs of some variants, and only these."""
    points = tuple(
        p.model_copy(
            update={
                "throughput": interval(rates[p.variant]),
                "replication_throughputs": rates[p.variant],
                "replications": len(rates[p.variant]),
                "groups": None,
            }
        )
        for p in RESULT.points
        if p.variant in rates
    )
    return RESULT.model_copy(update={"points": points})


def test_the_loss_is_that_of_the_numbers_and_the_lock_that_of_the_table() -> None:
    best = max(RESULT.points, key=lambda p: p.throughput.mean)
    worst = min(RESULT.points, key=lambda p: p.throughput.mean)
    loss = 100 * (1 - worst.throughput.mean / best.throughput.mean)
    said = ANSWER.answer
    assert said.startswith(f"{RESULT.title(worst.variant)} loses {loss:.0f} %")
    assert f"against {RESULT.title(best.variant)} at 16 tasks" in said
    assert "idles" not in said  # eight of the 24 CPUs have no task
    (lock,) = [lock for lock in worst.locks if lock.name == "lock"]
    waiting = lock.wait_total_ns / worst.window_ns / worst.replications
    assert f"{waiting:.1f} tasks wait for lock on average" in said
    share = max(lock.holder_parts) / sum(lock.holder_parts)
    assert f"for {100 * share:.0f} % of that time" in said


SYNCS = """\
simfs: 1
name: syncs
title: One task syncs
machine: server-24
kernel: linux-6.12
filesystem: {kind: xfs}
device: nvme-client
workload: {kind: tmpfile, fsync: true}
measure: {duration: 20 ms, replications: 2}
"""


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ([], "(`simfs why` tells for what)"),
        (["--why"], ", most of it because fsync waits for a log write"),
    ],
)
def test_tasks_that_sleep_for_no_lock_are_not_told_to_wait_for_one(
    tmp_path: Path, more: list[str], reason: str
) -> None:
    """The task sleeps for the device; the worker that frees inodes now and then for its lock."""
    file = tmp_path / "syncs.yaml"
    file.write_text(SYNCS)
    said = " ".join(RUNNER.invoke(app, ["run", str(file), *more]).stdout.split())
    assert re.match(r"-> syncs: tasks sleep 9\d % of their time for what is no lock", said)
    assert reason in said


def test_tasks_that_wait_for_a_cpu_are_not_told_to_sleep() -> None:
    """Ten tasks think on one CPU, which is never idle: nine of them wait for it, and for no lock."""
    asked = {"simfs": 1, "name": "busy", "title": "Busy", "machine": {"profile": "server-24", "cpus": 1}}
    asked |= {
        "workload": {"kind": "lock_cycle", "tasks": 10, "think": "20 us", "hold": "1 us"},
        "kernel": "linux-6.12",
    }
    answer = simfs.load(asked, "measure={duration: 20 ms, replications: 2}").run()
    assert "is no lock" not in answer.answer


def test_text_json_and_python_say_the_same() -> None:
    command = ["run", "lock-cycle", *(word for setting in SMALL for word in ("--set", setting))]
    text = RUNNER.invoke(app, command).stdout
    assert " ".join(text.split()).startswith(f"-> {ANSWER.answer}")
    assert json.loads(RUNNER.invoke(app, [*command, "--format", "json"]).stdout)["answer"] == ANSWER.answer
    assert ANSWER.answer in repr(ANSWER)
    assert "lock-cycle" in repr(simfs.load("lock-cycle"))


def test_what_the_runs_cannot_tell_is_not_told() -> None:
    like = with_rates(semaphore=(100, 104, 96), mutex=(101, 97, 105))
    assert "no difference that the runs can tell: no variant loses more than" in conclusion(like)
    assert re.search(r"; with .+ [\d.]+ tasks wait for lock on average", conclusion(like))
    once = with_rates(semaphore=(50,), mutex=(100,))
    assert "does 50 % less than" in conclusion(once)
    assert "but one replication cannot tell whether that is chance" in conclusion(once)
    alike = with_rates(semaphore=(99.5,), mutex=(100,))
    assert "one replication shows no difference of 1 % or more" in conclusion(alike)


def test_a_large_loss_of_too_few_runs_is_named_and_a_small_one_of_many_is_none() -> None:
    unsure = conclusion(with_rates(semaphore=(80, 40, 90), mutex=(101, 97, 105)))
    assert re.match(
        r"At 16 tasks .+ loses 31 % \(± \d+\), which 3 runs cannot tell: measure longer; with ", unsure
    )
    tiny = conclusion(with_rates(semaphore=(99.9, 99.9, 99.9), mutex=(100, 100, 100)))
    assert "no variant loses more than 0.1 %" in tiny


SPIN = """\
simfs: 1
name: spin
title: Short holds of a spinlock on two sockets
machine: dual-socket-48
kernel: linux-6.12
workload: {kind: lock_cycle, tasks: 48, lock: qspinlock, think: 1 us, hold: 200 ns}
measure: {duration: 2 ms, warmup: 100 us, replications: 2}
"""


def test_the_way_of_a_lock_to_its_next_holder_is_told_apart_from_holds(tmp_path: Path) -> None:
    file = tmp_path / "spin.yaml"
    file.write_text(SPIN)
    answer = simfs.load(file).run()
    (lock,) = [lock for lock in answer.result.points[0].locks if lock.name == "lock"]
    held = lock.hold_total_ns / 2 / 2e6
    assert 0.3 < held < 0.7
    assert f"on its way to the next of them for {100 - 100 * held:.0f} % of the time" in answer.answer
    assert "its holders run for 100 % of the other time" in answer.answer


APPENDS = """\
simfs: 1
name: appends
title: Appends of which each takes a handle of the journal
machine: server-24
kernel: linux-6.5
filesystem: {kind: ext4}
device: nvme
workload: {kind: mix, tasks: 24, files: 1, operations: [{op: append, size: 200 B}]}
sweep: {workload.tasks: [1, 24]}
measure: {duration: 2 ms, warmup: 1 ms, replications: 2}
"""


def test_operations_that_get_slower_without_a_lock_are_told_with_their_times(tmp_path: Path) -> None:
    """Handles meet in the counts of the running transaction: a line, and no lock that anybody waits for."""
    file = tmp_path / "appends.yaml"
    file.write_text(APPENDS)
    answer = simfs.load(file).run()
    alone, all_ = answer.result.points
    assert alone.system_ns_per_operation
    assert all_.system_ns_per_operation
    assert all_.system_ns_per_operation.mean > 2 * alone.system_ns_per_operation.mean
    said = re.search(r"takes ([\d.]+) us in the kernel, not ([\d.]+) us as with 1,", answer.answer)
    assert said
    assert float(said[1]) == pytest.approx(all_.system_ns_per_operation.mean / 1000, rel=1e-3)
    longest = max(all_.lines, key=lambda line: line.waited_ns)
    assert longest.name == "ext4.t_updates"
    assert f"mostly for that of {longest.name}" in answer.answer


def test_variants_that_differ_in_nothing_that_matters_are_told_to_be_the_same() -> None:
    """No task reads, so no writer ever spins on readers."""
    patient = {"name": "patient", "kernel": {"constants": {"rwsem_reader_spin_cap": "1 ms"}}}
    small = ("workload.tasks=4", "measure={duration: 2 ms, warmup: 1 ms, replications: 2}")
    asked = {"simfs": 1, "name": "spin", "title": "Spin", "machine": "server-24", "kernel": "linux-6.12"}
    asked |= {"workload": {"kind": "lock_cycle", "lock": "rwsem", "think": "20 us", "hold": "4 us"}}
    answer = simfs.load(asked | {"variants": [{"name": "now"}, patient]}, *small).run()
    assert (
        "At 4 tasks all variants do exactly the same: what they differ in has no effect here" in answer.answer
    )


def test_a_larger_loss_that_is_not_certain_is_told_as_such() -> None:
    names = RESULT.variants
    said = conclusion(
        with_rates(**{names[0]: (90, 91, 92), names[1]: (40, 101, 60), names[2]: (100, 101, 102)})
    )
    assert said.startswith(f"{RESULT.title(names[0])} loses 10 %")
    assert f"{RESULT.title(names[1])} loses 34 % (± 76), which 3 runs cannot tell" in said


def test_the_nearest_variant_that_brings_a_loss_back_is_named() -> None:
    names = RESULT.variants
    assert len(names) > 2
    three = with_rates(**{names[0]: (50, 51, 52), names[1]: (99, 100, 101), names[2]: (100, 101, 102)})
    assert f"{RESULT.title(names[1])} brings it back" in conclusion(three)
    half = with_rates(**{names[0]: (50, 51, 52), names[1]: (79, 80, 81), names[2]: (100, 101, 102)})
    assert f"{RESULT.title(names[1])} brings 58 % of it back" in conclusion(half)


def test_all_variants_that_bring_a_loss_back_are_named() -> None:
    names = RESULT.variants
    three = with_rates(**{names[0]: (50, 51, 52), names[1]: (99, 100, 101), names[2]: (100, 101, 102)})
    another = three.points[1].model_copy(update={"variant": "another", "id": "another"})
    said = conclusion(three.model_copy(update={"points": (*three.points, another)}))
    assert f"; {RESULT.title(names[1])} and another bring it back" in said


def test_a_variant_that_runs_as_the_worst_to_the_last_event_is_told_to_be_the_same() -> None:
    names = RESULT.variants
    result = with_rates(**{names[0]: (50, 51, 52), names[1]: (50, 51, 52), names[2]: (100, 101, 102)})
    result = result.model_copy(
        update={"points": tuple(p.model_copy(update={"events": 1}) for p in result.points)}
    )
    assert f"; {RESULT.title(names[1])} does exactly the same as {RESULT.title(names[0])}." in conclusion(
        result
    )


def test_cpus_idle_only_where_tasks_could_use_all_of_them() -> None:
    full = RESULT.model_copy(
        update={"points": tuple(p.model_copy(update={"cpus": p.tasks}) for p in RESULT.points)}
    )
    assert "idles" not in conclusion(RESULT)
    assert "idles" in conclusion(full)


def test_one_task_is_one_and_a_sentence_begins_with_a_capital_letter() -> None:
    like = with_rates(semaphore=(100, 104, 96), mutex=(101, 97, 105))
    points = tuple(p.model_copy(update={"tasks": 1}) for p in like.points)
    assert conclusion(like.model_copy(update={"points": points})).startswith(
        "At 1 task there is no difference"
    )


@pytest.mark.parametrize("title", ["one directory, slow", "as it is"])
def test_a_title_that_would_be_read_as_the_sentence_stands_in_quotation_marks(title: str) -> None:
    names = RESULT.variants
    titles = RESULT.titles | {names[0]: title}
    result = with_rates(**{names[0]: (50, 51, 52), names[1]: (100, 101, 102)}).model_copy(
        update={"titles": titles}
    )
    assert conclusion(result).startswith(f"'{title}' loses 50 %")


def test_a_variant_that_stalls_is_told_and_not_compared() -> None:
    stall = Stall(kind="deadlock", at_ns=5e6, cycle=())
    point = RESULT.of("mutex")[0]
    finding = Finding(kind="stall", point=point.id, replication=0, message="deadlock", stall=stall)
    said = conclusion(RESULT.model_copy(update={"findings": (finding,)}))
    assert f"{RESULT.title('mutex')} comes to a halt" in said
    assert f"against {RESULT.title('mutex')}" not in said


def test_a_variant_that_breaks_a_law_is_told_first_and_not_compared() -> None:
    point = RESULT.of("mutex")[0]
    findings = tuple(
        Finding(kind="law", point=point.id, replication=n, message="two tasks hold it") for n in range(3)
    )
    broken = RESULT.model_copy(update={"findings": findings})
    said = conclusion(broken)
    title = RESULT.title("mutex")
    assert said.startswith(f"{title} breaks a law of the simulation, so its numbers mean nothing. ")
    assert f"against {title}" not in said
    assert [more for _, more in once_a_point(findings)] == [" (and 2 more of its replications)"]


@pytest.mark.slow
def test_variants_that_do_something_else_are_not_compared() -> None:
    settings = ["measure={duration: 2 ms, warmup: 0 ms, replications: 2}", "sweep.workload.tasks=[4]"]
    said = simfs.load("will-it-scale", *settings).run().answer
    assert said
    for sentence in said.split(". "):
        assert sentence.split()[0] == sentence.split(" against ")[1].split()[0]


@pytest.mark.parametrize("name", ["Answer", "Question", "load"])
def test_tab_finds_what_there_is(name: str) -> None:
    assert name in dir(simfs)
    assert "TYPE_CHECKING" not in dir(simfs)
