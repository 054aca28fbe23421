"""Parts of a `PointResult`: CPU time, latencies, wake-ups and locks over all replications of a point."""

from pydantic import Field

from simfs.results.run_result import Latency, LockKind, LockStats, Strict, Wakes
from simfs.results.statistics import Estimate

CURVE = (
    *map(float, range(5, 90, 5)), *map(float, range(90, 100)), *(99.0 + n / 10 for n in range(2, 10)), 99.95, 99.99
)  # fmt: skip
"""Per cents at which latency curves are kept."""


class CpuShares(Strict):
    """CPU time by state, in percent of all CPU time in the window; adds up to 100."""

    user: Estimate
    system: Estimate
    spin: Estimate
    switch: Estimate
    irq: Estimate
    idle: Estimate


class PooledLatency(Latency):
    """Latency of one kind of operation, of all replications together."""

    hdr: str = Field(default="", exclude=True, repr=False)
    curve: tuple[float, ...] = Field(
        default=(),
        exclude=True,
        repr=False,
        description="ns below which `CURVE` per cent of operations lie; in a table of its own",
    )


class LatencyIntervals(Strict):
    """Latency of one kind of operation over replications: of each statistic the mean of the runs."""

    mean_ns: Estimate
    p50_ns: Estimate
    p90_ns: Estimate
    p99_ns: Estimate
    max_ns: Estimate


class WakesSummary(Wakes):
    """What became of the wake-ups of one kind of task, over all replications of a point."""

    to_run_idle: PooledLatency
    to_run_busy: PooledLatency
    to_run: PooledLatency = Field(description="until the task runs, wherever its CPU was")
    over_1ms_percent: float = Field(description="share of these times that are longer than 1 ms")


class LockKindSummary(LockKind):
    """What one kind of task did with locks of a class, over all replications of a point."""

    grant_to_run: PooledLatency | None = None


class LockSummary(LockStats):
    """One lock class over all replications of a point.

    Counts and totals are sums, maxima are maxima, and the wait percentiles are those of all waits together.
    """

    wait_hdr: str = Field(default="", exclude=True, repr=False)
    kinds: tuple[LockKindSummary, ...] = ()

    @property
    def holder_parts(self) -> tuple[float, float, float, float]:
        """Nanoseconds the holders were running, runnable, sleeping, and waiting for a device while others waited."""
        return (
            self.holder_running_ns,
            self.holder_runnable_ns,
            self.holder_sleeping_ns,
            self.holder_device_ns,
        )

    @property
    def wait_mean_ns(self) -> float:
        """Mean wait of a contended acquisition, in nanoseconds."""
        return self.wait_total_ns / self.contended if self.contended else 0.0

    @property
    def hold_mean_ns(self) -> float:
        """Mean time that somebody has the lock alone, in nanoseconds."""
        alone = self.acquired - self.acquired_shared
        return self.hold_total_ns / alone if alone else 0.0

    @property
    def hold_shared_mean_ns(self) -> float:
        """Mean time for which one of those who share the lock has it, in nanoseconds."""
        return self.hold_shared_total_ns / self.acquired_shared if self.acquired_shared else 0.0

    @property
    def caller(self) -> str:
        """The site that waited longest in total, or the empty string where none was recorded."""
        return max(self.sites, key=lambda s: (s.wait_total_ns, s.site)).site if self.sites else ""
