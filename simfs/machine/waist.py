"""The narrow waist: how the engine's built-in programs, which know things by their numbers, use this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from simfs._engine import Program
from simfs.machine.caches.contents import Contents
from simfs.machine.caches.line import Access, Home
from simfs.machine.callbacks import Batch
from simfs.machine.clock import What
from simfs.machine.cpus.cpu import Account
from simfs.machine.cpus.wheel import rings
from simfs.machine.device import Hardware, Io, Span
from simfs.machine.disk import Disk
from simfs.machine.lock import Attempt, Lock, Mode, Side
from simfs.machine.locks.bit_lock import BitLock
from simfs.machine.locks.completion import Completion
from simfs.machine.locks.pool import Pool, Work
from simfs.machine.locks.semaphore import Semaphore
from simfs.machine.machine import Machine
from simfs.machine.rcu import Rcu
from simfs.machine.stacks import Stacks
from simfs.machine.task import Steps, Task


class Waist:
    """What a program can ask of the machine. Times are picoseconds; `docs/seams.md` describes the calls."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.cpus: int = machine.topology.cpus

    @property
    def now(self) -> int:
        """The clock."""
        return self.machine.now

    # ---- at once ----------------------------------------------------------------------------------------------------

    def cpu(self, task: int) -> int:
        """The CPU a task runs on."""
        return self._task(task).cpu.number

    def touch(self, task: int, line: int, access: str) -> None:
        """Access a line."""
        self._task(task).access(self.machine.lines[line], Access(access))

    def touch_beside(self, task: int, lock: int, access: str) -> None:
        """Access what lies in the line of a lock's word."""
        self._task(task).access(self.machine.locks[lock].line, Access(access))

    def stored(self, task: int) -> int:
        """When all stores that a task has made are done."""
        return self._task(task).stores_until

    def has_queued(self, task: int) -> bool:
        """Whether a task has queued for a line and does not have it yet."""
        return self._task(task).has_queued

    def new_class(self, name: str, role: str) -> int:
        """Make a lock class, or find it by name."""
        return self.machine.classes.index(self.machine.lock_class(name, role))

    def new_lock(self, lock_class: int) -> int:
        """Make a free lock."""
        return self.machine.new_lock(self.machine.classes[lock_class]).number

    def drop_lock(self, lock: int) -> None:
        """Take back a free lock for reuse."""
        self.machine.drop_lock(self.machine.locks[lock])

    def new_completion(self) -> int:
        """Make a completion."""
        return self.machine.new_completion().number

    def new_pool(self) -> int:
        """Make a pool of workers."""
        completion = self.machine.new_completion()
        completion.pool = Pool(completion)
        return completion.number

    def new_work(self, pool: int, most: int, is_one: bool) -> int:
        """Make a completion whose completing is a piece of work for a pool."""
        completion = self.machine.new_completion()
        completion.work = Work(self._pool(pool), most, is_one, completion)
        return completion.number

    def _pool(self, number: int) -> Pool:
        pool = self._completion(number).pool
        assert pool is not None
        return pool

    def work(self, task: int) -> int:
        """What a worker of a pool does."""
        work = self._task(task).work
        assert work is not None
        return work.completion.number

    def drop_completion(self, completion: int) -> None:
        """Take back a completion for reuse."""
        self.drop_lock(completion)

    def new_line(self, name: str, span: int) -> int:
        """Make neighbouring cache lines, for which results have this name."""
        self.machine.new_line(span, name)
        return len(self.machine.lines) - 1

    def new_contents(self) -> int:
        """Make what a block of at most 256 cache lines holds."""
        self.machine.contents.append(Contents())
        return len(self.machine.contents) - 1

    def touch_contents(self, task: int, contents: int, first: int, end: int, access: str) -> None:
        """Go through these lines of it: those that other CPUs have changed since this one was there are fetched."""
        t, lines = self._task(task), range(first, end)
        took = self.machine.contents[contents].touch(
            self.machine.topology, t.cpu.number, lines, Access(access)
        )
        t.segment.debt += took

    def new_block(self, first: int, lines: int, ago: int | None) -> int:
        """Make a block of a structure with these lines, just now, or last used so many bytes ago."""
        warmth = self.machine.warmth
        return 0 if warmth is None else warmth.blocks.new_block(range(first, first + lines), ago)

    def use_block(self, task: int, block: int, count: int) -> bool:
        """Use so many bytes of a block. Returns whether memory had it."""
        if (warmth := self.machine.warmth) is None:
            return False
        home, lines = warmth.use_block(self._task(task), block, count)
        for line in lines if home is not Home.CORE else ():
            self.machine.lines[line].drive_out(home)
        return home is Home.MEMORY

    def fetch_block(self, task: int, block: int, chain: int, lines: int) -> None:
        """Use more of a block: `chain` lines one after the other, and `lines` in any order."""
        if (warmth := self.machine.warmth) is not None:
            self._task(task).segment.debt += warmth.blocks.fetched(block, chain, lines)

    def stream_block(self, task: int, block: int, count: int) -> None:
        """Copy so many bytes of a block from end to end."""
        if (warmth := self.machine.warmth) is not None:
            self._task(task).segment.debt += warmth.blocks.streamed(block, count)

    def new_device(
        self,
        parallelism: int,
        depth: int,
        interrupt: int,
        slack: int,
        flush_alone: bool,
        disk: tuple[int, int, int, int, int, int] | None,
    ) -> int:
        """Make a device."""
        arm = None if disk is None else Disk(*disk)
        return self.machine.new_device(
            Hardware(parallelism, depth, interrupt, slack, flush_alone, arm)
        ).number

    def try_lock(self, task: int, lock: int, side: str) -> bool:
        """Acquire a lock if that needs no waiting."""
        return self.machine.locks[lock].attempt(self._task(task), Side(side))

    def submit(
        self,
        task: int,
        device: int,
        asks: tuple[str, int, int, int, int],
        span: tuple[int, int, bool] | None,
        then: tuple[str, int, int | None],
    ) -> None:
        """Submit a request to a device, which completes or releases a lock, and may release another one."""
        io, done, also = self._request(asks, span, then)
        to = self.machine.devices[device]
        to.send(to.new_request(task, self._task(task).cpu, io, done, also))

    def _request(
        self,
        asks: tuple[str, int, int, int, int],
        span: tuple[int, int, bool] | None,
        then: tuple[str, int, int | None],
    ) -> tuple[Io, Completion | Semaphore, BitLock | Completion | Semaphore | None]:
        done, also = (None if lock is None else self.machine.locks[lock] for lock in then[1:])
        assert isinstance(done, Completion | Semaphore)
        assert isinstance(also, BitLock | Completion | Semaphore | None)
        return Io(*asks, None if span is None else Span(*span)), done, also

    def submit_plugged(
        self,
        task: int,
        device: int,
        asks: tuple[str, int, int, int, int],
        span: tuple[int, int, bool] | None,
        then: tuple[str, int, int | None],
    ) -> None:
        """Add a request to a task's plug."""
        io, done, also = self._request(asks, span, then)
        to = self.machine.devices[device]
        self._task(task).plug.hold_request(to, to.new_request(task, self._task(task).cpu, io, done, also))

    def join_plugged(
        self,
        task: int,
        before: int,
        asks: tuple[str, int, int, int, int],
        span: tuple[int, int, bool] | None,
        then: tuple[str, int, int | None],
    ) -> None:
        """Make a request part of the one that is so many before the last one in a task's plug."""
        to, into = self._task(task).plug.requests[-1 - before]
        into.join(to.new_request(task, self._task(task).cpu, *self._request(asks, span, then)))

    def wake_plugged(self, task: int, other: int) -> None:
        """Add a wake-up of `other` to the plug of `task`."""
        self._task(task).plug.hold_wakeup(self._task(other))

    def queue_plugged(self, task: int, work: int) -> None:
        """Add work for a pool to the plug of `task`."""
        queued = self._completion(work).work
        assert queued is not None
        self._task(task).plug.hold_work(queued)

    def flush_plug(self, task: int) -> None:
        """Let go of what a task's plug holds."""
        self._task(task).plug.flush()

    def plug_flushed(self, task: int) -> int:
        """How often the plug of a task was flushed."""
        return self._task(task).plug.flushed

    def is_locked(self, task: int, lock: int) -> bool:
        """Whether somebody holds a lock."""
        return self.machine.locks[lock].holder is not None

    def hand_to_device(self, lock: int) -> bool:
        """Let a device hold a semaphore or bit from now on; say no if it is another lock."""
        handed = self.machine.locks[lock]
        if not isinstance(handed, BitLock | Semaphore):
            return False
        handed.hand_to_device()
        return True

    def wake(self, task: int, other: int) -> None:
        """Let `task` wake `other`."""
        self._task(other).kick(self._task(task))

    def wake_at_tick(self, task: int, other: int, ticks: int) -> int:
        """Arm, or move, the timer of `other` that wakes it, for so many jiffies. Returns when it rings."""
        kernel = self.machine.kernel
        at = rings(kernel.wheel, self.machine.now, ticks, kernel.tick)

        def ring() -> None:
            sleeper = self._task(other)
            if sleeper.timer == at:
                self.machine.note("timer", sleeper)
                if self._rcu is not None:
                    self._rcu.rings(sleeper.cpu)
                sleeper.kick(None)

        if self._task(other).timer != at:
            self._task(other).timer = at
            self.machine.clock.at(at + kernel.tick_timers, What.TIMER, other, ring, rank=1)
            self.machine.scheduler.idling.note_timer(self._task(task).cpu, at)
        return at

    def exiting(self, task: int) -> None:
        """`task` is about to end."""
        self.machine.scheduler.leave_autogroup(self._task(task))

    def start_rcu(self, thread: int, ksoftirqds: list[tuple[int, int]]) -> None:
        """From now on there is RCU: its thread, and of each CPU `ksoftirqd` with the completion that it waits for."""
        threads = [(self._task(task), self._completion(wait)) for task, wait in ksoftirqds]
        self.machine.scheduler.softirqs.rcu = Rcu(self.machine, self._task(thread), threads)

    @property
    def _rcu(self) -> Rcu | None:
        return self.machine.scheduler.softirqs.rcu

    def call_rcu(self, task: int, callbacks: int, time: int) -> None:
        """Queue callbacks, which take so much time together, on the CPU of a task."""
        if self._rcu is not None:
            self._rcu.queue(self._task(task).cpu, Batch(callbacks, time))

    def keep_stacks(self, workers: list[int], callback: int) -> None:
        """From now on each CPU keeps stacks of processes that have ended; others are for its worker, one of these.

        It is woken by a callback that takes so long.
        """
        self.machine.stacks = Stacks(self.machine, [self._task(worker) for worker in workers], callback)

    def stacks_to_free(self, task: int) -> int:
        """How many stacks the worker of a task's CPU is to free now."""
        assert self.machine.stacks is not None
        return self.machine.stacks.to_free(self._task(task).cpu)

    def grace_period(self, task: int, step: str) -> bool:
        """A step of RCU's thread."""
        return self._rcu is not None and self._rcu.grace_period(self._task(task).cpu, step)

    def next_softirq(self, task: int) -> int | None:
        """How long the next round of RCU's softirq takes, for `ksoftirqd`, if there is something to do."""
        return None if self._rcu is None else self._rcu.next_softirq(self._task(task).cpu)

    def set_nice(self, task: int, nice: int) -> None:
        """Give `task` a nice level."""
        self.machine.scheduler.set_nice(self._task(task), nice)

    def spawn(self, parent: int | None, pinned: int | None, spawn_kind: str, program: Program) -> int:
        """Start a task."""
        return self.machine.spawn(
            lambda task: self.drive(task, program),
            parent=None if parent is None else self._task(parent),
            pinned=None if pinned is None else self.machine.scheduler.cpus[pinned],
            spawn_kind=spawn_kind,
        ).number

    def at(self, task: int, site: str) -> None:
        """Name what a task is doing; it does it at a pace of its own."""
        self.machine.paces.change(self._task(task))
        self._task(task).site = site
        if site not in self.machine.sites:
            self.machine.sites.append(site)
        if (warmth := self.machine.warmth) is not None:
            warmth.enter(self._task(task))

    def exception(self, task: int, site: str) -> None:
        """An exception interrupts what a task is doing, and goes on at its pace."""
        which = self._task(task)
        which.site, which.interrupted = site, which.site
        if site not in self.machine.sites:
            self.machine.sites.append(site)

    def return_from_exception(self, task: int) -> None:
        """It is over."""
        self._task(task).site = self._task(task).interrupted

    def use_memory(self, task: int, count: int) -> None:
        """A task uses memory of its own in user mode."""
        if (warmth := self.machine.warmth) is not None:
            warmth.use_memory(self._task(task), count)

    def use_code(self, task: int, count: int) -> None:
        """A task runs code of its own in user mode."""
        if (warmth := self.machine.warmth) is not None:
            warmth.use_code(self._task(task), count)

    def io_schedule(self, task: int, begins: bool) -> None:
        """Whether a task, where it sleeps from now on, waits for I/O."""
        self._task(task).in_iowait = begins

    def wchan(self, task: int, function: str) -> None:
        """Name the function in which a task sleeps next."""
        self._task(task).function = function

    def begin(self, task: int) -> None:
        """An operation begins."""
        self.machine.begin(self._task(task))

    def end(self, task: int, name: str, counted: bool) -> None:
        """An operation ends."""
        self.machine.end(self._task(task), name, counted=counted)

    def delayed(self, task: int, name: str, since: int) -> None:
        """What began or was due at `since` begins only now."""
        self.machine.delayed(name, since)

    def moved(self, task: int, count: int) -> None:
        """File data went from or to a program."""
        self.machine.counters.bytes += count

    def give_up(self, task: int, reason: str) -> None:
        """A program cannot go on."""
        self.machine.given_up = self.machine.given_up or f"{self._task(task)}: {reason}"

    def _task(self, number: int) -> Task:
        return self.machine.tasks[number]

    # ---- steps that take simulated time -----------------------------------------------------------------------------

    def drive(self, task: Task, program: Program) -> Steps:
        """Carry out a program's steps until it ends."""
        taken = False
        while (step := program.step(taken)) is not None:
            kind, *what = step
            taken = bool((yield from self._steps[kind](self, task, *what)))

    def _lock(self, number: int) -> Lock:
        return self.machine.locks[number]

    def _run(self, task: Task, account: str, time: int) -> Steps:
        return task.run(Account(account), time)

    def _run_turns(self, task: Task, count: int, user: int, kernel: int) -> Steps:
        return task.run_turns(count, user, kernel)

    def _acquire(self, task: Task, lock: int, side: str) -> Steps:
        return self._lock(lock).acquire(task, Side(side))

    def _try_lock_spinning(self, task: Task, lock: int, side: str) -> Attempt:
        return self._lock(lock).attempt_spinning(task, Side(side))

    def _release(self, task: Task, lock: int, side: str) -> Steps:
        return self._lock(lock).release(task, Side(side))

    def _convert(self, task: Task, lock: int, side: str, mode: str) -> Steps:
        return self._lock(lock).convert(task, Side(side), Mode(mode))

    def _wait_for(self, task: Task, completion: int) -> Steps:
        return self._completion(completion).wait_for(task)

    def _wait_for_work(self, task: Task, pool: int) -> Steps:
        return self._pool(pool).wait_for_work(task)

    def _complete(self, task: Task, completion: int) -> Steps:
        return self._completion(completion).complete(task)

    def _completion(self, number: int) -> Completion:
        completion = self._lock(number)
        assert isinstance(completion, Completion)
        return completion

    def _sleep(self, task: Task, time: int) -> Steps:
        return task.sleep(time)

    def _park(self, task: Task) -> Steps:
        return task.park_program()

    def _rest(self, task: Task) -> Steps:
        return task.rest()

    def _exec(self, task: Task) -> Steps:
        return task.exec()

    def _cond_resched(self, task: Task) -> Steps:
        return task.reschedule()

    def _might_sleep(self, task: Task) -> Steps:
        return task.might_sleep()

    def _exit_to_user_mode(self, task: Task) -> Steps:
        return task.exit_to_user_mode()

    _steps: ClassVar[dict[str, Callable[..., Steps | Attempt]]] = {
        "run": _run,
        "run_turns": _run_turns,
        "lock": _acquire,
        "try_lock_spinning": _try_lock_spinning,
        "unlock": _release,
        "convert": _convert,
        "wait_for": _wait_for,
        "wait_for_work": _wait_for_work,
        "complete": _complete,
        "sleep": _sleep,
        "park": _park,
        "rest": _rest,
        "exec": _exec,
        "cond_resched": _cond_resched,
        "might_sleep": _might_sleep,
        "exit_to_user_mode": _exit_to_user_mode,
    }
