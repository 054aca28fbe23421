//! Tree blocks on their way to the device and back: leaves are checked, and blocks are written once or twice (`btree_csum_one_bio`,
//! `btrfs_map_block`).

use super::tree::key::NODE_SIZE;
use super::tree::Dirty;
use crate::cost_table;
use crate::devices::BlockDevice;
use crate::filesystems::costs::Costs;
use crate::kernel::btrfs::MetadataProfile;
use crate::waist::Machine;
use crate::waist::{LockId, Time};
use arrayvec::ArrayVec;

cost_table!(CheckCosts { item: ["check_item"], extent: ["check_extent"], csum: ["check_csum"] });

/// The ends of the requests for each copy.
pub(super) type Copies = ArrayVec<LockId, 2>;

/// How tree blocks are written and read.
#[derive(Clone, Copy)]
pub struct TreeBlocks {
    check_item: Time,
    check_extent: Time,
    check_csum: Time,
    checks_written: bool,
    copies: u64,
}

impl TreeBlocks {
    pub(super) fn new(costs: &Costs<'_>) -> Result<Self, String> {
        let (rules, c) = (costs.rules(), CheckCosts::new(costs)?);
        Ok(Self {
            check_item: c.item,
            check_extent: c.extent,
            check_csum: c.csum,
            checks_written: rules.checks_written,
            copies: if rules.metadata_profile == MetadataProfile::Dup { 2 } else { 1 },
        })
    }

    /// How long the items of leaves are checked before they are written (`btrfs_check_leaf`). Nodes, which are few, are not.
    pub(super) fn check(&self, dirty: Dirty) -> Time {
        if self.checks_written {
            let others = dirty.items - dirty.extents - dirty.csums;
            self.check_item * others + self.check_extent * dirty.extents + self.check_csum * dirty.csums
        } else {
            0
        }
    }

    /// How long a leaf with so many items is checked that was read.
    pub(super) fn check_read(&self, items: usize) -> Time {
        self.check_item * items as Time
    }

    /// Bytes that are written, in all copies.
    pub(super) fn bytes(&self, dirty: Dirty) -> u64 {
        self.copies * dirty.blocks * u64::from(NODE_SIZE)
    }

    /// Submits blocks that lie side by side, a request for each copy. Returns what their ends complete.
    pub(super) async fn submit<M: Machine>(&self, m: &M, device: &BlockDevice, dirty: Dirty) -> Copies {
        let mut written = Copies::new();
        for _ in 0..self.copies {
            written.push(device.submit_write(m, dirty.blocks as u32 * NODE_SIZE).await);
        }
        written
    }
}
