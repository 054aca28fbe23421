//! Room in the log: who starts a handle needs room for the largest transaction (`add_transaction_credits`), and where there is
//! none writes blocks of the oldest transactions to their places first (`fs/jbd2/checkpoint.c`).

use super::Journal;
use crate::devices::{End, Request};
use crate::filesystems::BLOCK;
use crate::kernel::ext4::TransactionSize;
use crate::waist::Machine;
use crate::waist::Side;
use std::cell::Cell;

/// Blocks of log by blocks of the filesystem (`ext2fs_default_journal_size` of e2fsprogs since 1.43.2).
const SIZES: [(u64, u32); 7] = [
    (32 << 10, 1 << 10),
    (256 << 10, 4 << 10),
    (512 << 10, 8 << 10),
    (4096 << 10, 16 << 10),
    (8192 << 10, 32 << 10),
    (16384 << 10, 64 << 10),
    (32768 << 10, 128 << 10),
];
const LARGEST: u32 = 256 << 10;
/// Tags of 16 bytes in a descriptor block, besides its header and its checksum.
const TAGS: u32 = 254;
/// Blocks that are never given away (`jbd2_log_space_left`).
const SPARE: u32 = 32;

/// The log's blocks.
#[derive(Debug)]
pub(super) struct Space {
    /// Of the empty log.
    pub size: u32,
    free: Cell<u32>,
    /// The most that a transaction can have (`j_max_transaction_buffers`).
    pub most: u32,
}

impl Space {
    /// The empty log of a filesystem of so many bytes.
    pub fn of(bytes: u64, largest: TransactionSize) -> Self {
        let blocks = bytes / u64::from(BLOCK);
        let size = SIZES.iter().find(|(below, _)| blocks < *below).map_or(LARGEST, |(_, log)| *log);
        let most = match largest {
            TransactionSize::Quarter => size / 4,
            TransactionSize::Third => size / 3,
        };
        Self { size, free: Cell::new(size), most }
    }

    /// Whether a handle may start.
    pub fn suffices(&self) -> bool {
        self.free.get().saturating_sub(SPARE) >= self.most
    }

    /// What a transaction of so many blocks takes, with descriptors and commit record, and takes it.
    pub fn take(&self, blocks: u32) -> u32 {
        let log = blocks + blocks.div_ceil(TAGS) + 1;
        self.free.set(self.free.get().saturating_sub(log));
        log
    }

    fn give_back(&self, log: u32) {
        self.free.set(self.free.get() + log);
    }
}

impl Journal {
    /// `__jbd2_log_wait_for_space`.
    pub(super) async fn wait_for_space<M: Machine>(&self, m: &M) {
        loop {
            m.lock(self.state_lock, Side::Write).await;
            m.unlock(self.state_lock, Side::Write).await;
            if self.space.suffices() {
                return;
            }
            m.lock(self.checkpoint_mutex, Side::Write).await;
            let waits_for = match (self.space.suffices(), self.blocks.oldest()) {
                (true, _) => None,
                (false, Some(oldest)) => {
                    self.checkpoint(m, oldest).await;
                    None
                }
                (false, None) => Some(self.running.get() - 1), // the one that is being committed
            };
            m.unlock(self.checkpoint_mutex, Side::Write).await;
            if let Some(transaction) = waits_for {
                self.sync(m, transaction).await;
            }
        }
    }

    /// `jbd2_log_do_checkpoint`, under `j_checkpoint_mutex`: writes what is on the list of the oldest transaction. A block that a
    /// later transaction has changed waits for that one's commit, without the mutex.
    async fn checkpoint<M: Machine>(&self, m: &M, oldest: u64) {
        if self.clean_tail(m).await {
            return;
        }
        let done = m.new_completion();
        let mut submitted = 0;
        while let Some(block) = self.blocks.next_of(oldest) {
            let belongs_to = self.blocks.head(block).transaction;
            if belongs_to > self.committed.get() {
                m.unlock(self.checkpoint_mutex, Side::Write).await;
                self.sync(m, belongs_to).await;
                m.lock(self.checkpoint_mutex, Side::Write).await;
                continue;
            }
            self.file(m).await;
            self.blocks.written(block);
            self.storage.submit(m, Request::write(BLOCK, None), End::Complete(done)).await;
            submitted += 1;
        }
        for _ in 0..submitted {
            m.wchan("jbd2_log_do_checkpoint");
            m.wait_for_io(done).await;
        }
        m.drop_completion(done);
        self.blocks.waited_for();
        self.clean_tail(m).await;
    }

    /// `jbd2_cleanup_journal_tail`: flushes the device, and writes the log's superblock. Returns whether that freed anything.
    async fn clean_tail<M: Machine>(&self, m: &M) -> bool {
        let freed = self.blocks.clean();
        if freed > 0 {
            self.storage.flush_then_write(m, BLOCK, Some(self.area.start)).await;
            self.space.give_back(freed);
        }
        freed > 0
    }
}
