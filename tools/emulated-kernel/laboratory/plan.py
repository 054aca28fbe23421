"""The loads: which guests are started for each, and which rows are measured in each guest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

KERNELS = {
    "6.1": "linux-image-6.1.0-56-cloud-amd64=6.1.192-2",
    "6.12": "linux-image-6.12.117+deb12-cloud-amd64=6.12.117-1~deb12u1",
}
"""Kernel packages: CFS, and EEVDF. Both have HZ=250."""

COMPILE_WINDOWS = "200 400 1"
SHORT = "40 100 1"
"""Warm-up and window in milliseconds, number of windows."""


AGI_EVENTS = (
    "sched/sched_switch", "sched/sched_waking", "sched/sched_migrate_task",
    "xfs/xfs_buf_lock", "xfs/xfs_buf_lock_done", "xfs/xfs_buf_trylock", "xfs/xfs_buf_unlock",
)  # fmt: skip
"""Who holds the AGI and what the holder does (`held.py`)."""
TRACED = "-traced"
"""How the names of guests end whose rows come from the trace and not from the rate."""


@dataclass(frozen=True)
class Guest:
    """One boot of a kernel, and what is done in it; `speed` is instructions in 1000 ns.

    `quantum`: ns of a round once the load has begun; rounds of the boot take 1000 ns or more.
    `spread`: percent by which a round is shorter or longer, drawn: a load whose calls take the same instructions each
    time comes into step with equal rounds.
    `logs`: what the emulator writes: blocks of instructions, transfers of cache lines in the last window, accesses.
    `charged`: what tasks allocate is charged to a memory cgroup, and security modules keep data of files.
    """

    name: str
    rows: tuple[str, ...]
    kernel: str = "6.12"
    cpus: int = 24
    autogroup: bool = True
    slice_ns: int = 0
    features: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()
    preempt: str = "voluntary"
    speed: int = 1000
    quantum: int = 1000
    spread: int = 0
    logs: tuple[str, ...] = ("LOG",)
    charged: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    def plan(self) -> str:
        """Return what the guest's init does, as shell."""
        lines = [f"export {name}='{value}'" for name, value in self.environment.items()]
        if self.charged:
            lines.append("charged")
        if self.trace:
            lines.append(f'TRACE="{" ".join(self.trace)}"')
        lines.append(" ".join(["settings", str(int(self.autogroup)), str(self.slice_ns), *self.features]))
        return "\n".join([*lines, *self.rows, ""])


def files(filesystem: str, kind: str, tasks: int, own: bool, time: str, pin: bool = False) -> str:
    """Return a row: `xfs` has 4 allocation groups, `xfs49` has 49; `own` is a directory for each task."""
    agcount = 49 if filesystem == "xfs49" else 4
    return f"files {filesystem.removesuffix('49')} {agcount} {kind} {tasks} {int(pin)} {int(own)} {time}"


def _compile() -> Iterable[Guest]:
    both = tuple(files(fs, "compile", 24, own=False, time=COMPILE_WINDOWS) for fs in ("xfs", "ext4"))
    one = tuple(files(fs, "compile", 1, own=False, time="60 400 1") for fs in ("xfs", "ext4"))
    pinned = tuple(
        files(fs, "compile", 24, own=False, time=COMPILE_WINDOWS, pin=True) for fs in ("xfs", "ext4")
    )
    many = (files("xfs49", "compile", 24, own=True, time=COMPILE_WINDOWS),)
    base = Guest("compile-6.12", both + many + one)
    yield base
    yield replace(base, name="compile-6.12-noautogroup", autogroup=False, rows=both)
    like_611 = replace(
        base, name="compile-6.12-nodelay", features=("NO_DELAY_DEQUEUE",), slice_ns=3_000_000, rows=both
    )
    yield like_611
    yield replace(like_611, name="compile-6.12-nodelay-noautogroup", autogroup=False)
    yield replace(base, name="compile-6.12-pinned", rows=pinned)
    yield replace(
        like_611,
        name="compile-6.12-nodelay-noplacelag",
        features=("NO_DELAY_DEQUEUE", "NO_PLACE_LAG", "NO_RUN_TO_PARITY"),
    )
    for guest in (base, replace(base, name="compile-6.12-noautogroup", autogroup=False), like_611):
        yield replace(guest, name=guest.name + TRACED, rows=both[:1], trace=AGI_EVENTS)
    yield replace(base, name="compile-6.1", kernel="6.1", rows=both + one)
    yield replace(base, name="compile-6.1-noautogroup", kernel="6.1", autogroup=False, rows=both)


