"""Hash tables of the kernel: who makes a name waits for its bucket, which others used long ago."""

from __future__ import annotations

import json

import pytest
from machines import assert_same

from engine import Spec, scenario_spec, window
from simfs import _engine

KINDS = ["xfs", "tmpfs", "ext4", "btrfs"]


def creating(kind: str, buckets: float = 1) -> Spec:
    """Files with new names. Memory that RCU gives back is in a core's cache, the tables are not."""
    spec = scenario_spec("guest-cold", kind, "sweep={}", warmup_ns=1e6, duration_ns=2e7)
    spec["machine"]["costs"]["step_cv"] = 0
    spec["machine"]["caches"]["core_bytes"] = 16 * 2**20
    spec["machine"]["memory_bytes"] = 24 * 2**30
    spec["vfs"]["costs"]["vfs_hash.new_index"] = buckets
    return spec


def time_of_create(spec: Spec) -> float:
    """The median: the mean has an interrupt that gives back much memory, or has not."""
    return float(json.loads(_engine.run(json.dumps(spec)))["latency"]["create"]["p50_ns"])


@pytest.mark.parametrize(("kind", "tables"), [("xfs", 1), ("tmpfs", 1), ("ext4", 1), ("btrfs", 2)])
def test_a_create_waits_for_one_line_of_each_table(kind: str, tables: int) -> None:
    """The hash table of inodes has those of ext4, too, but a new file gets the number of the one that was removed."""
    spec = creating(kind)
    longer = time_of_create(spec) - time_of_create(creating(kind, 0))
    assert 0.75 * tables < longer / spec["machine"]["caches"]["memory_ns"] < 1.05 * tables


def test_a_table_of_a_small_machine_stays_in_the_caches() -> None:
    def time_of_small(buckets: float) -> float:
        spec = creating("tmpfs", buckets)
        spec["machine"]["memory_bytes"] = 2**26
        return time_of_create(spec)

    assert time_of_small(1) == pytest.approx(time_of_small(0), abs=2)


def test_only_counted_steps_have_not_waited_yet() -> None:
    def buckets(scenario: str, variant: str) -> float:
        costs = scenario_spec(scenario, variant, "sweep={}", warmup_ns=0, duration_ns=1)["vfs"]["costs"]
        return float(costs["vfs_hash.new_index"])

    assert buckets("guest-cold", "xfs") == 1
    assert buckets("guest-gcc", "xfs") == 0


@pytest.mark.parametrize("kind", KINDS)
def test_both_machines_agree_on_new_names(kind: str) -> None:
    spec = creating(kind) | window(3e5)
    spec["workload"] |= {"tasks": 3, "pin_to_cpu": None}
    assert assert_same(spec) > 100
