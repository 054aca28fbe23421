"""Who changes names of one directory meets others in its dentry: two references a call, and the list of children."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from operations import holds, spec

from engine import rate, simulate

SHARED: dict[str, Any] = {"directories": "shared"}


def d_locks(path: Path, op: str, tasks: int, kernel: str = "linux-3.10", **workload: Any) -> float:  # noqa: ANN401
    """Holds of dentries' spinlocks by operation. Before 3.12 each reference takes it."""
    return holds(simulate(spec(path, op, tasks, kernel=kernel, **workload)), "vfs.d_lock")


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("create", 2 + 1 + 1),  # the parent's two, d_alloc; the file's at its close
        ("mkdir", 2 + 1),
        (
            "rename",
            4 + 1 + 1 + 2,
        ),  # two parents; d_alloc; __d_move; the new name's dentry and its reference go
    ],
)
def test_dentry_locks_of_calls_on_names(tmp_path: Path, op: str, expected: int) -> None:
    assert d_locks(tmp_path, op, 1) == pytest.approx(expected, rel=0.02)


def test_a_name_that_goes_is_taken_out_at_once_on_tmpfs(tmp_path: Path) -> None:
    """Create and unlink: 4 and 2, and the kill with its parent's reference."""
    both: dict[str, Any] = {
        "operations": [{"op": "create"}, {"op": "unlink", "on": "made"}],
        "order": "in-turn",
        "files": 0,
    }
    assert d_locks(tmp_path, "create", 1, **both) == pytest.approx(4 + 2 + 2, rel=0.02)


def test_an_open_without_creat_leaves_the_directory_alone(tmp_path: Path) -> None:
    assert d_locks(tmp_path, "open", 1) == pytest.approx(4, rel=0.02)  # walk, open, walk's back, close


@pytest.mark.parametrize(("kernel", "more"), [("linux-6.11", True), ("linux-6.12", False)])
def test_an_open_with_creat_refers_to_the_directory_until_it_looks_first(
    tmp_path: Path, kernel: str, more: bool
) -> None:
    """Eight processes, a file each in one directory: without the directory's references they share nothing."""
    one, many = (
        rate(simulate(spec(tmp_path, "open_creat", tasks, kernel=kernel, **SHARED))) for tasks in (1, 8)
    )
    assert (many < 7.5 * one) == more


def test_directories_of_ones_own_share_no_dentry(tmp_path: Path) -> None:
    assert d_locks(tmp_path, "create", 4, "linux-6.12", directories="per-task") == 0
