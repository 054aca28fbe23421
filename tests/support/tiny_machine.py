"""The smallest machine written in Python that can carry the built-in programs."""

from __future__ import annotations

import heapq
import json
from collections import Counter, deque
from itertools import count
from typing import Any

from engine import Spec
from simfs import _engine

Step = tuple[Any, ...]


class TinyMachine:
    """As many CPUs as tasks, first-come-first-served exclusive locks, and nothing that costs time but `run`."""

    cpus = 2
    tick = 4_000_000_000

    def __init__(self, spec: Spec, *program: Any) -> None:  # noqa: ANN401
        self.now = 0
        self.programs: list[_engine.Program] = []
        self.order = count()
        self.events: list[tuple[int, int, int]] = []
        self.locks: list[deque[int]] = []
        self.done: Counter[int] = Counter()
        self.waiting: dict[int, int] = {}
        self.pool_of: dict[int, int] = {}
        self.worklists: dict[int, deque[int]] = {}
        self.idle: dict[int, list[int]] = {}
        self.works: dict[int, int] = {}
        self.parked: set[int] = set()
        self.kicked: set[int] = set()
        self.timers: set[int] = set()
        self.timer_of: dict[int, int] = {}
        self.classes: list[str] = []
        self.lines = 0
        self.operations: Counter[str] = Counter()
        self.steps: list[tuple[int, Step]] = []
        self.calls: Counter[str] = Counter()
        _engine.populate(json.dumps(spec), self, *program)

    def run(self, end: int) -> None:
        while self.events and self.events[0][0] < end:
            self.now, number, task = heapq.heappop(self.events)
            if number not in self.timers:
                self._resume(task)
            elif self.timer_of[task] == number:  # a task has one timer, which arming moves
                self.wake(None, task)

    def _resume(self, task: int) -> None:
        taken = False
        while (step := self.programs[task].step(taken)) is not None:
            self.steps.append((task, step))
            taken = step[0] == "try_lock_spinning" and self.try_lock(task, *step[1:])
            if not getattr(self, f"_{step[0]}")(task, *step[1:]):
                return

    def _later(self, task: int, time: int) -> int:
        number = next(self.order)
        heapq.heappush(self.events, (self.now + time, number, task))
        return number

    # What takes time. True: the task goes on at once.

    def _run(self, task: int, account: str, time: int) -> bool:
        assert account in ("user", "system")
        self._later(task, time)
        return False

    def _run_turns(self, task: int, count: int, user: int, kernel: int) -> bool:
        self._later(task, count * (user + kernel))
        return False

    def _sleep(self, task: int, time: int) -> bool:
        self._later(task, time)
        return False

    def _lock(self, task: int, lock: int, side: str) -> bool:
        assert side in ("read", "write")
        self.locks[lock].append(task)
        return len(self.locks[lock]) == 1

    def _try_lock_spinning(self, task: int, lock: int, side: str) -> bool:
        return True

    def _unlock(self, task: int, lock: int, side: str) -> bool:
        assert self.locks[lock].popleft() == task
        if self.locks[lock]:
            self._later(self.locks[lock][0], 0)
        return True

    def _convert(self, task: int, lock: int, side: str, mode: str) -> bool:
        assert mode in ("spinning", "blocking")
        assert self.locks[lock][0] == task
        return True

    def _wait_for(self, task: int, completion: int) -> bool:
        if self.done[completion]:
            self.done[completion] -= 1
            return True
        self.waiting[completion] = task
        return False

    def _wait_for_work(self, task: int, pool: int) -> bool:
        if self.worklists[pool]:
            self.works[task] = self.worklists[pool].popleft()
            return True
        self.idle[pool].append(task)
        return False

    def _complete(self, task: int, completion: int) -> bool:
        if completion in self.pool_of:
            self.queue_plugged(task, completion)
        elif completion in self.waiting:
            self._later(self.waiting.pop(completion), 0)
        else:
            self.done[completion] += 1
        return True

    def _park(self, task: int) -> bool:
        if task in self.kicked:
            self.kicked.remove(task)
            return True
        self.parked.add(task)
        return False

    def _rest(self, task: int) -> bool:
        return self._park(task)

    def _exec(self, task: int) -> bool:
        return True

    # What is done at once.

    def cpu(self, task: int) -> int:
        return task % self.cpus

    def touch(self, task: int, line: int, access: str) -> None:
        assert line < self.lines
        assert access in ("read", "store", "write", "atomic")
        self.calls["touch"] += 1

    def touch_beside(self, task: int, lock: int, access: str) -> None:
        assert lock < len(self.locks)
        self.calls["touch beside"] += 1

    def stored(self, task: int) -> int:
        return self.now

    def has_queued(self, task: int) -> bool:
        return False

    def new_class(self, name: str, role: str) -> int:
        self.classes.append(name)
        return len(self.classes) - 1

    def new_lock(self, lock_class: int) -> int:
        self.locks.append(deque())
        return len(self.locks) - 1

    def drop_lock(self, lock: int) -> None:
        assert not self.locks[lock]

    def new_line(self, name: str, span: int) -> int:
        self.lines += 1
        return self.lines - 1

    def new_completion(self) -> int:
        return self.new_lock(-1)

    def new_pool(self) -> int:
        pool = self.new_completion()
        self.worklists[pool], self.idle[pool] = deque(), []
        return pool

    def new_work(self, pool: int, most: int, is_one: bool) -> int:
        work = self.new_completion()
        self.pool_of[work] = pool
        return work

    def work(self, task: int) -> int:
        return self.works.get(task, 0)

    def drop_completion(self, completion: int) -> None:
        assert completion not in self.waiting

    def try_lock(self, task: int, lock: int, side: str) -> bool:
        if free := not self.locks[lock]:
            self.locks[lock].append(task)
        return free

    def new_device(
        self, parallelism: int, depth: int, interrupt: int, slack: int, flush_alone: object, disk: object
    ) -> int:
        return 0

    def submit(
        self, task: int, device: int, times: object, span: object, then: tuple[str, int, int | None]
    ) -> None:
        self.calls[f"submit, then {then[0]}"] += 1

    submit_plugged = submit
    join_plugged = submit

    def wake_plugged(self, task: int, other: int) -> None:
        self.wake(task, other)

    def queue_plugged(self, task: int, work: int) -> None:
        pool = self.pool_of[work]
        if self.idle[pool]:
            worker = self.idle[pool].pop()
            self.works[worker] = work
            self._later(worker, 0)
        else:
            self.worklists[pool].append(work)

    def flush_plug(self, task: int) -> None:
        self.calls["flush_plug"] += 1

    def plug_flushed(self, task: int) -> int:
        return self.calls["flush_plug"]

    def is_locked(self, task: int, lock: int) -> bool:
        return bool(self.locks[lock])

    def hand_to_device(self, lock: int) -> bool:
        return False

    def wake(self, task: int | None, other: int) -> None:
        if other in self.parked:
            self.parked.remove(other)
            self._later(other, 0)
        else:
            self.kicked.add(other)

    def exiting(self, task: int) -> None:
        self.calls["exiting"] += 1

    def set_nice(self, task: int, nice: int) -> None:
        self.calls["set_nice"] += 1

    def start_rcu(self, thread: int, ksoftirqds: list[tuple[int, int]]) -> None:
        self.calls["start_rcu"] += 1

    def call_rcu(self, task: int, callbacks: int, time: int) -> None:
        self.calls["call_rcu"] += callbacks

    def keep_stacks(self, workers: list[int], callback: int) -> None:
        self.calls["keep_stacks"] += 1

    def stacks_to_free(self, task: int) -> int:
        return 0

    def grace_period(self, task: int, step: str) -> bool:
        return False

    def next_softirq(self, task: int) -> int | None:
        return None

    def _might_sleep(self, task: int) -> bool:
        return True

    def _exit_to_user_mode(self, task: int) -> bool:
        return True

    def _cond_resched(self, task: int) -> bool:
        return True

    def wake_at_tick(self, task: int, other: int, ticks: int) -> int:
        self.timer_of[other] = self._later(other, ticks * self.tick)
        self.timers.add(self.timer_of[other])
        return self.now + ticks * self.tick

    def spawn(self, parent: int | None, pinned: int | None, spawn_kind: str, program: _engine.Program) -> int:
        self.programs.append(program)
        self._later(len(self.programs) - 1, 0)
        return len(self.programs) - 1

    def at(self, task: int, site: str) -> None:
        self.calls[f"at {site}"] += 1

    def exception(self, task: int, site: str) -> None:
        self.calls[f"exception {site}"] += 1

    def return_from_exception(self, task: int) -> None:
        self.calls["return_from_exception"] += 1

    def io_schedule(self, task: int, begins: bool) -> None:
        self.calls["io_schedule"] += 1

    def wchan(self, task: int, function: str) -> None:
        self.calls[f"wchan {function}"] += 1

    def use_memory(self, task: int, count: int) -> None:
        self.calls["use_memory"] += 1

    def use_code(self, task: int, count: int) -> None:
        self.calls["use_code"] += 1

    def new_contents(self) -> int:
        self.calls["new_contents"] += 1
        return self.calls["new_contents"]

    def touch_contents(self, task: int, contents: int, first: int, end: int, access: str) -> None:
        self.calls["touch_contents"] += 1

    def new_block(self, first: int, lines: int, ago: int | None) -> int:
        self.calls["new_block"] += 1
        return self.calls["new_block"]

    def use_block(self, task: int, block: int, count: int) -> bool:
        self.calls["use_block"] += 1
        return False

    def fetch_block(self, task: int, block: int, chain: int, lines: int) -> None:
        self.calls["fetch_block"] += 1

    def stream_block(self, task: int, block: int, count: int) -> None:
        self.calls["stream_block"] += 1

    def begin(self, task: int) -> None:
        self.calls["begin"] += 1

    def end(self, task: int, name: str, counted: bool) -> None:
        self.operations[name] += counted

    def delayed(self, task: int, name: str, since: int) -> None:
        assert since <= self.now
        self.calls[f"delayed {name}"] += 1

    def moved(self, task: int, count: int) -> None:
        self.calls["moved"] += count

    def give_up(self, task: int, reason: str) -> None:
        raise AssertionError(reason)


class Timeless(TinyMachine):
    """Kernel threads that wait for a timer wait for ever."""

    def wake_at_tick(self, task: int, other: int, ticks: int) -> int:
        return self.now + 1


class Counting(Timeless):
    """Counts accesses by kind, to lines and to what lies beside locks."""

    def __init__(self, made: Spec) -> None:
        self.accesses: Counter[str] = Counter()
        super().__init__(made)

    def touch(self, task: int, line: int, access: str) -> None:
        super().touch(task, line, access)
        self.accesses[f"line {access}"] += 1

    def touch_beside(self, task: int, lock: int, access: str) -> None:
        super().touch_beside(task, lock, access)
        self.accesses[f"beside {access}"] += 1
