"""Structures that are larger than the last-level cache, against an exact list of least recently used blocks."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import assert_same

from engine import Spec, scenario_spec, window
from simfs import _engine
from simfs.machine.caches.blocks import Blocks
from simfs.machine.caches.line import Home
from simfs.machine.caches.recency import FILL, Recency
from simfs.machine.cpus.topology import Topology
from simfs.scenario import expand, load, to_run_spec

BLOCK = 1024
NEAR, MEMORY, OVERLAP = 30.0, 100.0, 10.0
MIB = 1 << 20


@pytest.mark.slow
@given(st.floats(2, 5), st.integers(FILL, 2 * FILL), st.integers(0, 2**32))
def test_what_was_used_since_is_what_a_list_of_blocks_says(times: float, fit: int, seed: int) -> None:
    """Within one bucket, for blocks that are in the cache."""
    recency, draw, blocks = Recency(fit * BLOCK), random.Random(seed), int(times * fit)
    last = {block: recency.add(BLOCK) for block in range(blocks)}
    order = list(range(blocks))
    for _ in range(3 * blocks):
        block = draw.randrange(blocks)
        newer = len(order) - 1 - order.index(block)
        if newer <= fit:
            assert abs(recency.since(last[block]) - newer * BLOCK) <= fit * BLOCK / FILL
        recency.take(last[block], BLOCK)
        last[block] = recency.add(BLOCK)
        order.remove(block)
        order.append(block)
    assert recency.total() == blocks * BLOCK


def blocks(fit: int, core: int | None = None) -> Blocks:
    """The blocks of a machine whose last-level cache holds so many, and a core's own as many or so many."""
    spec = creating(1)["machine"] | {"cpus": 2, "cpus_per_core": 1, "cpus_per_llc": 2, "cpus_per_socket": 2}
    spec["costs"] |= {"line_overlap": OVERLAP}
    core_bytes = (core or fit) * BLOCK
    spec["caches"] |= {
        "core_bytes": core_bytes,
        "llc_bytes": fit * BLOCK,
        "llc_ns": NEAR,
        "memory_ns": MEMORY,
    }
    return Blocks(spec, Topology(spec))


def had(cache: Blocks, block: int, used: int = 0, cpu: int = 0) -> Home:
    return cache.use(cpu, (used, used), block, BLOCK)[0]


def missed(cache: Blocks, block: int, used: int = 0) -> bool:
    return had(cache, block, used) is Home.MEMORY


@pytest.mark.parametrize(("count", "fit"), [(400, 200), (400, 300), (1000, 100), (400, 400)])
def test_of_random_visits_as_many_hit_as_blocks_are_in_the_cache(count: int, fit: int) -> None:
    cache, draw = blocks(fit), random.Random(1)
    all_blocks = [cache.new_block(range(0), None) for _ in range(count)]
    for block in all_blocks:
        missed(cache, block)
    visits = [draw.choice(all_blocks) for _ in range(20 * count)]
    used, misses = 0, 0
    for block in visits:
        gone = missed(cache, block, used)
        used, misses = used + gone * BLOCK, misses + gone
    assert 1 - misses / len(visits) == pytest.approx(fit / count, abs=0.03)


def test_a_block_costs_a_latency_for_each_line_that_tells_the_next_and_a_part_for_the_others() -> None:
    cache = blocks(10)
    block, other = cache.new_block(range(3, 7), None), cache.new_block(range(0), None)
    assert cache.use(0, (0, 0), block, BLOCK) == (Home.CORE, range(3, 7))
    assert cache.fetched(block, 5, 20) == 0
    cache.use(0, (0, 0), other, 20 * BLOCK)
    assert cache.use(0, (0, 0), block, BLOCK) == (Home.MEMORY, range(3, 7))
    assert cache.fetched(block, 5, 20) == pytest.approx((5 + 20 / OVERLAP) * MEMORY * 1000)


def test_a_block_that_left_the_core_is_in_the_last_level_cache() -> None:
    cache = blocks(100, core=10)
    block, other = cache.new_block(range(0), None), cache.new_block(range(0), None)
    had(cache, block)
    cache.use(0, (0, 0), other, 20 * BLOCK)
    assert had(cache, block) is Home.LLC
    assert cache.fetched(block, 5, 20) == pytest.approx((5 + 20 / OVERLAP) * NEAR * 1000)
    assert had(cache, block) is Home.CORE


@pytest.mark.parametrize(("walker", "home"), [(0, Home.LLC), (1, Home.CORE)])
def test_what_another_core_uses_drives_nothing_out_of_this_one(walker: int, home: Home) -> None:
    """Where a block is in the core that used it last, its lines are moved from there."""
    cache = blocks(100, core=10)
    block, other = cache.new_block(range(0), None), cache.new_block(range(0), None)
    had(cache, block)
    cache.use(walker, (0, 0), other, 20 * BLOCK)
    assert had(cache, block, cpu=1) is home


def test_what_programs_and_calls_use_drives_blocks_out_too() -> None:
    cache = blocks(10)
    block = cache.new_block(range(0), None)
    assert [missed(cache, block, used) for used in (0, 5 * BLOCK, 30 * BLOCK)] == [False, False, True]


def test_a_block_that_was_there_before_is_as_old_as_it_is_told() -> None:
    cache = blocks(10)
    young, old = (cache.new_block(range(0), ago * BLOCK) for ago in (5, 15))
    assert [missed(cache, young), missed(cache, old)] == [False, True]


