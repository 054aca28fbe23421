//! In-core inodes: a slot a file, found by inode number, kept after the file is freed until the number is used again
//! (`xfs_iget` then recycles it instead of building a new one).

use super::log::buffer::Buffer;
use super::log::Item;
use crate::waist::Machine;
use crate::waist::{Access, Account, ClassId, LineId, LockId, Side, Time};
use std::cell::RefCell;

/// The locks and lines of a file that is in use.
#[derive(Clone, Copy, Debug)]
pub struct Inode {
    /// Its number.
    pub ino: u64,
    /// `i_rwsem`, XFS's IOLOCK.
    pub iolock: LockId,
    /// `i_lock`, XFS's ILOCK.
    pub ilock: LockId,
    /// `i_flags_lock`.
    pub flags_lock: LockId,
    /// The lines that a transaction writes.
    pub line: LineId,
    /// The buffer that it is written with.
    pub cluster: Buffer,
}

impl Inode {
    /// As transactions log it.
    pub fn item(&self) -> Item {
        Item::Inode { line: self.line, cluster: self.cluster, times_only: false }
    }

    /// The same where only its times change.
    pub fn times(&self) -> Item {
        Item::Inode { line: self.line, cluster: self.cluster, times_only: true }
    }

    /// Takes the ILOCK exclusively.
    pub async fn ilock<M: Machine>(&self, m: &M) {
        m.lock(self.ilock, Side::Write).await;
    }

    /// Drops the exclusive ILOCK.
    pub async fn iunlock<M: Machine>(&self, m: &M) {
        m.unlock(self.ilock, Side::Write).await;
    }

    /// Takes and drops `i_flags_lock`, as who looks at the inode's flags does (`xfs_iflags_test`).
    pub async fn test_flags<M: Machine>(&self, m: &M) {
        m.lock(self.flags_lock, Side::Write).await;
        m.unlock(self.flags_lock, Side::Write).await; // the flags are read in no time
    }

    /// Takes and drops the ILOCK shared, as lookups of the inode's forks do.
    pub async fn peek<M: Machine>(&self, m: &M) {
        m.lock(self.ilock, Side::Read).await;
        m.unlock(self.ilock, Side::Read).await;
    }
}

/// An inode number, whole and in parts.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Allocation group.
    pub agno: u32,
    /// Within the group.
    pub agino: u32,
    /// The whole.
    pub ino: u64,
}

/// What an inode in core is made of.
#[derive(Clone, Copy, Debug)]
pub struct InodeParts {
    /// The class of its IOLOCK.
    pub iolock: ClassId,
    /// The class of its ILOCK.
    pub ilock: ClassId,
    /// The class of its `i_flags_lock`.
    pub flags_lock: ClassId,
    /// Cache lines that a transaction writes.
    pub lines: u32,
    /// The buffer that it is written with.
    pub cluster: Buffer,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    inode: Option<Inode>,
    /// Unlinked and not yet freed in core (`XFS_NEED_INACTIVE`, `XFS_INACTIVATING`).
    inactivating: bool,
    /// The grace period after which nobody can still find it by its last name (`i_destroy_gp`).
    unseen: u64,
    tail: Tail,
}

/// What is behind the end of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tail {
    /// The file is not empty, so that there may be blocks.
    pub sized: bool,
    /// They were given back by a `close` (`XFS_IDIRTY_RELEASE`, `XFS_EOFBLOCKS_RELEASED`).
    pub released: bool,
}

/// All in-core inodes of a mount.
#[derive(Debug, Default)]
pub struct InodeTable {
    /// How long a grace period takes, if who recycles an inode waits for one.
    grace_period: Option<Time>,
    slots: RefCell<Vec<Slot>>,
    /// Cached in-core inodes by AG and inode number within it: slot + 1, or 0.
    cached: RefCell<Vec<Vec<u32>>>,
}

impl InodeTable {
    /// Without inodes; of who recycles one for how long a grace period takes, if he waits for one.
    pub fn new(grace_period: Option<Time>) -> Self {
        Self { grace_period, ..Self::default() }
    }

    /// The slot of an inode that is in core and in use.
    pub fn in_memory(&self, agno: u32, agino: u32) -> Option<u32> {
        let slot = self.cached.borrow().get(agno as usize)?.get(agino as usize)?.checked_sub(1)?;
        let slots = self.slots.borrow();
        let found = slots[slot as usize];
        (found.inode.is_some() && !found.inactivating).then_some(slot)
    }

    /// The in-core inode of number `ino` (`xfs_iget`), and whether it was still in core (`iget_recycle`). A number is chosen, and an inode
    /// that is in core found, in `search`: what is done by then, and besides if it is in core.
    ///
    /// The inodegc worker marks an inode free on disk before it has finished with the inode in core. Who is given that
    /// number meanwhile has to wait: it sleeps for one jiffy (`delay`) and looks again, with the AGI held.
    pub async fn iget<M: Machine>(
        &self,
        m: &M,
        made_of: InodeParts,
        number: Number,
        (choose, find): (Time, Time),
    ) -> (u32, bool) {
        let (slot, recycled) = self.find_or_make(number);
        m.run(Account::System, choose + if recycled { find } else { 0 }).await;
        while self.slots.borrow()[slot as usize].inactivating {
            m.wake_at_tick(m.task(), 1);
            m.wchan("xfs_iget");
            m.park().await;
        }
        if recycled {
            self.wait_for_grace_period(m, slot).await;
        }
        let inode = self.fit(m, made_of, number.ino, slot);
        m.touch(inode.line, Access::Write);
        (slot, recycled)
    }

