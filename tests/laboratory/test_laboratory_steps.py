"""The laboratory's counter of instructions: logs of blocks, steps of a trace, and the tables made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml
from laboratory import blocks, classed, fetched, steps
from laboratory.jumps import is_indirect, word_behind
from numpy.typing import NDArray

from simfs.scenario import load, models
from simfs.scenario.points import expand
from simfs.scenario.run_spec import to_run_spec
from simfs.vocabulary import vocabulary

TEXT = 0xFFFFFFFF81000000
KALLSYMS = f"""{TEXT:x} T xfs_create
{TEXT + 0x100:x} t trace_event_raw_event_xfs_buf_class
{TEXT + 0x200:x} T asm_sysvec_apic_timer_interrupt
{TEXT + 0x300:x} T down_write
{TEXT + 0x380:x} d not_a_function
"""
TASK, OTHER = 0xFFFFC90000004000, 0xFFFFC90000008000
FILESYSTEMS = ("xfs", "ext4", "btrfs", "tmpfs")


def log_of(*records: tuple[int, int, int]) -> blocks.Log:
    """A log of blocks at an offset from the text, with a stack, of so many instructions each."""
    ns, rows = 0, []
    for offset, stack, instructions in records:
        rows.append((offset + (TEXT if stack >> 63 else 0), stack, ns, instructions, 0))
        ns += instructions
    return blocks.Log(np.array(rows, dtype=blocks.RECORD), blocks.Symbols.parse(KALLSYMS))


def executed(log: blocks.Log) -> NDArray[np.int64]:
    return log.executed(TASK // blocks.STACK)


def test_tracer_and_interrupts_are_left_out_until_they_return() -> None:
    log = log_of(
        (0x000, TASK + 0x800, 7),
        (0x100, TASK + 0x7F8, 100),  # the tracer, which calls
        (0x300, TASK + 0x7F0, 50),
        (0x110, TASK + 0x7F8, 100),
        (0x010, TASK + 0x800, 3),  # it has returned
        (0x200, TASK + 0x700, 1000),
        (0x020, TASK + 0x800, 2),
    )
    assert executed(log).tolist() == [0, 7, 7, 7, 7, 10, 10, 12]


def test_blocks_may_count_more_and_again_what_they_execute() -> None:
    log = log_of((0x000, TASK + 0x800, 7), (0x010, TASK + 0x800, 3))
    log.weigh(np.array([100, 0]))
    assert executed(log).tolist() == [0, 107, 110]
    log.weigh(0)
    assert executed(log).tolist() == [0, 7, 10]


@pytest.mark.parametrize(
    ("operands", "indirect"),
    [
        ("rax", True),
        (hex(TEXT), True),
        (hex(TEXT + 0x300), False),
        ("qword ptr [rip + 0x1c354c0]", False),
    ],
)
def test_a_thunk_is_an_indirect_jump_and_a_paravirtual_call_is_none(operands: str, indirect: bool) -> None:
    assert is_indirect(operands, {TEXT}) is indirect


@pytest.mark.parametrize(
    ("operands", "behind"), [("qword ptr [rip + 0x10]", 16), ("qword ptr [rip - 0x8]", -8), ("rax", None)]
)
def test_a_paravirtual_call_says_where_its_word_is(operands: str, behind: int | None) -> None:
    assert word_behind(operands) == behind


def test_a_step_with_fewer_instructions_than_in_the_table_has_its_classes_in_proportion() -> None:
    classes = classed.replaced(
        "steps:\n  a: {value: 30, unit: u}\n", {"a": {"instructions": 20.0, "atomic": 3.0}}
    )
    assert yaml.safe_load(classes)["classes"]["steps"] == {"a": {"instructions": 30, "atomic": 4.5}}


def test_classes_of_steps_that_were_not_counted_stay() -> None:
    steps = "steps:\n  a: {value: 1}\n  b: {value: 2}\n"
    old = f"{steps}classes:\n  steps:\n    a: {{atomic: 1}}\n    b: {{atomic: 2}}\n"
    counts = {"b": {"instructions": 20.0, "atomic": 3.0, "mask": 0.001}, "unknown": {"instructions": 1.0}}
    classes = yaml.safe_load(classed.replaced(old, counts))["classes"]["steps"]
    assert classes == {"a": {"atomic": 1}, "b": {"instructions": 20, "atomic": 3}}


def test_a_line_is_fetched_again_after_as_many_others_of_its_set_as_there_are_ways() -> None:
    way = fetched.SETS * 64
    for others, again in ((fetched.WAYS - 1, 0), (fetched.WAYS, 1)):
        visits = [0, *range(way, (others + 1) * way, way), 0]
        log = log_of(*((offset, TASK + 0x800, 3) for offset in visits))
        assert fetched.fetches(log).tolist() == [1] * (others + 1) + [again]


def test_a_block_fetches_all_of_its_lines_and_each_cpu_its_own() -> None:
    records = [
        (TEXT + 0x30, TASK, 0, 40, 80 << 16),
        (TEXT + 0x40, TASK, 40, 3, 9 << 16),
        (TEXT + 0x40, TASK, 43, 3, 9 << 16 | 1),
    ]
    log = blocks.Log(np.array(records, dtype=blocks.RECORD), blocks.Symbols.parse(KALLSYMS))
    assert fetched.fetches(log).tolist() == [2, 0, 1]


def test_an_interrupt_of_user_code_ends_where_that_goes_on() -> None:
    """It enters on a stack of the CPU, above which the task's never is."""
    entry = 0xFFFFFE0000002000
    log = log_of(
        (0x40, 0x7FFF0000, 5), (0x200, entry, 1000), (0x300, TASK + 0x800, 50), (0x44, 0x7FFF0000, 3),
        (0x000, TASK + 0x800, 7), (0x44, 0x7FFF0000, 1),
    )  # fmt: skip
    assert executed(log).tolist() == [0, 5, 5, 5, 8, 15, 16]


