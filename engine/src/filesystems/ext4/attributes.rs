//! What changes or lists an inode: `ext4_setattr` without a size, `ext4_fiemap`, and the part of buffered writes in the journal.

use super::journal::credits;
use super::Ext4;
use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::filesystems::{Attribute, DirId, BLOCK};
use crate::kernel::Rules;
use crate::waist::Machine;
use crate::waist::{Account, Time};

cost_table!(AttributeCosts {
    handle: ["cu_short.jbd2_handle_start", "cu_short.jbd2_handle_stop"],
    empty_handle: ["cu_short.jbd2_handle_start", "journal.stop"],
    mark_dirty: ["cu_short.ext4_mark_inode_dirty_2"],
    map: ["mballoc.map_blocks"],
});

/// Their costs, and how kernels differ in them.
pub(super) struct Attributes {
    costs: AttributeCosts,
    rules: Rules,
}

impl Attributes {
    /// From the cost tables.
    pub fn new(costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self { costs: AttributeCosts::new(costs)?, rules: costs.rules() })
    }
}

impl Ext4 {
    /// `ext4_setattr`: a new owner has a handle of its own (for quotas), before that of `ext4_dirty_inode`.
    pub(super) async fn change_attribute<M: Machine>(&self, m: &M, slot: u32, attribute: Attribute, time: Time) {
        self.mark_dirty(slot);
        if attribute == Attribute::Owner {
            self.change_inode(m, slot, self.attributes.costs.handle).await;
        }
        self.change_inode(m, slot, time).await;
        if self.attributes.rules.setattr_orphan {
            self.orphans.look(m).await;
        }
    }

    /// `ext4_dirty_inode`, whose part between the handle's start and stop takes so long.
    pub(super) async fn change_inode<M: Machine>(&self, m: &M, slot: u32, time: Time) {
        let handle = self.journal.start(m, credits::INODE).await;
        self.stop_attributes(m, handle, slot, &[], time.saturating_sub(self.unjournaled.less.inode)).await;
    }

    /// The same of a directory.
    pub(super) async fn change_directory<M: Machine>(&self, m: &M, dir: DirId, time: Time) {
        let handle = self.journal.start(m, credits::INODE).await;
        m.run(Account::System, time.saturating_sub(self.unjournaled.less.inode)).await;
        self.dirtied_directory(dir);
        self.end(m, handle, &[self.inode_block(dir)]).await;
    }

    /// What a buffered write does in the journal besides new times: a handle for each page (`ext4_da_write_begin`), or one to have the
    /// inode of a file that grows written (`ext4_dirty_inode`); on kernels that have neither, nothing.
    pub(super) async fn journal_write<M: Machine>(&self, m: &M, slot: u32, bytes: u32, grows: bool) {
        let (c, rules) = (&self.attributes.costs, &self.attributes.rules);
        let dirties = grows && rules.append_dirties;
        let handles = if rules.write_handles { bytes.div_ceil(BLOCK).max(1) } else { u32::from(dirties) };
        for _ in 0..if self.journal.on { handles } else { 0 } {
            let handle = self.journal.start(m, credits::INODE).await;
            m.run(Account::System, if dirties { c.handle + c.mark_dirty } else { c.empty_handle }).await;
            match dirties {
                true => self.stop(m, handle, slot, &[]).await,
                false => _ = self.journal.stop(m, handle, &[]).await,
            }
        }
    }

    /// `ext4_fiemap`: each extent is looked up.
    pub(super) async fn list_extents<M: Machine>(&self, m: &M, slot: u32) {
        for _ in 0..self.mballoc.extents(slot).max(1) {
            self.look_up_blocks(m, slot, self.attributes.costs.map).await;
            self.set_iomap(m, false).await;
        }
    }
}
