"""Hypothesis strategies: machines, kernels, lock cycles, moved scenarios, programs in Python."""

from __future__ import annotations

import copy
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import strategies as st

from engine import CONSTANTS, FREE, Spec, lock_cycle
from simfs._engine import Completion, Device, Line, Lock, Machine, Step, Task
from simfs.machine.locks import KINDS
from simfs.machine.own import is_own
from simfs.scenario import expand, load, to_run_spec
from simfs.vocabulary import vocabulary

LOCKS = sorted(KINDS)
SPINNING = [name for name in LOCKS if KINDS[name].spins]
MODAL = [name for name in LOCKS if name.startswith("btrfs-tree")]
"""Locks under which a task may sleep in one of their modes only."""
SLEEPING = [name for name in LOCKS if name not in SPINNING + MODAL]

times = st.one_of(st.just(0.0), st.integers(1, 40).map(lambda n: n * 100.0), st.floats(0.5, 5e4))
"""Nanoseconds: nothing (ties), round numbers (ties again), anything."""


# ---- machines and kernels -------------------------------------------------------------------------------------------


LINES = ("line_hit", "line_smt", "line_llc", "line_socket", "line_remote")


@st.composite
def machines(draw: st.DrawFn) -> dict[str, Any]:
    cpus = draw(st.integers(1, 8))
    sharing = [draw(st.integers(1, cpus)) for _ in range(3)]
    cheap = st.one_of(st.just(0.0), st.floats(0.1, 300))
    switches = ("context_switch", "wakeup", "ipi_send", "ipi_deliver")
    states = [{"name": "C1", "exit_ns": draw(times), "residency_ns": 500.0, "watts": 1.5}]
    return {
        "cpus": cpus,
        **dict(zip(("cpus_per_core", "cpus_per_llc", "cpus_per_socket"), sorted(sharing), strict=True)),
        "costs": {**FREE}
        | {name: draw(cheap) for name in (*LINES, "cpu_relax")}
        | {name: draw(st.one_of(st.just(0.0), st.just(1000.0), st.floats(1, 5000))) for name in switches}
        | {"line_overlap": 10.0, "step_cv": draw(st.sampled_from([0.0, 0.06, 0.5]))}
        | {"smt_speed": draw(st.sampled_from([0.5, 0.6, 1.0]))},
        "idle_states": draw(st.sampled_from([[], states])),
        "watts_active": 4.0,
        "watts_spin": 3.0,
    }


CFS = st.fixed_dictionaries(
    {"latency_ns": st.sampled_from([2e4, 2.4e6]), "wakeup_granularity_ns": st.sampled_from([0.0, 5e3, 4e5])}
)
"""Times of the old scheduler; a kernel without them has EEVDF."""


PATIENCE = (
    "rwsem_handoff_wait", "rwsem_reader_spin_base", "rwsem_reader_spin_cap", "percpu_rwsem_grace_period",
    "numa_spinlock_threshold", "migration_cost",
)  # fmt: skip
"""Times after which kernel code does something else."""


scheduler_rules = st.fixed_dictionaries(
    {
        rule.name: st.sampled_from(rule.values)
        for rule in vocabulary().rules.values()
        if rule.name.startswith("sched.") and rule.name != "sched.class"
    }
)
"""Everything about the scheduler but its class, for which it needs times."""


@st.composite
def kernels(draw: st.DrawFn, locks: Mapping[str, str]) -> dict[str, Any]:
    patience = {name: draw(times) for name in PATIENCE}
    cfs = draw(st.one_of(st.none(), CFS))
    return {
        "name": "generated",
        "tick_ns": draw(st.sampled_from([1e4, 1e5, 1e6])),
        "base_slice_ns": draw(st.sampled_from([1e3, 3e4, 7e5])),
        "cfs": cfs,
        "rules": {
            "sched.class": "cfs" if cfs else "eevdf",
            **draw(scheduler_rules),
        },
        "preemption": draw(st.sampled_from(["none", "voluntary", "full", "host"])),
        "locks": dict(locks),
        "constants": {**CONSTANTS, **patience, "rwsem_reader_batch_max": draw(st.sampled_from([1, 2, 256]))},
    }


# ---- built-in workloads ---------------------------------------------------------------------------------------------


