//! Listing a directory (`xfs_readdir`): names of a data block are given to the caller with its buffer locked, so that who lists the same
//! block meanwhile sleeps. The ILOCK is held until the block is there (`xfs_dir2_block_getdents`, `xfs_dir2_leaf_getdents`;
//! held all the time before 4.3, version recalled, which nobody else who lists notices).
//!
//! Left out: read ahead. A directory that takes several calls begins each at its first block.

use crate::filesystems::xfs::mount::Xfs;
use crate::filesystems::DirId;
use crate::waist::{Access, Account, Machine, Side, Time};

impl Xfs {
    /// So many names, each with its part of the time; the rest is before them.
    pub(super) async fn list_names<M: Machine>(&self, m: &M, dir: DirId, names: u32, time: Time) {
        let d = self.directory(dir);
        let (each, blocks) = (self.sb.calls.readdir_name(), self.data_blocks(dir, names));
        m.touch(d.line, Access::Read);
        let in_blocks = each * Time::from(names);
        m.run(Account::System, time.saturating_sub(in_blocks)).await;
        for block in 0..blocks {
            let buffer = self.data_block(m, dir, block);
            m.lock(d.ilock, Side::Read).await;
            m.lock(buffer, Side::Write).await;
            m.unlock(d.ilock, Side::Read).await;
            m.run(Account::System, in_blocks / Time::from(blocks)).await;
            m.unlock(buffer, Side::Write).await;
        }
        if blocks == 0 {
            m.lock(d.ilock, Side::Read).await; // in the inode: xfs_dir2_sf_getdents
            m.run(Account::System, in_blocks).await;
            m.unlock(d.ilock, Side::Read).await;
        }
    }

    /// Data blocks with so many of a directory's names; none if they are in its inode.
    fn data_blocks(&self, dir: DirId, names: u32) -> u32 {
        let layout = self.layout.borrow();
        let directory = layout.dir(self.directory(dir).id);
        let (blocks, all) = (directory.blocks().data as u64, u64::from(directory.names().max(1)));
        (blocks * u64::from(names)).div_ceil(all) as u32
    }
}
