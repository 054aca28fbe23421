"""The judge: what all schedules and the simulated machine say of a lock, as verdicts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from simfs.machine.lock import Lock as MachineLock
from simfs.machine.own import OwnLockError, errors_of_own_locks, own_design
from simfs.teach.battery import FEW, FULL, LOADS, Ran, battery, beside
from simfs.teach.explore import Case, Explored, Found, explore
from simfs.teach.lock import Lock

NEAR = 0.05
"""Locks whose throughput differs by less (in logarithms) are of one class."""
CONVOY = 0.6
"""Held for less of the time than this while somebody always wants it, by tasks that sleep for it: a convoy."""


BUSY = (
    "in a loop of your own: write task.spin_until, which gives way when its CPU is wanted and is simulated fast;"
    " more tasks than CPUs were not simulated"
)


class Status(StrEnum):
    """What a verdict is."""

    PASS = "pass"
    FAIL = "fail"
    INFO = "info"


@dataclass(frozen=True)
class Verdict:
    """One question, and its answer."""

    question: str
    status: Status
    says: str


@dataclass
class Judgement:
    """All that is said of a lock."""

    lock: str
    source: list[str]
    """The lines of its file."""
    verdicts: list[Verdict] = field(default_factory=list)
    found: Found | None = None
    """The fault to show, with its schedule."""
    explored: Explored | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return all(verdict.status is not Status.FAIL for verdict in self.verdicts)


KINDS = {
    "mutual exclusion": "no two tasks had the lock at once",
    "deadlock": "somebody could always go on",
    "lost wake-up": "nobody slept on beside a free lock",
    "error": "the code raised no error",
}
"""The kinds of faults in a schedule, and what is said when there is none."""


def judge(reference: str, schedules: int, *, simulate: bool) -> Judgement:
    """Judge the lock `FILE.py:CLASS`; raises OwnLockError where it cannot be run at all."""
    from pathlib import Path

    design = own_design(reference)
    source = Path(reference.rpartition(":")[0]).read_text("utf-8", "replace").splitlines()
    judgement = Judgement(reference, source)
    if issubclass(design, Lock):
        with errors_of_own_locks(reference):
            explored = explore(design, schedules)
        _refuse_what_fails_alone(explored)
        judgement.explored = explored
        judgement.found = min(
            explored.found.values(), key=lambda f: (f.disturbances, len(f.events)), default=None
        )
        judgement.verdicts += _of_schedules(explored, design)
    if (simulate and judgement.ok) or issubclass(design, MachineLock):
        busy = judgement.explored is not None and judgement.explored.busy
        runs = battery(reference, FEW if busy else LOADS)
        judgement.verdicts += _of_runs(runs)
        if judgement.ok:
            judgement.verdicts += _of_throughput(runs)
    return judgement


def _refuse_what_fails_alone(explored: Explored) -> None:
    """What fails with one task is no matter of schedules."""
    error = explored.found.get("error")
    if error and error.case.tasks == 1:
        raise OwnLockError(error.fault.says.partition(": ")[2], error.fault.where)


def _of_schedules(explored: Explored, design: type[Lock]) -> list[Verdict]:
    said = []
    for kind, well in KINDS.items():
        found = explored.found.get(kind)
        if found:
            where = f"{found.fault.where}: " if found.fault.where else ""
            said.append(Verdict(kind, Status.FAIL, f"{where}{found.fault.says}"))
        elif not explored.found:
            said.append(Verdict(kind, Status.PASS, well))
    if found := explored.found.get("FIFO"):
        said.append(Verdict("FIFO", Status.FAIL, f"promised, but {found.fault.says}"))
    if explored.found:
        return said
    if design.fifo:
        said.append(Verdict("FIFO", Status.PASS, "as promised: nobody passed who waited before"))
    else:
        says = f"no: {explored.barged}" if explored.barged else "yes, though not promised (`fifo = True`)"
        said.append(Verdict("FIFO", Status.INFO, says))
    if explored.busy:
        said.append(Verdict("waiting", Status.INFO, BUSY))
    return [*said, _starvation(explored)]


def _starvation(explored: Explored) -> Verdict:
    over = {tasks: most for tasks, most in explored.passed.items() if most > tasks - 1}
    if not over:
        return Verdict("starvation", Status.INFO, "who waits is passed by each other task once at most")
    tasks, most = max(over.items())
    says = f"no bound seen: one of {tasks} tasks was passed {most} times in two rounds of the others"
    return Verdict("starvation", Status.INFO, says)


def _of_runs(runs: list[Ran]) -> list[Verdict]:
    """Laws of the simulated machine."""
    said = []
    for ran in runs:
        said += [Verdict(f"simulated, {ran.load.name}", Status.FAIL, law) for law in ran.broken]
        if ran.stall:
            kind = "lost wake-up" if "without waking" in ran.stall else ran.stall.partition(":")[0]
            said.append(Verdict(f"simulated, {ran.load.name}", Status.FAIL, f"{kind}: {ran.stall}"))
    if not said:
        names = ", ".join(ran.load.name for ran in runs)
        said.append(Verdict("simulated machine", Status.PASS, f"all laws held with {names}"))
    return said


def _of_throughput(runs: list[Ran]) -> list[Verdict]:
    full = next(ran for ran in runs if ran.load is FULL)
    sleeps = full.slept > full.contended / 2
    convoy = sleeps and full.held < CONVOY
    held = f"held {full.held:.0%} of the time, with {FULL.tasks} tasks on {FULL.cpus} CPUs that want it"
    others = beside()
    off = {kind: abs(math.log(max(full.rate, 1) / rate)) for kind, rate in others.items()}
    nearest = ", ".join(kind for kind in others if off[kind] <= max(min(off.values()), NEAR))
    rates = ", ".join(f"{kind} {rate:,.0f}" for kind, rate in others.items())
    fewest = min(runs, key=lambda ran: ran.least / max(ran.most, 1))
    return [
        Verdict("convoy", Status.INFO, f"{'yes' if convoy else 'no'}: {held}"),
        Verdict("throughput class", Status.INFO, f"that of {nearest}: {full.rate:,.0f}/s ({rates})"),
        Verdict(
            "fairness",
            Status.INFO,
            f"least {fewest.least}, most {fewest.most} turns of a task with {fewest.load.name}",
        ),
    ]


def coverage(explored: Explored) -> list[str]:
    """What was tried, a line a case."""
    return [_covered(*each) for each in explored.covered]


def _covered(case: Case, tried: int, complete: bool) -> str:
    what = f"{_many(case.tasks, 'task')}, {_many(case.rounds, 'round')}"
    if case.disturbances is None:
        return f"{what}: {_many(tried, 'random schedule')}"
    how = "all" if complete else "not all"
    return f"{what}: {_many(tried, 'schedule')}, {how} with up to {_many(case.disturbances, 'disturbance')}"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