@st.composite
def lock_cycles(draw: st.DrawFn) -> Spec:
    kind = draw(st.sampled_from(LOCKS))
    params: dict[str, Any] = {}
    for what in ("think", "hold"):
        params[f"{what}_ns"] = draw(times) + 50.0  # so that time goes on
        params[f"{what}_distribution"] = draw(st.sampled_from(["constant", "exponential", "lognormal"]))
        params[f"{what}_cv"] = 1.0
    params["think"] = draw(st.sampled_from(["cpu", "sleep"]))
    params["readers"] = draw(st.sampled_from([0.0, 0.3, 0.9]))
    params["blocking"] = draw(st.sampled_from([0.0, 0.5, 1.0]))
    params["locks"] = draw(st.integers(1, 2))
    params["order"] = draw(st.sampled_from(["same", "opposite"]))
    if kind == "semaphore" and draw(st.booleans()):
        params |= {"device_ns": draw(times) + 50.0, "device_distribution": "exponential", "device_cv": 1.0}
    spec = lock_cycle(kind, tasks=draw(st.integers(1, 12)), cpus=1, **params)
    spec["seed"] = draw(st.integers(0, 2**32))
    spec["warmup_ns"], spec["duration_ns"] = draw(times), 2e5
    spec["machine"] = draw(machines())
    spec["kernel"] = draw(kernels({"lock": kind}))
    if draw(st.booleans()):
        spec["workload"]["pin_to_cpu"] = draw(st.integers(0, spec["machine"]["cpus"] - 1))
    else:
        spec["workload"]["binding"] = draw(st.sampled_from(["none", "compact", "spread"]))
    return spec


@cache
def points(name: str) -> list[Spec]:
    """The points of a shipped scenario that both machines can run."""
    specs = [to_run_spec(point, 0) for point in expand(load(name))]
    return [spec for spec in specs if not any(map(is_own, spec["kernel"]["locks"].values()))]


@dataclass(frozen=True)
class Moved:
    """A point of a shipped scenario on another machine and kernel."""

    scenario: str
    point: int
    tasks: int
    machine: dict[str, Any]
    kernel: dict[str, Any]
    seed: int

    def spec(self) -> Spec:
        spec = copy.deepcopy(points(self.scenario)[self.point])
        spec["workload"] |= {"tasks": self.tasks, "pin_to_cpu": None}
        machine = copy.deepcopy(self.machine)
        if spec["workload"]["kind"] == "range_lock":
            # So that time goes on: where lines cost nothing, optimistic searches begin again for ever.
            spec["workload"]["params"]["think_ns"] = 50.0
            for name in LINES:
                machine["costs"][name] += 1.0
        own = {"machine": machine, "kernel": self.kernel, "seed": self.seed}
        return spec | own | {"warmup_ns": 0.0, "duration_ns": 1e6}


def like(role: str, kind: str) -> list[str]:
    """What may stand in for a lock: spinlocks for one, for others locks under which one may sleep."""
    if kind == "none":  # not taken by this kernel
        return [kind]
    if KINDS[kind].spins:
        return SPINNING
    return SLEEPING + MODAL if role == "btrfs.tree" else SLEEPING


@st.composite
def moved_scenarios(draw: st.DrawFn, *names: str) -> Moved:
    name = draw(st.sampled_from(names))
    point = draw(st.integers(0, len(points(name)) - 1))
    roles = points(name)[point]["kernel"]["locks"]
    return Moved(
        scenario=name,
        point=point,
        tasks=draw(st.integers(1, 8)),
        machine=draw(machines()),
        kernel=draw(kernels({role: draw(st.sampled_from(like(role, kind))) for role, kind in roles.items()})),
        seed=draw(st.integers(0, 2**32)),
    )


# ---- programs in Python ---------------------------------------------------------------------------------------------

Script = tuple[Any, ...]
"""What a task does, as nested tuples: an action's name and what it needs."""


@dataclass
class Shared:
    """What the tasks of a generated program share."""

    locks: list[Lock]
    lines: list[Line]
    disk: Device
    door: Completion


@dataclass(frozen=True)
class GeneratedProgram:
    """A python workload in which task i goes round script i modulo their number for ever."""

    spec: Spec
    kinds: tuple[str, ...]
    scripts: tuple[Script, ...]

    def setup(self, machine: Machine) -> Shared:
        return Shared(
            locks=[machine.new_lock(f"lock {number}") for number in range(len(self.kinds))],
            lines=[machine.new_line(span) for span in (1, 3)],
            disk=machine.new_device(2),
            door=machine.new_completion(),
        )

    def worker(self, task: Task) -> Generator[Step, Any, None]:
        while True:
            yield task.run(50)  # so that time goes on
            yield from perform(task, self.scripts[task.number % len(self.scripts)])


