//! Listing a directory (`xfs_readdir`): names of a data block are given to the caller with its buffer locked, so that who lists the same
//! block meanwhile sleeps. The ILOCK is held until the block is there (`xfs_dir2_block_getdents`, `xfs_dir2_leaf_getdents`;
//! held all the time before 4.3, version recalled, which nobody else who lists notices).
//!
//! Left out: read ahead. A directory that takes several calls begins each at its first block.

use crate::filesystems::xfs::mount::Xfs;
use crate::filesystems::xfs::structures::touch::BlockKind;
use crate::filesystems::DirId;
use crate::waist::{Access, Account, Machine, Side, Time};

impl Xfs {
    /// So many names, each with its part of the time; the rest is before them.
    pub(super) async fn list_names<M: Machine>(&self, m: &M, dir: DirId, names: u32, time: Time) {
        let d = self.directory(dir);
        let (each, blocks) = (self.sb.calls.readdir_name(), self.names_by_block(dir, names));
        m.touch(d.line, Access::Read);
        let in_blocks = each * Time::from(names);
        m.run(Account::System, time.saturating_sub(in_blocks)).await;
        for &(block, here) in &blocks {
            let buffer = self.directory_buffer(m, BlockKind::DirData, block).lock;
            m.lock(d.ilock, Side::Read).await;
            m.lock(buffer, Side::Write).await;
            m.unlock(d.ilock, Side::Read).await;
            m.run(Account::System, each * Time::from(here) + self.check_listed(&d, block)).await;
            m.unlock(buffer, Side::Write).await;
        }
        if blocks.is_empty() {
            m.lock(d.ilock, Side::Read).await; // in the inode: xfs_dir2_sf_getdents
            m.run(Account::System, in_blocks).await;
            m.unlock(d.ilock, Side::Read).await;
        }
    }

    /// How many of the directory's first names lie in each data block; nothing if they are in its inode.
    fn names_by_block(&self, dir: DirId, mut names: u32) -> Vec<(u64, u32)> {
        let layout = self.layout.borrow();
        let mut blocks = Vec::new();
        for (block, all) in layout.dir(self.directory(dir).id).names_by_block() {
            let here = all.min(names);
            blocks.push((block, here));
            names -= here;
            if names == 0 {
                break;
            }
        }
        blocks
    }
}
