"""Why everybody waits, over all replications of a point: chains, the locks on them, and what holders did.

What a report, a figure or a notebook needs is here: `Why` has the chains, the shares and the sentence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from simfs._engine import Histogram
from simfs.results.pooling import pooled_lines
from simfs.results.run_result import (
    Chains,
    HolderTime,
    Holds,
    LineStats,
    RunResult,
    SleepTime,
    Strict,
    WaitChain,
)

WORDS = {
    "running": "runs",
    "granted": "was given the lock and has not run yet",
    "woken": "was woken and waits for a CPU",
    "preempted": "was taken off its CPU",
    "timer": "sleeps until a timer rings",
    "device": "sleeps until the device is done",
    "completion": "sleeps until something is complete",
    "wake-up": "sleeps until somebody wakes it",
    "held by device": "a device has it",
    "readers": "readers have it",
    "nobody": "nobody has it, the next one is on the way",
    "gone": "its holder has ended",
    "lock": "waits for another lock",
    "farther": "and more locks",
}
"""What the last holder of a chain does, by reason."""

SLEEPS = {
    "xlog_grant_head_wait": "waits for log space, which xfsaild frees",
    "xlog_state_get_iclog_space": "waits for a log buffer, which the end of a log write frees",
    "xlog_cil_push_background": "waits for the CIL to be pushed, which is full",
    "xlog_wait_on_iclog": "waits for a log write",
    "xlog_force_lsn": "waits for a log write",
    "jbd2_log_do_checkpoint": "frees log space: waits for blocks that it writes to their places",
    "jbd2_log_wait_commit": "waits for a commit",
    "wait_transaction_locked": "waits for a commit, which takes the running transaction",
    "jbd2_journal_wait_updates": "waits for the handles of its transaction",
    "submit_bio_wait": "waits for the device",
    "dio_await_one": "waits for the device",
    "folio_wait_writeback": "waits for pages that are being written",
}
"""What it does that sleeps in a function of a log or for a device, and who ends that."""

LITTLE = 0.01
"""Part of the tasks' time below which waiting for locks is no answer."""

MUCH = 0.1
"""Part of the tasks' time from which on waiting for cache lines is told where locks are not the reason."""

MOSTLY = 0.5
"""Part of the tasks' time from which on sleep for no lock is told."""

_ASLEEP = {"timer", "device", "completion", "wake-up"}
_NO_HOLDER = {"held by device", "readers", "nobody", "gone", "farther"}


class OnPath(NamedTuple):
    """A lock on the critical path: the percent of all waiting that passes it, and that ends at it."""

    lock: str
    passes_percent: float
    ends_percent: float


class Owner(NamedTuple):
    """Whose holds others waited for: the last lock of a chain, what its holder did, and percent of all waiting."""

    lock: str
    holder: str
    reason: str
    function: str
    wait_ns: float
    percent: float


LONGEST = 1.0
"""Percent of the holds that are called the longest."""


class Lasted(NamedTuple):
    """How long the exclusive holds of a lock class lasted, and the part of that time that the longest 1 % make."""

    lock: str
    holds: int
    p50_ns: float
    p99_ns: float
    max_ns: float
    longest_percent: float


