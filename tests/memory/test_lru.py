"""The lock of a node's list of pages: how often processes take it, how long, who waits. Both machines agree on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, run_scenario, simulate, window
from simfs import _engine
from simfs.results.run_result import LockStats
from simfs.scenario import expand, load, to_run_spec
from simfs.scenario.models import load_kernel

PAGES = (113, 513, 133)
"""Of driver, compiler, assembler in the laboratory."""
UNMEASURED = ("calibrate=[]", "measured=null")
FILES = 2
"""That a compile writes and unlinks, of a page each."""


def compiling(
    tasks: int = 1,
    cpus: int = 2,
    *,
    rules: dict[str, Any] | None = None,
    constants: dict[str, float] | None = None,
    **changes: Any,  # noqa: ANN401
) -> Spec:
    """Compiles on the emulated machine with so many CPUs, on tmpfs, for a second."""
    settings = [
        *("filesystem.kind=tmpfs", "variants=[]", *UNMEASURED),
        *(f"machine.cpus={cpus}", f"sweep.workload.tasks=[{tasks}]", "workload.params.cpu_cv=0"),
    ]
    (point,) = expand(load("emulated-compile", settings))
    spec: Spec = to_run_spec(point, 0) | window(1e9)
    kernel = spec["kernel"]
    kernel |= {"rules": kernel["rules"] | (rules or {}), "constants": kernel["constants"] | (constants or {})}
    return spec | changes


def lru_lock(spec: Spec) -> tuple[LockStats, int]:
    """What happened to the lock, and how many compiles there were."""
    run = simulate(spec)
    (lock,) = (one for one in run.locks if one.name == "mm.lru_lock")
    return lock, run.operations


def holds(spec: Spec) -> float:
    """How often a compile takes the lock."""
    lock, compiles = lru_lock(spec)
    return lock.acquired / compiles


def released(pages: int, batch: int) -> int:
    """Batches of a process that ends: eight first."""
    return 1 + -(-(pages - 8) // batch)


@pytest.mark.parametrize("batch", [15, 31])
def test_a_compile_takes_the_lock_for_each_batch_of_pages_and_when_a_process_or_a_file_goes(
    batch: int,
) -> None:
    """The laboratory counts 27 holds to add and 30 to release, with batches of 31."""
    goes = len(PAGES) + FILES  # each puts half a batch on the list before, more or less
    expected = (
        (sum(PAGES) + FILES) / batch + goes / 2 + FILES + sum(released(pages, batch) for pages in PAGES)
    )
    assert holds(compiling(constants={"lru_batch": batch})) == pytest.approx(expected, abs=1.5)


def test_what_a_cpu_has_collected_goes_onto_the_list_before_a_file_goes() -> None:
    """So a file of one page that is written and unlinked takes the lock twice (`__folio_batch_release`)."""
    (point,) = expand(
        load(
            "emulated-tmpfile",
            ["variants=[]", "filesystem.kind=tmpfs", "sweep.workload.tasks=[1]", *UNMEASURED],
        )
    )
    assert holds(to_run_spec(point, 0) | window(20e6)) == pytest.approx(2, rel=0.01)


def unlink_ns(pages: int, *, exit_drains: bool) -> float:
    """How long an unlink takes in the laboratory after a process with so many pages has ended.

    The file has one page more.
    """
    changes = [
        *("variants=[]", "filesystem.kind=tmpfs", "sweep.workload.tasks=[1]", *UNMEASURED),
        *("workload.params.time_calls=1", f"workload.params.process_pages={pages}"),
        f"kernel.rules={{mm.exit_drains: {str(exit_drains).lower()}}}",
    ]
    (point,) = expand(load("emulated-tmpfile", changes))
    run = simulate(to_run_spec(point, 0) | window(20e6))
    return run.latency["unlink"].mean_ns


@pytest.mark.parametrize(("pages", "left"), [(1, 1), (24, 24), (30, 0), (31, 0), (35, 4), (62, 0)])
def test_since_6_14_an_unlink_frees_what_a_process_left_in_the_batch(pages: int, left: int) -> None:
    """Measured on Linux 6.18 by `tools/cold-calls/pages-left.c`: 0.11 us a page, with a period of 31."""
    took = unlink_ns(pages, exit_drains=False) - unlink_ns(0, exit_drains=False)
    batch_was_full = pages % 31 == 30  # the file's page has filled it
    assert took == pytest.approx(left * (326 + 265 + 295) - batch_was_full * 326, abs=100)


def test_before_6_14_a_process_leaves_nothing() -> None:
    assert unlink_ns(24, exit_drains=True) == pytest.approx(unlink_ns(0, exit_drains=True), abs=10)


def test_kernels_up_to_6_8_let_go_of_the_lock_after_32_pages() -> None:
    runs = compiling(constants={"lru_batch": 15}, rules={"mm.page_release": "runs"})
    batches = compiling(constants={"lru_batch": 15})
    fewer = sum(released(pages, 15) - released(pages, 32) for pages in PAGES)
    assert holds(batches) - holds(runs) == pytest.approx(fewer, abs=0.5)


def test_the_lock_is_held_as_long_as_was_counted() -> None:
    """326 instructions to put a page on the list and 265 to take it off; the laboratory holds it 452,000 a compile."""
    lock, compiles = lru_lock(compiling())
    assert lock.hold_total_ns / compiles == pytest.approx(sum(PAGES) * (326 + 265), rel=0.02)


def test_what_is_done_with_pages_is_part_of_a_compiles_kernel_time() -> None:
    """A compile alone takes as long as without pages of its own."""
    workload = compiling()["workload"]
    none = {f"{program}.pages": 0 for program in ("gcc", "cc1", "as")}
    without = compiling(workload=workload | {"params": workload["params"] | none})
    spent = [run.cpu_ns.system / run.operations for run in map(simulate, (compiling(), without))]
    assert spent[0] == pytest.approx(spent[1], rel=0.005)


def test_page_faults_wait_under_their_own_name() -> None:
    """Not under the system call before. What is waited for in all is the same."""
    lock, _ = lru_lock(compiling(8, 8))
    waits = {site.site: site.wait_total_ns for site in lock.sites}
    assert waits["page fault"] > 0.1 * lock.wait_total_ns
    assert sum(waits.values()) == pytest.approx(lock.wait_total_ns)


def yields_after_a_batch(*, gives_way: bool) -> int:
    """How often a task gives way right after it had the lock, where four compile on one CPU."""
    spec = compiling(4, 1, rules={"mm.gather_gives_way": gives_way}, duration_ns=500e6)
    _, events = _engine.trace(json.dumps(spec))
    last: dict[int | None, tuple[str, str]] = {}
    yields = 0
    for _, task, _, did, what in events:
        if did == "yield":
            yields += last[task] == ("release", "mm.lru_lock")
        elif did != "segment end":
            last[task] = (did, what.split("#")[0])
    return yields


def test_a_process_that_ends_gives_way_between_batches_of_pages() -> None:
    """In the laboratory one preemption by a worker in seven is there (`__tlb_batch_free_encoded_pages`)."""
    assert yields_after_a_batch(gives_way=True) > yields_after_a_batch(gives_way=False)


def test_many_compilers_spin_for_it() -> None:
    """In the laboratory 24 use it 70 % of the time and spin for it 2 to 11 % of theirs, in windows of 12 ms."""
    spec = compiling(24, 24, duration_ns=300e6)
    lock, _ = lru_lock(spec)
    assert lock.hold_total_ns / 300e6 == pytest.approx(0.7, abs=0.07)
    assert 0.02 < simulate(spec).cpu_ns.spin / (24 * 300e6) < 0.11


def test_each_node_has_a_lock() -> None:
    """Two nodes with half of the compilers each wait far less than one."""
    spec = compiling(24, 24, duration_ns=300e6)
    two = spec | {"machine": spec["machine"] | {"cpus_per_llc": 12, "cpus_per_socket": 12}}
    waits = [lock.wait_total_ns for lock, _ in map(lru_lock, (spec, two))]
    assert waits[1] < waits[0] / 2


def test_batches_are_those_of_the_kernels() -> None:
    sizes = [
        load_kernel(f"linux-{version}").constants["lru_batch"].plain
        for version in ("4.14", "4.15", "6.8", "6.9")
    ]
    assert sizes == [14, 15, 15, 31]
    release = [
        load_kernel(f"linux-{version}").rules["mm.page_release"] for version in ("3.17", "3.18", "6.8", "6.9")
    ]
    assert release == ["batches", "runs", "runs", "batches"]
    drains = [load_kernel(f"linux-{version}").rules["mm.exit_drains"] for version in ("6.13", "6.14")]
    assert drains == [True, False]


READ_AGAIN = """
simfs: 1
name: read-again
title: A new file that is read
question: how often does it take the lock of the list of pages?
machine: {{profile: server-24, cpus: 2}}
kernel: {{profile: linux-6.5, rules: {{mm.activates: {activates}}}}}
filesystem: {{kind: {filesystem}, size: 8 GiB}}
device: {{profile: ramdisk}}
workload:
  kind: mix
  tasks: 1
  order: in-turn
  operations: [{{op: create}}, {{op: append, size: 120 KiB, on: made}}, {reads} {{op: unlink, on: made}}]
