"""The native engine: one run in, one result out, both JSON text. `docs/seams.md` describes the documents.

It also brings what a machine written in Python needs (the built-in programs, random streams, histograms), and what a
program written in Python is given and yields. `docs/extending.md` shows both.
"""

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Protocol, final

from typing_extensions import disjoint_base

__all__ = [
    "Completion",
    "Device",
    "Draw",
    "Histogram",
    "Line",
    "Lock",
    "Machine",
    "Program",
    "ProgramError",
    "Step",
    "Stream",
    "Task",
    "Word",
    "__source__",
    "__version__",
    "measure",
    "populate",
    "run",
    "stop",
    "stops",
    "structure_report",
    "student_t",
    "trace",
    "vocabulary",
    "watch",
]

__version__: str
"""Version of the engine crate."""

__source__: str
"""Digest of the sources it was built from."""

_Worker = Callable[..., Generator[Step, Any, Any]]
_Setup = Callable[[Machine], object]

def run(
    spec: str, program: _Worker | None = None, setup: _Setup | None = None, *, check: bool = False
) -> str:
    """Run one RunSpec (JSON text) and return its RunResult (JSON text).

    With `check`, or with SIMFS_CHECK=1 in the environment, the structures of a filesystem are compared with the
    files that exist when the run is over: a law more in the result.

    The GIL is released meanwhile, so runs can be threads. The tasks of a python workload run `program(task)`
    and share what `setup(machine)` returned before; such a run holds the GIL. Raises `ValueError` for a spec that
    is wrong, `ProgramError` for a program that raises, and `RuntimeError` for a defect of the engine.
    """

def stop() -> None:
    """End all runs of this process that have begun, at their next event: they raise `KeyboardInterrupt`."""

def stops() -> int:
    """Return how often that was asked for."""

def vocabulary() -> str:
    """Return the words that specs may use, as JSON text."""

def measure(
    what: str, cpus: Sequence[int], *, amount: int = 0, seconds: float = 0.2, at: str | Path | None = None
) -> dict[str, list[float]]:
    """Run one probe on this machine; return its samples (ns) by what they are of.

    `amount` is what the probe is about: lines, nanoseconds, bytes. Raises `ValueError` for what cannot be done here.
    """

def student_t(p: float, freedom: float) -> float:
    """Return the number below which the part `p` of Student's t with so many degrees of freedom lies.

    Raises `ValueError` unless 0 < p < 1 and freedom > 0.
    """

def structure_report(request: str) -> str:
    """Return what XFS structures look like after an experiment, both as JSON text.

    A request names a filesystem and what is done to it; `tests/filesystems/xfs/test_xfs_structure.py`
    shows all of them.
    The GIL is released meanwhile. Raises `ValueError` for a request that is wrong, and `RuntimeError` for a
    defect of the engine.
    """

def trace(
    spec: str, program: _Worker | None = None, setup: _Setup | None = None, *, start: int = 0
) -> tuple[str, list[tuple[int, int | None, int, str, str]]]:
    """Run one RunSpec and return its RunResult and everything that happened, in order, from `start` (ps) on.

    An event is (time in picoseconds, task or None, CPU, what, about what). Tasks of the load are counted from 0 up, the
    kernel's threads from -1 down. Raises as `run` does, and `ValueError`
    for more than a million events.
    """

_Event = tuple[int, int | None, int, str, str]

def watch(
    spec: str, program: _Worker | None = None, setup: _Setup | None = None, *, start: int = 0
) -> tuple[str, list[_Event], list[_Event], list[tuple[str, int, int, int]]]:
    """Run one RunSpec as `trace` does; return also what was in force at `start`, and the longest waits before.

    These are (result, in force, events, longest waits). In force are the events that made the state at `start`, in
    order: for each task, CPU, wait, hold and operation the last that still counts. A longest wait is (lock, task,
    begin, end) in picoseconds: that for each lock which ended in the measured window and before `start`.
    """

