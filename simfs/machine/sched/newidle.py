"""A CPU about to idle looks for a task to take (`sched_balance_newidle`, before 6.9 `newidle_balance`).

That takes time, in which it does not idle yet, so that no wake-up finds it idle; who is woken there waits until it has
switched to idle.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simfs.machine.cpus.cpu import Cpu
from simfs.machine.sched.afar import Domain
from simfs.machine.time import Time, from_ns

if TYPE_CHECKING:
    from simfs.machine.sched.scheduler import Scheduler

LINES_A_CPU = 3
"""Lines of another CPU that a search for a task reads: its load, its run queue, its counts (`update_sg_lb_stats`)."""
SECOND = from_ns(1e9)
"""How long the longest look is remembered before it counts less."""


@dataclass
class Success:
    """How often looks into a domain have found a task for a CPU about to idle: half of them, at first (`sd_init`)."""

    calls: int = 512
    found: int = 256
    ratio: int = 512

    @property
    def weight(self) -> int:
        """In how many of 1,024 cases there is a look."""
        return 1 + self.ratio

    def note_look(self, *, found: bool) -> None:
        """There was a look; what it has found counts for those that there were not."""
        self.note((1024 + self.weight // 2) // self.weight if found else 0)

    def note(self, found: int) -> None:
        """`update_newidle_stats`."""
        self.calls += 1
        self.found += found
        if self.calls >= 1024:
            self.ratio = self.found
            self.calls //= 2
            self.found //= 2


@dataclass
class LookCost:
    """How long looks into a domain take at most (`max_newidle_lb_cost`), and since when that is believed."""

    most: Time = 0
    since: Time = 0

    def note(self, now: Time, took: Time) -> None:
        """A look took so long. The maximum falls by 1 % a second (`update_newidle_cost`)."""
        if took > self.most:
            self.most, self.since = took, now
        elif now > self.since + SECOND:
            self.most, self.since = self.most * 253 // 256, now


class NewIdle:
    """Looks of CPUs about to idle."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._machine = scheduler.machine
        self._topology = scheduler.machine.topology
        self._waiting = scheduler.machine.kernel.busiest == "waiting"
        self._by_success = scheduler.machine.kernel.newidle == "by_success"
        self._success: defaultdict[tuple[int, Domain], Success] = defaultdict(Success)
        """By CPU and domain."""
        self._costs: defaultdict[tuple[int, Domain], LookCost] = defaultdict(LookCost)
        self._times: dict[tuple[int, Domain], Time] = {}
        """How long looks take."""

    def begin(self, cpu: Cpu) -> None:
        """A CPU has nothing to run: it looks for a task, if somebody may wait and it idles longer than that takes."""
        kernel = self._machine.kernel
        cpu.idle_stamp = self._machine.now
        floor = kernel.migration_cost if kernel.newidle == "above_migration_cost" else 0
        domains = self._scheduler.balance.near(cpu)[:1] if self._waiting else self._topology.domains
        if not self._scheduler.policy.overloaded or cpu.average_idle < floor or not domains:
            self._scheduler.go_idle(cpu)
            return
        self._scheduler.balance.update_blocked(cpu)
        self._look_into_next(cpu, list(domains), 0)

    def _look_into_next(self, cpu: Cpu, domains: list[Domain], spent: Time) -> None:
        """Begin to look into the last of these domains that is worth it, or idle. Looks so far took `spent`."""
        while domains:
            domain = domains.pop()
            if cpu.average_idle < spent + self._costs[cpu.number, domain].most:
                break
            if self._is_worth_a_look(cpu, domain):
                self._look(cpu, domain, domains, spent)
                return
        self._scheduler.go_idle(cpu)

    def _look(self, cpu: Cpu, domain: Domain, larger: list[Domain], spent: Time) -> None:
        cpu.looks = True
        cpu.errand = lambda: self._done(cpu, domain, larger, spent)
        self._scheduler.occupy(cpu, None, self._time(cpu, domain))

    def _time(self, cpu: Cpu, domain: Domain) -> Time:
        """How long it takes to go over all CPUs of a domain (`update_sd_lb_stats`)."""
        if (known := self._times.get((cpu.number, domain))) is not None:
            return known
        look = self._machine.kernel.look_cpu
        others = self._topology.group(cpu.number, domain[0])
        time = sum(look + LINES_A_CPU * self._topology.transfer(other, cpu.number) for other in others)
        self._times[cpu.number, domain] = time
        return time

    def _done(self, cpu: Cpu, domain: Domain, larger: list[Domain], spent: Time) -> None:
        """A CPU has seen all CPUs of a domain and takes a task from the busiest, if there is one."""
        cpu.looks = False
        balance, take = self._scheduler.balance, self._machine.kernel.take_task
        taken = (
            balance.take_most_waiting(cpu, about_to_idle=True)
            if self._waiting
            else balance.take_in(cpu, domain, about_to_idle=True)
        )
        took = self._time(cpu, domain) + (take if taken else 0)
        self._costs[cpu.number, domain].note(self._machine.now, took)
        if self._by_success:
            self._success[cpu.number, domain].note_look(found=taken is not None)
        if taken:
            cpu.idle_stamp = None
            cpu.before_switch += take
            task = self._scheduler.policy.pick(cpu)
            assert task is not None, "it has taken a task"
            self._scheduler.switch_to(cpu, task)
        elif cpu.queue:
            # Who was woken waits for an interrupt, which comes when it idles.
            self._scheduler.switch_to_idle(cpu)
        else:
            self._look_into_next(cpu, larger, spent + took)

    def _is_worth_a_look(self, cpu: Cpu, domain: Domain) -> bool:
        """The more often looks at a domain found something, the more likely there is one (`NI_RANDOM`)."""
        if not self._by_success:
            return True
        success = self._success[cpu.number, domain]
        looks = self._machine.random.next_u64() % 1024 <= success.weight
        if not looks:
            success.note(0)
        return looks
