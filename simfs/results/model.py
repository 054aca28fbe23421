"""What a scenario's runs add up to: one `PointResult` per variant and sweep point, one `ScenarioResult` in
all.

Every quantity that can have one carries a confidence interval over replications. Nothing in here depends on
wall time, thread count or the order in which runs ended, except `ScenarioResult.wall`, which is not
serialised.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, Self

from pydantic import Field

from simfs.results.marks import Groups, Mark
from simfs.results.paused import Paused
from simfs.results.run_result import Chains, LineStats, Stall, Strict
from simfs.results.statistics import Estimate
from simfs.results.summaries import CpuShares, LatencyIntervals, LockSummary, PooledLatency, WakesSummary
from simfs.scenario.measured.metrics import metric as known_metric
from simfs.scenario.sections.draws import SHAPES

Value = bool | int | float | str
"""What a sweep or an override can set a key to."""

Role = Literal["calibrate", "predict", "info"]

FINDING_EXIT_CODES = {"law": 1, "empty": 2, "stall": 3}


class Finding(Strict):
    """Something wrong in a run: a broken law, a stall, or a window in which nothing ended."""

    kind: Literal["law", "empty", "stall"]
    point: str
    replication: int
    message: str
    stall: Stall | None = None

    @property
    def sentence(self) -> str:
        """Where and what in one line; of a stall also who waits for what, the first few."""
        cycle = self.stall.cycle if self.stall else ()
        more = f"; and {len(cycle) - 3} more" if len(cycle) > 3 else ""
        steps = f": {'; '.join(cycle[:3])}{more}" if cycle else ""
        return f"{self.point} #{self.replication}: {self.message}{steps}"


def once_a_point(findings: Iterable[Finding]) -> Iterator[tuple[Finding, str]]:
    """Yield of each point the first finding of each kind, and in words how many more of its replications have one."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.point, finding.kind), []).append(finding)
    for first, *more in alike.values():
        yield first, f" (and {len(more)} more of its replications)" if more else ""


class Case(Strict):
    """An expectation at one point, or between several."""

    at: dict[str, Value] = Field(description="what the expectation leaves open: the variant, swept values")
    values: tuple[float | None, ...] = Field(
        description="of each side with metrics; None where a run has no such quantity"
    )
    units: tuple[str, ...]
    holds: bool
    close: bool = Field(description="within the intervals of its values it could be the other way round")


class Expected(Strict):
    """What a scenario expects, and whether it came so."""

    text: str
    cases: tuple[Case, ...] = Field(description="empty where no point that it names was run")

    @property
    def failed(self) -> tuple[Case, ...]:
        """The cases in which it does not hold."""
        return tuple(case for case in self.cases if not case.holds)


class MeasuredRow(Strict):
    """One published number and the variant and sweep values it belongs to.

    `value` is in the unit that `metric` ends with (`compiles_per_s`, `idle_percent`).
    """

    dataset: str
    series: str
    variant: str
    values: dict[str, Value] = Field(default_factory=dict)
    metric: str
    value: float
    role: Role
    approx: bool = False
    note: str = ""
    low: float | None = Field(default=None, description="lowest of the runs behind `value`")
    high: float | None = Field(default=None, description="highest of them")
    operations: float | None = Field(
        default=None, description="of the whole measured run, where it is a total"
    )
    pause_s: float | None = Field(
        default=None, description="time of that run in which the benchmark slept before its tasks started"
    )

    def while_running(self) -> Self:
        """The row of a rate as it was while the tasks ran; what the source reports has the pause in it."""
        if (run := Paused.of(self.operations, self.pause_s)) is None:
            return self
        ends = {end: getattr(self, end) for end in ("value", "low", "high")}
        changed = {end: None if rate is None else run.while_running(rate) for end, rate in ends.items()}
        return self.model_copy(update=changed)

    @property
    def label(self) -> str:
        """The row as a person would name it: its series, and the value that varies within one."""
        first = list(self.values.items())[:1]
        return ", ".join([self.series, *(f"{short(k)} {v}" for k, v in first)])


class Comparison(Strict):
    """A measured row beside what the simulation says."""

    row: MeasuredRow
    simulated: Estimate
    error: float = Field(description="simulated minus measured, in the row's unit")
    error_percent: float | None = Field(
        description="error relative to the measured value; None where that is 0"
    )


NAMED = 3
"""Rows of a fit that its sentence names; `simfs calibrate` and the result list all."""


class Fit(Strict):
    """Parameters fitted to measured rows, and how well that went."""

    values: dict[str, float]
    units: dict[str, str]
    bounds: dict[str, tuple[float, float]]
    rows: tuple[MeasuredRow, ...]
    objective: float = Field(description="root mean square of the relative errors on the rows, at the fit")
    evaluations: int = Field(description="how many times the points of the rows were simulated")

    @property
    def sentence(self) -> str:
        """What was fitted on what, in one line for the reader of any output."""
        values = ", ".join(f"{k} = {quantity(v, self.units.get(k, ''))}" for k, v in self.values.items())
        named = ", ".join(f"'{r.label}'" for r in self.rows[:NAMED])
        more = f" and {len(self.rows) - NAMED} more" if len(self.rows) > NAMED else ""
        return f"fitted: {values} on row{'s' if len(self.rows) > 1 else ''} {named}{more}; all else predicted"