class _Machine(Protocol):
    """What a machine written in Python offers to the programs on it (`docs/seams.md`, seam 3).

    Tasks, CPUs, locks, completions, lines, devices and lock classes are numbers. Times are picoseconds. A side
    or an access is 'read' or 'write'. Instances must be open to weak references.
    """

    @property
    def cpus(self) -> int:
        """Number of CPUs."""
    @property
    def now(self) -> int:
        """The clock."""
    def cpu(self, task: int, /) -> int:
        """Return the CPU a task runs on."""
    def touch(self, task: int, line: int, access: str, /) -> None:
        """Access a line at once; what it costs is owed and paid with the task's next run."""
    def touch_beside(self, task: int, lock: int, access: str, /) -> None:
        """Access what lies in the line of a lock's word, at the same price."""
    def stored(self, task: int, /) -> int:
        """When all stores that a task has made are done; a machine without store buffers says now."""
    def has_queued(self, task: int, /) -> bool:
        """Whether a task has queued for a line behind others and owes the time until it has it."""
    def new_class(self, name: str, role: str, /) -> int:
        """Make a lock class, or find it by name; `role` finds the lock's kind in the kernel profile."""
    def new_lock(self, lock_class: int, /) -> int:
        """Make a free lock."""
    def drop_lock(self, lock: int, /) -> None:
        """Take back a free lock for reuse."""
    def new_line(self, name: str, span: int, /) -> int:
        """Make `span` neighbouring cache lines that are used together, for which results have this name."""
    def new_contents(self) -> int:
        """Make what a block of at most 256 cache lines holds."""
    def touch_contents(self, task: int, contents: int, first: int, end: int, access: str, /) -> None:
        """Go through these lines of it: those that other CPUs have changed since this one was there are fetched."""
    def new_block(self, first: int, lines: int, ago: int | None, /) -> int:
        """Make a block of a structure with these lines, used just now or so many bytes ago."""
    def use_block(self, task: int, block: int, count: int, /) -> bool:
        """Use so many bytes of a block: its lines come from where they are, and are here from now on."""
    def fetch_block(self, task: int, block: int, chain: int, lines: int, /) -> None:
        """Use lines of a block at the price of where it is: `chain` one after the other, `lines` in any order."""
    def stream_block(self, task: int, block: int, count: int, /) -> None:
        """Copy so many bytes of a block from end to end, at the price of where it is."""
    def new_completion(self) -> int:
        """Make a completion; its number is one of the locks'."""
    def new_pool(self) -> int:
        """Make a pool of workers, which wait in the step `wait_for_work`."""
    def new_work(self, pool: int, most: int, is_one: bool, /) -> int:
        """Make a completion whose completing is a piece of work for a pool, of which so many are done at a time.

        Or it `is_one` piece, which is queued again and again, and done by one worker at a time.
        """
    def work(self, task: int, /) -> int:
        """What a worker of a pool does, by its completion."""
    def drop_completion(self, completion: int, /) -> None:
        """Take back a completion for reuse; nobody waits for it."""
    def try_lock(self, task: int, lock: int, side: str, /) -> bool:
        """Acquire a lock if that needs no waiting."""
    def new_device(
        self,
        parallelism: int,
        depth: int,
        interrupt: int,
        slack: int,
        flush_alone: bool,
        disk: tuple[int, int, int, int, int, int] | None,
        /,
    ) -> int:
        """Make a device (`disk`: revolution, seeks to the next track and over all; bytes of all, a turn, its cache)."""
    def submit(
        self,
        task: int,
        device: int,
        asks: tuple[str, int, int, int, int],
        span: tuple[int, int, bool] | None,
        then: tuple[str, int, int | None],
        /,
    ) -> None:
        """Submit a request; its interrupt does ('complete', completion, None) or ('release', semaphore, None).

        A third of `then` is a lock that the device was handed, which the interrupt releases besides.
        `asks`: what it is, and times alone, beside a neighbour, in the pipe, in the flash; `span`: first byte, bytes,
        whether written.
        """
    def submit_plugged(
        self,
        task: int,
        device: int,
        asks: tuple[str, int, int, int, int],
        span: tuple[int, int, bool] | None,
        then: tuple[str, int, int | None],
        /,
    ) -> None:
        """Add the same to the plug of `task`, which holds it until it is flushed, or the task sleeps."""
    def join_plugged(
        self,
        task: int,
        before: int,
        asks: tuple[str, int, int, int, int],
        span: tuple[int, int, bool] | None,
        then: tuple[str, int, int | None],
        /,
    ) -> None:
        """Make a request part of its neighbour, which is so many before the last one in the plug of `task`."""
    def wake_plugged(self, task: int, other: int, /) -> None:
        """Add a wake-up of `other`, who serves requests, to the plug of `task`."""
    def queue_plugged(self, task: int, work: int, /) -> None:
        """Add work for a pool to the plug of `task`."""
    def flush_plug(self, task: int, /) -> None:
        """Let go of what the plug of `task` holds."""
    def plug_flushed(self, task: int, /) -> int:
        """How often the plug of `task` was flushed."""
    def is_locked(self, task: int, lock: int, /) -> bool:
        """Return whether somebody holds a lock, for a task that has looked at what lies beside its word."""
    def hand_to_device(self, lock: int, /) -> bool:
        """Let a device hold a semaphore or bit that a task has taken; False if only its owner can release it."""
    def wake(self, task: int, other: int, /) -> None:
        """Let `task` wake `other`."""
    def wake_at_tick(self, task: int, other: int, ticks: int, /) -> int:
        """Arm, or move, the timer of `other` that wakes it, for so many jiffies. Returns when it rings."""
    def exiting(self, task: int, /) -> None:
        """`task` is about to end; whoever waits for that has not been woken yet."""
    def start_rcu(self, thread: int, ksoftirqds: list[tuple[int, int]], /) -> None:
        """Have RCU from now on: its thread, and of each CPU `ksoftirqd` with the completion that it waits for."""
    def call_rcu(self, task: int, callbacks: int, time: int, /) -> None:
        """Queue callbacks, which take so much time together, on the CPU of a task."""
    def grace_period(self, task: int, step: str, /) -> bool:
        """Do a step of RCU's thread: ask if a grace period is 'wanted' or 'passed', or 'begin', 'force', 'end' it."""
    def keep_stacks(self, workers: list[int], callback: int, /) -> None:
        """Keep stacks of ended processes on each CPU from now on; a callback that takes so long wakes its worker."""
    def stacks_to_free(self, task: int, /) -> int:
        """Return how many stacks the worker of a task's CPU is to free now."""
    def next_softirq(self, task: int, /) -> int | None:
        """Return how long the next round of RCU's softirq takes, for `ksoftirqd`, if there is something to do."""
    def set_nice(self, task: int, nice: int, /) -> None:
        """Give `task` a nice level."""
    def spawn(self, parent: int | None, pinned: int | None, spawn_kind: str, program: Program, /) -> int:
        """Start a task and return its number; the program must not be stepped before that.

        `spawn_kind` is 'foreground', 'helper' (of the workload too, but the run may end while it waits) or 'background'
        (a kernel thread).
        """
    def io_schedule(self, task: int, begins: bool, /) -> None:
        """Say whether the task, where it sleeps from now on, waits for I/O."""
    def wchan(self, task: int, function: str, /) -> None:
        """Name the function in which a task sleeps next."""
    def at(self, task: int, site: str, /) -> None:
        """Name what a task is doing, for lock waits by site."""
    def exception(self, task: int, site: str, /) -> None:
        """Interrupt what a task is doing, for lock waits by site."""
    def return_from_exception(self, task: int, /) -> None:
        """End the exception."""
    def use_memory(self, task: int, count: int, /) -> None:
        """Let a task use bytes of its own memory in user mode, which drive others out of the caches."""
    def use_code(self, task: int, count: int, /) -> None:
        """Let a task run bytes of its own code in user mode, which drive others out of caches and front end."""
    def begin(self, task: int, /) -> None:
        """Note that an operation of a task begins."""
    def end(self, task: int, name: str, counted: bool, /) -> None:
        """Note that a task's operation called `name` ends; `counted` ones make up the throughput."""
    def delayed(self, task: int, name: str, since: int, /) -> None:
        """Note a delay called `name`: what began or was due at `since` begins only now."""
    def moved(self, task: int, count: int, /) -> None:
        """Count bytes of file data that went from or to a program."""
    def give_up(self, task: int, reason: str, /) -> None:
        """End the run: a program cannot go on."""

