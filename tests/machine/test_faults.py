"""Deliberate faults, put into the reference machine one at a time: each is caught, and it is said by what.

`laws`: the run itself reports a broken law; `stall`: it reports that nobody can go on; `trace`: the native machine does
something else. A fault that only the traces show is one that no law forbids.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from engine import CONSTANTS, Spec, lock_cycle
from simfs import _engine, machine
from simfs.machine.agreement import first_difference
from simfs.machine.caches.line import Line
from simfs.machine.chains import Reason
from simfs.machine.cpus.segments import Segments
from simfs.machine.kernel import Kernel
from simfs.machine.lock import Lock
from simfs.machine.locks.mutex import Mutex
from simfs.machine.locks.osq import Osq
from simfs.machine.locks.queued import Qspinlock
from simfs.machine.locks.semaphore import Semaphore
from simfs.machine.locks.spinlock import Spinlock, Ticket
from simfs.machine.statistics import ClassStatistics
from simfs.machine.task import Task

PRICES = {
    "line_hit": 2,
    "line_llc": 50,
    "line_remote": 150,
    "context_switch": 1500,
    "wakeup": 1000,
    "ipi_deliver": 500,
}
LAWS, STALL, TRACE = "laws", "stall", "trace"


def load(kind: str, tasks: int, ms: float) -> Spec:
    """Tasks on four CPUs that meet often."""
    times: dict[str, Any] = {
        "think_distribution": "exponential",
        "hold_distribution": "exponential",
        "think_ns": 3e3,
        "hold_ns": 300,
    }
    readers = 0.8 if kind.startswith("rw") else 0.0
    constants = {**CONSTANTS, "rwsem_reader_batch_max": 2}
    kernel = {"tick_ns": 1e5, "base_slice_ns": 1e5, "constants": constants, "preemption": "full"}
    return lock_cycle(
        kind, tasks, 4, duration_ns=ms * 1e6, costs=PRICES, kernel=kernel, readers=readers, **times
    )


@dataclass(frozen=True)
class Fault:
    """A method that is replaced by a wrong one, the load that shows it, and what catches it."""

    name: str
    owner: type
    method: str
    wrong: Callable[..., Any]
    kind: str
    tasks: int
    """Many: there is always a queue. Few: who waits has just come."""
    ms: float
    caught_by: frozenset[str]


FAULTS: list[Fault] = []


def fault(
    owner: type, method: str, kind: str, *caught_by: str, tasks: int = 10, ms: float = 1
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a wrong method into the list."""

    def enter(wrong: Callable[..., Any]) -> Callable[..., Any]:
        name = wrong.__name__.replace("_", " ")
        FAULTS.append(Fault(name, owner, method, wrong, kind, tasks, ms, frozenset(caught_by)))
        return wrong

    return enter


# ---- sleeping locks ---------------------------------------------------------------------------------------


@fault(Lock, "wake", "semaphore", STALL, TRACE)
def a_wake_up_is_lost(self: Lock, waker: Task, waiter: Task) -> None:
    """The waiter was given the lock and is never told."""


@fault(Task, "park", "rwsem", STALL, TRACE)
def a_wake_up_before_the_sleep_is_lost(self: Task, *_: object) -> Any:  # noqa: ANN401
    yield from self.pay()
    self.woken = False
    self.machine.scheduler.sleep(self, Reason.LOCK)
    yield from self.suspend()


@fault(Semaphore, "try_fast", "semaphore", LAWS, TRACE)
def a_granted_lock_is_stolen(self: Semaphore, task: Task, side: object) -> bool:
    """The sleeper owns it already, but it does not run yet."""
    task.write(self.line)
    if self.holder is not None and self.holder.on_cpu:
        return False
    self.begin_hold(task)
    return True


@fault(Semaphore, "_hand_over", "semaphore", TRACE)
def the_last_waiter_comes_first(self: Semaphore) -> Task | None:
    if not self.waiters:
        self.count += 1
        return None
    last = self.waiters.pop()
    self.grant(last)
    return last


@fault(Mutex, "_spin_as_first_waiter", "mutex", TRACE)
def the_first_sleeper_does_not_spin(self: Mutex, task: Task) -> Any:  # noqa: ANN401
    yield from ()
    return False


@fault(Mutex, "release", "mutex", TRACE)
def a_hand_off_that_was_asked_for_is_not_made(self: Mutex, task: Task, side: object) -> Any:  # noqa: ANN401
    self.handoff = False
    yield from RELEASE_MUTEX(self, task, side)