class PointResult(Strict):
    """All replications of one variant at one sweep point."""

    id: str
    variant: str
    values: dict[str, Value]
    tasks: int
    cpus: int
    origin: Literal["fitted", "predicted"]
    replications: int
    window_ns: float = Field(description="measured time of one replication")
    operations: int = Field(description="sum over replications")
    events: int = Field(description="engine events, sum over replications")
    throughput: Estimate = Field(description="operations per second")
    replication_throughputs: tuple[float, ...] = Field(
        description="operations per second, for paired intervals"
    )
    shares: CpuShares
    context_switches: Estimate = Field(description="per second")
    context_switches_per_operation: Estimate | None = Field(description="None where no operation finished")
    joules_per_operation: Estimate | None = Field(description="None where no operation finished")
    fairness: Estimate = Field(description="Jain index over tasks")
    max_min: Estimate | None = Field(
        None, description="most operations of a task over fewest; None where a task finished none"
    )
    groups: Groups | None = Field(
        None, description="two groups that the throughputs fall into: the point is bistable"
    )
    marks: tuple[Mark, ...] = Field((), description="why the throughput is a number to be careful with")
    batches_per_s: tuple[float, ...] = Field(
        (), description="throughput of each batch of the window, mean over replications"
    )
    transient_batches: int = Field(description="leading batches that MSER would still discard as warm-up")
    settled_per_s: float = Field(description="throughput without those batches")
    system_ns_per_operation: Estimate | None = Field(
        None,
        description="CPU time in the kernel, with spinning and switching; None where no operation finished",
    )
    bytes_per_s: Estimate | None = Field(None, description="None where operations move no data")
    metrics: dict[str, Estimate] = Field(
        default_factory=dict, description="metrics that were asked for, by name, each in its unit"
    )
    wakes: tuple[WakesSummary, ...] = Field((), description="of kinds of tasks that were woken at all")
    delays: dict[str, PooledLatency] = Field(default_factory=dict)
    requests: dict[str, PooledLatency] = Field(
        default_factory=dict,
        description="of hardware, from submission to interrupt, by read, write and flush",
    )
    requests_per_s: dict[str, float] = Field(default_factory=dict)
    latency: dict[str, PooledLatency]
    latency_intervals: dict[str, LatencyIntervals] = Field(default_factory=dict)
    locks: tuple[LockSummary, ...] = Field(description="by total wait, longest first")
    lines: tuple[LineStats, ...] = Field(default=(), description="by time waited, longest first")
    chains: Chains | None = Field(None, description="why everybody waited, if that was recorded")
    measured: tuple[Comparison, ...] = ()

    @property
    def setting(self) -> str:
        """The sweep values besides the tasks, as a person would name them; empty where there are none."""
        return ", ".join(f"{short(k)} {v}" for k, v in self.values.items() if short(k) != "tasks")

    @property
    def unsettled(self) -> bool:
        """Whether leaving the transient out would change the throughput: the warm-up was too short."""
        change = abs(self.settled_per_s - self.throughput.mean)
        return change > max(0.05 * self.throughput.mean, self.throughput.half_width)

    def reported(self, metric: str, operations: float | None, pause_s: float | None) -> Estimate | None:
        """`estimate` as a source reports it whose run of `operations` began with a pause, if it did."""
        found, run = self.estimate(metric, operations), Paused.of(operations, pause_s)
        return run.seen(known_metric(metric), found, self.throughput.mean) if run and found else found

    def estimate(self, metric: str, operations: float | None = None) -> Estimate | None:
        """The estimate that a measured `metric` is compared with, in the metric's unit (`scenario.metrics`).

        `operations` are those of the measured run, for its totals. None for an unknown metric, and for what
        this point does not have.
        """
        try:
            known = known_metric(metric)
        except ValueError:
            return None
        if known.by_run:
            return self.metrics.get(metric)
        found: Estimate | None
        match known.quantity:
            case "throughput":
                found = self.throughput
            case "fairness":
                found = self.fairness
            case "bytes":
                found = self.bytes_per_s
            case "share":
                found = getattr(self.shares, known.state)
            case "kernel":
                found = self._kernel()
            case "online_idle":
                found = self._online_idle()
            case "latency":
                found = self._latency(known.operation, known.statistic)
            case "switches":
                found = self.context_switches
            case "switches_per_operation":
                found = self.context_switches_per_operation
            case "joules":
                found = self.joules_per_operation
            case "system":
                found = _times(self.system_ns_per_operation, operations)
            case "real":
                found = _times(_inverse(self.throughput), operations)
        return _times(found, known.scale)

    def _kernel(self) -> Estimate:
        """Time in the kernel, that of spinning and of switches included: %sys of mpstat. Its interval is a wide one."""
        parts = (self.shares.system, self.shares.spin, self.shares.switch)
        low, high = (
            None if None in ends else sum(end for end in ends if end is not None)
            for ends in ([part.low for part in parts], [part.high for part in parts])
        )
        return Estimate(mean=sum(part.mean for part in parts), low=low, high=high, n=parts[0].n)

    def _online_idle(self) -> Estimate | None:
        """Idle time where only as many CPUs are online as there are tasks, each bound to one of them."""
        if self.tasks > self.cpus:
            return None
        idle, share = self.shares.idle, self.cpus / self.tasks
        low, high = (
            None if end is None else max(0.0, 100 - (100 - end) * share) for end in (idle.low, idle.high)
        )
        return Estimate(mean=max(0.0, 100 - (100 - idle.mean) * share), low=low, high=high, n=idle.n)

    def _latency(self, operation: str, statistic: str) -> Estimate | None:
        """Of the named operation; without a name of the only one, and the longest also of several."""
        named = {_plain(name): found for name, found in self.latency_intervals.items()}
        wanted = [named[operation]] if operation in named else [] if operation else list(named.values())
        found: list[Estimate] = [getattr(latency, f"{statistic}_ns") for latency in wanted]
        if statistic == "max":
            return max(found, key=lambda e: e.mean, default=None)
        return found[0] if len(found) == 1 else None


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name).lower()