def perform(task: Task, script: Script) -> Generator[Step, Any, None]:
    """Do what a script says."""
    shared: Shared = task.shared
    for what, *given in script:
        match what:
            case "run":
                yield task.run(*given)
            case "draw":
                yield task.run(task.exponential(*given), "system")
            case "sleep":
                yield task.sleep(*given)
            case "touch":
                number, access = given
                yield task.touch(shared.lines[number], access)
            case "operation":
                yield task.begin()
                yield from perform(task, *given)
                yield task.end("operation")
            case "hold":
                number, side, blocking, body = given
                yield task.lock(shared.locks[number], side)
                yield from hold(task, shared.locks[number], side, blocking, body)
            case "try":
                number, side, blocking, body = given
                attempt = task.try_lock if len(body) % 2 else task.try_lock_spinning
                if (yield attempt(shared.locks[number], side)):
                    yield from hold(task, shared.locks[number], side, blocking, body)
            case "write":
                number, body, service = given
                yield task.lock(shared.locks[number])
                yield from perform(task, body)
                yield task.submit(shared.disk, service, release=shared.locks[number])
            case "read":
                done = task.new_completion()
                yield task.submit(shared.disk, *given, complete=done)
                yield task.wait_for(done)
                task.drop_completion(done)
            case "open":
                yield task.complete(shared.door)
            case "pass":
                yield task.wait_for(shared.door)
            case "child":
                yield task.spawn(child, task.id, *given, background=True)
                yield task.park()
            case "tick":
                yield task.wake_at_tick(task.id, *given)
                yield task.park()


def hold(task: Task, lock: Lock, side: str, blocking: bool, body: Script) -> Generator[Step, Any, None]:
    """Do something under a lock, in a mode in which that may be done, and release it in any mode."""
    if blocking:
        yield task.convert(lock, "blocking", side)
    yield from perform(task, body)
    if blocking and len(body) % 2:
        yield task.convert(lock, "spinning", side)
    yield task.unlock(lock, side)


def child(task: Task, parent: int, script: Script) -> Generator[Step, Any, None]:
    """A task that does something and wakes the one that waits for it."""
    yield from perform(task, script)
    yield task.wake(parent)


def scripts(
    kinds: tuple[str, ...], free: tuple[int, ...], *, may_sleep: bool, depth: int
) -> st.SearchStrategy[Script]:
    """Scripts that use the `free` locks, in their order or (seldom) in any, which may deadlock."""
    simple: list[st.SearchStrategy[Script]] = [
        st.tuples(st.just("run"), times, st.sampled_from(["user", "system"])),
        st.tuples(st.just("draw"), times),
        st.tuples(st.just("touch"), st.integers(0, 1), st.sampled_from(["read", "write"])),
    ]
    if may_sleep:
        simple += [
            st.tuples(st.just("sleep"), times),
            st.tuples(st.just("read"), times),
            st.tuples(st.just("tick"), st.integers(0, 2)),
            st.sampled_from([("open",), ("open",), ("pass",)]),
        ]
    usable = [lock for lock in free if may_sleep or kinds[lock] in SPINNING + MODAL]
    nested = [_under(kinds, free, lock, may_sleep=may_sleep, depth=depth) for lock in usable if depth]
    if depth and may_sleep:
        body = scripts(kinds, free, may_sleep=True, depth=depth - 1)
        nested += [st.tuples(st.just("operation"), body)]
        nested += [st.tuples(st.just("child"), scripts(kinds, (), may_sleep=True, depth=0))]
        nested += [
            st.tuples(st.just("write"), st.just(lock), scripts(kinds, (), may_sleep=True, depth=0), times)
            for lock in usable
            if kinds[lock] == "semaphore"
        ]
    return st.lists(st.one_of(*simple, *nested, *nested), min_size=1, max_size=4).map(tuple)


def _under(
    kinds: tuple[str, ...], free: tuple[int, ...], lock: int, *, may_sleep: bool, depth: int
) -> st.SearchStrategy[Script]:
    """Taking a lock and doing something under it."""
    later = tuple(other for other in free if other > lock)
    others = tuple(other for other in free if other != lock)
    what, side = st.sampled_from(["hold", "hold", "try"]), st.sampled_from(["read", "write"])

    def holding(free: tuple[int, ...], *, blocking: bool) -> st.SearchStrategy[Script]:
        sleeps = may_sleep and kinds[lock] not in SPINNING and (blocking or kinds[lock] not in MODAL)
        body = scripts(kinds, free, may_sleep=sleeps, depth=depth - 1)
        return st.tuples(what, st.just(lock), side, st.just(blocking), body)

    return st.one_of(
        holding(later, blocking=False), holding(later, blocking=True), holding(others, blocking=True)
    )


@st.composite
def programs(draw: st.DrawFn) -> GeneratedProgram:
    kinds = tuple(draw(st.lists(st.sampled_from(LOCKS), min_size=1, max_size=3)))
    each = scripts(kinds, tuple(range(len(kinds))), may_sleep=True, depth=2)
    spec = lock_cycle(tasks=1) | {
        "seed": draw(st.integers(0, 2**32)),
        "warmup_ns": draw(times),
        "duration_ns": 2e5,
        "machine": draw(machines()),
        "kernel": draw(kernels({f"lock {number}": kind for number, kind in enumerate(kinds)})),
        "workload": {"kind": "python", "tasks": draw(st.integers(1, 8)), "params": {}},
    }
    return GeneratedProgram(spec, kinds, tuple(draw(st.lists(each, min_size=1, max_size=3))))
