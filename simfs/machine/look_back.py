"""What is looked at when a run is over and its statistics are taken: whether somebody was left behind.

*Everybody who spins looks once more.* Who then does anything but go on spinning had a reason to, and nobody told it.

*Nobody sleeps for a lock that was released ten ticks ago*, unless somebody who waits for it was woken since. If the
end of the run comes too early to tell, the machine runs on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simfs.machine.lock import Lock
from simfs.machine.stall import Stall
from simfs.machine.task import Task
from simfs.machine.task_state import Segment, Status
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.machine import Machine

TOLD = "who spins is told"
"""The law of those who spin."""

TICKS = 10
"""For so many ticks a lock may lie there with a sleeper."""

PARTS = (1000, 100, 10, 1)
"""The parts of that time after which it is seen whether the sleepers are still there."""

STEPS = 16
"""Most steps that a look takes: it reads, pays, and looks."""


def look_back(machine: Machine) -> Stall | None:
    """Look once more at a run that has ended; a broken law is recorded. The machine is of no use afterwards."""
    machine.trace = None
    told = _last_looks(machine)
    return _forgotten_sleepers(machine) if told else None


def _last_looks(machine: Machine) -> bool:
    """Let everybody who spins look. Whether all go on spinning."""
    for task in [task for task in machine.living() if _spins_unaware(machine, task)]:
        lock = task.waits_for
        if not _spins_on(machine, task):
            name = f" for {lock}" if lock else ""
            machine.broken(TOLD, f"{task} spins{name} at the end and would not after one more look")
            return False  # what it has done now concerns the others
    return True


def _spins_unaware(machine: Machine, task: Task) -> bool:
    """Whether a task spins and is not about to look.

    Who gives way to others does so when a tick ends. A tick that is due now has not begun.
    """
    gives_way = task.spins_until_resched and task.cpu.in_tick(machine.now - 1)
    return task.spinning and not task.look_due and not gives_way


def _spins_on(machine: Machine, task: Task) -> bool:
    """Let a task look, for which no time goes by. Whether it goes on spinning."""
    for _ in range(STEPS):
        task.generation += 1
        task.spinning = task.spins_until_resched = task.in_segment = False
        task.segment = Segment()
        turn = task.resume()
        while not turn.processed:
            machine.clock.env.step()
        pays = task.in_segment and task.segment.own == 0
        if task.status is not Status.RUNNING or not pays:
            return task.spinning
    return False


@dataclass(frozen=True)
class _Forgotten:
    """Somebody who sleeps for a lock that was released."""

    task: Task
    lock: Lock
    since: Time
    by: Task

    def __str__(self) -> str:
        when = f"which {self.by} released at {self.lock.machine.on_the_clock(self.since):.3f} ns"
        return f"{self.task} sleeps for {self.lock}, {when} without waking anybody"


def _forgotten(machine: Machine) -> list[_Forgotten]:
    """Who sleeps for a lock that was released, where nobody who waits for it is about to run."""
    sleepers = [task for task in machine.living() if task.status is Status.SLEEPING and task.sleeps_for]
    return [
        _Forgotten(task, lock, *lock.left)
        for task in sleepers
        if (lock := task.sleeps_for) and lock.left and not _in_hand(machine, lock, *lock.left)
    ]


def _in_hand(machine: Machine, lock: Lock, since: Time, by: Task) -> bool:
    """Somebody was woken and has yet to run, or is about to wake somebody."""
    runnable = [task for task in machine.living() if task.status is Status.RUNNABLE]
    awake = runnable + [task for task in machine.living() if task.status is Status.RUNNING]
    woken = any(waits is lock for task in runnable for waits, *_ in task.waits)
    about_to_wake = lock.inner and any(waits is lock.inner for task in awake for waits, *_ in task.waits)
    stopped = by in runnable and by.last_ran < since + machine.kernel.tick
    return bool(woken or about_to_wake or stopped)


def _forgotten_sleepers(machine: Machine) -> Stall | None:
    """Run on as long as somebody seems forgotten, for ten ticks at most."""
    end, patience = machine.now, TICKS * machine.kernel.tick
    forgotten = _forgotten(machine)
    for part in PARTS:
        if not forgotten:
            return None
        if stall := machine.run_until(end + patience // part):
            return stall
        still = _forgotten(machine)
        forgotten = [each for each in forgotten if each in still]
    if not forgotten:
        return None
    return Stall("stall", min(each.since for each in forgotten), [str(each) for each in forgotten])
