"""What is not modelled is data: each entry has a reason, and a report names what concerns its scenario."""

from __future__ import annotations

from simfs.scenario import expand, load
from simfs.scenario.left_out import left_out


def concerning(name: str, *settings: str) -> set[str]:
    point = expand(load(name, list(settings)))[0]
    return {each.what for each in left_out() if each.concerns(point)}


def test_each_has_a_reason_and_stands_once() -> None:
    assert all(each.what and each.why for each in left_out())
    assert len({each.what for each in left_out()}) == len(left_out())


def test_a_filesystem_has_its_own() -> None:
    plain, xfs = concerning("lock-cycle"), concerning("guest-agi")
    assert any("ail_lock" in what for what in xfs - plain)
    assert plain < xfs


def test_a_kernel_has_its_own() -> None:
    old = concerning("lock-cycle", "kernel.profile=linux-4.10")
    new = concerning("lock-cycle", "kernel.profile=linux-6.11")
    assert any("SIS_AVG_CPU" in what for what in old - new)
    assert any("PLACE_REL_DEADLINE" in what for what in new - old)


def test_a_machine_has_its_own() -> None:
    many = concerning("lock-cycle", "machine.cpus_per_llc=6")
    assert any("balancing" in what for what in many - concerning("lock-cycle"))


def test_every_entry_concerns_something_that_there_is() -> None:
    kinds = {"xfs", "btrfs", "ext4", "tmpfs", "none"}
    assert all(set(each.filesystem) <= kinds for each in left_out())
