"""What to measure on the real machine to test a prediction, and what narrows it most.

A prediction is uncertain by what its sourced numbers may be. Each of them is varied over its range (`sensitivity`);
those that one command measures together count together, as the root of the sum of the squares of their effects.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pydantic import Field

from simfs.experiments.points import Varied, common_runs, run_varied
from simfs.experiments.real_loads import readable, real_load
from simfs.experiments.sensitivity import Screened
from simfs.experiments.sensitivity import sensitivity as screen
from simfs.results.model import PointResult
from simfs.results.run import Engine, Progress
from simfs.results.run_result import Strict
from simfs.results.statistics import Estimate
from simfs.results.summaries import LockSummary
from simfs.scenario import Measure, Point

TRAJECTORIES = 2
NOISES = 2.0
"""How many times as much as noise alone a number does, at least, that is worth a measurement."""

LOCKS = 3
"""How many locks are named."""

HISTOGRAM = (
    "tracepoint:lock:contention_begin { @begin[tid] = nsecs; } "
    "tracepoint:lock:contention_end /@begin[tid]/ "
    "{ @wait_ns[kstack(6)] = hist(nsecs - @begin[tid]); delete(@begin[tid]); } "
    "END { clear(@begin); }"
)


class Order(Strict):
    """Commands to run on the real machine, as they are typed."""

    what: str
    commands: tuple[str, ...]
    decides: str = Field(description="what their outcome tells")
    compare: str | None = Field(
        description="the command that reads what they print; None where a person does"
    )
    narrows_percent: float | None = Field(
        default=None,
        description="what the numbers that they measure move the prediction by, over their ranges",
    )
    numbers: tuple[str, ...] = Field(
        default=(), description="those numbers, the one that moves it most first"
    )


class Observation(Strict):
    """The answer of `simfs observe`."""

    scenario: str
    point: str
    metric: str
    predicted: Estimate
    tests: tuple[Order, ...] = Field(description="whether the prediction holds")
    narrowing: tuple[Order, ...] = Field(description="what makes it narrower, the most first")
    left_percent: float = Field(description="what numbers that no command measures move it by")


@dataclass(frozen=True)
class Source:
    """Numbers that one command measures."""

    what: str
    patterns: tuple[str, ...]
    decides: str


CALLS = Source(
    "how fast the machine runs calls of the filesystem",
    ("machine.costs.speed", "machine.costs.step_cv", "machine.caches.code_lines", "filesystem.*", "vfs.*"),
    "what one process takes for each call; all steps are scaled by it (`speed`)",
)
MACHINE = Source(
    "what the machine itself charges",
    ("machine.*",),
    "lines, switches, wake-ups, idle states, memory: measured instead of sourced",
)
KERNEL = Source(
    "how the kernel is configured",
    ("kernel.*",),
    "tick, preemption and slices: `kernel: {tick, preemption, base_slice}` of the scenario",
)
LOAD = Source(
    "what the load does besides",
    ("workload.*",),
    "which calls the load makes, how often and how long: `workload.params` of the scenario",
)
SOURCES = (CALLS, MACHINE, KERNEL, LOAD)
"""The first whose pattern fits has a number."""


def observe(
    point: Point,
    measure: Measure,
    *,
    name: str,
    variant: str | None = None,
    settings: Sequence[str] = (),
    at: str,
    load: str | None = None,
    metric: str = "throughput_per_s",
    trajectories: int = TRAJECTORIES,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Observation:
    """Say what to run on the real machine for a point; `name` is the scenario as on a command line.

    Raises ValueError for a load that has no command, and what `sensitivity` refuses.
    """
    command = load or real_load(point, at)
    named = f"{name}:{variant}" if variant else name
    options: dict[str, Any] = {"threads": threads, "progress": progress, "engine": engine}
    found = screen(point, measure, scenario=named, metric=metric, trajectories=trajectories, **options)
    runs = common_runs(point, measure, engine)
    (result,) = run_varied([Varied(point, point.id)], runs, **options).points
    given = [word for setting in settings for word in ("--set", setting)]
    beside = shlex.join([named, *given])
    only = ["--variant", variant] if variant else []
    again = f'{shlex.join(["simfs", "run", name, *only, *given])} --set machine="$PWD/my-machine.yaml"'
    groups = shared_out(found.screened, found.noise_percent)
    return Observation(
        scenario=named,
        point=point.id,
        metric=metric,
        predicted=found.output,
        tests=tuple(_tests(result, command, beside, found.output, metric)),
        narrowing=tuple(_narrowing(point, groups, command, at, again)),
        left_percent=together(groups.get(None, ())),
    )


def shared_out(screened: Sequence[Screened], noise: float) -> dict[Source | None, list[Screened]]:
    """The numbers that do more than noise by who measures them, those that move the prediction most first."""
    groups: dict[Source | None, list[Screened]] = {}
    for number in screened:
        if number.mu_star.mean > NOISES * noise:
            fits = (s for s in SOURCES if any(fnmatchcase(number.parameter, p) for p in s.patterns))
            groups.setdefault(next(fits, None), []).append(number)
    return groups


def together(numbers: Sequence[Screened]) -> float:
    """What numbers that vary independently move the output by, in per cent."""
    return math.sqrt(sum(number.mu_star.mean**2 for number in numbers))


def _tests(result: PointResult, load: str, beside: str, predicted: Estimate, metric: str) -> list[Order]:
    idle = f"{result.shares.idle.mean:.1f} % of the CPUs idle"
    switches = result.context_switches_per_operation
    orders = [
        Order(
            what="does the load itself",
            commands=(f"{load} | tee load.txt",),
            decides=f"whether {metric} is {_near(predicted)} with {idle}",
            compare=f"simfs compare load.txt {beside}" if readable(load) else None,
        ),
        Order(
            what="which locks are waited for",
            commands=(f"perf lock record -a -g -- sh -c {shlex.quote(load)}", "perf script > waits.txt"),
            decides=_locks(result),
            compare=f"simfs compare waits.txt {beside}",
        ),
    ]
    if result.locks and result.locks[0].contended:
        orders.append(
            Order(
                what="how long waits are, without a record of each",
                commands=(
                    f"bpftrace -e {shlex.quote(HISTOGRAM)} -c {shlex.quote(f'sh -c {shlex.quote(load)}')} > hist.txt",
                ),
                decides=_times(max(result.locks, key=lambda lock: lock.wait_total_ns)),
                compare=f"simfs compare hist.txt {beside}",
            )
        )
    many = "" if switches is None else f"{switches.mean:.2f} switches an operation; "
    orders.append(
        Order(
            what="who runs when",
            commands=(f"perf sched record -a -- sh -c {shlex.quote(load)}", "perf sched timehist --summary"),
            decides=f"whether tasks sleep or spin: predicted are {many}{idle}",
            compare=None,
        )
    )
    return orders


def _narrowing(
    point: Point, groups: dict[Source | None, list[Screened]], load: str, at: str, again: str
) -> list[Order]:
    kind = point.scenario.filesystem.kind
    files = "" if kind == "none" else f" --filesystem {kind} --at {shlex.quote(at)}"
    commands = {
        CALLS: ((f"simfs measure -o my-machine.yaml{files}",), again),
        MACHINE: (("simfs measure -o my-machine.yaml",), again),
        KERNEL: (
            ('grep -E "CONFIG_HZ=|CONFIG_PREEMPT" "/boot/config-$(uname -r)"',
             "cat /sys/kernel/debug/sched/preempt /sys/kernel/debug/sched/base_slice_ns"),
            None,
        ),
        LOAD: ((f"perf trace -s -- sh -c {shlex.quote(load)}",), None),
    }  # fmt: skip
    orders = [
        Order(
            what=source.what,
            commands=commands[source][0],
            decides=source.decides,
            compare=commands[source][1],
            narrows_percent=together(numbers),
            numbers=tuple(n.parameter for n in numbers),
        )
        for source, numbers in groups.items()
        if source is not None
    ]
    return sorted(orders, key=lambda order: -(order.narrows_percent or 0.0))


def _near(x: Estimate) -> str:
    if x.low is None or x.high is None:
        return _digits(x.mean)
    return f"{_digits(x.mean)} ({_digits(x.low)} to {_digits(x.high)})"


def _digits(value: float) -> str:
    """Four of them, and all that stand before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _locks(result: PointResult) -> str:
    waited = sorted((x for x in result.locks if x.contended), key=lambda x: -x.wait_total_ns)[:LOCKS]
    if not waited or not result.operations:
        return "whether it is true that no lock is waited for"
    each = [f"{x.name} {x.contended / result.operations:.3g}" for x in waited]
    return f"whether most time is waited for {waited[0].name}; waits an operation: {', '.join(each)}"


def _times(lock: LockSummary) -> str:
    return f"whether a wait for {lock.name} takes {lock.wait_mean_ns / 1e3:.3g} us, in the mean"