def populate(
    spec: str, machine: _Machine, program: _Worker | None = None, setup: _Setup | None = None
) -> None:
    """Put the filesystem and the tasks of a RunSpec (JSON text) on a machine written in Python.

    The machine's `spawn` gets the programs; later it steps them, in the same thread. `program` and `setup` are
    those of a python workload: their steps come as those of any other program. Raises `ValueError` for a
    spec that is wrong, and what the machine's own methods raise.
    """

@final
class Program:
    """The program of one task. It can be used only in the thread that populated its machine."""

    def step(self, taken: bool = False) -> tuple[Any, ...] | None:
        """Let the program go on until it asks for something that takes simulated time; None at its end.

        Meanwhile it calls methods of the machine. Being stepped again means that what it asked for is done:
        ('run', account, time), ('lock', lock, side), ('unlock', lock, side),
        ('try_lock_spinning', lock, side), after which `taken` says whether it has the lock,
        ('convert', lock, side, mode) with mode 'spinning' or 'blocking', ('wait_for', completion),
        ('complete', completion), ('sleep', time), ('park',) or ('exec',). Accounts are 'user' and 'system'.
        What a method of the machine raises ends the program and is raised here.
        """
    def close(self) -> None:
        """End the program where it stands, and let go of what it holds."""

@final
class Stream:
    """A named random stream of a run: the same numbers on both machines. Times are picoseconds."""

    def __new__(cls, seed: int, replication: int, name: str) -> Stream: ...
    def next_u64(self) -> int:
        """Draw 64 bits."""
    def uniform(self) -> float:
        """Draw a number from 0 (included) to 1 (excluded)."""
    def chance(self, p: float) -> bool:
        """Return True with probability `p`; draws nothing if `p` is not above 0."""
    def zipf(self, count: int, theta: float) -> int:
        """Draw a number below `count`: the k-th with a probability in proportion to k to the power of `-theta`."""
    def exponential(self, mean: int) -> int:
        """Draw an exponentially distributed time."""
    def factor(self, cv: float) -> float:
        """Return a log-normal factor with mean 1 and coefficient of variation `cv`."""
    def lognormal(self, mean: int, cv: float) -> int:
        """Draw a log-normally distributed time; `cv` is its standard deviation over its mean."""

