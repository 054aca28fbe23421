//! Tree blocks on their way to the device: leaves are checked, and blocks are written once or twice (`btree_csum_one_bio`,
//! `btrfs_map_block`).

use super::tree::key::NODE_SIZE;
use super::tree::Dirty;
use crate::cost_table;
use crate::devices::BlockDevice;
use crate::filesystems::costs::Costs;
use crate::kernel::btrfs::MetadataProfile;
use crate::waist::Machine;
use crate::waist::{LockId, Time};

cost_table!(CheckCosts { item: ["check_item"] });

/// How tree blocks are written.
#[derive(Clone, Copy)]
pub struct TreeWrites {
    check_item: Time,
    copies: u64,
}

impl TreeWrites {
    pub(super) fn new(costs: &Costs<'_>) -> Result<Self, String> {
        let rules = costs.rules();
        Ok(Self {
            check_item: if rules.checks_written { CheckCosts::new(costs)?.item } else { 0 },
            copies: if rules.metadata_profile == MetadataProfile::Dup { 2 } else { 1 },
        })
    }

    /// How long the items of leaves are checked before they are written (`btrfs_check_leaf`). Nodes, which are few, are not.
    pub(super) fn check(&self, dirty: Dirty) -> Time {
        self.check_item * dirty.items
    }

    /// Bytes that are written, in all copies.
    pub(super) fn bytes(&self, dirty: Dirty) -> u64 {
        self.copies * dirty.blocks * u64::from(NODE_SIZE)
    }

    /// Submits blocks that lie side by side, a request for each copy. Returns what their ends complete.
    pub(super) async fn submit<M: Machine>(&self, m: &M, device: &BlockDevice, dirty: Dirty) -> Vec<LockId> {
        let mut written = Vec::new();
        for _ in 0..self.copies {
            written.push(device.submit_write(m, dirty.blocks as u32 * NODE_SIZE).await);
        }
        written
    }
}
