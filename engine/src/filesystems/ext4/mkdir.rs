//! `mkdir` and `rmdir` (`fs/ext4/namei.c`): the inode of a directory, its first block, and the link of its `..` to the parent.

use super::directory::{Made, LINEAR_NAMES};
use super::ialloc::{FLEX, INODES_PER_BLOCK};
use super::journal::{credits, Block};
use super::Ext4;
use crate::filesystems::vfs::INODE_CALLBACKS;
use crate::filesystems::{DirId, NoSpace};
use crate::waist::Machine;
use crate::waist::{Access, Account, Side, Time};

impl Ext4 {
    /// `ext4_mkdir` under the parent's lock.
    pub(super) async fn make_directory<M: Machine>(&self, m: &M, parent: DirId, name: &[u8]) -> Result<DirId, NoSpace> {
        let (c, (before, after)) = (&self.create, self.sb.calls.mkdir());
        m.at("mkdir");
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let (i_rwsem, line, names) = self.directory(parent);
        m.lock(i_rwsem, Side::Write).await;
        m.touch(line, Access::Write);
        let htree = names > LINEAR_NAMES;
        let search = if htree { self.htree.lookup.saturating_sub(self.htree.lookup_linear) } else { 0 };
        m.run(Account::System, c.lookup + search).await;
        let handle = self.journal.start(m, credits::CREATE).await;
        let (made, changed) = match self.new_directory_inode(m, parent, name).await {
            Ok(made) => {
                let add_entry = if htree { self.htree.add_entry } else { c.add_entry };
                (Ok(made), self.enter_directory(m, parent, name, made, add_entry).await)
            }
            Err(full) => (Err(full), Vec::new()),
        };
        m.run(Account::System, c.stop + c.tail).await;
        self.journal.stop(m, handle, &changed).await;
        let dir = made.map(|made| self.add_directory(m, self.ialloc.home(made.inode), Some(made)));
        m.unlock(i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, after).await;
        dir
    }

    /// Its inode (`__ext4_new_inode`) and its block (`ext4_init_new_dir`), which is looked for in the first group of the inode's flex
    /// group (`ext4_inode_to_goal_block`).
    async fn new_directory_inode<M: Machine>(&self, m: &M, parent: DirId, name: &[u8]) -> Result<Made, NoSpace> {
        let inode = self.new_inode(m, || self.group_of_new_directory(parent, name)).await.ok_or(NoSpace)?;
        self.ialloc.count_directory(inode, 1);
        m.run(Account::System, self.mkdir.map).await;
        match self.mballoc.new_directory_block(m, self.ialloc.group_of(inode) / FLEX * FLEX).await {
            Ok(block) => {
                m.run(Account::System, self.mkdir.insert + self.mkdir.fill).await;
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
        let rest = self.sb.inodes.pass(m, Some(u64::from(inode)), add_entry).await;
        m.run(Account::System, rest).await;
        self.count_names(parent, 1);
        self.inc_count(parent);
        let [bitmap, descriptors] = self.group_blocks(self.ialloc.group_of(inode));
        let [directory, leaf] = self.name_blocks(parent, name);
        let own = [Block::Inodes(inode / INODES_PER_BLOCK), Block::NewDirectory(block.group, block.start)];
        [&own[..], &[directory, leaf, bitmap, descriptors], &self.block_bitmap(block.group)].concat()
    }

    /// `ext4_rmdir` under the locks of the parent and the directory, and `ext4_evict_inode` under the parent's (`vfs_rmdir`).
    pub(super) async fn remove_directory<M: Machine>(&self, m: &M, parent: DirId, name: &[u8], dir: DirId) {
        let (c, (before, after)) = (&self.unlink, self.sb.calls.rmdir());
        m.at("rmdir");
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let ((i_rwsem, line, names), (victim, ..)) = (self.directory(parent), self.directory(dir));
        let htree = names > LINEAR_NAMES;
        m.lock(i_rwsem, Side::Write).await;
        m.touch(line, Access::Write);
        m.run(Account::System, c.lookup).await;
        m.lock(victim, Side::Write).await;
        let Made { inode, .. } = self.made(dir);
        let handle = self.journal.start(m, credits::UNLINK).await;
        let (find, delete) =
            if htree { (self.htree.find_entry, self.htree.delete_entry) } else { (c.find_entry, c.delete_entry) };
        m.run(Account::System, find).await;
        let orphan = self.add_orphan(m, inode, delete).await;
        self.count_names(parent, -1);
        self.dec_count(parent);
        m.run(Account::System, c.stop).await;
        let [directory, leaf] = self.name_blocks(parent, name);
        let changed = [&[Block::Inodes(inode / INODES_PER_BLOCK), directory, leaf], orphan.as_slice()].concat();
        self.journal.stop(m, handle, &changed).await;
        m.unlock(victim, Side::Write).await;
        self.evict_directory(m, dir).await; // d_delete
        m.run(Account::System, c.tail).await;
        m.unlock(i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, after).await;
    }

    /// `ext4_evict_inode` of a directory: its block is given back when the transaction is on disk, the inode is free at once.
    async fn evict_directory<M: Machine>(&self, m: &M, dir: DirId) {
        let (c, Made { inode, block }) = (&self.unlink, self.made(dir));
        m.run(Account::System, c.evict_start).await;
        let mut handle = self.journal.start(m, credits::EVICT).await;
        m.run(Account::System, self.mkdir.remove_space).await;
        self.journal.forget(m, &mut handle, Block::NewDirectory(block.group, block.start)).await;
        self.mballoc.free_blocks(m, block, self.journal.on.then(|| handle.transaction())).await;
        let orphan = self.delete_orphan(m, inode, c.orphan).await;
        self.free_inode(m, inode).await;
        self.ialloc.count_directory(inode, -1);
        let rest = self.sb.inodes.pass(m, Some(u64::from(inode)), c.evict_stop).await;
        m.run(Account::System, rest).await;
        let [bitmap, descriptors] = self.group_blocks(self.ialloc.group_of(inode));
        let own = [Block::Inodes(inode / INODES_PER_BLOCK), bitmap, descriptors];
        self.journal.stop(m, handle, &[&own[..], &self.block_bitmap(block.group), orphan.as_slice()].concat()).await;
        m.call_rcu(INODE_CALLBACKS, c.callback);
        self.drop_directory(dir);
    }
}