def test_other_tasks_do_not_count_but_user_code_does() -> None:
    log = log_of((0x000, TASK + 0x800, 7), (0x300, OTHER + 0x800, 99), (0x40, 0x7FFF0000, 5))
    assert executed(log).tolist() == [0, 7, 7, 12]


def test_a_log_that_was_switched_off_for_a_while_is_two() -> None:
    rows = [(TEXT, TASK, ns, 1, 0) for ns in (0, 10, 10 + 2 * blocks.PAUSE_NS)]
    assert [len(log) for log in blocks.split(np.array(rows, dtype=blocks.RECORD))] == [2, 1]


TRACE = """\
    load-205 [000] ...1.   0: sys_openat(dfd: ffffff9c, filename: 7fffffffe940, flags: c1, mode: 1a4)
    load-205 [000] .....   7: xfs_ilock: dev 7:0 ino 0x83 flags ILOCK_EXCL|0x5000000 caller xfs
    load-205 [000] .....   8: xfs_buf_lock: dev 7:0 daddr 0x2 bbcount 0x1 bufops xfs_agi_buf_ops+0x0/0x40 [xfs]
    load-205 [000] .....   9: xfs_buf_lock_done: dev 7:0 daddr 0x2 bbcount 0x1 bufops xfs_agi_buf_ops+0x0/0x40 [xfs]
  <idle>-0 [000] d..2.   9: sched_switch: prev_comm=swapper/0 prev_pid=0
    load-205 [000] .....  12: btrfs_tree_read_lock: dead: block=1 generation=7 owner=5 is_log_tree=0
    load-205 [000] .....  12: jbd2_handle_stats: dev 7,0 tid 2 type 2 line_no 3 interval 0 sync 0
    load-205 [000] ...1.  14: sys_openat -> 0x3
"""


def test_events_have_the_names_of_the_traces() -> None:
    log = log_of((0x000, TASK + 0x800, 7), (0x010, TASK + 0x800, 5), (0x020, TASK + 0x800, 4))
    found = list(steps.steps(TRACE.splitlines(), log, "0x83"))
    names = [
        "enter_openat",
        "lock_dir_ilock_excl",
        "lock_agi",
        "read_lock_fs_l0",
        "jbd2_handle_stop",
        "exit_openat",
    ]
    assert [step.name for step in found] == names
    assert [step.executed for step in found] == [0, 7, 7, 12, 12, 12]


