//! Committing (`fs/jbd2/commit.c`, `jbd2_journal_commit_transaction`).

use super::blocks::Block;
use super::{wake_all, Journal};
use crate::devices::{End, Request};
use crate::filesystems::BLOCK;
use crate::waist::Machine;
use crate::waist::{Account, LockId, Side, Time};
use std::future::Future;
use std::ops::Range;

/// Blocks that are submitted to the log at once: as many as a descriptor has tags.
const BATCH: usize = 254;

/// Blocks of the transaction under commit that are being written to the log (`BH_Shadow`): whoever wants to change one waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shadow {
    transaction: u64,
    from: u32,
    to: u32,
}

impl Shadow {
    /// Whether the block that is the `order`th of a transaction is one of them.
    pub fn covers(&self, transaction: u64, order: u32) -> bool {
        transaction == self.transaction && (self.from..self.to).contains(&order)
    }
}

impl Journal {
    /// Locks the running transaction until its handles have stopped, writes it to the log, and puts its blocks on its
    /// checkpoint list.
    pub(super) async fn commit<M: Machine, F: Future<Output = ()>>(&self, m: &M, committed: &impl Fn(u64) -> F) {
        self.set_locked(m, true).await;
        while self.updates.get() > 0 {
            m.wchan("jbd2_journal_wait_updates");
            m.park().await;
        }
        self.switching.set(true);
        self.clean_checkpoint_list(m).await;
        m.run(Account::System, self.costs.lock).await;
        self.switching.set(false);
        let transaction = self.running.get();
        let list = self.blocks.take();
        let log = if list.is_empty() { 0 } else { self.space.take(list.len() as u32) };
        self.running.set(transaction + 1);
        self.credits.set(self.reserved.credits()); // jbd2_get_transaction
        self.set_locked(m, false).await;
        wake_all(m, &self.waiting).await;
        if !list.is_empty() {
            m.run(Account::System, self.costs.log).await;
            self.write_log(m, transaction, list.len()).await;
            m.run(Account::System, self.costs.record).await;
            self.set_flushing(m, transaction).await;
            self.storage.write_ordered(m, BLOCK, Some(self.area.place(BLOCK.into()))).await;
        }
        m.run(Account::System, self.costs.end).await;
        self.refile(m, transaction, list, log).await;
        committed(transaction).await;
        self.set_locked(m, self.locked.get()).await;
        wake_all(m, &self.syncers).await;
    }

    /// Changes the state of the running transaction, under `j_state_lock`.
    async fn set_locked<M: Machine>(&self, m: &M, locked: bool) {
        m.lock(self.state_lock, Side::Write).await;
        self.locked.set(locked);
        m.unlock(self.state_lock, Side::Write).await;
    }

    /// `T_COMMIT_JFLUSH`.
    async fn set_flushing<M: Machine>(&self, m: &M, transaction: u64) {
        m.lock(self.state_lock, Side::Write).await;
        self.flushing.set(transaction);
        m.unlock(self.state_lock, Side::Write).await;
    }

    /// Writes the blocks of a transaction behind their descriptors, then waits for all.
    async fn write_log<M: Machine>(&self, m: &M, transaction: u64, blocks: usize) {
        let batches = (0..blocks).step_by(BATCH).map(|from| (from, (from + BATCH).min(blocks)));
        let mut under_way: Vec<(LockId, usize)> = Vec::new();
        self.shadow.set(Shadow { transaction, from: 0, to: 0 });
        for (from, to) in batches {
            self.shadow_each(m, from as u32..to as u32).await;
            m.run(Account::System, self.costs.submit * (to - from) as Time).await;
            let done = m.new_completion();
            let bytes = (to - from + 1) as u32 * BLOCK; // neighbours in the log
            self.storage
                .submit(m, Request::write(bytes, Some(self.area.place(bytes.into()))), End::Complete(done))
                .await;
            under_way.push((done, to));
        }
        for (done, to) in under_way {
            let from = self.shadow.get().from as usize;
            m.wchan("__wait_on_buffer");
            m.wait_for_io(done).await;
            m.drop_completion(done);
            self.shadow.set(Shadow { from: to as u32, ..self.shadow.get() });
            for task in self.shadowed.take() {
                m.wake(task);
            }
            m.run(Account::System, self.costs.written * (to - from) as Time).await;
        }
    }

    /// `jbd2_journal_write_metadata_buffer`: one block after the other, so that a handle can change those whose turn has not come.
    async fn shadow_each<M: Machine>(&self, m: &M, blocks: Range<u32>) {
        for block in blocks {
            m.run(Account::System, self.costs.block).await;
            self.file(m).await; // to BJ_Shadow
            self.shadow.set(Shadow { to: block + 1, ..self.shadow.get() });
        }
    }

    /// Puts the blocks of a transaction that is on disk on its checkpoint list.
    async fn refile<M: Machine>(&self, m: &M, transaction: u64, list: Vec<Block>, log: u32) {
        self.file_each(m, list.len()).await;
        m.run(Account::System, self.costs.refile * list.len() as Time).await;
        self.committed.set(transaction);
        if !list.is_empty() {
            self.blocks.committed(transaction, list, log);
        }
    }

    async fn file_each<M: Machine>(&self, m: &M, blocks: usize) {
        for _ in 0..blocks {
            self.file(m).await;
        }
    }
}
