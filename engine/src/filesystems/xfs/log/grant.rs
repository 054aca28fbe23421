//! Space in the log (`xlog_grant_head_check`, `xlog_grant_head_wait`): a transaction reserves the most that it can need before it takes a
//! lock. If that much is not free, it queues and makes the AIL push all; when the tail has moved, as many are woken as
//! the space is enough for, in their order, and each looks again. Who comes while others wait may go before those that were woken only if
//! there is enough for all of them.
//!
//! What a transaction has put into the CIL stays granted until its checkpoint is on disk; then the AIL holds the space. The reserve and the
//! write head differ by what transactions take when they roll more often than was reserved; none here does, so they are one.
use crate::filesystems::xfs::structures::directory::geometry::DirGeometry;
use crate::fx::FxMap;
use crate::waist::Machine;
use crate::waist::{Access, LineId, LockId, Side, TaskId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Bytes in a log record for its header and its transactions' start.
const RECORD: u64 = 512 + 12;
const RECORD_SIZE: u64 = 32 << 10;
/// Bytes in the log for a whole block of the filesystem (`xfs_calc_buf_res`).
const LOGGED_BLOCK: u64 = 4096 + 128;

/// Bytes of intents with parent pointers by how many directories a transaction changes names in (`xfs_calc_pptr_link_overhead`; a rename's
/// replaces one, removes one and makes one), and `XFS_ATTRSET_LOG_COUNT`.
const INTENTS: [u64; 3] = [0, 308, 1192];
const ATTRIBUTE_ROLLS: u64 = 3;

/// What of a filesystem changes how much changes of names reserve.
#[derive(Clone, Copy, Debug, Default)]
pub struct Naming {
    /// Sizes in directories.
    pub dir: DirGeometry,
    /// Inodes have parent pointers.
    pub parent: bool,
}

/// What a kind of transaction reserves: the bytes it can log at most, and how often it can roll.
#[derive(Clone, Copy, Debug)]
pub struct Reservation {
    bytes: u64,
    count: u64,
    /// Directories that may grow or shrink by a name, and what all but their further blocks take.
    names: (u64, u64),
}

impl Reservation {
    const fn new(bytes: u64, count: u64) -> Self {
        Self { bytes, count, names: (0, 0) }
    }

    /// Of a transaction that changes names in so many directories, with whatever else it may do; what it logs with them may be less.
    const fn naming(self, directories: u64, bytes: u64) -> Self {
        Self { names: (directories, bytes), ..self }
    }

    /// The bytes where directories have blocks of this size (`XFS_DIROP_LOG_COUNT`), with what is intended to be done with parent pointers.
    fn bytes(self, names: Naming) -> u64 {
        let further = names.dir.enter_blocks() - DirGeometry::default().enter_blocks();
        let bytes = self.bytes.max(self.names.1 + self.names.0 * u64::from(further) * LOGGED_BLOCK);
        bytes + if names.parent { INTENTS[self.names.0 as usize] } else { 0 }
    }

    /// How often it can roll: with parent pointers as often as setting or removing an attribute besides.
    fn count(self, names: Naming) -> u64 {
        self.count + if names.parent && self.names.0 > 0 { ATTRIBUTE_ROLLS } else { 0 }
    }

    /// `xfs_log_calc_unit_res` for records of 32 KiB: with padding to `roundoff` of what is logged and of a commit record.
    fn unit(self, names: Naming, roundoff: u64) -> u64 {
        let bytes = self.bytes(names);
        bytes + RECORD * (bytes.div_ceil(RECORD_SIZE - RECORD) + 1) + 2 * roundoff
    }
}

// As `xfs_db -c logres` of xfsprogs 6.1 tells for a filesystem with the defaults of its mkfs.
/// Mapping delayed blocks.
pub const TR_WRITE: Reservation = Reservation::new(109_048, 4);
/// Dropping blocks.
pub const TR_ITRUNCATE: Reservation = Reservation::new(175_488, 4);
/// Renaming.
pub const TR_RENAME: Reservation = Reservation::new(308_696, 2).naming(2, 308_696);
/// Giving a file another name.
pub const TR_LINK: Reservation = Reservation::new(187_760, 2).naming(1, 187_760);
/// Unlinking.
pub const TR_REMOVE: Reservation = Reservation::new(171_376, 2).naming(1, 171_376);
/// Creating a file.
pub const TR_CREATE: Reservation = Reservation::new(214_000, 2).naming(1, 209_776);
/// Creating a directory.
pub const TR_MKDIR: Reservation = Reservation::new(214_000, 3).naming(1, 209_776);
/// Freeing an inode.
pub const TR_IFREE: Reservation = Reservation::new(189_944, 2);
/// Changing attributes of an inode.
pub const TR_ICHANGE: Reservation = Reservation::new(2_168, 1);
/// Changing its times.
pub const TR_FSYNCTS: Reservation = Reservation::new(760, 1);
/// Dropping its attribute fork.
pub const TR_ATTRINVAL: Reservation = Reservation::new(174_720, 1);

/// What a transaction has reserved.
#[derive(Debug)]
#[must_use = "it has to be given back"]
pub struct Ticket {
    unit: u64,
    count: u64,
}

impl Ticket {
    /// As much as a transaction of this kind reserves in a log whose writes are padded to `roundoff`.
    pub fn new(reservation: Reservation, names: Naming, roundoff: u64) -> Self {
        Self { unit: reservation.unit(names, roundoff), count: reservation.count(names) }
    }

    /// Bytes that it may log before it rolls.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// Bytes of all that it may log.
    pub fn bytes(&self) -> u64 {
        self.unit * self.count
    }

    /// The part for what the transaction does after it has rolled once, and the bytes that this leaves.
    pub fn roll(self) -> (Self, u64) {
        let count = self.count.saturating_sub(1).max(1);
        let rest = Self { unit: self.unit, count };
        let left = self.bytes() - rest.bytes();
        (rest, left)
    }
}

struct Waiter {
    task: TaskId,
    bytes: u64,
    /// Nobody has woken it since it looked.
    asleep: bool,
    /// Its ticket, and what `try_to_wake_up` looks at of a task that is awake (`pi_lock`, its state).
    line: LineId,
}

/// What is granted of the log, and who waits for more.
///
/// The queue has a spinlock. Only if somebody is in it does it cost others something: then who reserves and who gives back both take the
/// lock, and have it while they wake.
pub struct GrantHead {
    /// `lock` of `l_reserve_head`; the write head has one of its own, on which nobody waits here.
    lock: LockId,
    /// Both heads.
    words: LineId,
    granted: Cell<u64>,
    waiters: RefCell<VecDeque<Waiter>>,
    /// Lines of tasks that have waited.
    lines: RefCell<FxMap<TaskId, LineId>>,
}

impl GrantHead {
    /// Nothing is granted. Both heads lie in so many lines.
    pub fn new<M: Machine>(m: &M, lines: u32) -> Self {
        Self {
            lock: m.new_lock(m.class("xfs.l_reserve_head", "xfs.grant_lock")),
            words: m.new_line("xfs.grant heads", lines),
            granted: Cell::new(0),
            waiters: RefCell::default(),
            lines: RefCell::default(),
        }
    }

    /// Bytes granted.
    pub fn granted(&self) -> u64 {
        self.granted.get()
    }

    /// So many bytes are granted.
    pub fn add(&self, bytes: u64) {
        self.granted.set(self.granted.get() + bytes);
    }

    /// So many bytes are given back, or the AIL holds them.
    pub fn sub(&self, bytes: u64) {
        self.granted.set(self.granted.get() - bytes);
    }

    /// The heads move (`xlog_grant_add_space`, `xlog_grant_sub_space`).
    pub fn move_heads<M: Machine>(&self, m: &M) {
        m.touch(self.words, Access::Write);
    }

    /// `xlog_grant_head_check`: returns when `free` tells of enough; `push` has the tail moved.
    pub async fn check<M: Machine>(&self, m: &M, bytes: u64, free: impl Fn() -> u64, push: impl Fn(u64)) {
        let (others, left) = (self.is_awaited(), free());
        if !others && left >= bytes {
            return;
        }
        m.lock(self.lock, Side::Write).await;
        if !others || self.wake(m, left, &push).is_none_or(|left| left < bytes) {
            self.wait(m, bytes, free, push).await;
        }
        m.unlock(self.lock, Side::Write).await;
    }

    /// `xfs_log_space_wake`: of what is free, who waits gets his part.
    pub async fn space_wake<M: Machine>(&self, m: &M, free: impl Fn() -> u64, push: impl Fn(u64)) {
        if !self.is_awaited() {
            return;
        }
        m.lock(self.lock, Side::Write).await;
        m.touch(self.words, Access::Read); // xlog_space_left
        self.wake(m, free(), push);
        m.unlock(self.lock, Side::Write).await;
    }

    /// Whether somebody waits (`list_empty_careful`).
    fn is_awaited(&self) -> bool {
        !self.waiters.borrow().is_empty()
    }

    /// Wakes who waits, in order, as far as `free` bytes are enough (`xlog_grant_head_wake`); what is too little for the first has more
    /// pushed. Who was woken before stays in the queue until he gets the lock, and is looked at again. Returns what is left of them, if they were enough for all.
    fn wake<M: Machine>(&self, m: &M, mut free: u64, push: impl Fn(u64)) -> Option<u64> {
        for (place, waiter) in self.waiters.borrow_mut().iter_mut().enumerate() {
            if free < waiter.bytes {
                if place == 0 {
                    push(waiter.bytes);
                }
                return None;
            }
            free -= waiter.bytes;
            if std::mem::take(&mut waiter.asleep) {
                m.wake(waiter.task);
            } else {
                m.touch(waiter.line, Access::Atomic);
            }
        }
        Some(free)
    }

    /// `xlog_grant_head_wait`, called and left with the lock.
    async fn wait<M: Machine>(&self, m: &M, bytes: u64, free: impl Fn() -> u64, push: impl Fn(u64)) {
        let task = m.task();
        let line = *self.lines.borrow_mut().entry(task).or_insert_with(|| m.new_line("xfs.grant waiters", 1));
        self.waiters.borrow_mut().push_back(Waiter { task, bytes, asleep: false, line });
        loop {
            push(bytes);
            self.waiters.borrow_mut().iter_mut().filter(|w| w.task == task).for_each(|w| w.asleep = true);
            m.unlock(self.lock, Side::Write).await;
            m.wchan("xlog_grant_head_wait");
            m.park().await;
            m.lock(self.lock, Side::Write).await;
            m.touch(line, Access::Write);
            m.touch(self.words, Access::Read); // xlog_space_left
            if free() >= bytes {
                break;
            }
        }
        self.waiters.borrow_mut().retain(|waiter| waiter.task != task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_directories_have_transactions_reserve_more() {
        let sizes = [4, 8, 16, 64].map(|kib| DirGeometry::new(kib << 10).expect("a size of mkfs"));
        let bytes = |kind: Reservation| sizes.map(|dir| kind.bytes(Naming { dir, parent: false }));
        // xfs_db -c logres of xfsprogs 6.1
        assert_eq!(bytes(TR_RENAME), [308_696, 367_832, 486_104, 1_195_736]);
        assert_eq!(bytes(TR_LINK), [187_760, 217_328, 276_464, 631_280]);
        assert_eq!(bytes(TR_REMOVE), [171_376, 200_944, 260_080, 614_896]);
        assert_eq!(bytes(TR_CREATE), [214_000, 239_344, 298_480, 653_296]);
        assert_eq!(bytes(TR_WRITE), [109_048; 4]);
    }

    #[test]
    fn parent_pointers_have_transactions_on_names_reserve_more_and_more_often() {
        let names = Naming { parent: true, ..Naming::default() };
        let kinds = [TR_RENAME, TR_LINK, TR_REMOVE, TR_CREATE, TR_MKDIR, TR_IFREE];
        // tracepoint xfs_trans_resv_calc of Linux 6.18
        assert_eq!(kinds.map(|kind| kind.bytes(names)), [309_888, 188_068, 171_684, 214_308, 214_308, 189_944]);
        assert_eq!(kinds.map(|kind| kind.count(names)), [5, 5, 5, 5, 6, 2]);
    }
}