def creating(llc: float, memory: float = 90.0, files: int = 20_000, **changes: Any) -> Spec:  # noqa: ANN401
    """One task that creates files in a btrfs of some 9 MiB of tree blocks."""
    lengths = window(2e6) | changes
    made = scenario_spec(
        "btrfs-unlock-parent",
        "default",
        "sweep={}",
        "workload.tasks=1",
        f"workload.initial_files={files}",
        **lengths,
    )
    made["machine"]["caches"] |= {"llc_bytes": llc, "memory_ns": memory, "code_lines": 1e-6, "bodies": []}
    return made


FILES = """
simfs: 1
name: many-files
title: Calls on files, each on another one
question: How long do they take when the caches do not hold all files?
machine: server-24
kernel: linux-6.12
filesystem: {{kind: {kind}, size: 2 GiB}}
workload: {{kind: mix, tasks: 1, directories: per-task, files: {files}, operations: [{{op: {op}}}]}}
measure: {{warmup: 200 us, duration: 1 ms, replications: 1, seed: 1}}
"""
KINDS = ("xfs", "ext4", "btrfs", "tmpfs")


def using(tmp_path: Path, kind: str, op: str, caches: dict[str, float], files: int = 400) -> Spec:
    """One task that does calls on so many files in turn, on a machine with these caches."""
    path = tmp_path / f"{kind}-{op}-{files}.yaml"
    path.write_text(FILES.format(kind=kind, op=op, files=files))
    spec = to_run_spec(expand(load(str(path)))[0], 0)
    spec["machine"]["caches"] |= {
        "code_lines": 1e-6,
        "bodies": [],
        "core_bytes": MIB,
        "llc_bytes": 8 * MIB,
    } | caches
    return spec


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["stat", "open", "chmod"])
def test_files_that_do_not_fit_cost_the_latency_of_what_has_them(tmp_path: Path, kind: str, op: str) -> None:
    """400 files have some 400 KiB of inodes and dentries."""

    def rate(**caches: float) -> float:
        return created(using(tmp_path, kind, op, caches))

    fits, core, none = rate(), rate(core_bytes=16 * 1024), rate(core_bytes=16 * 1024, llc_bytes=64 * 1024)
    assert fits > 1.02 * core
    assert core > 1.02 * none
    assert rate(llc_ns=1, memory_ns=1000) == fits


@pytest.mark.parametrize("kind", KINDS)
def test_few_files_stay_in_caches_that_many_do_not(tmp_path: Path, kind: str) -> None:
    few, many = (
        created(using(tmp_path, kind, "stat", {"core_bytes": 32 * 1024}, files)) for files in (20, 400)
    )
    assert few > 1.02 * many


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tasks", [1, 4])
def test_both_machines_agree_on_files_that_do_not_fit(tmp_path: Path, kind: str, tasks: int) -> None:
    small = {"core_bytes": 8 * 1024.0, "llc_bytes": 32 * 1024.0}
    spec = using(tmp_path, kind, "open", small, files=75) | window(1e5)
    spec["workload"]["tasks"] = tasks
    assert assert_same(spec) > 100


@pytest.mark.parametrize("kind", ["xfs", "ext4"])
def test_blocks_that_do_not_fit_cost_creates_more(kind: str) -> None:
    """Each create goes through a tree of inodes or its bitmap, and a directory of two thousand names."""

    def rate(core: float, llc_ns: float) -> float:
        made = scenario_spec("guest-cold", kind, "sweep={}", warmup_ns=1e6, duration_ns=4e6)
        made["workload"]["params"] |= {"footprint_bytes": 4096}
        made["machine"]["caches"] |= {"code_lines": 1e-6, "bodies": [], "core_bytes": core, "llc_ns": llc_ns}
        return created(made)

    assert rate(MIB, 70) == pytest.approx(rate(MIB, 300), rel=0.04)  # ticks run RCU's callbacks
    assert rate(4096, 70) > 1.05 * rate(4096, 300)


@pytest.mark.parametrize("kind", ["tmpfs", "ext4", "btrfs"])
def test_a_loop_makes_its_files_in_memory_that_was_freed_ticks_ago(kind: str) -> None:
    """Thousands of inodes and dentries were used since, more than fits."""

    def rate(warmup: float, llc_ns: float) -> float:
        made = scenario_spec("guest-cold", kind, "sweep={}", warmup_ns=warmup, duration_ns=4e6)
        made["workload"]["params"] |= {"footprint_bytes": 0}
        made["machine"]["caches"] |= {"bodies": [], "core_bytes": MIB, "llc_ns": llc_ns}
        return created(made)

    assert rate(1e6, 70) == pytest.approx(rate(1e6, 300), rel=0.02)
    assert rate(20e6, 70) > 1.04 * rate(20e6, 300)


def created(spec: Spec) -> float:
    result = json.loads(_engine.run(json.dumps(spec)))
    return float(result["operations"])


def test_a_tree_that_fits_costs_nothing_more() -> None:
    assert created(creating(1024 * MIB, 90)) == created(creating(1024 * MIB, 2000))


def test_the_less_of_a_tree_fits_the_longer_it_takes() -> None:
    rates = [created(creating(llc * MIB, 500)) for llc in (64, 4, 1, 0.25)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 1.1 * rates[-1]


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [1, 4])
def test_both_machines_agree_on_a_tree_that_does_not_fit(tasks: int) -> None:
    spec = creating(MIB, duration_ns=3e5)
    spec["workload"]["tasks"] = tasks
    assert assert_same(spec) > 100