measure: {{warmup: 1 ms, duration: 5 ms, replications: 1, seed: 1}}
"""


def holds_of_a_file(path: Path, reads: int, filesystem: str = "ext4", *, activates: bool = True) -> float:
    """How often a file of 30 pages takes the lock, of which 15 are collected at a time, if it is read so often."""
    text = READ_AGAIN.format(
        activates=str(activates).lower(),
        filesystem=filesystem,
        reads="{op: read, size: 120 KiB, on: made}," * reads,
    )
    run = run_scenario(path / "read-again.yaml", text, warmup_ns=1e6, duration_ns=5e6)
    (lock,) = (one for one in run.locks if one.name == "mm.lru_lock")
    return lock.acquired / run.operations


@pytest.mark.parametrize(("reads", "more"), [(1, 0), (2, 2), (4, 2)])
def test_pages_of_a_new_file_become_active_when_they_are_read_for_the_second_time(
    tmp_path: Path, reads: int, more: int
) -> None:
    """Once, in two batches (`folio_mark_accessed`)."""
    assert holds_of_a_file(tmp_path, reads) - holds_of_a_file(tmp_path, 0) == pytest.approx(more, abs=0.1)


def test_no_page_becomes_active_on_lists_by_generation_or_on_tmpfs(tmp_path: Path) -> None:
    unread, unread_tmpfs = holds_of_a_file(tmp_path, 0), holds_of_a_file(tmp_path, 0, "tmpfs")
    assert holds_of_a_file(tmp_path, 3, activates=False) == pytest.approx(unread, abs=0.1)
    assert holds_of_a_file(tmp_path, 3, "tmpfs") == pytest.approx(unread_tmpfs, abs=0.1)


READ_BESIDE = """
simfs: 1
name: read-beside
title: Random reads of a file in memory
question: when do its pages become active?
machine: {{profile: server-24, cpus: 2}}
kernel: {{profile: linux-6.1, rules: {{mm.activates: {activates}}}}}
filesystem: {{kind: {filesystem}, size: 8 GiB}}
device: {{profile: ramdisk}}
workload: {{kind: fio, tasks: 1, rw: randread, size: 480 KiB, block_size: 4 KiB, cached: {cached}}}
measure: {{warmup: 0 ms, duration: 20 ms, replications: 1, seed: 1}}
"""


def activations(path: Path, filesystem: str, cached: str, *, activates: bool = True) -> int:
    """How often a task that reads all 120 pages of a file many times takes the lock, under the file's lock on XFS."""
    text = READ_BESIDE.format(activates=str(activates).lower(), filesystem=filesystem, cached=cached)
    run = run_scenario(path / "read-beside.yaml", text, warmup_ns=0, duration_ns=20e6)
    return sum(one.acquired for one in run.locks if one.name == "mm.lru_lock")


@pytest.mark.parametrize("filesystem", ["xfs", "ext4", "btrfs"])
def test_pages_that_were_only_written_become_active_by_random_reads(tmp_path: Path, filesystem: str) -> None:
    """Each once, by the second read of it, 15 at a time; those that were read before are active."""
    assert activations(tmp_path, filesystem, "written") == 120 / 15
    assert activations(tmp_path, filesystem, "true") == 0
    assert activations(tmp_path, filesystem, "written", activates=False) == 0


@pytest.mark.slow
@pytest.mark.parametrize("release", ["batches", "runs"])
@pytest.mark.parametrize("tasks", [1, 5])
def test_both_machines_agree_on_pages(release: str, tasks: int) -> None:
    rules = {"mm.page_release": release, "mm.exit_drains": release == "runs"}
    assert_same(compiling(tasks, rules=rules, duration_ns=60e6))
