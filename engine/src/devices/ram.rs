//! The memory of a RAM disk (`drivers/block/brd.c`). A page is there from the first write to it (`brd_insert_page`): who writes allocates
//! and clears it, and enters it into the tree of the disk's pages under a lock that is one for the whole disk (`brd_lock` with a radix
//! tree; since 6.5 that of an XArray, under which as much is done).

use crate::block::BLOCK;
use crate::spec::FirstWriteSpec;
use crate::waist::time::from_ns;
use crate::waist::{Account, LockId, Machine, Side, Time};
use std::cell::Cell;

/// Pages of a chunk of RAID 0, which lie on one member: `mdadm` makes chunks of 512 KiB.
const CHUNK: u64 = (512 << 10) / BLOCK as u64;

pub(super) struct Pages {
    /// Of each member.
    locks: Vec<LockId>,
    count: Cell<u64>,
    allocate: Time,
    insert: Time,
}

impl Pages {
    /// None is there.
    pub fn new<M: Machine>(m: &M, members: u32, times: FirstWriteSpec, speed: f64) -> Self {
        let class = m.class("brd.lock", "brd.lock");
        Self {
            locks: (0..members).map(|_| m.new_lock(class)).collect(),
            count: Cell::default(),
            allocate: from_ns(times.allocate_ns * speed),
            insert: from_ns(times.insert_ns * speed),
        }
    }

    /// The lock of the member to which the next page comes: new places are taken one behind the other.
    fn next(&self) -> LockId {
        let count = self.count.replace(self.count.get() + 1);
        self.locks[(count / CHUNK) as usize % self.locks.len()]
    }

    /// A request that takes `time` besides, with so many bytes for new pages, one page after the other (`brd_submit_bio`).
    pub async fn write_first<M: Machine>(&self, m: &M, time: Time, bytes: u32) {
        let pages = Time::from(bytes.div_ceil(BLOCK));
        let copy = time / pages;
        let mut before = time - copy * pages;
        for _ in 0..pages {
            m.run(Account::System, before + self.allocate).await;
            let lock = self.next();
            m.lock(lock, Side::Write).await;
            m.run(Account::System, self.insert).await;
            m.unlock(lock, Side::Write).await;
            before = copy;
        }
        m.run(Account::System, copy).await;
    }
}
