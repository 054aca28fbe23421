"""The laboratory's counter of what btrfs's trees take, and the packages that it unpacks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from laboratory import blocks, trees
from laboratory.counted import Row
from laboratory.loops import Loop
from laboratory.packages import Apt
from laboratory.results import Result

TEXT, TASK = 0xFFFFFFFF81000000, 0xFFFFC90000004000
NAMES = (
    "__x64_sys_openat", "btrfs_read_lock_root_node", "down_read", "up_read", "btrfs_lock_root_node", "down_write",
    "btrfs_bin_search", "btrfs_get_token_32", "setup_items_for_insert.isra.0", "btrfs_delayed_update_inode",
    "btrfs_write_marked_extents", "btrfs_check_leaf", "btrfs_comp_cpu_keys", "submit_bio",
)  # fmt: skip
KALLSYMS = "".join(f"{TEXT + 0x100 * nth:x} T {name}\n" for nth, name in enumerate(NAMES))


def row(*calls: tuple[str, int, int]) -> Row:
    """A log of functions that a task enters, each with its depth and instructions, and the way back of all."""
    records, ns = [], 0
    for name, depth, instructions in [*calls, ("__x64_sys_openat", 0, 1)]:
        nth = next(nth for nth, known in enumerate(NAMES) if known.startswith(name))
        records.append((TEXT + 0x100 * nth, TASK + 0x800 - 8 * depth, ns, instructions, 0))
        ns += instructions
    log = blocks.Log(np.array(records, dtype=blocks.RECORD), blocks.Symbols.parse(KALLSYMS))
    return Row(Result("guest"), log, "")


def insertion(items: int) -> list[tuple[str, int, int]]:
    """It goes back to its caller."""
    shifts = [("btrfs_get_token_32", 2, 150)] * items
    return [("setup_items_for_insert", 1, 1000), *shifts, ("__x64_sys_openat", 0, 1)]


def test_the_root_is_held_and_traded_from_entry_to_entry() -> None:
    again = [
        ("btrfs_lock_root_node", 1, 10),
        ("down_write", 2, 500),
    ]  # a search that begins anew trades nothing
    traded = [("btrfs_read_lock_root_node", 1, 40), ("down_read", 2, 60), ("up_read", 2, 70), *again]
    found = trees.counted([row(("__x64_sys_openat", 0, 5), *traded, *again, *insertion(25), *insertion(50))])
    assert (found["root_read"], found["root_trade"]) == ([60], [80])


def test_an_item_that_is_shifted_takes_what_an_insertion_grows_by_it() -> None:
    found = trees.counted([row(("__x64_sys_openat", 0, 5), *insertion(2), *insertion(25), *insertion(50))])
    assert found["shift_item"] == [150, 150]


def written(items: int) -> list[tuple[str, int, int]]:
    """A leaf is checked, and both copies are submitted; it goes back to its caller."""
    goes_on = ("down_read", 1, 0)
    checked = [("btrfs_check_leaf", 2, 0), *[("btrfs_comp_cpu_keys", 3, 800)] * items, goes_on]
    submitted = [("submit_bio", 2, 1500), goes_on] * 2
    return [("btrfs_write_marked_extents", 1, 20_000), *checked, *submitted, ("__x64_sys_openat", 0, 1)]


def test_a_block_of_the_log_takes_what_is_left_without_the_check_of_its_items() -> None:
    found = trees.synced(Loop(row(*written(1), *written(40)).log))
    assert found["check_item"] == [800]
    assert found["wfsync.write_block"] == found["commit_block"] == [20_000, 20_000]


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="Debian only")
def test_the_first_package_of_a_folder_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "made"
    (made / "DEBIAN").mkdir(parents=True)
    (made / "DEBIAN/control").write_text(
        "Package: some\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: none\n"
    )
    (made / "file").write_text("what it has")

    def download(_: Apt, command: str, *_arguments: str, folder: Path | None = None) -> None:
        if folder:
            subprocess.run(
                ["dpkg-deb", "-b", made, folder / "some_1_all.deb"], check=True, capture_output=True
            )

    monkeypatch.setattr(Apt, "_run", download)
    assert (Apt(tmp_path / "apt").unpacked("some=1") / "file").read_text() == "what it has"