FILESYSTEMS = (
    ("xfs", False),
    ("xfs", True),
    ("xfs49", True),
    ("ext4", True),
    ("tmpfs", True),
    ("btrfs", True),
)
"""As the real guest was measured; own directories of 4 allocation groups besides."""


def _files(tasks: tuple[int, ...], kernel: str = "6.12", time: str = SHORT) -> Guest:
    rows = tuple(
        files(fs, kind, n, own, time)
        for n in tasks
        for kind in ("create", "create_unlink", "tmpfile")
        for fs, own in FILESYSTEMS
    )
    return Guest(f"files-{'-'.join(map(str, tasks))}-{kernel}", rows, kernel=kernel)


def _other() -> Iterable[Guest]:
    for n in (1, 4, 24):
        rows = (
            files("xfs", "rename", n, False, SHORT),
            files("ext4", "rename", n, False, SHORT),
            files("xfs", "append_fsync", n, False, SHORT),
            files("ext4", "append_fsync", n, False, SHORT),
            files("xfs", "direct_io", n, False, SHORT),
            files("ext4", "direct_io", n, False, SHORT),
        )
        yield Guest(f"other-{n}-6.12", rows)


def _metadata() -> Iterable[Guest]:
    for n in (1, 4, 24):
        rows = [
            files(fs, kind, n, own, SHORT)
            for fs in ("xfs", "ext4", "btrfs", "tmpfs")
            for kind, own in METADATA
            if kind != "append_fsync" or fs in ("xfs", "ext4")
        ]
        yield Guest(f"metadata-{n}-6.12", tuple(rows))


METADATA = (
    ("rename", True),
    ("rename", False),
    ("mkdir_rmdir", True),
    ("mkdir_rmdir", False),
    ("stat", True),
    ("append_fsync", True),
)
"""Operations on names, in directories of their own or in one."""


SYNC_DEVICES = {"20us": "null_blk 20000"}
"""A device without a write cache on which each request takes a known time."""
SYNC_KINDS = ("append_fsync", "create_fsync", "overwrite_fsync")
SYNC_TASKS = (1, 4, 24)
SYNC_EVENTS = (
    "sched/sched_switch", "sched/sched_waking", "block/block_rq_issue", "block/block_rq_complete",
    "syscalls/sys_enter_fsync", "syscalls/sys_exit_fsync", "workqueue/workqueue_execute_start",
)  # fmt: skip
"""What an fsync waits for, and who ends the wait."""


def _sync() -> Iterable[Guest]:
    for device, row in SYNC_DEVICES.items():
        for fs in ("xfs", "ext4", "btrfs"):
            rows = (files(fs, kind, n, True, SHORT) for kind in SYNC_KINDS for n in SYNC_TASKS)
            yield Guest(f"sync-{device}-{fs}", (row, *rows))
    for fs in ("xfs", "ext4", "btrfs"):
        rows = (files(fs, kind, n, True, "40 20 1") for kind in SYNC_KINDS for n in (1, 4, 24))
        yield Guest(f"sync-20us-{fs}{TRACED}", (SYNC_DEVICES["20us"], *rows), trace=SYNC_EVENTS)


FLUSH_TIME = "500 4000 1"
"""A flush takes 48 ms; while all wait for it the emulator has nothing to do."""


def _flush() -> Iterable[Guest]:
    for fs in ("xfs", "ext4", "btrfs"):
        rows = (files(fs, kind, n, True, FLUSH_TIME) for kind in SYNC_KINDS for n in SYNC_TASKS)
        yield Guest(f"flush-48ms-{fs}", ("scsi_debug 20000 submit_queues=1", *rows))


