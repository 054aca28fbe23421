"""What each kind of lock does, on the axes of the design space: the data behind `simfs locks`.

Who may hold it together, who may pass the queue, who spins and on what, who is next, whom a release wakes, whether a
wake-up is a grant or a hint, when stealing ends, who may release, and where a task waits. The rules themselves, with
their sources, are in the files beside this one.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Policy:
    """One point of the design space, in words."""

    kernel: str
    """Where and when Linux has it."""
    conflict: str
    """What excludes what."""
    admission: str
    """Who may take it free while others queue."""
    spin: str
    """Who spins while waiting, looking at what, until when."""
    queue: str
    """Who is next."""
    wakes: str
    """Whom a release wakes."""
    grant: str
    """Whether the woken own the lock already (grant) or must compete for it (hint)."""
    handoff: str
    """When stealing from the one who is next ends."""
    release: str
    """Who may release it."""
    context: str
    """Whether waiters and holders may sleep."""


AXES = tuple(field.name for field in fields(Policy))
"""The names of the axes, in their order."""


def _spinlock(
    kernel: str, admission: str, spin: str, queue: str, grant: str, release: str = "anyone"
) -> Policy:
    handoff = "always" if grant == "grant" else "never"
    return Policy(
        kernel, "exclusive", admission, spin, queue, "none", grant, handoff, release, "preemption off"
    )


def _mutex(kernel: str, spin: str, admission: str = "everybody", handoff: str = "never") -> Policy:
    grant = "hint" if handoff == "never" else "hint, then grant"
    queue = "FIFO of sleepers" if "OSQ" not in spin else "FIFO of sleepers, OSQ of spinners"
    return Policy(
        kernel, "exclusive", admission, spin, queue, "the first", grant, handoff, "the owner", "sleeps"
    )


def _rwsem(kernel: str, admission: str, spin: str, wakes: str, writers: str, handoff: str) -> Policy:
    grant = "grant" if writers == "grant" else f"readers grant, writers {writers}"
    return Policy(
        kernel, "readers/writer", admission, spin, "FIFO", wakes, grant, handoff, "anyone", "sleeps"
    )


def _btrfs_tree_3(kernel: str, inner: str) -> Policy:
    spin = f"all, on the {inner} while the holder is spinning; nobody while it is blocking"
    return Policy(
        kernel, "readers/writer", "everybody", spin, "LIFO", "everybody, when no blocking holder is left", "hint",
        "never", "the holder", "the holder chooses",
    )  # fmt: skip


_RUN = "the first, or the readers before the next writer"
_ALL = "the first, or all readers up to 256"

POLICIES: dict[str, Policy] = {
    "tas": _spinlock("x86 before 2.6.25", "everybody", "all, on the word, for ever", "none", "hint"),
    "ticket": _spinlock("x86 2.6.25 to 4.1", "nobody", "all, on the word, for ever", "FIFO", "grant"),
    "mcs": _spinlock("inside other locks", "nobody", "all, on their nodes, for ever", "FIFO", "grant", "the holder"),
    "qspinlock": _spinlock(
        "x86 from 4.2", "who finds the whole word 0", "pending and head on the word, others on their nodes, for ever",
        "FIFO", "grant",
    ),
    "cna": _spinlock(
        "patches of 2019 to 2021", "who finds the whole word 0",
        "pending and head on the word, others on their nodes, for ever",
        "FIFO within the socket; the others after a time", "grant",
    ),
    "hqlock": _spinlock(
        "patches of 2025 and 2026", "who finds the whole word 0",
        "pending and head on the word, others on their nodes, for ever",
        "FIFO within the socket; the others after 1,000 hand-offs", "grant",
    ),
    "cohort": _spinlock(
        "user space (2012)", "nobody", "heads of sockets on the word, others on their nodes, for ever",
        "FIFO within the socket; sockets FIFO, after 64 hand-offs", "grant", "the holder",
    ),
    "hmcs": _spinlock(
        "user space (2015)", "nobody", "all, on their nodes, for ever",
        "FIFO within the socket; sockets FIFO, after 64 hand-offs", "grant", "the holder",
    ),
    "pvqspinlock": Policy(
        "x86 guests from 4.2", "exclusive", "everybody, unless the head polls",
        "head on the word, others on their nodes; for 32,768 rounds where a host preempts, then they halt", "FIFO",
        "the head, if it has halted", "hint", "once the head polls", "anyone", "preemption off",
    ),
    "rwlock-2.6": Policy(
        "x86 before 3.16", "readers/writer", "readers, always", "all, on the word, for ever", "none", "none", "hint",
        "never", "anyone", "preemption off",
    ),
    "qrwlock-3.16": Policy(
        "3.16 to 4.2", "readers/writer", "tiny windows", "the head on the word, others in the wait lock, for ever",
        "FIFO", "none", "grant", "always", "anyone", "preemption off",
    ),
    "qrwlock": Policy(
        "from 4.3", "readers/writer", "tiny windows", "the head on the word, others in the wait lock, for ever",
        "FIFO", "none", "grant", "always", "anyone", "preemption off",
    ),
    "semaphore": Policy(
        "all", "count of holders (1)", "nobody", "nobody", "FIFO", "the first", "grant", "always",
        "anyone, a device too", "sleeps",
    ),
    "counting-semaphore": Policy(
        "all", "count of holders (n)", "nobody", "nobody", "FIFO", "the first", "grant", "always", "anyone", "sleeps",
    ),
    "bit-lock": Policy(
        "all", "exclusive", "everybody", "nobody", "FIFO of sleepers", "the first, off the queue", "hint", "never",
        "anyone, a device too", "sleeps",
    ),
    "mutex-2.6.16": _mutex("2.6.16 to 2.6.29", "nobody"),
    "mutex-2.6.30": _mutex("2.6.30 to 2.6.39", "all, on the owner, until it leaves its CPU"),
    "mutex-3.0": _mutex("3.0 to 3.9", "all, on the owner, until it leaves its CPU or changes"),
    "mutex-3.10": _mutex("3.10 to 4.9", "the OSQ's head, on the owner, until it leaves its CPU or changes"),
    "mutex-4.10": _mutex(
        "from 4.10", "the OSQ's head and the first sleeper, on the owner, until it leaves its CPU",
        "everybody, unless handed over", "after the first wake-up in vain",
    ),
    "pthread-mutex": Policy(
        "glibc, futexes of 2.6 and later", "exclusive", "everybody", "nobody", "FIFO of sleepers", "the first", "hint",
        "never", "the owner", "sleeps, in user space",
    ),
    "rwsem-2.6": _rwsem("to 3.8", "nobody", "nobody", _RUN, "grant", "always"),
    "rwsem-3.10": _rwsem("3.9 to 3.15", "writers", "nobody", _RUN, "hint", "never"),
    "rwsem-3.16": _rwsem("3.16 to 4.7", "writers", "the OSQ's head, a writer, on a writer", _RUN, "hint", "never"),
    "rwsem-4.8": _rwsem(
        "4.8 to 5.2", "writers", "the OSQ's head, a writer, on one writer after the other", _RUN, "hint", "never"
    ),
    "rwsem-5.3": _rwsem(
        "5.3", "all unless handed over",
        "the OSQ's head on a writer, until a hand-off is marked; a writer on readers for 10 to 25 us",
        _ALL, "hint, then grant", "after 4 ms",
    ),
    "rwsem-5.4": _rwsem(
        "5.4 to 5.10", "all unless handed over", "the OSQ's head on a writer; a writer on readers for 10 to 25 us",
        _ALL, "hint, then grant", "after 4 ms",
    ),
    "rwsem-5.11": _rwsem(
        "5.11 to 5.15", "writers; readers once, if few", "the OSQ's head, a writer; on readers for 10 to 25 us", _ALL,
        "hint, then grant", "after 4 ms",
    ),
    "rwsem-5.16": _rwsem(
        "from 5.16", "writers; readers once, if few", "the OSQ's head, a writer; on readers for 10 to 25 us", _ALL,
        "hint, then grant", "after 4 ms",
    ),
    "percpu-rwsem": Policy(
        "from 4.3", "readers/writer", "readers while there is no writer", "nobody", "FIFO",
        "the readers before the next writer", "grant", "always", "anyone", "sleeps; writers for a grace period",
    ),
    "seqlock": Policy(
        "all", "writers; readers go beside and again", "nobody; readers everybody",
        "writers: pending and head on the word; readers while a writer is inside", "FIFO of writers", "none", "grant",
        "always", "anyone", "preemption off",
    ),
    "rcu": Policy(
        "all", "updaters; readers go beside", "everybody, unless handed over; readers everybody",
        "updaters as of a mutex", "FIFO of sleepers, OSQ of spinners", "the first", "hint, then grant",
        "after the first wake-up in vain", "the owner", "sleeps; updaters for a grace period after",
    ),
    "btrfs-tree-2": Policy(
        "btrfs 2009 to 3.0", "exclusive", "everybody", "all, on the lock, or 512 polls of the blocking bit", "FIFO",
        "exactly one", "hint", "never", "the holder", "the holder chooses",
    ),
    "btrfs-tree-3-biased": _btrfs_tree_3("btrfs 3.1 to 3.15", "biased rwlock"),
    "btrfs-tree-3": _btrfs_tree_3("btrfs 3.16 to 5.10", "qrwlock"),
}  # fmt: skip
"""The built-in locks; `mutex` and `rwsem` alone mean the newest."""

ALIASES = {"mutex": "mutex-4.10", "rwsem": "rwsem-5.16"}
"""Short names of kinds."""

UNGUARDED = tuple(
    name for name, policy in POLICIES.items() if "beside" in policy.conflict or "(n)" in policy.conflict
)
"""Kinds that let others in beside who holds them: what they stand for has to be written for that."""

SPINLOCKS = ("tas", "ticket", "mcs", "qspinlock", "cna", "hqlock")
"""Kinds that can guard the queue inside another lock."""
