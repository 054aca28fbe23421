"""Users of one file meet in its dentry: the name that a walk reads, the reference that it takes and gives back."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same
from tiny_machine import Timeless

from engine import Spec, rate, simulate, window
from simfs.scenario import expand, load, to_run_spec

FILESYSTEMS = ("xfs", "btrfs", "ext4", "tmpfs")


def spec(
    path: Path,
    op: str,
    tasks: int,
    *,
    filesystem: str = "tmpfs",
    kernel: str = "linux-6.12",
    **rules: str | bool,
) -> Spec:
    """Tasks on CPUs of their own that do one operation on one file."""
    workload = {
        "kind": "mix",
        "tasks": tasks,
        "binding": "compact",
        "operations": [{"op": op}],
        "file_set": "shared",
    }
    named = {"profile": kernel, "rules": {f"vfs.{name}": value for name, value in rules.items()}}
    text = (
        f"filesystem: {{kind: {filesystem}}}\nkernel: {json.dumps(named)}\nworkload: {json.dumps(workload)}\n"
    )
    scenario = path / "dentry.yaml"
    scenario.write_text(f"simfs: 1\nname: m\ntitle: m\nmachine: server-24\n{text}")
    (point,) = expand(load(scenario))
    return to_run_spec(point, 0) | {"warmup_ns": 1e6, "duration_ns": 2e6}


def accesses(path: Path, op: str, kernel: str, filesystem: str = "tmpfs", **rules: bool) -> float:
    """Accesses to the line of the dentry's word, in each operation of a task that is alone."""
    machine = Timeless(spec(path, op, 1, filesystem=filesystem, kernel=kernel, **rules))
    machine.run(10**9)
    return machine.calls["touch beside"] / machine.operations[op]


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
@pytest.mark.parametrize(
    ("op", "kernel", "references", "names"),
    [
        ("stat", "linux-6.10", 2, 1),  # get and put; the name is in the line of the count
        ("stat", "linux-6.11", 2, 0),  # the count has a line of its own
        ("open", "linux-6.11", 4, 0),  # and close: the walk's, the file's; the walk's is given back before
        ("fstat", "linux-5.9", 0, 0),
        ("fstat", "linux-6.1", 2, 0),  # newfstatat with an empty path, which glibc calls
        ("fstat", "linux-6.12", 0, 0),  # which goes to the descriptor since 6.6
    ],
)
def test_walk_get_and_put_are_accesses_of_their_own(
    tmp_path: Path, filesystem: str, op: str, kernel: str, references: int, names: int
) -> None:
    """Each reference is a look at the word and an exchange.

    (At first who makes the file refers to its directory, and ext4 looks beside its journal's lock.)
    """
    assert accesses(tmp_path, op, kernel, filesystem) == pytest.approx(
        2 * references + names, rel=0.04, abs=0.05
    )


def test_an_open_that_keeps_the_reference_of_its_walk_counts_half_as_often(tmp_path: Path) -> None:
    """A look at the word and an exchange each for the walk and the close, none for the open and the walk's end."""
    kept = accesses(tmp_path, "open", "linux-6.11", open_consumes_path=True)
    assert kept == pytest.approx(2 * 2, rel=0.04, abs=0.05)


def many(path: Path, op: str, tasks: int, **options: Any) -> float:  # noqa: ANN401
    return rate(simulate(spec(path, op, tasks, **options)))


@pytest.mark.parametrize("op", ["read", "overwrite"])
def test_who_copies_a_page_has_a_reference_of_it_meanwhile(tmp_path: Path, op: str) -> None:
    """Two additions to the folio's count. Where all read one page of ext4 its line is fetched for each."""
    made = spec(tmp_path, op, 16, filesystem="ext4")
    transfer = made["machine"]["costs"]["line_llc"]
    copies = rate(simulate(made)) * 2 * transfer
    if op == "read":
        assert copies == pytest.approx(1, abs=0.02)
    else:
        assert copies < 0.5  # under i_rwsem, whose holder keeps the line


