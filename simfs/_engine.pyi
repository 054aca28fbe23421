"""The native engine: one run in, one result out, both JSON text. `docs/seams.md` describes the documents.

It also brings what a machine written in Python needs: the built-in programs, random streams, histograms.
"""

from typing import Any, Protocol, final

__all__ = [
    "Histogram",
    "Program",
    "Stream",
    "__source__",
    "__version__",
    "populate",
    "run",
    "structure_report",
    "trace",
]

__version__: str
"""Version of the engine crate."""

__source__: str
"""Digest of the sources it was built from."""

def run(spec: str) -> str:
    """Run one RunSpec (JSON text) and return its RunResult (JSON text).

    The GIL is released meanwhile, so runs can be threads. Raises `ValueError` for a spec that is wrong, and
    `RuntimeError` for a defect of the engine.
    """

def structure_report(request: str) -> str:
    """Return what XFS structures look like after an experiment, both as JSON text.

    A request names a filesystem and what is done to it; `tests/test_xfs_structure.py` shows all of them.
    The GIL is released meanwhile. Raises `ValueError` for a request that is wrong, and `RuntimeError` for a
    defect of the engine.
    """

def trace(spec: str) -> tuple[str, list[tuple[int, int | None, int, str, str]]]:
    """Run one RunSpec and return its RunResult and everything that happened, in order.

    An event is (time in picoseconds, task or None, CPU, what, about what). Raises as `run` does.
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
    def new_class(self, name: str, role: str, /) -> int:
        """Make a lock class, or find it by name; `role` finds the lock's kind in the kernel profile."""
    def new_lock(self, lock_class: int, /) -> int:
        """Make a free lock."""
    def drop_lock(self, lock: int, /) -> None:
        """Take back a free lock for reuse."""
    def new_line(self, span: int, /) -> int:
        """Make `span` neighbouring cache lines that are used together."""
    def new_completion(self) -> int:
        """Make a completion; its number is one of the locks'."""
    def drop_completion(self, completion: int, /) -> None:
        """Take back a completion for reuse; nobody waits for it."""
    def try_lock(self, task: int, lock: int, side: str, /) -> bool:
        """Acquire a lock if that needs no waiting."""
    def new_device(self, parallelism: int, /) -> int:
        """Make a device that serves `parallelism` requests at once."""
    def submit(self, task: int, device: int, service: int, then: tuple[str, int], /) -> None:
        """Submit a request; its interrupt does ('complete', completion) or ('release', semaphore)."""
    def wake(self, task: int, other: int, /) -> None:
        """Let `task` wake `other`."""
    def wake_at_tick(self, task: int, other: int, ticks: int, /) -> None:
        """Wake `other` by a timer at the end of the scheduler tick after `ticks` more ticks."""
    def spawn(self, parent: int | None, pinned: int | None, background: bool, program: Program, /) -> int:
        """Start a task and return its number; the program must not be stepped before that."""
    def at(self, task: int, site: str, /) -> None:
        """Name what a task is doing, for lock waits by site."""
    def begin(self, task: int, /) -> None:
        """Note that an operation of a task begins."""
    def end(self, task: int, name: str, counted: bool, /) -> None:
        """Note that a task's operation called `name` ends; `counted` ones make up the throughput."""
    def give_up(self, task: int, reason: str, /) -> None:
        """End the run: a program cannot go on."""

def populate(spec: str, machine: _Machine) -> None:
    """Put the filesystem and the tasks of a RunSpec (JSON text) on a machine written in Python.

    The machine's `spawn` gets the programs; later it steps them, in the same thread. Raises `ValueError` for a
    spec that is wrong, and what the machine's own methods raise.
    """

@final
class Program:
    """The program of one task. It can be used only in the thread that populated its machine."""

    def step(self) -> tuple[Any, ...] | None:
        """Let the program go on until it asks for something that takes simulated time; None at its end.

        Meanwhile it calls methods of the machine. Being stepped again means that what it asked for is done:
        ('run', account, time), ('lock', lock, side), ('unlock', lock, side),
        ('convert', lock, side, mode) with mode 'spinning' or 'blocking', ('wait_for', completion),
        ('complete', completion), ('sleep', time) or ('park',). Accounts are 'user' and 'system'. What a method
        of the machine raises ends the program and is raised here.
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
    def exponential(self, mean: int) -> int:
        """Draw an exponentially distributed time."""
    def lognormal(self, mean: int, cv: float) -> int:
        """Draw a log-normally distributed time; `cv` is its standard deviation over its mean."""

@final
class Histogram:
    """The histogram of the engine's reports: nanoseconds up to an hour, to 1 to 5 significant digits.

    Latencies of operations have 3 digits, waits for locks 2.
    """

    def __new__(cls, digits: int) -> Histogram: ...
    def record(self, ns: int) -> None:
        """Record one value; more than an hour counts as an hour."""
    def reset(self) -> None:
        """Forget everything."""
    def percentile(self, percent: float) -> float:
        """Return the value (ns) below which `percent` % of the recorded ones lie; 0 if there are none."""
    @property
    def count(self) -> int:
        """How many values were recorded."""
    @property
    def mean(self) -> float:
        """Their mean (ns)."""
    @property
    def max(self) -> float:
        """The largest of them (ns)."""