class Why(Strict):
    """Why tasks of one point waited."""

    point: str
    variant: str
    replications: int
    task_time_ns: float
    """Tasks times window, over all replications."""
    waits: tuple[WaitChain, ...]
    holders: tuple[HolderTime, ...]
    sleeps: tuple[SleepTime, ...] = ()
    holds: tuple[Holds, ...] = ()
    lines: tuple[LineStats, ...] = ()
    """Cache lines that somebody waited for, which is no wait for a lock."""

    @classmethod
    def of(cls, point: str, variant: str, runs: Sequence[RunResult]) -> Why:
        """Put the chains of several runs together. Raises ValueError where a run has none."""
        if missing := [number for number, run in enumerate(runs) if run.chains is None]:
            raise ValueError(f"{point} #{missing[0]}: chains were not recorded")
        chains = pooled_chains(runs)
        time = sum(run.tasks * run.window_ns for run in runs)
        return cls(
            point=point,
            variant=variant,
            replications=len(runs),
            task_time_ns=time,
            waits=chains.waits,
            holders=chains.holders,
            sleeps=chains.sleeps,
            holds=chains.holds,
            lines=pooled_lines(runs),
        )

    @property
    def wait_ns(self) -> float:
        """All waits together."""
        return sum(chain.wait_ns for chain in self.waits)

    def percent(self, chain: WaitChain) -> float:
        """The share of a chain in all waits."""
        return 100 * chain.wait_ns / self.wait_ns

    def on_path(self) -> list[OnPath]:
        """Locks by how much of all waiting passes them, the most first."""
        passes, ends = defaultdict[str, float](float), defaultdict[str, float](float)
        for chain in self.waits:
            for lock in dict.fromkeys(link.lock for link in chain.links):
                passes[lock] += chain.wait_ns
            ends[chain.links[-1].lock] += chain.wait_ns
        return [
            OnPath(lock, self._share(time), self._share(ends[lock])) for lock, time in _longest_first(passes)
        ]

    def owners(self) -> list[Owner]:
        """Who made others wait, by what the last holder of each chain did, the most first."""
        times = defaultdict[tuple[str, str, str, str], float](float)
        for chain in self.waits:
            last = chain.links[-1]
            times[last.lock, last.holder, chain.reason, chain.function] += chain.wait_ns
        return [Owner(*key, wait_ns=time, percent=self._share(time)) for key, time in _longest_first(times)]

    def holder_times(self, lock: str) -> list[tuple[HolderTime, float]]:
        """What holders of a lock did while somebody waited, with percent of that time."""
        of_lock = [had for had in self.holders if had.lock == lock]
        total = sum(had.time_ns for had in of_lock)
        return [(had, 100 * had.time_ns / total) for had in of_lock]

    def lasted(self) -> list[Lasted]:
        """How long holds lasted, by lock, in the order of `on_path`; locks that nobody waited for come last."""
        order = [path.lock for path in self.on_path()]
        told = sorted(self.holds, key=lambda of: order.index(of.lock) if of.lock in order else len(order))
        return [_lasted(of) for of in told]

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        if not self.waits:
            return f"no task waited for a lock{self._fetch()}{self._sleep()}"
        most = self.on_path()[0]
        if self.wait_ns < LITTLE * self.task_time_ns:
            share = f"{100 * self.wait_ns / self.task_time_ns:.2f} % of their time, mostly for {most.lock}"
            return f"locks are not the reason: tasks wait for them {share}{self._fetch()}{self._sleep()}"
        owner = next(owner for owner in self.owners() if owner.lock == self._ends_most())
        at = "" if most.lock == owner.lock else f", which leads to {owner.lock}"
        return (
            f"{most.passes_percent:.0f} % of all waiting is for {most.lock}{at}; the largest cause "
            f"({owner.percent:.0f} %): {does(owner.holder, owner.reason, owner.function)}"
        )

    def _fetch(self) -> str:
        """Which cache lines tasks wait for, if they do for a good part of their time."""
        said = fetches(self.lines, self.task_time_ns)
        return f"; {said}" if said else ""

    def _sleep(self) -> str:
        """What tasks sleep for that is no lock, if they do mostly that."""
        slept = sum(sleep.time_ns for sleep in self.sleeps)
        if slept < MOSTLY * self.task_time_ns:
            return ""
        most = max(self.sleeps, key=lambda sleep: sleep.time_ns)
        share = f"{100 * slept / self.task_time_ns:.0f} % of their time"
        return f"; they sleep {share}, most of it because {does(most.sleeper or 'a task', most.reason, most.function)}"

    def _ends_most(self) -> str:
        return max(self.on_path(), key=lambda path: (path.ends_percent, path.lock)).lock

    def _share(self, time: float) -> float:
        return 100 * time / self.wait_ns


def pooled_chains(runs: Iterable[RunResult]) -> Chains:
    """The chains of all runs that recorded them, equal ones added up, the longest first."""
    found = [run.chains for run in runs if run.chains is not None]
    waits = _added((chain for chains in found for chain in chains.waits), lambda chain: chain.wait_ns)
    holders = _added((had for chains in found for had in chains.holders), lambda had: had.time_ns)
    sleeps = _added((slept for chains in found for slept in chains.sleeps), lambda slept: slept.time_ns)
    return Chains(
        waits=tuple(chain.model_copy(update={"wait_ns": time}) for chain, time in waits),
        holders=tuple(had.model_copy(update={"time_ns": time}) for had, time in holders),
        sleeps=tuple(slept.model_copy(update={"time_ns": time}) for slept, time in sleeps),
        holds=_pooled_holds([of for chains in found for of in chains.holds]),
    )


