"""AppArmor's label of open files: all opens and closes meet at its count of references."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from machines import assert_same
from operations import spec
from tiny_machine import Counting

from engine import rate, simulate, window
from simfs.scenario.models import load_kernel


def test_opens_of_own_files_meet_only_with_apparmor(tmp_path: Path) -> None:
    alone, without, with_it = (
        rate(simulate(spec(tmp_path, "open", tasks, rules={"vfs.apparmor": apparmor}, files=1)))
        for tasks, apparmor in ((1, True), (16, False), (16, True))
    )
    assert without == pytest.approx(16 * alone, rel=0.01)
    assert with_it < 0.97 * without


def atomics(path: Path, op: str, *, apparmor: bool, open_counts: bool) -> int:
    """Atomic accesses to lines in 100 operations of one task."""
    rules = {"vfs.apparmor": apparmor, "vfs.apparmor_open_counts": open_counts}
    machine = Counting(spec(path, op, 1, rules=rules))
    machine.run(10**9)
    accesses, operations = Counter(machine.accesses), sum(machine.operations.values())
    return round(100 * accesses["line atomic"] / operations)


@pytest.mark.parametrize("op", ["open", "open_creat", "create", "readdir"])
def test_an_open_and_its_close_count_twice_and_before_6_11_four_times(tmp_path: Path, op: str) -> None:
    """`apparmor_file_alloc_security` and `apparmor_file_free_security`; `apparmor_file_open` between them."""
    none, new, old = (
        atomics(tmp_path, op, apparmor=apparmor, open_counts=counts)
        for apparmor, counts in ((False, True), (True, False), (True, True))
    )
    assert new - none == pytest.approx(200, abs=4)
    assert old - none == pytest.approx(400, abs=4)


@pytest.mark.parametrize(
    ("version", "counts"), [("4.12", False), ("4.13", True), ("6.10", True), ("6.11", False)]
)
def test_an_open_takes_a_reference_from_4_13_to_6_10(version: str, counts: bool) -> None:
    rules = load_kernel(f"linux-{version}").rules
    assert (rules["vfs.apparmor"], rules["vfs.apparmor_open_counts"]) == (False, counts)


def test_both_machines_agree_with_apparmor(tmp_path: Path) -> None:
    rules = {"vfs.apparmor": True, "vfs.apparmor_open_counts": True}
    assert_same(spec(tmp_path, "open", 5, rules=rules) | window(3e4))