    /// `cond_synchronize_rcu` in `xfs_iget_recycle`, as posted: unless one is over that began after the inode was unlinked, it waits for
    /// the next to begin and to end. Since inodes are unlinked all the time, one follows the other (`start_poll_synchronize_rcu`).
    async fn wait_for_grace_period<M: Machine>(&self, m: &M, slot: u32) {
        let Some(period) = self.grace_period else { return };
        let over = m.now() / period;
        if over < self.slots.borrow()[slot as usize].unseen {
            m.wchan("synchronize_rcu");
            m.sleep((over + 2) * period - m.now()).await;
        }
    }

    /// The inode in core of a directory that `mkfs` has made.
    pub fn of_mkfs<M: Machine>(&self, m: &M, made_of: InodeParts, number: Number) -> u32 {
        let (slot, _) = self.find_or_make(number);
        self.fit(m, made_of, number.ino, slot);
        slot
    }

    fn fit<M: Machine>(&self, m: &M, made_of: InodeParts, ino: u64, slot: u32) -> Inode {
        let InodeParts { iolock, ilock, flags_lock, lines, cluster } = made_of;
        let s = &mut self.slots.borrow_mut()[slot as usize];
        let line = s.inode.as_ref().map_or_else(|| m.new_line("xfs.inode", lines), |inode| inode.line);
        let (iolock, ilock, flags_lock) = (m.new_lock(iolock), m.new_lock(ilock), m.new_lock(flags_lock));
        let inode = Inode { ino, iolock, ilock, flags_lock, line, cluster };
        (s.inode, s.tail) = (Some(inode), Tail::default());
        inode
    }

    fn find_or_make(&self, number: Number) -> (u32, bool) {
        let mut cached = self.cached.borrow_mut();
        let (agno, agino) = (number.agno as usize, number.agino as usize);
        if cached.len() <= agno {
            cached.resize_with(agno + 1, Vec::new);
        }
        let numbers = &mut cached[agno];
        if numbers.len() <= agino {
            numbers.resize(agino + 1, 0);
        }
        if numbers[agino] > 0 {
            return (numbers[agino] - 1, true);
        }
        let slot = self.new_slot();
        numbers[agino] = slot + 1;
        (slot, false)
    }

    fn new_slot(&self) -> u32 {
        let mut slots = self.slots.borrow_mut();
        slots.push(Slot { inode: None, inactivating: false, unseen: 0, tail: Tail::default() });
        (slots.len() - 1) as u32
    }

    /// Takes the inode's lines to this CPU, for writing.
    pub fn touch<M: Machine>(&self, m: &M, slot: u32) {
        m.touch(self.inode(slot).line, Access::Write);
    }

    /// The inode in a slot.
    pub fn inode(&self, slot: u32) -> Inode {
        self.slots.borrow()[slot as usize].inode.expect("a slot is handed out with its inode")
    }

    /// The last reference to an unlinked inode is gone (`xfs_inode_mark_reclaimable` finds that it needs inactivation).
    pub fn set_need_inactive<M: Machine>(&self, m: &M, slot: u32) {
        let slot = &mut self.slots.borrow_mut()[slot as usize];
        slot.inactivating = true;
        slot.unseen = self.grace_period.map_or(0, |period| m.now() / period + 2);
    }

    /// The worker is done with the inode (`xfs_inodegc_set_reclaimable`): its locks are unused, its number can be recycled.
    pub fn set_reclaimable<M: Machine>(&self, m: &M, slot: u32) {
        let inode = self.inode(slot);
        self.slots.borrow_mut()[slot as usize].inactivating = false;
        m.drop_lock(inode.iolock);
        m.drop_lock(inode.ilock);
        m.drop_lock(inode.flags_lock);
    }

    /// Whether an unlinked inode is not yet free.
    pub fn any_inactivating(&self) -> bool {
        self.slots.borrow().iter().any(|slot| slot.inactivating)
    }

    /// What is behind the end of a file.
    pub fn tail(&self, slot: u32) -> Tail {
        self.slots.borrow()[slot as usize].tail
    }

    /// The file is not empty.
    pub fn set_sized(&self, slot: u32) {
        self.slots.borrow_mut()[slot as usize].tail.sized = true;
    }

    /// The file is empty.
    pub fn set_empty(&self, slot: u32) {
        self.slots.borrow_mut()[slot as usize].tail = Tail::default();
    }

    /// Blocks behind its end were given back.
    pub fn set_released(&self, slot: u32) {
        self.slots.borrow_mut()[slot as usize].tail.released = true;
    }
}
