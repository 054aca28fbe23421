//! A commit drops what was written to its place from the oldest checkpoint list (`__jbd2_journal_clean_checkpoint_list`, Linux 6.5).
//!
//! Only checkpoints write blocks here, and they take them off the list. So all that is on it is dirty: who stops at the first such
//! buffer has looked at one, in the time of the commit's traced step; who goes on looks at all, in vain, under `j_list_lock`.

use super::Journal;
use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::kernel::ext4::CheckpointScan;
use crate::waist::{Account, CachedId, Machine, Side, Time};

cost_table!(CleanCosts { look: ["checkpoint.look"] });

const LINE: u32 = 64;

/// How the oldest list is gone through.
pub(super) struct CheckpointList {
    costs: CleanCosts,
    scan: CheckpointScan,
    /// Its journal heads and buffer heads.
    memory: CachedId,
}

impl CheckpointList {
    /// By a kernel's rule; the error names a cost that is missing.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let (scan, memory) = (costs.rules().checkpoint_scan, m.new_block(0..0, None));
        Ok(Self { costs: CleanCosts::new(costs)?, scan, memory })
    }

    /// The journal head of each buffer says where the next one and where its buffer head is.
    fn fetch<M: Machine>(&self, m: &M, buffers: u32) {
        m.use_block(self.memory, 2 * LINE * buffers);
        m.fetch_block(self.memory, buffers, buffers);
    }
}

impl Journal {
    /// What a commit does of this while nobody can start a handle.
    pub(super) async fn clean_checkpoint_list<M: Machine>(&self, m: &M) {
        let (list, buffers) = (&self.checkpoint_list, self.blocks.on_oldest_list());
        if list.scan == CheckpointScan::Stops || buffers == 0 {
            return;
        }
        m.lock(self.list_lock, Side::Write).await;
        list.fetch(m, buffers);
        m.run(Account::System, list.costs.look * Time::from(buffers)).await;
        m.unlock(self.list_lock, Side::Write).await;
    }
}
