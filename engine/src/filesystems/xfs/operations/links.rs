//! Names of files that have several: `xfs_link`, and `xfs_remove` of one of them.

use super::super::inode::Inode;
use super::super::log::buffer::unlock_all;
use super::super::log::grant::{TR_LINK, TR_REMOVE};
use super::super::log::Logged;
use super::super::mount::{Xfs, XfsDirectory};
use super::super::structures::directory::checked::Act;
use super::super::structures::groups::NoSpace;
use super::super::structures::touch::Touches;
use super::parents::ParentChange;
use super::transactions::Renamed;
use crate::waist::Machine;
use crate::waist::{Access, Account, LockId, Side, Time};

/// The ILOCKs of a directory and a file, in the order of inode numbers (`xfs_lock_two_inodes`).
fn two_inodes(d: &XfsDirectory, inode: &Inode) -> [LockId; 2] {
    if d.ino < inode.ino {
        [d.ilock, inode.ilock]
    } else {
        [inode.ilock, d.ilock]
    }
}

impl Xfs {
    /// `xfs_link`: the name in, a link more of the inode. No allocation group is touched but for a directory block.
    pub(super) async fn xfs_link<M: Machine>(
        &self,
        m: &M,
        d: &XfsDirectory,
        name: &[u8],
        inode: Inode,
        time: Time,
    ) -> Result<(), NoSpace> {
        let ticket = self.log.reserve(m, TR_LINK).await;
        let inodes = two_inodes(d, &inode);
        for ilock in inodes {
            m.lock(ilock, Side::Write).await;
        }
        m.touch(d.line, Access::Write);
        let scan = self.passed_by(d, name) * self.costs.short.add;
        let added = self.layout.borrow_mut().add_name(d.id, name, inode.ino)?;
        let (grows, space) = (added.new_blocks > 0, &self.costs.space);
        let renamed = Renamed {
            buffers: self.directory_blocks(m, &[added.touches]),
            time: scan
                + self.costs.add_name_time(added.after)
                + self.costs.scan_time(&added.touches)
                + self.check_names(d, name, Act::Add)
                + self.costs.commit_names_time(added.after)
                + if grows { space.allocate + space.new_dir_block } else { 0 },
            grows,
            shrinks: false,
            touches: [added.touches, Touches::default()],
        };
        let logged = Logged::items([d.item(), inode.item()]).blocks(&renamed.buffers);
        self.commit_rename(m, d, &renamed, logged, time).await;
        self.end_name(m, ticket, &inode, ParentChange::Add).await;
        for ilock in inodes.into_iter().rev() {
            m.unlock(ilock, Side::Write).await;
        }
        Ok(())
    }

    /// `xfs_remove` of a name of a file that keeps others: its inode is on no unlinked list, and no AGI is needed.
    pub(super) async fn xfs_remove_link<M: Machine>(&self, m: &M, d: &XfsDirectory, name: &[u8], inode: Inode) {
        let c = &self.costs.unlink;
        let ticket = self.log.reserve(m, TR_REMOVE).await;
        m.run(Account::System, c.reserve + self.parents.reserve()).await;
        let inodes = two_inodes(d, &inode);
        for ilock in inodes {
            m.lock(ilock, Side::Write).await;
        }
        m.touch(d.line, Access::Write);
        m.run(Account::System, c.drop_link).await;
        let (form, buffers, frees_blocks) = self.remove_entry(m, d, name).await;
        self.commit_remove(m, Logged::items([d.item(), inode.item()]), form, &buffers, &[]).await;
        unlock_all(m, &buffers).await;
        self.end_commit(m, d, ticket, frees_blocks, (&inode, ParentChange::Remove)).await;
        m.run(Account::System, c.release).await;
        for ilock in inodes.into_iter().rev() {
            m.unlock(ilock, Side::Write).await;
        }
    }
}