@final
class Histogram:
    """The histogram of the engine's reports: nanoseconds up to an hour, to 1 to 5 significant digits.

    Latencies of operations have 3 digits, waits for locks 2.
    """

    def __new__(cls, digits: int) -> Histogram: ...
    @staticmethod
    def decode(text: str) -> Histogram:
        """Return the histogram of a text form. Raises ValueError where it is none."""
    @staticmethod
    def pooled(texts: Sequence[str]) -> Histogram:
        """Return the histogram of the values of all. Raises ValueError where one is none, or there are none."""
    def encode(self) -> str:
        """Return the text form: HdrHistogram's V2 with DEFLATE, in base64, as other tools read it."""
    def add(self, other: Histogram) -> None:
        """Add what `other` has recorded."""
    def record(self, ns: int) -> None:
        """Record one value; more than an hour counts as an hour."""
    def reset(self) -> None:
        """Forget everything."""
    def percentile(self, percent: float) -> float:
        """Return the value (ns) below which `percent` % of the recorded ones lie; 0 if there are none."""
    def above(self, ns: int) -> int:
        """Return how many of the recorded values are larger, as exactly as the digits allow."""
    def share_of_largest(self, percent: float) -> float:
        """Return the part (0 to 1) of the sum of all values that the largest `percent` % of them make."""
    @property
    def count(self) -> int:
        """How many values were recorded."""
    @property
    def mean(self) -> float:
        """Their mean (ns)."""
    @property
    def max(self) -> float:
        """The largest of them (ns)."""

class ProgramError(ValueError):
    """An error in a program written in Python: its file, line and function, and the exception, which is its cause."""

@final
class Lock:
    """A lock of a run."""

@final
class Line:
    """A cache line of a run, or neighbouring ones that are used together."""

