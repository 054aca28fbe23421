"""RCU (`kernel/rcu/tree.c` of 6.12): callbacks wait for a grace period, then the softirq of their CPU invokes them.

In a grace period each CPU has been seen outside of readers. Its thread, which begins and ends grace periods, is a
program of the engine; what it changes is here. Who reads is not known: a CPU is outside of readers in user mode, when
it idles and when it switches, and, where the kernel can be preempted, in a part of its code (`rcu_leaf`, which also has
the locks of the tree's nodes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simfs.machine.callbacks import Batch, Callbacks
from simfs.machine.cpus.cpu import Cpu, Phase
from simfs.machine.rcu_leaf import Leaves
from simfs.machine.time import Time

if TYPE_CHECKING:
    from simfs.machine.locks.completion import Completion
    from simfs.machine.machine import Machine
    from simfs.machine.task import Task

CALLBACKS = "no callback is lost"
"""The law that what is queued is invoked, or still waits."""

BLIMIT = 10
"""Callbacks in a round of the softirq (`blimit`)."""
MAX_BLIMIT = 10_000
"""The same where there are too many (`DEFAULT_MAX_RCU_BLIMIT`)."""
DIVISOR = 7
"""Of many at once, a 128th (`rcu_divisor`)."""
QHIMARK, QLOWMARK = 10_000, 100
"""More callbacks than these are too many, until there are so few."""
LONG, CPUS_A_JIFFY = 10**11, 256
"""A grace period is long after so much, and a jiffy for each so many CPUs (`adjust_jiffies_till_sched_qs`)."""
LONG_ROUND, RESCHED, LOOK = 100, 3 * 10**9, 32
"""A round of more than so many is over after so long (`rcu_resched_ns`), which is looked at each so many."""


@dataclass(eq=False)
class OfCpu:
    """What RCU knows of a CPU (`struct rcu_data`)."""

    cpu: Cpu
    ksoftirqd: Task
    wait: Completion
    """What `ksoftirqd` waits for."""
    awake: bool = False
    """Whether it was woken."""
    callbacks: Callbacks = field(default_factory=Callbacks)
    noted: int = 0
    """The state of grace periods that it knows of."""
    missing: bool = False
    """It has not reported in the present one (`qsmask`)."""
    needed: bool = False
    """It has to, as it knows (`core_needs_qs`)."""
    seen_outside: bool = False
    """It has been outside of readers since then."""
    switch: int = 0
    """How often it had switched by then."""
    misses: bool = False
    """It will find its node's lock held in the softirq of this tick."""
    rang: int = 0
    """How many timers have rung in this tick."""
    idled: Time | None = None
    """How long it had idled when that was first looked at."""
    urgent: bool = False
    """Its next tick has its task give way (`rcu_urgent_qs`)."""
    hurries: bool = False
    """Whether it invokes many at once."""
    last_check: int = 0
    """How many callbacks it had when there were too many (`qlen_last_fqs_check`)."""
    forced: int = 0
    """How often CPUs had been looked at by then."""

    @property
    def passed(self) -> bool:
        """Whether it has been outside of readers since it knows of the grace period."""
        return self.seen_outside or self.switch != self.cpu.generation

    def do_batch(self, *, idle: bool) -> Batch:
        """Invoke some callbacks, which are returned, on a CPU that idles or not (`rcu_do_batch`)."""
        done = self.callbacks.done
        limit = max(done.count >> DIVISOR, MAX_BLIMIT if self.hurries else BLIMIT)
        count = done.count if idle else min(done.count, limit)
        if limit > LONG_ROUND:
            in_time = RESCHED * done.count // max(done.time, 1)
            count = min(count, (in_time // LOOK + 1) * LOOK)
        taken, left = done.take(count), self.callbacks.count
        self.hurries = self.hurries and left > QLOWMARK
        if left == 0 or left + QHIMARK < self.last_check:
            self.last_check = left
        return taken


class Rcu:
    """Grace periods, and who waits for them."""

    def __init__(self, machine: Machine, thread: Task, ksoftirqds: Sequence[tuple[Task, Completion]]) -> None:
        self._machine, self._thread = machine, thread
        self.cpus = [
            OfCpu(cpu, *ksoftirqd) for cpu, ksoftirqd in zip(machine.scheduler.cpus, ksoftirqds, strict=True)
        ]
        self._leaves = Leaves(machine, self.cpus)
        self._sequence = 0
        """Twice the number of grace periods that are over, and 1 while one is under way (`gp_seq`)."""
        self._began: Time = 0
        """When the present one began (`gp_start`)."""
        self._wanted = 0
        """So many grace periods are wanted."""
        self._forces = 0
        """How often CPUs that idle were looked for (`n_force_qs`)."""
        self.queued = self.invoked = 0
        """Callbacks since the start."""

    @property
    def _under_way(self) -> bool:
        return self._sequence % 2 == 1

    @property
    def pending(self) -> int:
        """Callbacks that have not been invoked."""
        return sum(of.callbacks.count for of in self.cpus)

    @property
    def all_reported(self) -> bool:
        """Whether all CPUs have been outside of readers."""
        return not any(of.missing for of in self.cpus)

    # ---- callbacks --------------------------------------------------------------------------------------------------

    def queue(self, cpu: Cpu, more: Batch) -> None:
        """Callbacks are queued on a CPU (`call_rcu`)."""
        of = self.cpus[cpu.number]
        self.queued += more.count
        of.callbacks.next.add(more)
        if of.callbacks.count > of.last_check + QHIMARK and (self._note(of) or self._too_many(of)):
            self._thread.kick(None)
        self._machine.scheduler.tick.arm(cpu)

    def _too_many(self, of: OfCpu) -> bool:
        """A CPU has too many callbacks (`call_rcu_core`). Whether RCU's thread is to do something about that."""
        if not self._under_way:
            return self._accelerate(of)
        unchanged = of.forced == self._forces
        of.hurries, of.last_check, of.forced = True, of.callbacks.count, self._forces
        return unchanged

    def _accelerate(self, of: OfCpu) -> bool:
        """Callbacks that do not wait yet wait for the next grace period that begins (`rcu_accelerate_cbs`).

        Returns whether RCU's thread is to begin one.
        """
        number = (self._sequence + 1) // 2 + 1
        if not of.callbacks.accelerate(number) or self._wanted >= number:
            return False
        self._wanted = number
        return not self._under_way

    def _note(self, of: OfCpu) -> bool:
        """What has become of grace periods comes to be known on a CPU (`__note_gp_changes`)."""
        before, now = of.noted, self._sequence
        if before == now:
            return False
        of.noted = now
        if before // 2 < now // 2:
            of.callbacks.advance(now // 2)
            of.needed = False
        if (before + 1) // 2 < (now + 1) // 2:
            of.needed, of.seen_outside, of.switch = of.missing, False, of.cpu.generation
        return self._accelerate(of)

    # ---- the softirq ------------------------------------------------------------------------------------------------

    def core(self, of: OfCpu, *, idle: bool, meets: bool = False) -> Time:
        """`rcu_core`, in a round in which its tick meets those of others or not. Returns how long it takes."""
        held, of.misses = of.misses and meets, False
        wakes = not held and self._note(of)
        if of.needed and of.passed:
            of.needed = False
            begins, last = self._accelerate(of), of.missing
            of.missing = False
            wakes = wakes or begins or (last and self.all_reported)
        if not self._under_way and of.callbacks.next.count:
            wakes = self._accelerate(of) or wakes
        batch = of.do_batch(idle=idle)
        self.invoked += batch.count
        if wakes:
            self._thread.kick(None)
        if self._machine.stacks is not None:
            self._machine.stacks.invoked(of.cpu, batch.stacks)
        return batch.time + self._machine.kernel.rcu_core

    def tick(self, cpu: Cpu) -> bool:
        """The tick of a CPU (`rcu_sched_clock_irq`). Whether the softirq has something to do (`rcu_pending`)."""
        of = self.cpus[cpu.number]
        self._heed_urgency(of)
        self._leaves.tick(of)
        return (of.needed and of.passed and self._under_way) or self._has_to_do(of)

    def rings(self, cpu: Cpu) -> None:
        """A timer rings in the tick of a CPU."""
        self.cpus[cpu.number].rang += 1

    def meet(self, cpu: Cpu) -> None:
        """The softirq of a tick begins on a CPU, and on the other CPUs of its node."""
        self._leaves.meet(self.cpus[cpu.number], self._sequence)

    def needs_tick(self, cpu: Cpu) -> bool:
        """Whether a CPU is to tick for RCU: when it idles, for its callbacks only (`rcu_needs_cpu`)."""
        of = self.cpus[cpu.number]
        if self._machine.scheduler.is_idle(cpu) and not of.callbacks.count:
            return False
        return (of.needed and self._under_way) or self._has_to_do(of)

    def _has_to_do(self, of: OfCpu) -> bool:
        new = of.callbacks.next.count > 0 and not self._under_way
        return of.callbacks.done.count > 0 or new or of.noted != self._sequence

    def next_softirq(self, cpu: Cpu) -> Time | None:
        """The next round for `ksoftirqd`; without one it sleeps.

        Between rounds there are no readers (`rcu_softirq_qs`).
        """
        of = self.cpus[cpu.number]
        of.awake, of.seen_outside = of.callbacks.done.count > 0, True
        return self.core(of, idle=False) if of.awake else None

    # ---- RCU's thread -----------------------------------------------------------------------------------------------

    def grace_period(self, cpu: Cpu, step: str) -> bool:
        """A step of the thread, which runs on `cpu`; answers what it asks."""
        of = self.cpus[cpu.number]
        if step == "wanted":
            return self._wanted > self._sequence // 2
        if step == "passed":
            return self.all_reported
        if step == "force":
            self._force()
        else:
            self._sequence += 1
            if step == "begin":
                self._began = self._machine.now
                for other in self.cpus:
                    other.missing, other.idled = True, None
                self._thread.kicked = False  # that was for this one
            self._note(of)
            if step == "end":
                self._accelerate(of)
        for each in self._machine.scheduler.cpus:
            self._machine.scheduler.tick.arm(each)
        return True

    def _force(self) -> None:
        """CPUs that idle, or have since they were first looked at, are outside of readers (`force_qs_rnp`)."""
        for of in self.cpus:
            idled = of.cpu.idle_clock(self._machine.now)
            if of.idled is None:
                of.idled = idled
            if of.cpu.phase is Phase.IDLE or idled > of.idled:
                of.missing = False
        self._forces += 1
        tick = self._machine.kernel.tick
        if self._machine.now // tick > self._began // tick + LONG // tick + len(self.cpus) // CPUS_A_JIFFY:
            for of in self.cpus:
                of.urgent = of.urgent or of.missing

    def _heed_urgency(self, of: OfCpu) -> None:
        """In a tick: a task in the kernel is to look for another one, though there may be none (`rcu_sched_clock_irq`).

        Who spins in a lock that sleeps gives up.
        """
        urgent, of.urgent = of.urgent, False
        running = of.cpu.current if of.cpu.phase is Phase.RUNNING else None
        if urgent and running is not None and not self._machine.scheduler.in_user_mode(running):
            of.cpu.need_resched = True

    def passes(self, cpu: Cpu) -> None:
        """A CPU looks for another task: that is outside of readers (`rcu_note_context_switch`)."""
        self.cpus[cpu.number].seen_outside = True