def _scheduler() -> Iterable[Guest]:
    rows = (
        "alone chain 24 1 20 0.04",
        "alone chain 24 8 20 0.06",
        "alone chain 24 16 20 0.06",
        "alone chain 48 24 20 0.06",
        "alone forks 1 4 2000 0.1",
        "alone forks 24 60 2000 0.15",
        "alone forks 24 80 2000 0.15",
        "alone forks 32 100 2000 0.15",
        "alone forks 32 110 2000 0.15",
        "alone wake 6 1 0.2",
        "alone wake 6 2 0.2",
    )
    base = Guest("scheduler-6.12", rows)
    yield base
    yield replace(base, name="scheduler-6.12-noautogroup", autogroup=False)
    yield replace(base, name="scheduler-6.12-nodelay", features=("NO_DELAY_DEQUEUE",), slice_ns=3_000_000)
    yield replace(base, name="scheduler-6.1", kernel="6.1")


OPERATIONS = (
    "stat", "stat_missing", "open", "open_rdwr", "open_creat", "read", "overwrite", "fstat", "statfs", "utimes",
    "chmod", "chown", "readdir", "lock", "append_truncate", "overwrite_fsync", "append_fsync", "rename", "move",
    "link_unlink", "mkdir_rmdir", "create_unlink", "create_write_unlink", "create_fsync_unlink", "create",
)  # fmt: skip
"""Loops of tools/file-operations that the scenario guest-operations has."""


def _operations(filesystem: str, tasks: int) -> Guest:
    """Loops by one task, or by more in directories of their own and in one."""
    rows = (
        files(filesystem, f"{directories}:{loop}", tasks, False, "20 20 1", pin=True)
        for loop in OPERATIONS
        for directories in (("own",) if tasks == 1 else ("own", "one"))
    )
    return Guest(f"operations-{tasks}-{filesystem}", tuple(rows))


STEP_EVENTS = {
    "xfs": "xfs/xfs_ilock* xfs/xfs_iunlock xfs/xfs_buf_lock* xfs/xfs_buf_trylock* xfs/xfs_buf_unlock"
    " xfs/xfs_trans_[acdfr]* xfs/xfs_read_ag[fi] xfs/xfs_iunlink* xfs/xfs_inodegc_* xfs/xfs_inode_* xfs/xfs_iget_miss"
    " xfs/xfs_iget_recycle xfs/xfs_log_reserve xfs/xfs_log_regrant xfs/xfs_log_force xfs/xfs_remove xfs/xfs_rename"
    " xfs/xfs_file_buffered_write xfs/xfs_file_fsync xfs/xfs_defer_finish",
    "ext4": "ext4/ext4_[!ef]* ext4/ext4_evict_inode ext4/ext4_ext_map_blocks_* ext4/ext4_free_inode jbd2/jbd2_handle_*",
    "btrfs": "btrfs/btrfs_*tree_*lock btrfs/btrfs_cow_block btrfs/btrfs_inode_new btrfs/btrfs_inode_evict"
    " btrfs/btrfs_ordered_extent_add btrfs/btrfs_reserve_extent btrfs/btrfs_get_extent btrfs/btrfs_sync_file",
}
"""The events of the guest whose steps models/traces has, as patterns in tracefs."""
STEP_CALLS = "openat unlink mkdir rename write pwrite64 pread64 fsync close"
STEP_ROWS = {
    "xfs": (
        "create 2000 100 name-", "create 2000 100 y", "create_unlink 0 100 y", "create_unlink 2000 100 name-",
        "create_unlink 2000 100 y", "tmpfile 0 100 y", "unlink 2000 100 name-", "mkdir 2000 100 name-",
    ),
    "ext4": ("create_unlink 0 100 y", "create_unlink 2000 100 y", "tmpfile 0 100 y", "mkdir 2000 100 y"),
    "btrfs": ("create_unlink 0 100 y", "tmpfile 0 100 y"),
    "tmpfs": (),
}  # fmt: skip
"""Operations that are traced: kind, names that are there before, how many, how those names begin: with `y`, many of
XFS's hashes of names collide, as they did on the guest."""