def operation(*named: tuple[str, int]) -> list[steps.Step]:
    return [steps.Step("load", 1, name, at, 0) for name, at in named]


def test_a_step_that_is_missing_takes_none_and_one_too_many_belongs_to_the_next() -> None:
    op = operation(("a", 0), ("b", 110), ("extra", 150), ("c", 250), ("c", 300))
    order = ["a", "b", "gone", "c", "c_2"]
    taken = steps.count(op, order, per_event=10)
    assert taken == {"b": 100, "gone": 0, "c": 120, "c_2": 40}
    assert sum(taken.values()) == 300 - 4 * 10
    assert steps.likeness(op, order) == pytest.approx(8 / 10)


def test_operations_begin_with_their_first_step() -> None:
    seen = operation(("x", 0), ("a", 1), ("b", 2), ("a", 3), ("b", 4))
    assert [[step.executed for step in op] for op in steps.operations(seen, "a")] == [[1, 2], [3, 4]]


@pytest.mark.parametrize("kind", FILESYSTEMS)
def test_the_tables_count_steps_that_programs_read(kind: str) -> None:
    own = models.load_filesystem(kind)
    times = own.costs | own.constants | models.load_vfs(kind).costs
    tables = models.load_instructions(kind) | models.load_vfs_instructions(kind)
    for name, quantity in tables.items():
        assert name in vocabulary().costs[kind], name
        assert quantity.unit == "instructions"
        assert times[name].is_time, name


def spec_of(machine: str, speed: float, kind: str = "xfs") -> dict[str, Any]:
    scenario = {
        "simfs": 1,
        "name": "counted",
        "title": "counted",
        "question": "counted",
        "machine": {"profile": machine, "speed": speed},
        "kernel": "linux-6.12",
        "filesystem": {"kind": kind, "costs": {"inode_list": "33 ns"}},
        "device": "loop-tmpfs",
        "workload": {"kind": "create", "tasks": 1},
        "measure": {"warmup": "1 ms", "duration": "1 ms", "replications": 1, "confidence": "95 %", "seed": 1},
    }
    return to_run_spec(expand(load(scenario))[0], 0)


@pytest.mark.parametrize("kind", FILESYSTEMS)
def test_counted_steps_take_their_instructions_at_any_speed(kind: str) -> None:
    for speed in (1.0, 3.3):
        spec = spec_of("emulated", speed, kind)
        for section, table in (
            ("filesystem", models.load_instructions(kind)),
            ("vfs", models.load_vfs_instructions(kind)),
        ):
            assert table
            taken = {name: speed * spec[section]["costs"][name] for name in table}
            assert taken == pytest.approx({name: quantity.value for name, quantity in table.items()})
        assert spec["filesystem"]["costs"]["inode_list"] == 33


def test_counted_devices_take_their_instructions_at_any_speed() -> None:
    table = models.load_device_instructions("loop-tmpfs")
    assert set(table) == {"submit", "interrupt", "dispatch", "write.time", "write.per_kib", "flush.time"}
    for speed in (1.0, 3.3):
        device = spec_of("emulated", speed)["device"]
        for name, quantity in table.items():
            request, _, part = name.rpartition(".")
            section = device[request] if request else device
            assert speed * section[f"{part}_ns"] == pytest.approx(quantity.value)


def test_devices_of_other_machines_have_the_traced_times() -> None:
    spec = spec_of("guest-2cpu", 1.0)["device"]
    assert spec["submit_ns"] == models.load_device("loop-tmpfs").spec()["submit_ns"]
    assert models.load_device_instructions("nvme") == {}


def test_other_machines_have_the_traced_times() -> None:
    spec = spec_of("guest-2cpu", 3.3)
    assert spec["filesystem"]["costs"] == models.load_filesystem("xfs").spec() | {
        name: ns for name, ns in spec["filesystem"]["costs"].items() if name.startswith("range_lock.")
    } | {"inode_list": 33}
