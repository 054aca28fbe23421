"""What is not modelled is data: each entry has a reason, and a report names what concerns its scenario."""

from __future__ import annotations

import re
from pathlib import Path

from simfs.scenario import expand, load
from simfs.scenario.left_out import left_out
from simfs.vocabulary import vocabulary

ENGINE = Path(__file__).parents[2] / "engine" / "src"

ONLY_IN_PART = {
    "smt_speed": "the factor beyond which nothing is modelled",
    "locks.spinlock": "how a scenario asks for paravirtual locks",
    "teo": "that of 6.11 and 6.12 is modelled, others are not",
    "tlb": "what machines without one lack",
    "i_es_lock": "the lock is modelled, the shrinker that takes it is not",
    "mb_optimize_scan": "searches are those of the option switched off",
    "space_cache=v1": "its files are modelled, what of them is left out follows",
    "cache_write_mutex": "named where the files are written, as left out",
    "ro_block_group_mutex": "named where the files are written, as left out",
    "data_rwsem": "named where the files are written, as left out",
}
"""Names in entries that the engine knows, and why the entry holds all the same."""


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
    assert any("sched_runtime" in what for what in new - old)


def test_a_machine_has_its_own() -> None:
    many = concerning("lock-cycle", "machine.cpus_per_llc=6")
    assert any("balancing" in what for what in many - concerning("lock-cycle"))


def test_every_entry_concerns_something_that_there_is() -> None:
    kinds = {"xfs", "btrfs", "ext4", "tmpfs", "none"}
    assert all(set(each.filesystem) <= kinds for each in left_out())


def names() -> set[str]:
    """What entries name as code has it: functions, features, options, fields."""
    return {name for each in left_out() for name in re.findall(r"`([^`\s]+)`", each.what)}


def test_nothing_is_listed_that_is_a_rule_or_a_lock_by_now() -> None:
    words = vocabulary()
    built = {rule.rsplit(".", 1)[-1] for rule in words.rules} | set(words.lock_kinds)
    assert {name for name in names() if name.lower() in built} == set()


def test_what_an_entry_names_stands_in_the_engine_only_as_left_out() -> None:
    sources = "\n".join(file.read_text() for file in sorted(ENGINE.rglob("*.rs")))
    sentences = re.split(r"(?<=[.;])\s", sources)
    told = [each for each in sentences if not re.search("left out|not modelled", each, re.IGNORECASE)]
    known = "\n".join(told)
    found = {name for name in names() if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", known)}
    assert found <= ONLY_IN_PART.keys(), found - ONLY_IN_PART.keys()
    assert ONLY_IN_PART.keys() <= names(), "an exception without an entry"