def _steps(filesystem: str) -> Guest:
    plain = ["create 0 100 y", "create_unlink 0 100 y", "tmpfile 0 100 y"]
    plain += ["create 2000 400 name-"] if filesystem == "xfs" else []
    rows = [f"steps {filesystem} 4 {row}" for row in plain]
    if filesystem in STEP_EVENTS:
        calls = " ".join(f"syscalls/sys_e[nx]*_{call}" for call in STEP_CALLS.split())
        rows.append(f"trace_steps {STEP_EVENTS[filesystem]} {calls}")
        rows += [f"steps {filesystem} 4 {row}" for row in STEP_ROWS[filesystem]]
    return Guest(f"steps-{filesystem}", (*rows, "symbols"), cpus=1)


GROWN = Guest("steps-btrfs-grown", ("steps btrfs 4 create 2000 400 name-", "symbols"), cpus=1)
"""Insertions into leaves that are full, for what their parts take."""
QUEUE = Guest("steps-xfs-queue", ("steps xfs 4 loop-own:append_fsync 0 20 y", "symbols"))
"""An fsync of one task on 24 CPUs, for what each CPU's part of a queue takes."""
LOOPS = ("rename", "mkdir_rmdir", "stat")
SYNCED = {"xfs": ("append_fsync", "direct_io"), "ext4": ("append_fsync", "direct_io", "direct_unwritten")}


def _loops(filesystem: str) -> Guest:
    """Loops of `files.c` by one task, untraced."""
    kinds = LOOPS + SYNCED.get(filesystem, ())
    rows = (f"steps {filesystem} 4 loop-{kind} 0 100 y" for kind in kinds)
    return Guest(f"steps-{filesystem}-loops", (*rows, "symbols"), cpus=1)


def _calls(filesystem: str) -> Guest:
    """The loops of `operations` by one task, untraced."""
    loops = [
        *(f"own:{loop}" for loop in OPERATIONS),
        "read_large",
        "overwrite_large",
        "append_large",
        "truncate_large",
    ]
    rows = (f"steps {filesystem} 4 loop-{loop} 0 50 y" for loop in loops)
    return Guest(f"steps-{filesystem}-operations", (*rows, "symbols"), cpus=1)


def _folios() -> Guest:
    """Reads and writes of a kernel whose XFS gets a folio for each page."""
    kinds = ("own:read", "own:overwrite", "own:append_fsync", "read_large", "overwrite_large", "append_large")
    rows = (f"steps xfs 4 loop-{kind} 0 50 y" for kind in kinds)
    return Guest("steps-xfs-folios", (*rows, "symbols"), cpus=1, kernel="6.1")


LISTED = (2, 64)
"""Names of directories that are listed."""


def _directories(filesystem: str) -> Guest:
    """Calls on directories of few names, untraced."""
    rows = [f"steps {filesystem} 4 loop-list {names} 20 y" for names in LISTED]
    rows.append(f"steps {filesystem} 4 loop-link_unlink 0 100 y")
    return Guest(f"steps-{filesystem}-directories", (*rows, "symbols"), cpus=1)


ROUNDS = tuple(
    files(fs, kind, n, own, "30 50 1")
    for fs, kind, own, tasks in (
        ("tmpfs", "mkdir_rmdir", False, (24, 4)),
        ("tmpfs", "rename", False, (24, 4)),
        ("xfs", "mkdir_rmdir", False, (24, 4)),
        ("tmpfs", "rename", True, (24,)),
        ("tmpfs", "mkdir_rmdir", True, (24,)),
        ("tmpfs", "create_unlink", True, (24,)),
        ("ext4", "create_unlink", True, (24,)),
        ("ext4", "create", True, (24,)),
        ("xfs", "mkdir_rmdir", True, (24, 4)),
        ("xfs", "rename", False, (24,)),
        ("ext4", "rename", False, (24,)),
    )
    for n in tasks
)
"""Rows that a shorter round changes: short locks are found held, and who waits looks at the lock once a round."""

READERS_AND_WRITERS = (
    (1, 0), (0, 1), (1, 1), (4, 4), (2, 2), (12, 12), (1, 4), (4, 1), (8, 8), (1, 12), (12, 1),
)  # fmt: skip
"""Of one file. On XFS they share a lock."""
UNLOCKED_READERS = ((1, 0), (0, 1), (4, 4), (12, 12))
"""Where reads take no lock."""


