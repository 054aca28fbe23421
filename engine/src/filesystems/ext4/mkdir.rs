//! `mkdir` and `rmdir` (`fs/ext4/namei.c`): the inode of a directory, its first block, and the link of its `..` to the parent.

use super::directory::Made;
use super::ialloc::{FLEX, INODES_PER_BLOCK};
use super::journal::{credits, Block};
use super::Ext4;
use crate::filesystems::inodes::listed;
use crate::filesystems::vfs::INODE_CALLBACKS;
use crate::filesystems::{DirId, NoSpace};
use crate::waist::Machine;
use crate::waist::{Access, Account, Time};

impl Ext4 {
    /// `ext4_mkdir` under the parent's lock.
    pub(super) async fn make_directory<M: Machine>(&self, m: &M, parent: DirId, name: &[u8]) -> Result<DirId, NoSpace> {
        let c = &self.create;
        m.touch(self.directory(parent).1, Access::Write);
        m.run(Account::System, self.lookup_time(parent, name)).await;
        let handle = self.journal.start(m, credits::CREATE).await;
        let (made, changed) = match self.new_directory_inode(m, parent, name).await {
            Ok(made) => {
                (Ok(made), self.enter_directory(m, parent, name, made, self.add_entry_time(parent, name)).await)
            }
            Err(full) => (Err(full), Vec::new()),
        };
        m.run(Account::System, c.stop + c.tail).await;
        self.end(m, handle, &changed).await;
        made.map(|made| self.add_directory(m, self.ialloc.home(made.inode), Some(made)))
    }

    /// Its inode (`__ext4_new_inode`) and its block (`ext4_init_new_dir`), which is looked for in the first group of the inode's flex
    /// group (`ext4_inode_to_goal_block`).
    async fn new_directory_inode<M: Machine>(&self, m: &M, parent: DirId, name: &[u8]) -> Result<Made, NoSpace> {
        let inode = self.new_inode(m, || self.group_of_new_directory(parent, name)).await.ok_or(NoSpace)?;
        self.ialloc.count_directory(inode, 1);
        m.run(Account::System, self.mkdir.map).await;
        match self.mballoc.new_directory_block(m, self.ialloc.group_of(inode) / FLEX * FLEX).await {
            Ok(block) => {
                m.run(Account::System, self.mkdir.insert).await;
                self.tables.use_block(m, inode, self.mkdir.fill).await;
                Ok(Made { inode, block })
            }
            Err(full) => {
                self.ialloc.count_directory(inode, -1);
                self.free_inode(m, inode).await;
                Err(full)
            }
        }
    }

    /// The name enters the parent (`ext4_add_entry`, `ext4_inc_count`); the blocks that making it has changed.
    async fn enter_directory<M: Machine>(
        &self,
        m: &M,
        parent: DirId,
        name: &[u8],
        Made { inode, block }: Made,
        add_entry: Time,
    ) -> Vec<Block> {
        let rest = self.sb.inodes.enter(m, listed::directory(inode), Some(u64::from(inode)), add_entry).await;
        self.mark_directory_dirty(m, parent, rest).await;
        self.write_entry(m, parent, name);
        self.enter_name(parent, name);
        self.inc_count(parent);
        let [bitmap, descriptors] = self.group_blocks(self.ialloc.group_of(inode));
        let [directory, leaf] = self.name_blocks(parent, name);
        let own = [Block::Inodes(inode / INODES_PER_BLOCK), Block::NewDirectory(block.group, block.start)];
        [&own[..], &[directory, leaf, bitmap, descriptors], &self.block_bitmap(block.group)].concat()
    }

    /// `ext4_rmdir` under the locks of the parent and the directory.
    pub(super) async fn remove_directory<M: Machine>(&self, m: &M, parent: DirId, name: &[u8], dir: DirId) {
        let ((find, delete), Made { inode, .. }) = (self.delete_times(parent, name), self.made(dir));
        let handle = self.journal.start(m, credits::UNLINK).await;
        m.run(Account::System, find).await;
        self.mark_directory_dirty(m, parent, delete / 2).await;
        let orphan = self.add_orphan(m, inode, delete - delete / 2).await;
        self.delete_entry(m, parent, name);
        self.leave_name(parent, name);
        self.dec_count(parent);
        m.run(Account::System, self.unlink.stop).await;
        let [directory, leaf] = self.name_blocks(parent, name);
        let changed = [&[Block::Inodes(inode / INODES_PER_BLOCK), directory, leaf], orphan.as_slice()].concat();
        self.end(m, handle, &changed).await;
    }

    /// `ext4_evict_inode` of a directory: its block is given back when the transaction is on disk, the inode is free at once.
    pub(super) async fn free_directory<M: Machine>(&self, m: &M, dir: DirId) {
        let (c, Made { inode, block }) = (&self.unlink, self.made(dir));
        m.run(Account::System, c.evict_start).await;
        let mut handle = self.journal.start(m, credits::EVICT).await;
        m.run(Account::System, self.mkdir.remove_space).await;
        self.journal.forget(m, &mut handle, Block::NewDirectory(block.group, block.start)).await;
        self.mballoc.free_blocks(m, block, self.journal.on.then(|| handle.transaction())).await;
        self.tables.use_block(m, inode, c.orphan / 2).await; // marked dirty with a size of 0
        let orphan = self.delete_orphan(m, inode, c.orphan - c.orphan / 2).await;
        self.free_inode(m, inode).await;
        self.ialloc.count_directory(inode, -1);
        let rest = self.sb.inodes.leave(m, listed::directory(inode), Some(u64::from(inode)), c.evict_stop).await;
        m.run(Account::System, rest).await;
        let [bitmap, descriptors] = self.group_blocks(self.ialloc.group_of(inode));
        let own = [Block::Inodes(inode / INODES_PER_BLOCK), bitmap, descriptors];
        self.end(m, handle, &[&own[..], &self.block_bitmap(block.group), orphan.as_slice()].concat()).await;
        m.call_rcu(INODE_CALLBACKS, c.callback);
        self.drop_directory(dir);
    }
}
