"""Locks of ranges of a file: a spinlock for each file's list, and the table of open files that threads share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same
from operations import holds, spec

from engine import Spec, rate, simulate, window

PAIR: dict[str, Any] = {"operations": [{"op": "lock"}, {"op": "unlock"}], "order": "in-turn"}


def pair(
    path: Path,
    tasks: int,
    *,
    threads: bool = False,
    shared: bool = False,
    kernel: str = "linux-6.12",
    rules: Mapping[str, Any] | None = None,
) -> Spec:
    """Tasks that lock and unlock, each its own file or all one."""
    files = "shared" if shared else "own"
    return spec(path, tasks=tasks, threads=threads, file_set=files, kernel=kernel, rules=rules, **PAIR)


@pytest.mark.parametrize("shared", [False, True])
def test_a_lock_and_its_unlock_take_the_files_spinlock_once_each(tmp_path: Path, shared: bool) -> None:
    run = simulate(pair(tmp_path, 4, threads=True, shared=shared))
    assert holds(run, "vfs.flc_lock") == pytest.approx(2, rel=0.02)


def test_threads_look_up_the_descriptor_after_a_lock_and_not_after_an_unlock(tmp_path: Path) -> None:
    assert holds(simulate(pair(tmp_path, 4, threads=True))) == pytest.approx(1, rel=0.02)
    assert holds(simulate(pair(tmp_path, 4))) == 0


def test_processes_with_files_of_their_own_do_not_meet(tmp_path: Path) -> None:
    assert rate(simulate(pair(tmp_path, 24))) > 23 * rate(simulate(pair(tmp_path, 1)))


def test_threads_with_files_of_their_own_meet_at_the_table(tmp_path: Path) -> None:
    one, many = (rate(simulate(pair(tmp_path, tasks, threads=True))) for tasks in (1, 24))
    assert 2 * one < many < 12 * one


def test_threads_that_lock_one_file_are_slower_than_with_files_of_their_own(tmp_path: Path) -> None:
    own, one = (rate(simulate(pair(tmp_path, 8, threads=True, shared=shared))) for shared in (False, True))
    assert one < 0.7 * own


def test_a_thread_that_is_alone_is_as_fast_as_a_process(tmp_path: Path) -> None:
    process, thread = (rate(simulate(pair(tmp_path, 1, threads=threads))) for threads in (False, True))
    assert thread == pytest.approx(process, rel=0.01)


@pytest.mark.parametrize(("kernel", "least", "most"), [("linux-3.10", 0.5, 3), ("linux-3.11", 15, 16.5)])
def test_before_3_11_one_lock_guards_all_files(
    tmp_path: Path, kernel: str, least: float, most: float
) -> None:
    """`lock_flocks`."""
    one, many = (rate(simulate(pair(tmp_path, tasks, kernel=kernel))) for tasks in (1, 16))
    assert least < many / one < most


def test_where_each_lock_asks_who_waits_processes_with_files_of_their_own_meet(tmp_path: Path) -> None:
    """`blocked_lock_lock`, once for a lock and once for its unlock, and only in 5.6-rc5."""
    asks = pair(tmp_path, 16, rules={"vfs.asks_blocked": True})
    run = simulate(asks)
    assert holds(run, "vfs.blocked_lock_lock") == pytest.approx(2, rel=0.02)
    assert 3 * rate(run) < rate(simulate(pair(tmp_path, 16)))
    assert_same(asks | window(5e4))


def test_processes_that_lock_one_file_look_at_the_ranges_of_the_others(tmp_path: Path) -> None:
    """Each has its own range; threads have theirs together."""
    processes, threads = (
        rate(simulate(pair(tmp_path, 16, threads=threads, shared=True))) for threads in (False, True)
    )
    assert processes < threads


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("kernel", ["linux-3.10", "linux-6.12"])
def test_both_machines_agree_on_locks_of_one_file(tmp_path: Path, threads: bool, kernel: str) -> None:
    run = pair(tmp_path, 4, threads=threads, shared=True, kernel=kernel)
    assert assert_same(run | window(2e5)) > 100


def whole(path: Path, tasks: int, wakes: str, **changes: Any) -> Spec:  # noqa: ANN401
    """Processes that lock all of one file and unlock it."""
    rules = {"vfs.lock_wakes": wakes}
    made = spec(path, "lock_file", tasks, file_set="shared", files=1, kernel="linux-4.18", rules=rules)
    return made | changes


def test_an_unlock_wakes_all_who_wait_or_one(tmp_path: Path) -> None:
    """All but one of whom sleep again, who take `blocked_lock_lock` each time."""
    everyone, one = (simulate(whole(tmp_path, 20, wakes)) for wakes in ("all", "one"))
    assert everyone.context_switches / everyone.operations > 3 * one.context_switches / one.operations
    assert rate(everyone) < rate(one)


@pytest.mark.parametrize("wakes", ["all", "one"])
def test_who_locks_a_file_keeps_others_from_it_and_loses_nobody(tmp_path: Path, wakes: str) -> None:
    """One after the other, so that many are no faster than one; and each comes to it."""
    alone, many = (simulate(whole(tmp_path, tasks, wakes)) for tasks in (1, 12))
    assert rate(many) < rate(alone)
    assert many.latency["lock_file"].max_ns < 2e6
    assert all(law.ok for law in many.laws)


@pytest.mark.parametrize("wakes", ["all", "one"])
def test_both_machines_agree_on_who_waits_for_a_file(tmp_path: Path, wakes: str) -> None:
    assert_same(whole(tmp_path, 6, wakes, warmup_ns=0, duration_ns=1e5))
