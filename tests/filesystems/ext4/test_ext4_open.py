"""Opens of ext4 look whether the directory is encrypted, with a reference of it or under RCU."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from machines import assert_same
from operations import spec
from tiny_machine import Counting

from engine import Spec, rate, simulate, window
from simfs.scenario.models import load_kernel


def opening(path: Path, op: str, tasks: int, *, counts: bool, kind: str = "ext4") -> Spec:
    rules = {"ext4.open_counts_directory": counts}
    return spec(path, op, tasks, filesystem=kind, rules=rules, files=1)


@pytest.mark.parametrize("op", ["open", "open_creat", "create"])
def test_an_open_counts_the_directory_twice(tmp_path: Path, op: str) -> None:
    """`dget_parent` and `dput` in `fscrypt_file_open`."""

    def atomics(*, counts: bool) -> int:
        machine = Counting(opening(tmp_path, op, 1, counts=counts))
        machine.run(10**9)
        accesses, operations = Counter(machine.accesses), sum(machine.operations.values())
        return round(100 * accesses["beside atomic"] / operations)

    assert atomics(counts=True) - atomics(counts=False) == pytest.approx(200, abs=4)


def test_opens_of_own_files_in_one_directory_meet_there(tmp_path: Path) -> None:
    alone, under_rcu, counted = (
        rate(simulate(opening(tmp_path, "open", tasks, counts=counts)))
        for tasks, counts in ((1, True), (16, False), (16, True))
    )
    assert under_rcu == pytest.approx(16 * alone, rel=0.03)
    assert counted < 0.95 * under_rcu


def test_other_filesystems_do_not_ask(tmp_path: Path) -> None:
    assert simulate(opening(tmp_path, "open", 8, counts=True, kind="tmpfs")) == simulate(
        opening(tmp_path, "open", 8, counts=False, kind="tmpfs")
    )


@pytest.mark.parametrize(
    ("version", "counts"), [("4.4", False), ("4.5", True), ("6.9", True), ("6.10", False)]
)
def test_an_open_counts_from_4_5_to_6_9(version: str, counts: bool) -> None:
    assert load_kernel(f"linux-{version}").rules["ext4.open_counts_directory"] is counts


def test_both_machines_agree(tmp_path: Path) -> None:
    assert_same(opening(tmp_path, "open", 5, counts=True) | window(3e4))