@final
class Word:
    """A word that programs share: a number of 64 bits on a cache line."""

@final
class Completion:
    """Something to wait for until somebody completes it."""

@final
class Device:
    """A device of a run."""

@final
class Draw:
    """A distribution of times."""

@final
class Step:
    """One thing a program does when it yields it. It can be yielded any number of times, by any task of the run."""

@disjoint_base
class Machine:
    """The machine of a run, on which programs written in Python make what they use. Making takes no time.

    It can be used only in the thread that runs it.
    """

    @property
    def cpus(self) -> int:
        """Number of CPUs."""
    @property
    def tasks(self) -> int:
        """Number of tasks of the workload."""
    @property
    def params(self) -> dict[str, float]:
        """The workload's parameters; durations are nanoseconds."""
    def new_lock(self, name: str, role: str | None = None) -> Lock:
        """Make a lock of the class `name`; the kernel says which kind its `role` (or else its name) has.

        Raises `ValueError` for a role without a kind.
        """
    def drop_lock(self, lock: Lock) -> None:
        """Give back a free lock for reuse."""
    def new_line(self, span: int = 1) -> Line:
        """Make `span` neighbouring cache lines that are used together."""
    def new_word(self, value: int = 0, *, beside: Word | None = None) -> Word:
        """Make a word with this value, on a line of its own or on that of the word `beside`."""
    def new_completion(self) -> Completion:
        """Make a completion."""
    def drop_completion(self, completion: Completion) -> None:
        """Give back a completion for reuse; nobody may wait for it."""
    def new_device(self, parallelism: int = 1, interrupt: float = 0.0) -> Device:
        """Make a device that serves `parallelism` requests at once; its interrupt takes so many ns and a wake-up."""
    def stream(self, name: str) -> Stream:
        """Return the random stream of this run called `name`, from its beginning."""

