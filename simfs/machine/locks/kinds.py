"""The kinds of locks by their names."""

from __future__ import annotations

from simfs.machine.lock import Lock
from simfs.machine.locks.bit_lock import BitLock
from simfs.machine.locks.btrfs_tree import BtrfsTree2, BtrfsTree3, BtrfsTree3Biased
from simfs.machine.locks.cohort import Cohort, Hmcs
from simfs.machine.locks.futex import PthreadMutex
from simfs.machine.locks.hqlock import Hqlock
from simfs.machine.locks.mutex import Mutex
from simfs.machine.locks.mutex_counted import Mutex30, Mutex310, Mutex2616, Mutex2630
from simfs.machine.locks.paravirt import Pvqspinlock
from simfs.machine.locks.percpu_rwsem import PercpuRwsem
from simfs.machine.locks.queued import Cna, Mcs, Qspinlock
from simfs.machine.locks.rcu import Rcu
from simfs.machine.locks.rwlock import BiasedRwlock, Qrwlock, Qrwlock316
from simfs.machine.locks.rwsem import Rwsem, Rwsem53, Rwsem54, Rwsem511
from simfs.machine.locks.rwsem_counted import Rwsem26, Rwsem48, Rwsem310, Rwsem316
from simfs.machine.locks.semaphore import CountingSemaphore, Semaphore
from simfs.machine.locks.seqlock import Seqlock
from simfs.machine.locks.spinlock import TestAndSet, Ticket
from simfs.machine.own import is_own, own_lock

KINDS: dict[str, type[Lock]] = {
    "tas": TestAndSet,
    "ticket": Ticket,
    "mcs": Mcs,
    "qspinlock": Qspinlock,
    "cna": Cna,
    "hqlock": Hqlock,
    "cohort": Cohort,
    "hmcs": Hmcs,
    "pvqspinlock": Pvqspinlock,
    "rwlock-2.6": BiasedRwlock,
    "qrwlock": Qrwlock,
    "qrwlock-3.16": Qrwlock316,
    "semaphore": Semaphore,
    "counting-semaphore": CountingSemaphore,
    "bit-lock": BitLock,
    "mutex-2.6.16": Mutex2616,
    "mutex-2.6.30": Mutex2630,
    "mutex-3.0": Mutex30,
    "mutex-3.10": Mutex310,
    "mutex-4.10": Mutex,
    "mutex": Mutex,
    "pthread-mutex": PthreadMutex,
    "rwsem-2.6": Rwsem26,
    "rwsem-3.10": Rwsem310,
    "rwsem-3.16": Rwsem316,
    "rwsem-4.8": Rwsem48,
    "rwsem-5.3": Rwsem53,
    "rwsem-5.4": Rwsem54,
    "rwsem-5.11": Rwsem511,
    "rwsem-5.16": Rwsem,
    "rwsem": Rwsem,
    "percpu-rwsem": PercpuRwsem,
    "seqlock": Seqlock,
    "rcu": Rcu,
    "btrfs-tree-2": BtrfsTree2,
    "btrfs-tree-3-biased": BtrfsTree3Biased,
    "btrfs-tree-3": BtrfsTree3,
}
"""The built-in locks by their names in kernel profiles and scenarios."""


def kind_named(name: str) -> type[Lock]:
    """The lock class of a name, or of a user's `FILE.py:CLASS`. Raises ValueError for one that there is not."""
    if is_own(name):
        return own_lock(name)
    if name not in KINDS:
        raise ValueError(f"unknown lock type '{name}'; known: {', '.join(KINDS)}")
    return KINDS[name]
