"""Threads of one process share its table of open files and its credentials; writers are counted in the inode."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same
from operations import holds, spec

from engine import Spec, rate, simulate, window


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [("linux-4.1", 3), ("linux-4.2", 2), ("linux-6.12", 2)],  # fd_install takes the lock too before 4.2
)
@pytest.mark.parametrize("op", ["create", "open", "open_creat"])
def test_an_open_and_its_close_take_the_lock_of_the_table(
    tmp_path: Path, op: str, kernel: str, expected: int
) -> None:
    assert holds(simulate(spec(tmp_path, op, 4, kernel=kernel, threads=True))) == pytest.approx(
        expected, rel=0.02
    )


def opens(path: Path, search: str, descriptors: int) -> Spec:
    """Threads that open and close one file, with so many others open."""
    rules = {"vfs.fd_search": search}
    return spec(path, tasks=24, rules=rules, threads=True, file_set="shared", descriptors=descriptors)


def test_a_large_table_has_the_bits_of_full_words_in_another_line(tmp_path: Path) -> None:
    """Before 6.13 each close clears one, and each search reads them; there is one line for 128 descriptors."""
    large, small = (
        [
            rate(simulate(opens(tmp_path, search, descriptors)))
            for search in ("bitmap", "cleared", "word-first")
        ]
        for descriptors in (130, 70)
    )
    assert large[1] < 0.95 * large[0]
    assert large[1] < 0.95 * large[2]
    assert small == pytest.approx([small[0]] * 3, rel=1e-9)
    assert_same(opens(tmp_path, "cleared", 130) | window(5e4))


def test_processes_have_tables_of_their_own(tmp_path: Path) -> None:
    assert holds(simulate(spec(tmp_path, tasks=4))) == 0


def test_a_thread_that_is_alone_is_as_fast_as_a_process(tmp_path: Path) -> None:
    process, thread = (rate(simulate(spec(tmp_path, threads=threads))) for threads in (False, True))
    assert thread == pytest.approx(process, rel=0.01)


def test_threads_wait_for_each_other_and_processes_do_not(tmp_path: Path) -> None:
    """24 processes open as many files as 24 times one; threads queue for the table."""
    one = rate(simulate(spec(tmp_path)))
    processes, threads = (
        rate(simulate(spec(tmp_path, tasks=24, threads=threads))) for threads in (False, True)
    )
    assert processes > 23 * one
    assert threads < 8 * one


def test_the_look_at_the_new_descriptor_lengthens_the_hold(tmp_path: Path) -> None:
    """Its pointer lies in a line that another thread has written last; since 6.13 nobody looks."""
    before, after = (
        rate(simulate(spec(tmp_path, tasks=16, threads=True, rules={"vfs.fd_check": looks})))
        for looks in (True, False)
    )
    assert after > 1.02 * before


def test_a_reference_of_the_credentials_is_given_back_by_a_callback_before_6_7(tmp_path: Path) -> None:
    """Two threads fetch the line once an open, or twice."""
    at_once, after = (
        rate(
            simulate(
                spec(tmp_path, tasks=2, threads=True, rules={"vfs.file_callback": later})
                | {"duration_ns": 1e7}
            )
        )
        for later in (False, True)
    )
    assert at_once < after


def test_who_opens_for_writing_is_counted_in_the_inode(tmp_path: Path) -> None:
    """Three accesses more to a line that all users of one file share."""
    reading, writing = (
        rate(simulate(spec(tmp_path, op, 8, file_set="shared"))) for op in ("open", "open_rdwr")
    )
    assert writing < 0.97 * reading


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["linux-4.1", "linux-6.6", "linux-6.12"])
def test_both_machines_agree_on_threads(tmp_path: Path, kernel: str) -> None:
    run = spec(tmp_path, "open_rdwr", 5, kernel=kernel, threads=True, file_set="shared")
    assert assert_same(run | window(5e4)) > 100


def test_pointers_of_few_descriptors_lie_in_the_line_of_the_lock(tmp_path: Path) -> None:
    """The third and fourth descriptor; those from the fourth on lie in a line that both threads write."""
    few, more = (
        rate(simulate(spec(tmp_path, tasks=2, threads=True, descriptors=n) | {"duration_ns": 1e7}))
        for n in (3, 6)
    )
    assert more < 0.99 * few


@pytest.mark.parametrize(("watched", "expected"), [(False, 4), (True, 8)])
def test_a_watched_directory_has_its_references_counted(tmp_path: Path, watched: bool, expected: int) -> None:
    """Two at an `open` and two at a `close` (`__fsnotify_parent`), besides the file's."""
    found = simulate(spec(tmp_path, tasks=4, watched=watched, rules={"vfs.dentry_ref": "locked"}))
    assert holds(found, "vfs.d_lock") == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("read", 2),
        ("overwrite", 2),
        ("append", 2),
        ("fallocate", 2),
        ("chmod", 2),
        ("fsync", 0),
        ("fstat", 0),
    ],
)
def test_who_reads_or_changes_a_file_of_a_watched_directory_takes_a_reference(
    tmp_path: Path, op: str, expected: int
) -> None:
    """`fsnotify_access`, `fsnotify_modify`, `fsnotify_change`; who asks or syncs tells nobody."""
    alone, watched = (
        holds(
            simulate(spec(tmp_path, op, 4, watched=watched, rules={"vfs.dentry_ref": "locked"})), "vfs.d_lock"
        )
        for watched in (False, True)
    )
    assert watched - alone == pytest.approx(expected, abs=0.05)


def test_who_opens_files_of_a_watched_directory_meets_others(tmp_path: Path) -> None:
    """Processes with files of their own share nothing else."""
    one, alone, others = (
        rate(simulate(spec(tmp_path, tasks=tasks, watched=watched)))
        for tasks, watched in ((1, True), (16, False), (16, True))
    )
    assert alone > 15 * one
    assert others < 8 * one


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["linux-3.10", "linux-5.12", "linux-6.12"])
def test_both_machines_agree_on_a_watched_directory(tmp_path: Path, kernel: str) -> None:
    run = spec(tmp_path, "open_rdwr", 5, kernel=kernel, threads=True, descriptors=6, watched=True)
    assert assert_same(run | window(5e4)) > 100


@pytest.mark.parametrize(
    ("op", "kernel", "extra"),
    # 105 instructions of __fdget and fput; 66 more of f_pos_lock since 3.14, where the position moves
    [
        ("fstat", "linux-6.12", 40),
        ("append", "linux-6.12", 65),
        ("append", "linux-3.13", 40),
        ("stat", "linux-6.12", 0),
    ],
)
def test_calls_on_a_descriptor_take_a_reference_where_threads_share_the_table(
    tmp_path: Path, op: str, kernel: str, extra: float
) -> None:
    def latency(tasks: int, *, threads: bool = False) -> float:
        return simulate(spec(tmp_path, op, tasks, kernel=kernel, threads=threads)).latency[op].mean_ns

    assert latency(2, threads=True) - latency(2) == pytest.approx(extra, abs=8)
    assert latency(1, threads=True) == pytest.approx(latency(1), abs=1)  # files_struct.count is 1
