"""A switch loads page tables where another process goes on; kernel threads and idle CPUs borrow what is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from busy_machines import Machines
from machines import assert_same

from engine import lock_cycle, window, written_spec
from simfs.machine.cpus.cpu import KERNEL_MM
from simfs.machine.machine import Machine
from simfs.machine.sched.address_space import LAST, AddressSpaces
from simfs.machine.time import from_ns

ONE, OTHER = 7, 8
"""Address spaces of two processes."""


def loads(*spaces: int | None, lazy: bool = True) -> list[bool]:
    """Which switches of a CPU load page tables, to tasks with these address spaces or to idle."""
    here = Machines(1, idle=(), lazy_tlb=lazy)
    spec = here.machine.spec
    spec["machine"]["costs"] |= {"context_switch": 1000, "switch_mm": 400}
    machine = Machine(spec)
    cpu = machine.scheduler.cpus[0]
    task, found = here.busy[0], list[bool]()
    for space in spaces:
        task.mm = space or KERNEL_MM
        time = machine.scheduler.address_spaces.switch(cpu, None if space is None else task)
        found.append(time == from_ns(1000))
        assert found[-1] or time == from_ns(600)
    return found


def test_the_way_to_another_process_loads_page_tables_and_the_way_back_too() -> None:
    assert loads(ONE, OTHER, ONE) == [True, True, True]


def test_threads_of_a_process_switch_without() -> None:
    assert loads(ONE, ONE, ONE) == [True, False, False]


@pytest.mark.parametrize("space", [KERNEL_MM, None])
def test_a_kernel_thread_and_an_idle_cpu_borrow_what_is_loaded(space: int | None) -> None:
    assert loads(ONE, space, ONE, space, OTHER) == [True, False, False, False, True]


@pytest.mark.parametrize("space", [KERNEL_MM, None])
def test_from_4_14_to_4_19_they_load_the_kernels(space: int | None) -> None:
    assert loads(ONE, space, space, ONE, lazy=False) == [True, True, False, True]


def test_tasks_of_a_lock_cycle_are_threads_and_others_are_processes() -> None:
    spec = lock_cycle(tasks=2)
    threads = AddressSpaces(Machine(spec))
    assert threads.of_new("foreground") == threads.of_new("foreground")
    spec["workload"] = {"kind": "mix", "tasks": 2, "params": {}}
    processes = AddressSpaces(Machine(spec))
    seen = [processes.of_new("foreground") for _ in range(LAST + 2)]
    assert len({*seen[:1000]}) == 1000
    assert {*seen}.isdisjoint({KERNEL_MM, threads.of_new("foreground")})
    assert processes.of_new("background") == KERNEL_MM


@pytest.mark.parametrize("threads", ["false", "true"])
@pytest.mark.parametrize("lazy", [True, False])
def test_both_machines_switch_alike(tmp_path: Path, threads: str, lazy: bool) -> None:
    text = (
        "simfs: 1\nname: s\ntitle: s\nmachine: {profile: server-24, cpus: 2, cpus_per_llc: 2, cpus_per_socket: 2}\n"
        f"kernel: {{profile: linux-6.12, rules: {{sched.lazy_tlb: {str(lazy).lower()}}}}}\n"
        "device: loop-tmpfs\nfilesystem: {kind: xfs}\n"
        f"workload: {{kind: mix, tasks: 3, threads: {threads}, directories: per-task, files: 1, file_size: 4 KiB, "
        "operations: [{op: append}, {op: fsync, on: written}]}\n"
    )
    assert_same(written_spec(tmp_path / "s.yaml", text) | window(3e6))
