//! An inode's attributes and its extents: `ext4_setattr` without a size, `ext4_fiemap`.

use super::journal::credits;
use super::Ext4;
use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::filesystems::{Attribute, File};
use crate::machine::{Account, Side, Time};
use crate::waist::Machine;

cost_table!(AttributeCosts {
    enter: ["call.fstat"],
    handle: ["cu_short.jbd2_handle_start", "cu_short.jbd2_handle_stop"],
    map: ["mballoc.map_blocks"],
});

/// Their costs.
pub(super) struct Attributes(AttributeCosts);

impl Attributes {
    /// From the cost tables.
    pub fn new(costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self(AttributeCosts::new(costs)?))
    }
}

impl Ext4 {
    /// `ext4_setattr`: a new owner has a handle of its own (for quotas), before that of `ext4_dirty_inode`.
    pub(super) async fn setattr<M: Machine>(&self, m: &M, file: &File, attribute: Attribute) {
        let setattr = async |time| {
            if attribute == Attribute::Owner {
                self.change_inode(m, file, self.attributes.0.handle).await;
            }
            self.change_inode(m, file, time).await;
        };
        self.sb.notify_change(m, attribute, self.i_rwsem(file), setattr).await;
    }

    async fn change_inode<M: Machine>(&self, m: &M, file: &File, time: Time) {
        let handle = self.journal.start(m, credits::INODE).await;
        m.run(Account::System, time).await;
        self.stop(m, handle, file.inode, &[]).await;
    }

    /// `ext4_fiemap`: each extent is looked up, with `i_rwsem` held shared.
    pub(super) async fn list_extents<M: Machine>(&self, m: &M, file: &File) {
        let (c, i_rwsem) = (&self.attributes.0, self.i_rwsem(file));
        m.at("fiemap");
        m.run(Account::System, c.enter).await;
        m.lock(i_rwsem, Side::Read).await;
        m.run(Account::System, c.map * self.mballoc.extents(file.inode).max(1)).await;
        m.unlock(i_rwsem, Side::Read).await;
    }
}