def _rwsem() -> Iterable[Guest]:
    """Readers and writers of one file; and tasks that do both. Rounds are shorter than a hold."""

    def rows(filesystem: str, groups: Iterable[tuple[int, int]]) -> Iterable[str]:
        for readers, writers in groups:
            yield files(filesystem, f"readers:{readers}", readers + writers, False, RWSEM_TIME)

    locked = Guest("rwsem-xfs", tuple(rows("xfs", READERS_AND_WRITERS)), quantum=100, spread=50)
    yield locked
    yield replace(locked, name="rwsem-xfs-6.1", kernel="6.1")
    drawn = (files("xfs", "randrw", n, False, RWSEM_TIME) for n in (1, 16, 2, 4, 8, 24))
    unlocked = (row for fs in ("ext4", "tmpfs") for row in rows(fs, UNLOCKED_READERS))
    yield Guest("rwsem-randrw", (*drawn, *unlocked), quantum=100, spread=50)


def _spinlocks() -> Iterable[Guest]:
    """Contended spinlocks and rwlocks, completions and a percpu-rwsem; every block of instructions of a few ms."""
    rows = (
        files("tmpfs", "shared_lock", 12, False, "10 2 1"),
        files("tmpfs", "process_groups", 12, False, "10 2 1"),
        files("tmpfs", "vfork", 8, False, "10 3 1"),
        files("tmpfs", "list_locks", 6, False, "30 30 1"),
        files("ext4", "append_fsync", 12, True, "10 3 1"),
    )
    blocks = {"BLOCKS": "1"}
    yield Guest("spinlocks", (*rows, "symbols"), cpus=12, quantum=50, spread=50, environment=blocks)


RWSEM_TIME = "20 200 1"
"""As long as several hand-offs."""

IDLE = ("alone idle 0 20000 250 100",)
"""Wake-ups by how many ns before the sleeper asked to sleep, with rounds that are shorter than the steps."""


