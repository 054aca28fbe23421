"""The cost models: every number has a unit, a range that holds it and a source, and derived parts add up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML
from traces import load_trace

from simfs.scenario import ScenarioError
from simfs.scenario.models import (
    Classes,
    available,
    load_filesystem,
    load_footprints,
    load_kernel,
    load_machine,
    load_vfs,
    load_workload,
)
from simfs.scenario.models.timeline import NumberEra
from simfs.scenario.paths import MODELS
from simfs.scenario.sections.quantity import Quantity
from simfs.vocabulary import vocabulary

FILES = sorted(MODELS.rglob("*.yaml"))
GOOD: dict[str, Any] = {
    "value": 531,
    "unit": "ns",
    "range": [300, 600],
    "evidence": "measured",
    "source": "tracepoints, Linux 6.18",
}


def load(path: Path) -> object:
    loaded: object = YAML(typ="safe").load(path)
    return loaded


def bare_numbers(node: object, at: str = "") -> Iterator[str]:
    """Yield the place of every number that is not inside a quantity."""
    if isinstance(node, dict):
        if "value" in node:
            NumberEra.model_validate(node)
            return
        if "spread" in node:
            Classes.model_validate(node)  # has one source for all of its steps
            return
        for key, value in node.items():
            yield from bare_numbers(value, f"{at}.{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from bare_numbers(value, f"{at}[{index}]")
    elif isinstance(node, int | float) and not isinstance(node, bool) and not at.startswith(".releases."):
        yield at


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(MODELS)))
def test_every_number_is_a_quantity(path: Path) -> None:
    assert list(bare_numbers(load(path))) == []


@pytest.mark.parametrize("key", GOOD)
def test_a_quantity_without_one_of_its_keys_is_refused(key: str) -> None:
    with pytest.raises(ValidationError, match=key):
        Quantity.model_validate({k: v for k, v in GOOD.items() if k != key})


@pytest.mark.parametrize(
    "change",
    [
        {"value": 601},
        {"value": 299},
        {"value": float("nan")},
        {"range": [600, 300]},
        {"unit": "furlongs"},
        {"evidence": "guessed"},
        {"source": ""},
        {"note": "an unknown key"},
    ],
    ids=str,
)
def test_a_wrong_quantity_is_refused(change: dict[str, Any]) -> None:
    Quantity.model_validate(GOOD)
    with pytest.raises(ValidationError):
        Quantity.model_validate(GOOD | change)


def test_a_wrong_unit_is_told_once() -> None:
    with pytest.raises(ValidationError) as refused:
        Quantity.model_validate(GOOD | {"unit": "furlongs"})
    assert refused.value.error_count() == 1


def test_times_are_resolved_to_nanoseconds_and_other_units_stay() -> None:
    assert Quantity.model_validate(GOOD | {"unit": "us"}).ns == 531_000
    assert Quantity.model_validate(GOOD | {"unit": "lines"}).plain == 531
    with pytest.raises(ValueError, match="not a time"):
        _ = Quantity.model_validate(GOOD | {"unit": "lines"}).ns


NEVER_MEASURED_AS_A_WHOLE = {
    "cascade-lake-96",
    "coffee-lake-12",
    "coffee-lake-12-guest",
    "guest-2cpu-emerald",
    "guest-2cpu-intel",
    "haswell-ep-24",
    "haswell-ex-144",
    "ice-lake-128",
    "knights-mill-288",
    "sapphire-rapids-192",
    "westmere-ex-40",
}
"""Published figures do not tell how long a wake-up took, and what `simfs measure` writes is its parts, which
`guest-2cpu-intel` has, too."""
MIGRATING = {"guest-2cpu-emerald", "guest-2cpu-intel", "sapphire-rapids-192"}
"""On these a load takes a line that another CPU has modified, as was measured on the first."""


@pytest.mark.parametrize("name", available("machines"))
def test_machine_parts_add_up_to_what_was_measured_end_to_end(name: str) -> None:
    machine = load_machine(name)
    assert bool(machine.end_to_end) != (name in NEVER_MEASURED_AS_A_WHOLE)
    for figure in machine.end_to_end:
        assert machine.sum_of(figure.terms) == pytest.approx(figure.measured.ns, abs=0.05), figure.what


@pytest.mark.parametrize("name", available("machines"))
def test_machine_spec_has_the_fields_of_the_seam(name: str) -> None:
    spec = load_machine(name).spec()
    assert set(spec) == {
        "cpus",
        "cpus_per_core",
        "cpus_per_llc",
        "cpus_per_socket",
        "costs",
        "caches",
        "memory_bytes",
        "idle_states",
        "watts_active",
        "watts_spin",
    }
    assert set(spec["costs"]) == {
        *("line_hit", "line_atomic", "line_smt", "line_llc", "line_socket", "line_remote", "line_overlap"),
        *(
            "cpu_relax",
            "context_switch",
            "switch_mm",
            "wakeup",
            "instruction",
            "ipi_send",
            "ipi_deliver",
            "step_cv",
            *(("wakeup_queued", "resched_send", "resched_serve") if name == "emulated" else ()),
            *(() if "guest" in name else ("resched_deliver",)),
            *(("line_migrates",) if name in MIGRATING else ()),
            "smt_speed",
            "speed",
        ),
    }
    exits = [state["exit_ns"] for state in spec["idle_states"]]
    assert exits == sorted(exits)


def test_the_number_of_cpus_can_be_replaced() -> None:
    assert load_machine("server-24").spec(8)["cpus"] == 8
    assert load_machine("server-24").spec(8)["cpus_per_llc"] == 8


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["xfs", "btrfs", "ext4"])
def test_groups_and_steps_name_each_other(kind: str) -> None:
    trace, read = load_trace(kind), load_filesystem(kind).costs
    known = {f"{name}.{step}" for name, group in trace.groups.items() for step in group.order}
    parts = {name for name in read if name.split(".")[0] not in trace.groups}  # of steps of several groups
    assert {read[name].evidence for name in parts} <= {"derived"}
    assert known == {*read, *trace.steps} - parts
    assert not set(read) & set(trace.steps)
    for group in trace.groups:
        steps = trace.group(group)
        assert next(iter(steps.values())) == 0
        assert all(ns >= 0 for ns in steps.values())


def test_step_names_follow_the_naming_rule() -> None:
    steps = list(load_trace("xfs").group("cu_short"))
    assert steps[:8] == [
        "enter_openat",
        "lock_dir_ilock_shared",
        "unlock_dir_ilock_shared",
        "log_reserve",
        "trans_alloc",
        "lock_dir_ilock_excl",
        "read_agi",
        "lock_agi",
    ]
    assert {"lock_agi_2", "unlock_agi_2", "unlock_file_ilock_excl_3", "exit_unlinkat"} <= set(steps)


# Measured without the tracer, in ns, and the time outside the steps (user loop, and the worker's own loop).
UNTRACED = [
    ("xfs", ("cu_short", "cu_short_gc"), 20_305, 600),
    ("xfs", ("tmp_short", "tmp_short_gc"), 31_670, 600),
    ("btrfs", ("cu_l0",), 23_256, 300),
    ("btrfs", ("tmp_l0",), 32_084, 300),
    ("ext4", ("cu_short",), 19_108, 300),
    ("ext4", ("tmp_short",), 25_999, 300),
]


@pytest.mark.parametrize(("kind", "groups", "untraced", "outside"), UNTRACED, ids=str)
def test_steps_add_up_to_the_untraced_operation(
    kind: str, groups: tuple[str, ...], untraced: float, outside: float
) -> None:
    steps = sum(sum(load_trace(kind).group(group).values()) for group in groups)
    # 3 %: the tracer's cost was solved for all traced sequences, of which these are the most frequent.
    assert steps + outside == pytest.approx(untraced, rel=0.03)


SPLITS = [
    ("btrfs", "read_lock_fs_l0", ("openat.before_i_rwsem", "openat.under_i_rwsem")),
    ("btrfs", "exit_openat", ("openat.i_rwsem_tail", "openat.after_i_rwsem")),
    ("btrfs", "read_lock_fs_l0_5", ("unlinkat.before_i_rwsem", "unlinkat.under_i_rwsem")),
    ("btrfs", "inode_evict", ("unlinkat.i_rwsem_tail", "unlinkat.after_i_rwsem")),
    ("xfs", "lock_dir_ilock_shared", ("openat.before_i_rwsem", "openat.under_i_rwsem")),
    ("xfs", "exit_openat", ("openat.i_rwsem_tail", "openat.after_i_rwsem")),
    ("xfs", "remove", ("unlinkat.before_i_rwsem", "unlinkat.under_i_rwsem")),
    ("xfs", "inode_set_need_inactive", ("unlinkat.i_rwsem_tail", "unlinkat.after_i_rwsem")),
    ("ext4", "ext4_request_inode", ("openat.before_i_rwsem", "openat.under_i_rwsem")),
    ("ext4", "exit_openat", ("openat.i_rwsem_tail", "openat.after_i_rwsem")),
    ("ext4", "ext4_unlink_enter", ("unlinkat.before_i_rwsem", "unlinkat.under_i_rwsem")),
    ("ext4", "ext4_drop_inode", ("unlinkat.i_rwsem_tail", "unlinkat.after_i_rwsem")),
]


@pytest.mark.parametrize(("kind", "step", "parts"), SPLITS, ids=str)
def test_vfs_parts_add_up_to_the_step_they_split(kind: str, step: str, parts: tuple[str, str]) -> None:
    vfs = load_vfs(kind).spec()
    group = "cu_l0" if kind == "btrfs" else "cu_short"
    assert sum(vfs[part] for part in parts) == load_trace(kind).group(group)[step]


@pytest.mark.parametrize(("group", "rate"), [("create", 155_388), ("cu", 114_334), ("tmp", 77_816)])
def test_tmpfs_costs_and_user_loop_make_the_measured_rate(group: str, rate: float) -> None:
    total = sum(load_trace("tmpfs").group(group).values()) + load_vfs("tmpfs").spec()["user.loop"]
    assert 1e9 / total == pytest.approx(rate, rel=0.02)


@pytest.mark.parametrize("kind", ["xfs", "btrfs", "ext4", "tmpfs"])
def test_costs_are_exactly_those_that_programs_read(kind: str) -> None:
    """What was traced and is not read is provenance, and lies in models/traces."""
    own, around = load_filesystem(kind), load_vfs(kind)
    given = {*own.spec(), *around.costs, *(around.constants.keys() & vocabulary().costs[kind])}
    if kind == "xfs":
        work = load_workload("range_lock").spec()
        given |= {f"range_lock.{name}" for name in work if name.endswith("_work_ns")}
    assert given == vocabulary().costs[kind]


def test_some_program_reads_each_footprint() -> None:
    assert set(load_footprints().costs) <= set().union(*vocabulary().costs.values())


@pytest.mark.parametrize("kind", available("workloads"))
def test_a_workload_reads_all_its_parameters(kind: str) -> None:
    if kind.partition("-")[0] != "kernel_threads":
        assert set(load_workload(kind).spec()) <= set(vocabulary().params[kind.partition("-")[0]])


def test_footprints_come_with_the_filesystem_they_belong_to() -> None:
    assert load_filesystem("xfs").spec()["xfs_buffer.struct"] == 3
    assert "jbd2_handle.journal" in load_filesystem("ext4").spec()
    assert "tmpfs_dir_inode.struct" in load_filesystem("tmpfs").spec()
    assert {q.unit for q in load_footprints().costs.values()} == {"lines"}


def test_the_laboratorys_compile_does_the_same_at_the_same_places() -> None:
    own, gcc = (load_workload(name).spec() for name in ("compile-emulated", "compile"))
    assert set(own) == set(gcc)
    differs = {name for name in own if own[name] != gcc[name]}
    left = {name for name in differs if name.endswith((".pages", ".maps", ".areas", ".lost_dentries"))}
    assert differs - left == {
        "user_cpu_ns",
        "kernel_cpu_ns",
        "gcc.kernel_share",
        "cc1.kernel_share",
        "as.kernel_share",
        "cpu_cv",
        "footprint_bytes",
        "code_bytes",
        "proc_entries",
    }


def test_a_compilation_shares_its_cpu_time_out_completely_and_in_order() -> None:
    params = load_workload("compile").spec()
    shares = {key.split(".")[0]: value for key, value in params.items() if key.endswith(".cpu_share")}
    assert len(shares) == 3  # gcc, cc1, as
    assert sum(shares.values()) == pytest.approx(1, abs=0.002)
    for process in shares:
        positions = [v for k, v in params.items() if k.startswith(f"{process}.") and k.endswith("_at")]
        assert positions == sorted(positions)


What = Literal["machine", "kernel", "filesystem", "workload"]


@pytest.mark.parametrize("what", get_args(What))
def test_an_unknown_name_is_answered_with_the_nearest(what: What) -> None:
    loader, wrong, near = {
        "machine": (load_machine, "server-42", "server-24"),
        "kernel": (load_kernel, "linx-6.1", "linux-6.1"),
        "filesystem": (load_filesystem, "ext5", "ext4"),
        "workload": (load_workload, "compiler", "compile"),
    }[what]
    with pytest.raises(ValueError, match=f"unknown {what} '{wrong}'; .*did you mean '{near}"):
        loader(wrong)


def test_a_model_is_found_by_path(tmp_path: Path) -> None:
    copy = tmp_path / "mine.yaml"
    copy.write_text((MODELS / "machines" / "server-24.yaml").read_text())
    assert load_machine(copy) == load_machine("server-24")


def test_an_invalid_model_is_named_with_its_file(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("name: broken\ntitle: [")
    with pytest.raises(ScenarioError, match=r"broken\.yaml:2:9: not valid YAML"):
        load_workload(broken)
    other = tmp_path / "other.yaml"
    other.write_text("name: other\ntitle: no source\nparams: {x_ns: {value: 1, unit: ns, range: [0, 2]}}\n")
    with pytest.raises(ScenarioError, match=r"other\.yaml:3:10: key 'evidence' is missing"):
        load_workload(other)


def test_idle_states_are_in_the_order_of_what_they_pay_for() -> None:
    """The machine goes through them from the first on, however a profile lists them."""
    machine = load_machine("server-24")
    turned = machine.model_copy(update={"idle_states": machine.idle_states[::-1]})
    assert turned.spec()["idle_states"] == machine.spec()["idle_states"]


@pytest.mark.parametrize(
    "name",
    [
        "cascade-lake-96",
        "coffee-lake-12",
        "coffee-lake-12-guest",
        "haswell-ep-24",
        "haswell-ex-144",
        "ice-lake-128",
        "sapphire-rapids-192",
    ],
)
def test_an_instruction_is_as_fast_as_the_machine(name: str) -> None:
    """They are those of the guest on which they were counted, times the speed."""
    guest, machine = (load_machine(each).costs for each in ("guest-2cpu", name))
    assert machine.instruction.value == pytest.approx(guest.instruction.value * machine.speed.value, rel=0.03)