def test_both_machines_agree_on_reads_of_one_page(tmp_path: Path) -> None:
    assert assert_same(spec(tmp_path, "read", 6) | window(2e4)) > 100


def test_walks_to_one_file_are_faster_where_the_count_is_apart_from_the_name(tmp_path: Path) -> None:
    """Published for 20 processes that stat one file of tmpfs: 55 %."""
    apart, beside = (many(tmp_path, "stat", 20, dentry_line=line) for line in ("apart", "with-name"))
    assert apart > 1.2 * beside


def test_a_pause_before_the_next_attempt_costs_the_more_the_more_cpus_meet(tmp_path: Path) -> None:
    """Published for fstat of one file: 2 % with 2 processes, 69 % with 8, 144 % with 24."""
    gains = [
        many(tmp_path, "fstat", tasks, fstat="empty-path", dentry_ref="immediate")
        / many(tmp_path, "fstat", tasks, fstat="empty-path", dentry_ref="limited")
        for tasks in (2, 8, 24)
    ]
    assert gains == sorted(gains)
    assert gains[0] < 1.2
    assert gains[2] > 1.5


def transfers_a_change(tasks: int, comes_back: bool, changes: int = 20_000) -> float:
    """Of a count that so many change all the time, in no order, each by turns up and down (or only up).

    Each change is a look and as many exchanges as it takes to find what was seen last.
    """
    draws, count, transfers, done = random.Random(1), 0, 0, 0
    seen: list[int | None] = [None] * tasks
    adds = [1] * tasks
    while done < changes:
        task, transfers = draws.randrange(tasks), transfers + 1
        if seen[task] != count:
            seen[task] = count
            continue
        count, seen[task], done = count + adds[task], None, done + 1
        adds[task] *= -1 if comes_back else 1
    return transfers / changes


@pytest.mark.parametrize("tasks", [8, 24])
def test_an_attempt_succeeds_where_others_gave_back_what_they_took(tmp_path: Path, tasks: int) -> None:
    """What is compared is the count, not whether it was changed."""
    made = spec(tmp_path, "fstat", tasks, fstat="empty-path", dentry_ref="limited")
    transfer = made["machine"]["costs"]["line_llc"]
    took = 1 / (2 * rate(simulate(made)) * transfer)
    assert took == pytest.approx(transfers_a_change(tasks, comes_back=True), rel=0.15)
    assert took < 0.87 * transfers_a_change(tasks, comes_back=False)


def test_before_3_12_every_reference_takes_the_spinlock(tmp_path: Path) -> None:
    result = simulate(spec(tmp_path, "stat", 4, kernel="linux-3.6"))
    (lock,) = (lock for lock in result.locks if lock.name == "vfs.d_lock")
    assert lock.acquired == pytest.approx(2 * result.operations, rel=0.02)


def test_since_3_12_nobody_takes_it_who_is_not_in_anybodys_way(tmp_path: Path) -> None:
    result = simulate(spec(tmp_path, "stat", 2, kernel="linux-6.12"))
    assert [lock.acquired for lock in result.locks if lock.name == "vfs.d_lock"] in ([], [0])


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["locked", "relaxed", "limited", "immediate"])
def test_both_machines_pass_a_reference_count_around(tmp_path: Path, reference: str) -> None:
    run = spec(tmp_path, "open", 5, dentry_ref=reference, dentry_line="with-name")
    assert assert_same(run | {"duration_ns": 1e5}) > 100


@pytest.mark.parametrize("op", ["stat", "open"])
def test_users_of_one_file_do_not_scale_and_users_of_their_own_do(tmp_path: Path, op: str) -> None:
    grows = []
    for files in ("shared", "own"):
        half, all_ = (spec(tmp_path, op, tasks) for tasks in (12, 24))
        for run in (half, all_):
            run["workload"]["params"]["file_set"] = files
        grows.append(rate(simulate(all_)) / rate(simulate(half)))
    assert grows[0] < 1.1
    assert grows[1] == pytest.approx(2, rel=0.02)
