//! Tree blocks on their way to the device and back: leaves are checked, and blocks are written once or twice (`btree_csum_one_bio`,
//! `btrfs_map_block`).

use super::tree::key::NODE_SIZE;
use super::tree::Dirty;
use crate::cost_table;
use crate::devices::BlockDevice;
use crate::filesystems::costs::Costs;
use crate::filesystems::log_area::LogArea;
use crate::filesystems::BLOCK;
use crate::kernel::btrfs::MetadataProfile;
use crate::waist::Machine;
use crate::waist::{LockId, Time};
use crate::writeback::REQUEST_PAGES;

cost_table!(CheckCosts { item: ["check_item"], extent: ["check_extent"], csum: ["check_csum"] });

/// Where the first superblock is (`BTRFS_SUPER_INFO_OFFSET`).
pub(super) const SUPER_INFO_OFFSET: u64 = 64 << 10;
/// Pages of a tree block.
pub(super) const PAGES: u64 = (NODE_SIZE / BLOCK) as u64;
/// Of larger filesystems a group of metadata has a GiB, of others a quarter (`init_alloc_chunk_ctl_policy_regular`).
const LARGE: u64 = 50 << 30;

/// How tree blocks are written and read.
pub struct TreeBlocks {
    check_item: Time,
    check_extent: Time,
    check_csum: Time,
    checks_written: bool,
    copies: u64,
    /// Each copy of each block is a request: copies alternate, and what is plugged joins the last request only.
    apart: bool,
    /// The group of metadata, of which the next blocks take what follows the last ones. The second copy lies behind it.
    group: LogArea,
}

impl TreeBlocks {
    pub(super) fn new(size: u64, costs: &Costs<'_>) -> Result<Self, String> {
        let (rules, c) = (costs.rules(), CheckCosts::new(costs)?);
        let dup = rules.metadata_profile == MetadataProfile::Dup;
        let group = if size > LARGE { 1 << 30 } else { 256 << 20 };
        Ok(Self {
            check_item: c.item,
            check_extent: c.extent,
            check_csum: c.csum,
            checks_written: rules.checks_written,
            copies: if dup { 2 } else { 1 },
            apart: dup && !rules.plug_merges_any,
            group: LogArea::new(SUPER_INFO_OFFSET, group),
        })
    }

    /// How often each block is written.
    pub(super) fn copies(&self) -> usize {
        self.copies as usize
    }

    /// How many blocks that lie side by side are one request at most.
    pub(super) fn most_in_request(&self) -> usize {
        if self.apart {
            1
        } else {
            (REQUEST_PAGES / PAGES) as usize
        }
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

    /// Submits blocks that lie side by side, under the task's plug. Returns what the ends of their requests complete, of each block the last copy first: it is
    /// written when all copies are (`btrfs_clone_write_end_io`).
    pub(super) async fn submit<M: Machine>(&self, m: &M, device: &BlockDevice, dirty: Dirty) -> Vec<LockId> {
        let (bytes, mut written) = (self.request_bytes(dirty), Vec::new());
        for at in self.places(dirty, bytes) {
            written.push(device.submit_write_plugged(m, bytes as u32, Some(at)).await);
        }
        written.chunks_mut(self.copies as usize).for_each(<[LockId]>::reverse);
        written
    }

    /// Writes blocks that lie side by side, and waits.
    pub(super) async fn write<M: Machine>(&self, m: &M, device: &BlockDevice, dirty: Dirty) {
        if self.apart {
            let blocks = self.submit(m, device, dirty).await;
            m.flush_plug();
            for written in blocks {
                m.wchan("btrfs_wait_extents");
                m.wait_for_io(written).await;
                m.drop_completion(written);
            }
            return;
        }
        let bytes = self.request_bytes(dirty);
        for at in self.places(dirty, bytes) {
            device.write_all(m, bytes, at).await;
        }
    }

    fn request_bytes(&self, dirty: Dirty) -> u64 {
        u64::from(NODE_SIZE) * if self.apart { 1 } else { dirty.blocks }
    }

    /// Where requests of so many bytes go, each with one for each copy.
    fn places(&self, dirty: Dirty, bytes: u64) -> impl Iterator<Item = u64> {
        let all = dirty.blocks * u64::from(NODE_SIZE);
        let (first, group, copies) = (self.group.place(all), self.group.bytes, self.copies);
        let requests = (first..first + all).step_by(bytes.max(1) as usize);
        requests.flat_map(move |at| (0..copies).map(move |copy| at + copy * group))
    }
}
