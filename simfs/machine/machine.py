"""The reference machine: the executable specification of what the native machine does fast.

Everything on it is an object that can be read, printed and subclassed; nothing is optimised. A task is a SimPy process
whose program goes on when the scheduler gives it a CPU.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from simfs._engine import Histogram, Stream, stops
from simfs.machine.caches.contents import Contents
from simfs.machine.caches.line import Line
from simfs.machine.caches.warmth import Warmth
from simfs.machine.chains import ADD_UP, Chains
from simfs.machine.clock import Clock
from simfs.machine.cpus.cpu import Cpu
from simfs.machine.cpus.pace import Paces
from simfs.machine.cpus.topology import Topology
from simfs.machine.device import Device, Hardware, Numbers
from simfs.machine.kernel import Costs, Kernel
from simfs.machine.labels import Labels
from simfs.machine.lock import Lock, LockClass, Place
from simfs.machine.lock_code import LockCode
from simfs.machine.locks.completion import Completion
from simfs.machine.locks.kinds import KINDS, kind_named
from simfs.machine.rcu import CALLBACKS
from simfs.machine.recorder import Trace
from simfs.machine.sched.entity import weight_of
from simfs.machine.sched.run_queue import Level
from simfs.machine.sched.scheduler import Scheduler
from simfs.machine.stacks import Stacks
from simfs.machine.stall import NO_SPACE, Stall, nobody_can_go_on, waits_in_a_circle
from simfs.machine.statistics import ClassStatistics, Counters, TaskKind, WakeStatistics
from simfs.machine.task import Steps, Task
from simfs.machine.task_state import StateTimes, Status
from simfs.machine.time import Time, from_ns, to_ns

STANDSTILL = 5_000_000
"""Happenings at one instant after which time is said to stand still."""


SETUP: Time = 1_000 * 10**12
"""Time after which a set-up is said never to end."""


class Machine:
    """A machine at time 0 with all CPUs idle, as a RunSpec describes it (`docs/seams.md`)."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec = spec
        self.clock = Clock(_seed_of_ties(spec))
        self.topology = Topology(spec["machine"])
        self.costs = Costs.of(spec["machine"])
        self.kernel = Kernel.of(spec["kernel"], spec["machine"]["costs"].get("instruction", 0.0))
        self.lock_code = LockCode.of(spec)
        self.scheduler = Scheduler(self)
        self.random = self.stream("machine")
        """The machine's own draws: when and in which order CPUs look at a line that they poll."""
        self.paces = Paces(self)
        self.warmth = Warmth.of(spec["machine"], self.topology)
        """The caches, where the machine says what they are."""
        self.tasks: list[Task] = []
        self._free_tasks: deque[int] = deque()
        self._labels = Labels()
        self.waiting: set[Task] = set()
        """Those who wait for a lock."""
        self.locks: list[Lock] = []
        self._free_locks: dict[LockClass, list[Lock]] = {}
        self.lines: list[Line] = []
        self.contents: list[Contents] = []
        self.devices: list[Device] = []
        self.requests = Numbers()
        self.classes: list[LockClass] = []
        self.sites = [""]
        """Places in the programs, in the order of their first use."""
        self.chains = Chains(self, on=spec.get("chains", False))
        self.counters = Counters()
        self.latencies: dict[str, Histogram] = {}
        self.delays: dict[str, Histogram] = {}
        """Delays (ns) that programs told of, by name."""
        self.request_times: dict[str, Histogram] = {}
        """What requests of devices took (ns), by what they asked for."""
        self.wakes = {kind: WakeStatistics() for kind in TaskKind}
        """What became of wake-ups, by the kind of who was woken."""
        self.stacks: Stacks | None = None
        """Those of processes that have ended, where processes end."""
        self.setting_up: Task | None = None
        """Who sets things up for the run, as long as that lasts."""
        self.origin: Time = 0
        """When the clock of the run started."""
        self.window_start: Time = 0
        self.broken_laws: list[tuple[str, str]] = []
        self.given_up: str | None = None
        self.trace: Trace | None = None

    @property
    def now(self) -> Time:
        """The clock."""
        return int(self.clock.env.now)  # asked for all the time: no detour by `Clock.now`

    def stream(self, name: str) -> Stream:
        """The random stream of this run called `name`: independent of the order in which streams are made."""
        return Stream(self.spec["seed"], self.spec.get("replication", 0), name)

    def next_look(self, nth: int = 0, of: int = 1) -> Time:
        """How long it is until who polls looks again.

        That is once a round (`cpu_relax`), and where it is in the round when somebody writes is chance. It is the `nth`
        `of` all who are told, in the order in which they look.
        """
        around = self.costs.cpu_relax
        if not around:
            return 0
        part = (self.random.next_u64() * around) >> 64
        return (nth * around + part) // of

    # ---- making things ----------------------------------------------------------------------------------------------

    def lock_class(self, name: str, role: str, kind: type[Lock] | None = None) -> LockClass:
        """Make a lock class, or find it by name; `role` finds the kind in the kernel profile.

        Raises ValueError for a role that the profile does not have, or a kind that there is not.
        """
        for known in self.classes:
            if known.name == name:
                return known
        if kind is None:
            if role not in self.kernel.locks:
                raise ValueError(f"kernel.locks has no role '{role}'")
            kind = kind_named(self.kernel.locks[role])
        holds = Histogram(2) if self.chains.on else None
        made = LockClass(name, role, kind, ClassStatistics(holds=holds))
        self.classes.append(made)
        return made

    def new_lock(self, lock_class: LockClass) -> Lock:
        """Make a free lock, or take one that was given back; sleeping locks get their inner raw spinlock."""
        if unused := self._free_locks.get(lock_class):
            return unused.pop()
        lock_class.instances += 1
        kind, inner = lock_class.kind, None
        if kind.has_wait_lock:
            name, usual = kind.inner_kind
            inner = self._inner_lock(lock_class, name, self.kernel.locks.get(kind.inner_role or "", usual))
        queues = tuple(
            self._inner_lock(lock_class, "wait_queue", "qspinlock") for _ in range(kind.wait_queues)
        )
        lock = kind(Place(self, len(self.locks), lock_class, inner, queues))
        self.locks.append(lock)
        return lock

    def _inner_lock(self, outer: LockClass, name: str, kind: str) -> Lock:
        return self.new_lock(self.lock_class(f"{outer.name}.{name}", "wait_lock", KINDS[kind]))

    def drop_lock(self, lock: Lock) -> None:
        """Take back a free lock for reuse."""
        self._free_locks.setdefault(lock.lock_class, []).append(lock)

    def new_completion(self) -> Completion:
        """Make a completion with nothing done yet."""
        completion = self.new_lock(self.lock_class("completion", "completion", Completion))
        assert isinstance(completion, Completion)
        return completion

    def new_line(self, span: int = 1, name: str = "data") -> Line:
        """Make `span` neighbouring cache lines that are used together, for which results have this name."""
        self.lines.append(Line(span, name))
        return self.lines[-1]

    def new_device(self, hardware: Hardware) -> Device:
        """Make a device."""
        self.devices.append(Device(self, len(self.devices), hardware))
        return self.devices[-1]

    def spawn(
        self,
        program: Callable[[Task], Steps],
        *,
        parent: Task | None = None,
        pinned: Cpu | None = None,
        spawn_kind: str = "foreground",
    ) -> Task:
        """Start a task. `parent` is the running task that spawns it and pays for the wake-up.

        `spawn_kind` is `foreground` for a task of the workload, `helper` for one that may wait when the run ends,
        `setup` for who sets the run up, whose clock starts when it has ended, and `background` for a kernel thread.
        """
        cpus = self.scheduler.cpus
        idlest = self.scheduler.idlest
        choose = idlest.cpu_at_start if spawn_kind == "foreground" or parent is None else idlest.cpu_for_new
        cpu = pinned or choose(parent.cpu if parent else cpus[0])
        number = self._free_tasks.popleft() if self._free_tasks else len(self.tasks)
        bound = pinned is not None
        kind = TaskKind.of(spawn_kind, pinned=bound)
        task = Task(self, number, cpu, bound, spawn_kind != "foreground", kind, StateTimes(since=self.now))
        task.label = self._labels.give(spawn_kind)
        task.mm = self.scheduler.address_spaces.of_new(spawn_kind)
        if parent is not None:
            task.level, task.entity.weight = parent.level, parent.entity.weight
            if spawn_kind == "helper" and self.stacks is not None:
                self.stacks.take(parent.cpu)
        if spawn_kind == "foreground":
            task.entity.weight = weight_of(self.spec["workload"].get("nice", 0))
            task.level = Level.ROOT if self.kernel.groups == "none" else Level.GROUP
        if number < len(self.tasks):
            self.tasks[number] = task
        else:
            self.tasks.append(task)
        if spawn_kind == "setup":
            self.setting_up = task
        self.clock.env.process(self._life(task, program))
        self.scheduler.wakeups.start(task, parent)
        return task

    def _life(self, task: Task, program: Callable[[Task], Steps]) -> Steps:
        yield from task.suspend()
        yield from program(task)
        self.scheduler.exit(task)
        if self.stacks is not None and task.kind is TaskKind.LOAD and task.background:
            self.stacks.leave(task.cpu)
        self._free_tasks.append(task.number)
        if self.setting_up is task:
            self._start_clock()
        else:
            self._labels.give_back(task.label)

    # ---- operations -------------------------------------------------------------------------------------------------

    def begin(self, task: Task) -> None:
        """Note that an operation of a task begins."""
        task.operation_began = self.now
        self.note("begin", task)

    def end(self, task: Task, name: str, *, counted: bool = True) -> None:
        """Note that a task's operation called `name` ends; counted ones make up the throughput."""
        self.note("end", task, name)
        if counted:
            self.counters.operations += 1
            task.operations += 1
        took = int(to_ns(self.now - task.operation_began))
        self.latencies.setdefault(name, Histogram(3)).record(took)

    def delayed(self, name: str, since: Time) -> None:
        """Note that what began or was due at `since` begins only now."""
        took = int(to_ns(self.now - max(since, self.window_start)))
        self.delays.setdefault(name, Histogram(3)).record(took)

    def served(self, op: str, since: Time) -> None:
        """Note that a request that was submitted at `since` is done."""
        took = int(to_ns(self.now - max(since, self.window_start)))
        self.request_times.setdefault(op, Histogram(3)).record(took)

    def runs_after_wakeup(self, task: Task) -> None:
        """Note that a task has come to run, and how long after its wake-up if that is the first time since."""
        if task.woken_at is not None:
            waited = int(to_ns(self.now - max(task.woken_at, self.window_start)))
            wakes = self.wakes[task.kind]
            (wakes.to_run_busy if task.woken_busy else wakes.to_run_idle).record(waited)
            task.woken_at = None
            self.scheduler.workers.runs(task)

    # ---- records ----------------------------------------------------------------------------------------------------

    def note(self, what: str, task: Task, about: object = "") -> None:
        """Record that something happens to a task."""
        self._record(task, task.cpu, what, about)

    def note_cpu(self, what: str, cpu: Cpu, about: object = "") -> None:
        """Record that something happens on a CPU."""
        self._record(None, cpu, what, about)

    def _record(self, task: Task | None, cpu: Cpu, what: str, about: object) -> None:
        if self.trace is not None:
            label, thread = (task.label, task.number) if task is not None else (None, None)
            event = (self.now, label, cpu.number, what, str(about))
            self.trace.record(event, thread, setting_up=self.setting_up is not None)

    def broken(self, law: str, detail: str) -> None:
        """Record that a law did not hold."""
        self.broken_laws.append((law, detail))

    # ---- running ----------------------------------------------------------------------------------------------------

    def run(self) -> tuple[list[int], Stall | None]:
        """Run through set-up, warm-up and measured window.

        Returns the operations in each part of the window, and why the run stalled.
        """
        stall = self._set_up()
        window = self.origin + from_ns(self.spec["warmup_ns"])
        duration = max(from_ns(self.spec["duration_ns"]), 1)
        batches: int = self.spec.get("batches", 20)
        stall = self._go_on(stall, window)
        self._start_window()
        operations: list[int] = []
        ends = self.spec["workload"]["kind"] == "mix" and self.spec["workload"]["params"].get("ends", 0) > 0
        for batch in range(1, batches + 1):
            if not (ends and all(task.background for task in self.living())):
                stall = self._go_on(stall, window + duration * batch // batches)
            operations.append(self.counters.operations - sum(operations))
        stall = stall or waits_in_a_circle(self)
        self._book_everything()
        self.chains.end()
        self._check_laws(window)
        return operations, stall

    def _set_up(self) -> Stall | None:
        """Run until everything is set up, and start the clock."""
        if self.setting_up is None:
            return None
        stall = self.run_until(SETUP)
        if self.setting_up is not None:
            stall = stall or Stall("stall", SETUP, ["the set-up takes more than 1,000 s"])
            self._start_clock()
        return stall

    def _start_clock(self) -> None:
        self.setting_up, self.origin = None, self.now
        if self.trace is not None:
            self.trace.origin = self.now

    def on_the_clock(self, time: Time) -> float:
        """A time by the clock of the run (ns)."""
        return to_ns(max(time - self.origin, 0))

    def _go_on(self, stall: Stall | None, end: Time) -> Stall | None:
        """Run to a moment, unless the run cannot go on: then time goes by."""
        stall = stall or self.run_until(end)
        if stall:
            self.chains.advance(end)
            self.clock.skip(end)
        return stall

    def run_until(self, end: Time) -> Stall | None:
        """Run to a moment, or till the clock starts. Returns why it could not."""
        env, before = self.clock.env, stops()
        instant, since, sets_up = -1, 0, self.setting_up is not None
        while self.clock.pending(end):
            self.chains.advance(int(env.peek()))
            env.step()
            if stops() != before:
                raise KeyboardInterrupt
            if self.given_up:
                kind = NO_SPACE if NO_SPACE in self.given_up else "stall"
                return Stall(kind, self.now, [self.given_up])
            if sets_up and self.setting_up is None:
                return None
            if self.now > instant:
                instant, since = self.now, self.clock.processed
            elif self.clock.processed - since > STANDSTILL:
                return Stall("stall", self.now, [f"{STANDSTILL} events at one instant"])
        self.chains.advance(end)
        stuck = nobody_can_go_on(self) if self._only_ticks() else None
        if not stuck and end > self.now:
            env.run(until=end)
        return stuck

    def _only_ticks(self) -> bool:
        """Whether nothing is pending but ticks that change nothing: some CPUs tick for a spinner alone."""
        waits = any(cpu.queue for cpu in self.scheduler.cpus)
        rcu = self.scheduler.softirqs.rcu
        return not waits and self.clock.only_ticks() and (rcu is None or rcu.pending == 0)

    def _book_everything(self) -> None:
        """Bring all time accounts and holds up to now."""
        for lock in self.locks:
            lock.book()
        self.scheduler.segments.book_everything()

    def _start_window(self) -> None:
        """All statistics begin anew."""
        self._book_everything()
        self.window_start = self.now
        self.chains.start_window()
        self.counters = Counters()
        self.scheduler.idle_exit.joules = 0.0
        for cpu in self.scheduler.cpus:
            cpu.reset_accounts()
        for lock_class in self.classes:
            lock_class.statistics.reset(self.now)
        self.wakes = {kind: WakeStatistics() for kind in TaskKind}
        if self.trace is not None:
            self.trace.longest.clear()
        for histogram in (*self.latencies.values(), *self.delays.values(), *self.request_times.values()):
            histogram.reset()
        for task in self.tasks:
            task.operations = 0
        for lock in self.locks:
            lock.line.start_window()
            lock.held_total = 0
        for line in self.lines:
            line.start_window()

    def _check_laws(self, window: Time) -> None:
        length = self.now - window
        for cpu in self.scheduler.cpus:
            booked = sum(cpu.accounts.values())
            if booked != length or min(cpu.accounts.values()) < 0:
                detail = f"CPU {cpu.number}: {to_ns(booked)} ns accounted of {to_ns(length)} ns"
                self.broken("time conservation", detail)
        rcu = self.scheduler.softirqs.rcu
        if rcu is not None and rcu.queued != rcu.invoked + rcu.pending:
            detail = f"{rcu.queued} queued, {rcu.invoked} invoked, {rcu.pending} pending"
            self.broken(CALLBACKS, detail)
        for lock_class in self.classes:
            integral, waits = lock_class.statistics.little(self.now, self._open_waits(lock_class, window))
            if integral != waits:
                detail = f"{lock_class.name}: integral of waiters {integral} ps, sum of waits {waits} ps"
                self.broken("Little's law", detail)
            if self.chains.on and (chains := self.chains.of_class(lock_class)) != integral:
                self.broken(ADD_UP, f"{lock_class.name}: chains {chains} ps, waits {integral} ps")

    def _open_waits(self, lock_class: LockClass, window: Time) -> Iterator[Time]:
        for task in self.waiting:
            for lock, since, _ in task.waits:
                if lock.lock_class is lock_class:
                    yield self.now - max(since, window)

    def living(self) -> Sequence[Task]:
        """All tasks whose program has not ended."""
        return [task for task in self.tasks if task.status is not Status.DEAD]


def _seed_of_ties(spec: Mapping[str, Any]) -> int | None:
    """What shuffles events of one instant, if anything does."""
    return spec["seed"] << 32 | spec.get("replication", 0) if spec.get("shuffle_ties", False) else None