def _times(estimate: Estimate | None, factor: float | None) -> Estimate | None:
    if estimate is None or factor is None or factor == 1:
        return estimate if factor else None
    low, high = (None if end is None else end * factor for end in (estimate.low, estimate.high))
    return Estimate(mean=estimate.mean * factor, low=low, high=high, n=estimate.n)


def _inverse(rate: Estimate) -> Estimate | None:
    if rate.mean <= 0:
        return None
    low, high = (1 / end if end and end > 0 else None for end in (rate.high, rate.low))
    both = low is not None and high is not None
    return Estimate(mean=1 / rate.mean, low=low if both else None, high=high if both else None, n=rate.n)


class Wall(Strict):
    """How long the runs took on this computer, in seconds; never part of the deterministic results."""

    total_s: float = 0.0
    points_s: dict[str, float] = Field(default_factory=dict)
    threads: int = 0


class ScenarioResult(Strict):
    """The answer to a scenario."""

    name: str
    titles: dict[str, str] = Field(
        default_factory=dict, description="what to call a variant; its name if absent"
    )
    operation: str = Field("operation", description="what one operation is, singular: 'compile', 'create'")
    answer: str = Field(
        default="",
        description="what the variants are worth against each other, in words made from the numbers",
    )
    first_look_of_ns: float | None = Field(
        default=None, description="the scenario's own measured time, where `--quick` took a part of it"
    )
    sweep: tuple[str, ...] = Field((), description="keys that vary over the points, x axis first")
    filesystems: tuple[str, ...] = Field(
        default=(), description="kinds of filesystem of the points; `none` is one"
    )
    points: tuple[PointResult, ...]
    fits: tuple[Fit, ...] = ()
    findings: tuple[Finding, ...] = ()
    expected: tuple[Expected, ...] = Field(
        default=(), description="what the scenario expects, and whether it came so"
    )
    unmatched: tuple[MeasuredRow, ...] = Field((), description="measured rows that no point answers")
    wall: Wall = Field(default_factory=Wall, exclude=True)

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the variants, in the order of the scenario."""
        return tuple(dict.fromkeys(p.variant for p in self.points))

    @property
    def exit_code(self) -> int:
        """0 for a clean result, 3 where a run stalled, else 2 where a window is empty, 1 where a law is broken.

        1 also where an expectation does not hold.
        """
        missed = int(any(each.failed for each in self.expected))
        return max((FINDING_EXIT_CODES[f.kind] for f in self.findings), default=missed)

    def title(self, variant: str) -> str:
        """What to call a variant in text and figures."""
        return self.titles.get(variant, variant)

    def of(self, variant: str) -> tuple[PointResult, ...]:
        """The points of one variant, in sweep order."""
        return tuple(p for p in self.points if p.variant == variant)

    def with_fits(self, fits: tuple[Fit, ...]) -> Self:
        """The same result with `fits` recorded, and the points that were fitted on marked so."""
        rows = [row for fit in fits for row in fit.rows]

        def marked(point: PointResult) -> PointResult:
            fitted = any(c.row in rows for c in point.measured)
            return point.model_copy(update={"origin": "fitted" if fitted else "predicted"})

        return self.model_copy(update={"fits": fits, "points": tuple(map(marked, self.points))})


def short(key: str) -> str:
    """The last part of a dotted key that names something: `workload.tasks` -> `tasks`.

    >>> short("workload.hold.exponential")
    'hold.exponential'
    """
    *_, owner, last = ("", *key.split("."))
    return f"{owner}.{last}" if last in SHAPES else last


def quantity(value: float, unit: str) -> str:
    """A number with its unit for reading; nanoseconds become the largest unit that keeps it above one.

    >>> quantity(9.8e6, "ns")
    '9.8 ms'
    """
    if unit == "ns":
        for scale, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
            if abs(value) >= scale:
                return f"{value / scale:.4g} {name}"
    return f"{value:.4g} {unit}".rstrip()