def _pooled_holds(parts: Sequence[Holds]) -> tuple[Holds, ...]:
    texts = defaultdict[str, list[str]](list)
    for of in parts:
        texts[of.lock].append(of.hdr)
    return tuple(Holds(lock=lock, hdr=Histogram.pooled(same).encode()) for lock, same in texts.items())


def _lasted(of: Holds) -> Lasted:
    every = Histogram.pooled([of.hdr])
    return Lasted(
        of.lock, every.count, every.percentile(50), every.percentile(99), every.max,
        100 * every.share_of_largest(LONGEST),
    )  # fmt: skip


_Told = TypeVar("_Told", WaitChain, HolderTime, SleepTime)
_Key = TypeVar("_Key", str, tuple[str, str, str, str])


def _added(parts: Iterable[_Told], time: Callable[[_Told], float]) -> list[tuple[_Told, float]]:
    sums: dict[_Told, float] = {}
    for part in parts:
        key = part.model_copy(update={"wait_ns": 0.0} if isinstance(part, WaitChain) else {"time_ns": 0.0})
        sums[key] = sums.get(key, 0.0) + time(part)
    return sorted(sums.items(), key=lambda each: (-each[1], repr(each[0])))


def _longest_first(times: Mapping[_Key, float]) -> list[tuple[_Key, float]]:
    return sorted(times.items(), key=lambda each: (-each[1], each[0]))


def fetches(lines: Sequence[LineStats], task_time_ns: float) -> str:
    """How much of their time tasks wait for cache lines, the longest wait first; empty where that is not `MUCH`."""
    part = sum(line.waited_ns for line in lines) / task_time_ns
    if part < MUCH:
        return ""
    return (
        f"tasks wait {100 * part:.0f} % of their time for cache lines that others use, mostly for that of "
        f"{lines[0].name}"
    )


def does(holder: str, reason: str, function: str) -> str:
    """What a holder does, in words: `create sleeps until a timer rings (xfs_iget)`."""
    words = SLEEPS.get(function, WORDS[reason]) if reason in _ASLEEP else WORDS[reason]
    where = f" ({function})" if function else ""
    return words if reason in _NO_HOLDER else f"{holder or 'its holder'} {words}{where}"


def frames(chain: WaitChain) -> Iterator[str]:
    """A chain from the waiter to the root, a frame each: what a task does, the lock it waits for, ..."""
    yield chain.waiter or "task"
    for link in chain.links:
        yield f"{link.lock} ({link.side})" if link.side else link.lock
        yield f"[{link.holder or 'holder'}]"
    if chain.function:
        yield chain.function
    yield chain.reason


def folded(chains: Iterable[WaitChain]) -> str:
    """Stacks of waiting in nanoseconds, as flamegraph.pl, speedscope and inferno read them."""
    lines = ((";".join(frame.replace(";", ",") for frame in frames(c)), round(c.wait_ns)) for c in chains)
    return "".join(f"{stack} {time}\n" for stack, time in lines if time)


CHAIN_COLUMNS = ("wait_ns", "waiter", "chain", "holder", "reason", "function")
"""Columns of a table of chains."""


def chain_row(chain: WaitChain) -> dict[str, float | str]:
    """A chain in columns; in `chain` the locks stand from the waiter on, each with what its holder does."""
    locks = [
        side_name(link.lock, link.side) + f" [{link.holder}]" * bool(link.holder) for link in chain.links
    ]
    values = (chain.wait_ns, chain.waiter, " > ".join(locks), chain.links[-1].holder)
    return dict(zip(CHAIN_COLUMNS, (*values, chain.reason, chain.function), strict=True))


def side_name(lock: str, side: str) -> str:
    """A lock with the side that is waited for, if it has two."""
    return f"{lock} ({side})" if side else lock
