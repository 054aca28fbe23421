"""Kernels: any release of the timeline, any value of any rule, other locks in their roles."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from generated.machines import times
from simfs.machine.locks.kinds import KINDS
from simfs.machine.locks.policy import UNGUARDED
from simfs.scenario import run_spec
from simfs.scenario.models import load_timeline
from simfs.scenario.models.timeline import linux
from simfs.scenario.schema import Scenario
from simfs.vocabulary import Value, vocabulary

LOCKS = sorted(KINDS)
ALONE = [name for name in LOCKS if name not in UNGUARDED]
"""Locks that may stand anywhere on any kernel."""
SPINNING = [name for name in ALONE if KINDS[name].spins]
MODAL = [name for name in LOCKS if name.startswith("btrfs-tree")]
"""Locks under which a task may sleep in one of their modes only."""
SLEEPING = [name for name in ALONE if name not in SPINNING + MODAL]

RELEASES = [linux(version) for version in reversed(load_timeline().versions())]
"""All of the timeline, the newest first: the simplest example has that."""

PATIENCE = (
    "rwsem_handoff_wait", "rwsem_reader_spin_base", "rwsem_reader_spin_cap", "percpu_rwsem_grace_period",
    "numa_spinlock_threshold", "migration_cost",
)  # fmt: skip
"""Times after which kernel code does something else."""

COUNTS = (
    "semaphore_count", "cohort_handoffs", "hqlock_fairness_threshold", "hqlock_general_handoffs_turn_numa",
)  # fmt: skip
"""How often lock code does a thing."""

scheduler_rules = st.fixed_dictionaries(
    {
        rule.name: st.sampled_from(rule.values)
        for rule in vocabulary().rules.values()
        if rule.name.startswith("sched.") and rule.name != "sched.class"
    }
)
"""Everything about the scheduler but its class, which needs times."""


def rules(own: str = "") -> st.SearchStrategy[dict[str, Value]]:
    """Values of some of the rules, which need not be of one era; `own`: more often those of this family."""
    known = vocabulary().rules.values()
    near = [rule for rule in known if rule.name.startswith(("sched.", "vfs.", "idle.", own or "sched."))]
    chosen = st.sampled_from([*known, *near])
    one = chosen.flatmap(lambda rule: st.tuples(st.just(rule.name), st.sampled_from(rule.values)))
    return st.lists(one, max_size=8).map(dict)


@st.composite
def kernels(draw: st.DrawFn, family: str = "") -> dict[str, Any]:
    """`kernel:` of a scenario: a release, and what differs from it."""
    ns = times.map(lambda time: f"{time:.12g} ns")
    constants: dict[str, str | float] = {name: draw(ns) for name in PATIENCE if draw(st.booleans())}
    constants |= {name: draw(st.sampled_from([1.0, 3.0])) for name in COUNTS if draw(st.booleans())}
    if draw(st.booleans()):
        constants["rwsem_reader_batch_max"] = draw(st.sampled_from([1.0, 2.0, 256.0]))
    use = {
        "profile": draw(st.sampled_from(RELEASES)),
        "tick": draw(st.sampled_from([None, "10 us", "100 us", "1 ms"])),
        "base_slice": draw(st.sampled_from([None, "1 us", "30 us", "0.7 ms"])),
        "preemption": draw(st.sampled_from([None, "none", "voluntary", "full", "host"])),
        "rules": draw(st.one_of(st.just({}), scheduler_rules)) | draw(rules(family)),
        "kernel_threads": draw(st.sampled_from([False, False, True])),
        "constants": constants,
    }
    return {key: value for key, value in use.items() if value is not None}


def kernel_spec(use: dict[str, Any], cpus: int) -> dict[str, Any]:
    """`kernel` of a RunSpec for a `kernel:` that was drawn."""
    scenario = {"simfs": 1, "name": "drawn", "title": "Drawn", "machine": "server-24", "kernel": use}
    workload = {"kind": "lock_cycle", "think": "1 us", "hold": "1 us"}
    return run_spec.kernel_spec(Scenario.model_validate({**scenario, "workload": workload}), cpus)


@st.composite
def other_locks(draw: st.DrawFn, roles: dict[str, str]) -> dict[str, str]:
    """`locks:` of a scenario: other kinds in some of these roles."""
    changed = draw(st.lists(st.sampled_from(sorted(roles)), unique=True, max_size=6)) if roles else []
    return {role: draw(st.sampled_from(like(role, roles[role]))) for role in changed}


def like(role: str, kind: str) -> list[str]:
    """What may stand in for a lock: spinlocks for one, for others locks under which one may sleep."""
    if KINDS[kind].spins:
        return SPINNING
    return SLEEPING + MODAL if role == "btrfs.tree" else SLEEPING
