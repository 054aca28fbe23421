//! What `CONFIG_XFS_DEBUG` adds to operations: they go through blocks of directories and through trees of inodes, with their locks
//! held (`__xfs_dir3_data_check`, `xfs_check_agi_freecount`), and check each block of a tree on their way (6.12).

use super::super::mount::{Xfs, XfsDirectory};
use super::super::structures::directory::checked::{Act, Checked};
use crate::cost_table;
use crate::waist::Time;

cost_table!(DebugCosts {
    tree: ["debug.inode_tree"],
    record: ["debug.inode_record"],
    block: ["debug.dir_block"],
    name: ["debug.dir_name"],
    hashed: ["debug.dir_hashed"],
    passed: ["debug.dir_passed"],
    look: ["debug.look"],
    create: ["debug.create"],
    remove: ["debug.remove"],
    rename: ["debug.rename"],
    free: ["debug.free"],
});

impl DebugCosts {
    fn tree(&self, records: Option<u32>) -> Time {
        records.map_or(0, |records| self.tree + self.record * Time::from(records))
    }

    fn checking(&self, Checked { blocks, names, hashed, passed }: Checked) -> Time {
        let parts = [(blocks, self.block), (names, self.name), (hashed, self.hashed), (passed, self.passed)];
        parts.into_iter().map(|(n, each)| Time::from(n) * each).sum()
    }
}

/// Whether XFS is built so, and what its checks take.
pub(in crate::filesystems::xfs) struct Debug {
    on: bool,
    costs: DebugCosts,
}

impl Debug {
    pub(in crate::filesystems::xfs) fn new(costs: &crate::costs::Costs<'_>) -> Result<Self, String> {
        Ok(Self { on: costs.rules().xfs_debug, costs: DebugCosts::new(costs)? })
    }
}

impl Xfs {
    /// What an allocation of an inode checks with the AGI locked: both trees, twice each (`xfs_dialloc_ag`).
    pub(super) fn check_allocation(&self, agno: u32) -> Time {
        self.when_on(|c| c.create + 2 * self.checked_records(agno).map(|records| c.tree(records)).iter().sum::<Time>())
    }

    /// The same of freeing one: the inobt twice, the finobt once (`xfs_difree_inobt`, `xfs_difree_finobt`).
    pub(super) fn check_free(&self, agno: u32) -> Time {
        self.when_on(|c| {
            let [inobt, finobt] = self.checked_records(agno).map(|records| c.tree(records));
            c.free + 2 * inobt + finobt
        })
    }

    fn checked_records(&self, agno: u32) -> [Option<u32>; 2] {
        self.layout.borrow().groups().groups[agno as usize].checked_records()
    }

    /// What a transaction that removes a name checks besides.
    pub(super) fn check_remove(&self) -> Time {
        self.when_on(|c| c.remove)
    }

    /// The same of a rename.
    pub(super) fn check_rename(&self) -> Time {
        self.when_on(|c| c.rename)
    }

    fn when_on(&self, time: impl Fn(&DebugCosts) -> Time) -> Time {
        if self.debug.on {
            time(&self.debug.costs)
        } else {
            0
        }
    }

    /// What an act on a name checks of its directory.
    pub(super) fn check_names(&self, d: &XfsDirectory, name: &[u8], act: Act) -> Time {
        self.when_on(|c| {
            let look = if act == Act::LookUp { c.look } else { 0 };
            look + c.checking(self.layout.borrow().dir(d.id).checked(name, act))
        })
    }

    /// What listing a block of a directory checks.
    pub(super) fn check_listed(&self, d: &XfsDirectory, fsblock: u64) -> Time {
        self.when_on(|c| c.checking(self.layout.borrow().dir(d.id).checked_in(fsblock)))
    }
}