RELEASE_MUTEX: Callable[..., Any] = Mutex.release


@fault(Mutex, "_may_spin", "mutex", TRACE, tasks=16, ms=2)
def who_spins_does_not_see_that_the_owner_sleeps(self: Mutex, task: Task) -> bool:
    return not task.need_resched


@fault(Osq, "unlock", "mutex", LAWS, TRACE, tasks=6)
def the_next_spinner_is_not_told_that_it_is_head(self: Osq, task: Task) -> None:
    self.queue.popleft()


@fault(Kernel, "of", "rwsem", TRACE)
def a_reader_batch_is_one_too_short(cls: type[Kernel], kernel: dict[str, Any], instruction: float) -> Kernel:
    right: Kernel = KERNEL_OF(kernel, instruction)
    return replace(right, rwsem_reader_batch=right.rwsem_reader_batch - 1)


KERNEL_OF: Callable[..., Kernel] = Kernel.of


# ---- spinlocks, lines, accounts ---------------------------------------------------------------------------


@fault(Spinlock, "unlock", "semaphore", LAWS, TRACE, ms=2)
def an_unlock_forgets_to_enable_preemption(self: Spinlock, task: Task) -> None:
    task.write(self.line)
    self.end_hold()
    self.tell_pollers(task)


@fault(Spinlock, "unlock", "qspinlock", LAWS, STALL, TRACE)
def an_unlock_is_seen_by_nobody(self: Spinlock, task: Task) -> None:
    task.write(self.line)
    self.end_hold()
    task.preempt_off -= 1


@fault(Spinlock, "try_fast", "ticket", TRACE)
def a_newcomer_overtakes_the_queue(self: Spinlock, task: Task, side: object) -> bool:
    task.write(self.line)
    if self.holder is not None:
        return False
    task.preempt_off += 1
    self.begin_hold(task)
    return True


@fault(Ticket, "tell_pollers", "ticket", TRACE)
def only_the_next_refetches_the_tickets(self: Ticket, releaser: Task) -> None:
    if self.waiters:
        self.show(releaser, self.waiters[0])


@fault(Qspinlock, "tell_pollers", "qspinlock", TRACE)
def a_hand_over_costs_no_transfer(self: Qspinlock, releaser: Task) -> None:
    for poller in (self.pending, self.waiters[0] if self.head_polls else None):
        if poller:
            poller.look_at(self.machine.now)


@fault(Line, "access", "ticket", TRACE)
def transfers_of_a_line_are_not_serialised(self: Line, *access: Any) -> int:  # noqa: ANN401
    self.busy_until = 0
    return LINE_ACCESS(self, *access)


LINE_ACCESS: Callable[..., int] = Line.access


@fault(Segments, "book_spin", "qspinlock", LAWS)
def time_spun_is_not_booked(self: Segments, task: Task) -> None:
    task.segment.debt = max(task.segment.debt - (task.machine.now - task.started), 0)
    task.cpu.accounted = task.machine.now


@fault(ClassStatistics, "begin_wait", "mutex", LAWS)
def a_wait_is_counted_late(self: ClassStatistics, now: int) -> None:
    self.waiting += 1
    self._since = now


# ---- the test ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=[f.name.replace(" ", "-") for f in FAULTS])
def test_a_fault_is_caught(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    assert without_faults(fault.kind, fault.tasks, fault.ms) == frozenset()
    wrong = classmethod(fault.wrong) if fault.method == "of" else fault.wrong
    monkeypatch.setattr(fault.owner, fault.method, wrong)
    assert caught(load(fault.kind, fault.tasks, fault.ms)) == fault.caught_by


def test_a_dozen_faults_and_more_are_tried() -> None:
    assert len(FAULTS) >= 12


@cache
def without_faults(kind: str, tasks: int, ms: float) -> frozenset[str]:
    return caught(load(kind, tasks, ms))


def caught(spec: Spec) -> frozenset[str]:
    text = json.dumps(spec)
    native = _engine.trace(text)[1]
    answer, reference = machine.trace(text)
    result = json.loads(answer)
    signs = {
        LAWS: not all(law["ok"] for law in result["laws"]),
        STALL: result["stall"] is not None or result["batch_operations"][-1] == 0,
        TRACE: first_difference(native, reference) is not None,
    }
    return frozenset(sign for sign, seen in signs.items() if seen)