@final
class Task(Machine):
    """The task of a program: it makes the steps that the program yields.

    Times are nanoseconds, or a `Draw`: then every yield draws anew, from the task's own stream. A side or an
    access is 'read' or 'write'. Raises `ValueError` for a time that is negative and for a wrong word.
    """

    @property
    def number(self) -> int:
        """Its place among the tasks of the workload, from 0; a child has its parent's."""
    @property
    def shared(self) -> Any:  # noqa: ANN401
        """What `setup` returned."""
    @property
    def id(self) -> int:
        """Its number on the machine, for `wake`."""
    @property
    def cpu(self) -> int:
        """The CPU it runs on now."""
    @property
    def now(self) -> float:
        """The clock (ns)."""
    @staticmethod
    def exponential(mean: float) -> Draw:
        """Exponentially distributed times."""
    @staticmethod
    def lognormal(mean: float, cv: float) -> Draw:
        """Log-normally distributed times; `cv` is their standard deviation over their mean."""
    @staticmethod
    def gamma(mean: float, cv: float) -> Draw:
        """Gamma-distributed times; `cv` is their standard deviation over their mean."""
    @staticmethod
    def empirical(values: list[float], weights: list[float] | None = None) -> Draw:
        """One of these times, each as often as its weight says, or all equally often."""
    @staticmethod
    def run(time: float | Draw, account: str = "user") -> Step:
        """Use CPU time, as 'user' or as 'system'."""
    @staticmethod
    def sleep(time: float | Draw) -> Step:
        """Sleep without using a CPU."""
    @staticmethod
    def touch(line: Line | Lock, access: str = "write") -> Step:
        """Access a line, or what lies in that of a lock's word; what it costs is owed and paid with the next run."""
    @staticmethod
    def load(word: Word) -> Step:
        """Read a word; the value of the yield, as of all these steps, is what it was before."""
    @staticmethod
    def store(word: Word, value: int) -> Step:
        """Write a word."""
    @staticmethod
    def exchange(word: Word, value: int) -> Step:
        """Read and write it at once."""
    @staticmethod
    def compare_exchange(word: Word, expected: int, value: int) -> Step:
        """Write it if it is what is expected, at once."""
    @staticmethod
    def fetch_add(word: Word, value: int) -> Step:
        """Add to it at once; beyond 64 bits it wraps around."""
    @staticmethod
    def futex_wait(word: Word, expected: int) -> Step:
        """Sleep until woken, if the word is what is expected; the value of the yield is 1 if so, else 0."""
    @staticmethod
    def futex_wake(word: Word, count: int = 1) -> Step:
        """Wake so many of those who sleep on the word, the first to come first; the value is how many it woke."""
    @staticmethod
    def lock(lock: Lock, side: str = "write") -> Step:
        """Acquire a lock; wait by the lock's own rules."""
    @staticmethod
    def try_lock(lock: Lock, side: str = "write") -> Step:
        """Acquire a lock if that needs no waiting; the yield's value says whether it did."""
    @staticmethod
    def try_lock_spinning(lock: Lock, side: str = "write") -> Step:
        """Acquire a lock if that needs no sleep; the yield's value says whether it did.

        Btrfs tree locks of generations 2 and 3 spin for a holder that spins; others are those of `try_lock`.
        """
    @staticmethod
    def unlock(lock: Lock, side: str = "write") -> Step:
        """Release a lock."""
    @staticmethod
    def convert(lock: Lock, mode: str, side: str = "write") -> Step:
        """Hold a btrfs tree lock of generation 2 or 3 in another mode: 'spinning' or 'blocking'."""
    @staticmethod
    def wait_for(completion: Completion) -> Step:
        """Wait until a completion is completed."""
    @staticmethod
    def wait_for_io(completion: Completion) -> Step:
        """Do the same for the end of I/O: the CPU idles less deeply meanwhile (the rule `idle.io_waiters`)."""
    @staticmethod
    def complete(completion: Completion) -> Step:
        """Complete a completion: one waiter may go on."""
    @staticmethod
    def submit(
        device: Device,
        time: float | Draw,
        *,
        complete: Completion | None = None,
        release: Lock | None = None,
    ) -> Step:
        """Submit a request that takes `time`; its interrupt completes a completion or releases a semaphore.

        The task goes on at once. Raises `TypeError` unless one of the two is given.
        """
    @staticmethod
    def park() -> Step:
        """Sleep until woken; an earlier wake-up is not lost."""
    @staticmethod
    def wake(task: int) -> Step:
        """Wake a task that parks, and stop its timer."""
    @staticmethod
    def wake_at_tick(task: int, ticks: int = 0) -> Step:
        """Arm, or move, the timer of a task for so many jiffies (ticks), which wakes it at the end of a tick.

        It is never early: since Linux 4.8 one jiffy ends at the second tick (the rule `time.wheel`).
        """
    @staticmethod
    def set_nice(nice: int) -> Step:
        """Have a nice level from -20 (the most CPU time) to 19 from now on; tasks that it starts have it too.

        Raises `ValueError` for another number.
        """
    @staticmethod
    def use_memory(bytes: int) -> Step:
        """Use so many bytes of memory in user mode, which drive the kernel's out of the caches (`machine.caches`).

        Raises `ValueError` for more than 2^40.
        """
    @staticmethod
    def use_code(bytes: int) -> Step:
        """Run so many bytes of code in user mode: memory, whose branches drive others out of the core's front end, too.

        Raises `ValueError` for more than 2^40.
        """
    def spawn(
        self, program: _Worker, *arguments: object, pinned: int | None = None, background: bool = False
    ) -> Step:
        """Start a task that runs `program(task, *arguments)`; the yield's value is its `id`.

        A run is stuck when no task can go on that is not `background`. Raises `ValueError` for a CPU that there is not.
        """
    @staticmethod
    def at(site: str) -> Step:
        """Name what the task is doing, for lock waits by site; from here on it has another pace (`step_cv`)."""
    @staticmethod
    def begin() -> Step:
        """Begin an operation."""
    @staticmethod
    def end(name: str, counted: bool = True) -> Step:
        """End the operation called `name`; `counted` ones make up the throughput."""
    @staticmethod
    def steps(*steps: Step) -> Step:
        """Do several steps, one after the other; the yield's value is the last one's."""
    @staticmethod
    def give_up(reason: str) -> Step:
        """End the run: the program cannot go on. The run says why."""