def _probes(**functions: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return rows that put kprobes of these names on functions, and the events to trace."""
    rows = tuple(f"probe {name} {where}" for name, where in functions.items())
    return rows, ("sched/sched_switch", *(f"kprobes/{name}" for name in functions))


def _rcu() -> Iterable[Guest]:
    """Which callbacks are queued, how long grace periods are, and what the code of both executes."""
    rows, trace = _probes(callback="call_rcu func=%si:symbol", vfree="vfree_atomic")
    for n, time in ((1, "60 100 1"), (24, "100 60 1")):
        row = files("xfs", "compile", n, own=False, time=time)
        yield Guest(f"rcu-callbacks-{n}", (*rows, row), trace=trace)
    rows, trace = _probes(begins="rcu_gp_init", ends="rcu_gp_cleanup")
    for n in (1, 4, 24):
        kinds = (files("xfs", "rename", n, True, SHORT), files("tmpfs", "mkdir_rmdir", n, True, SHORT))
        compiles = files("xfs", "compile", n, own=False, time="100 60 1")
        yield Guest(f"rcu-periods-{n}", (*rows, *kinds, compiles), trace=trace)
    yield Guest("rcu-blocks", ("steps xfs 4 loop-compile 0 4 y", "symbols"), cpus=4)


LINES = (
    ("6.1", "tmpfs", "open_creat", False),
    ("6.12", "ext4", "shorten", True),
    ("6.12", "ext4", "move", True),
    ("6.12", "ext4", "own:fallocate_truncate", True),
    ("6.12", "tmpfs", "create_unlink", False),
    ("6.12", "ext4", "create_unlink", True),
    ("6.12", "ext4", "append", True),
    ("6.12", "ext4", "fchown", True),
    ("6.12", "xfs49", "create_unlink", True),
    ("6.12", "btrfs", "create_unlink", True),
    ("6.12", "xfs", "append", True),
    ("6.12", "ext4", "create_unlink", False),
    ("6.12", "tmpfs", "create_unlink", True),
    ("6.12", "tmpfs", "shared_open", False),
    ("6.12", "tmpfs", "shared_lock", False),
    ("6.12", "ext4", "shared_write", False),
)
"""Operations whose transfers of cache lines are counted; in directories of their own or in one."""


def _lines(kernel: str, filesystem: str, kind: str, own: bool, mkfs: str = "") -> Guest:
    """One row a guest, as memory is kept once."""
    row = files(filesystem, kind, 16, own, "10 5 1", pin=True)
    name = f"lines-{filesystem}{mkfs and '-options'}-{kind}-{'own' if own else 'one'}-{kernel}"
    environment = {"BLOCKS": "1", "MKFS_EXT4": mkfs}
    return Guest(
        name, (row, "symbols"), kernel=kernel, cpus=16, logs=("LINES", "MEMORY"), environment=environment
    )


def _touched(filesystem: str) -> Guest:
    """Every access of some calls, to count the lines that they touch."""
    synced = ("loop-append_fsync",) if filesystem in SYNCED else ()
    kinds = ("small_file", "loop-stat", "loop-rename", "loop-mkdir_rmdir", *synced)
    rows = (f"steps {filesystem} 4 {kind} 0 60 y" for kind in kinds)
    return Guest(f"touched-{filesystem}", (*rows, "symbols"), cpus=1, logs=("LOG", "ACCESSES", "MEMORY"))


def _dbench(journal: bool) -> Guest:
    """Eight clients on 8 CPUs; ext4 without a journal has a guest of its own."""
    filesystems = ("xfs", "ext4", "btrfs") if journal else ("ext4",)
    rows = tuple(f"dbench {fs} 4 8 1" for fs in filesystems)
    mkfs = {} if journal else {"MKFS_EXT4": "-O ^has_journal"}
    name = "dbench" if journal else "dbench-nojournal"
    return Guest(name, rows, cpus=8, environment={"MOUNT": "relatime"} | mkfs)


_STEPS = (
    *map(_steps, STEP_ROWS),
    *map(_loops, STEP_ROWS),
    *map(_calls, STEP_ROWS),
    *map(_directories, STEP_ROWS),
    GROWN,
    _folios(),
    QUEUE,
)

CLASSED_OPERATIONS = 24
"""Enough for the classes of instructions, whose numbers hardly differ from call to call."""


def _charged(guest: Guest) -> Guest:
    """Return a guest of `steps` as real ones are booted, with fewer operations a row."""
    rows = (
        re.sub(r"(?<= )\d+(?= \S+$)", lambda n: str(min(int(n[0]), CLASSED_OPERATIONS)), row)
        for row in guest.rows
    )
    return replace(guest, rows=tuple(rows), charged=True)


LOADS: dict[str, tuple[Guest, ...]] = {
    "compile": tuple(_compile()),
    "files": (_files((1, 4)), _files((24,)), _files((2, 8)), _files((16,))),
    "files-6.1": (_files((1, 4), "6.1"), _files((24,), "6.1")),
    "metadata": tuple(_metadata()),
    "sync": tuple(_sync()),
    "flush": tuple(_flush()),
    "operations": tuple(_operations(fs, n) for n in (1, 2) for fs in STEP_ROWS),
    "other": tuple(_other()),
    "dbench": (_dbench(journal=True), _dbench(journal=False)),
    "scheduler": tuple(_scheduler()),
    "micro": (
        Guest("micro-2-6.12", ("alone micro",), cpus=2),
        Guest("micro-24-6.12", ("alone micro",)),
    ),
    "idle": (
        Guest("idle-6.12", IDLE, cpus=2, quantum=100),
        Guest("idle-6.1", IDLE, kernel="6.1", cpus=2, quantum=100),
        Guest(
            "idle-blocks",
            ("alone idle 1000 12000 500 20", "symbols"),
            cpus=2,
            quantum=100,
            environment={"BLOCKS": "1"},
        ),
    ),
    "steps": _STEPS,
    "steps-charged": tuple(map(_charged, _STEPS)),
    "rcu": tuple(_rcu()),
    "lines": (*(_lines(*row) for row in LINES), _lines("6.12", "ext4", "shorten", True, "-O orphan_file")),
    "touched": tuple(map(_touched, STEP_ROWS)),
    "rounds": tuple(Guest(f"rounds-{ns}", ROUNDS, quantum=ns) for ns in (100, 250, 1000)),
    "rwsem": tuple(_rwsem()),
    "spinlocks": tuple(_spinlocks()),
    "smoke": (Guest("smoke", (files("xfs", "create_unlink", 2, False, "20 50 2"),), cpus=2),),
}
