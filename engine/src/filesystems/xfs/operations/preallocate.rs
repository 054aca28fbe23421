//! `fallocate` and `ftruncate`: blocks without data (`xfs_alloc_file_space`), and a file without blocks (`xfs_setattr_size`,
//! `xfs_itruncate_extents`).
//!
//! The VFS takes the IOLOCK around both. The MMAPLOCK, which they hold beside it, is left out: only page faults would want it.

use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::filesystems::pages::dirty::Wanted;
use crate::filesystems::pages::mapping;
use crate::filesystems::xfs::inode::Inode;
use crate::filesystems::xfs::log::grant::{Ticket, TR_ITRUNCATE, TR_WRITE};
use crate::filesystems::xfs::log::Logged;
use crate::filesystems::xfs::mount::Xfs;
use crate::filesystems::xfs::structures::file_blocks::Placed;
use crate::filesystems::xfs::structures::touch::Touches;
use crate::filesystems::{File, NoSpace, BLOCK};
use crate::waist::Machine;
use crate::waist::{Account, Time};
use crate::writeback::Flushed;

cost_table!(PreallocateCosts {
    look: ["tmp_short.lock_file_ilock_shared", "tmp_short.unlock_file_ilock_shared"],
    drop_pages: ["truncate.pages"],
    release: ["wfsync.unlock_cntbt", "wfsync.unlock_bnobt", "wfsync.trans_free_2", "wfsync.unlock_file_ilock_excl_3"],
});

/// Blocks that a transaction wants besides the file's (`XFS_DIOSTRAT_SPACE_RES`), as much as a create does.
const SPARE: u64 = 64;

/// Their costs.
pub(crate) struct Preallocate(PreallocateCosts);

impl Preallocate {
    /// From the cost tables.
    pub fn new(costs: &Costs<'_>) -> Result<Self, String> {
        PreallocateCosts::new(costs).map(Self)
    }

    /// Time to look an extent up.
    pub(super) fn look(&self) -> Time {
        self.0.look
    }
}

impl Xfs {
    /// `xfs_file_fallocate` of so many bytes behind a file's last block: unwritten extents, a transaction each, and one for the size.
    pub(super) async fn preallocate<M: Machine>(&self, m: &M, slot: u32, bytes: u32) -> Result<(), NoSpace> {
        let inode = self.inodes.inode(slot);
        self.update_times(m, slot).await; // file_modified
        let mut left = bytes.div_ceil(BLOCK).max(1);
        while left > 0 {
            left -= self.alloc_file_space(m, inode, left).await?;
        }
        self.inode_transaction(m, &inode, TR_ITRUNCATE, self.inactive.truncate()).await; // xfs_falloc_setsize
        self.inodes.set_sized(slot);
        Ok(())
    }

    /// One transaction and one extent of at most so many blocks; how many they are.
    async fn alloc_file_space<M: Machine>(&self, m: &M, inode: Inode, most: u32) -> Result<u32, NoSpace> {
        let c = &self.sync.allocate;
        m.run(Account::System, c.reserve).await;
        let ticket = self.log.reserve(m, TR_WRITE).await;
        inode.ilock(m).await;
        let mut count = 0;
        if self.layout.borrow().free_blocks() > u64::from(most) + SPARE {
            let groups = self.layout.borrow().groups_for_file(inode.ino, most);
            let turn = |trylock| groups.iter().map(move |&agno| (agno, trylock));
            for (agno, trylock) in turn(true).chain(turn(false)) {
                count = self.alloc_in_group(m, &inode, (agno, trylock), most).await;
                if count > 0 {
                    break;
                }
            }
        }
        self.log.committed(m, ticket).await;
        inode.iunlock(m).await;
        m.run(Account::System, self.preallocate.0.release).await;
        if count > 0 {
            Ok(count)
        } else {
            Err(NoSpace)
        }
    }

    /// Blocks of one group, how many: none if it has no room, or if its AGF is only tried and somebody has it
    /// (`XFS_ALLOC_FLAG_TRYLOCK`).
    async fn alloc_in_group<M: Machine>(&self, m: &M, inode: &Inode, (agno, trylock): (u32, bool), most: u32) -> u32 {
        let (c, agf) = (&self.sync.allocate, self.group(agno).agf);
        m.run(Account::System, c.agf).await;
        if !trylock {
            agf.lock(m).await;
        } else if !agf.try_lock(m) {
            return 0;
        }
        let mut touches = Touches::default();
        let count = self.layout.borrow_mut().alloc_for_file(inode.ino, agno, most, &mut touches).unwrap_or(0);
        self.get_buffers(m, &touches).await;
        if count > 0 {
            m.run(Account::System, c.allocate).await;
            self.log.commit(m, Logged::items([inode.item(), agf.item()]).further(2)).await;
            m.run(Account::System, c.commit).await;
        }
        agf.unlock(m).await;
        count
    }

    /// `xfs_setattr_size` to nothing. Pages under writeback are waited for. Of a file that has nothing only the times change, as by
    /// `xfs_setattr_nonsize`.
    pub(super) async fn truncate_file<M: Machine>(&self, m: &M, file: &File) {
        let slot = file.inode;
        if self.is_empty(file) {
            return self.setattr_nonsize(m, file, self.sb.calls.setattr().1).await;
        }
        let inode = self.inodes.inode(slot);
        self.sync.emptied(slot);
        self.storage.writeback.truncated(m, slot, 0).await;
        self.sb.calls.truncate_pages(m, file, self.preallocate.0.drop_pages).await;
        self.itruncate(m, &inode, None).await;
        inode.test_flags(m).await; // sets XFS_ITRUNCATED
        self.inodes.set_empty(slot);
    }

    /// It has no extents, and no pages that wait for some.
    fn is_empty(&self, file: &File) -> bool {
        let ino = self.inodes.inode(file.inode).ino;
        self.layout.borrow().file_extents(ino).is_empty()
            && self.dirty_pages(file.inode) == 0
            && self.sb.calls.written(file) == 0
    }

    /// To so many bytes less: what the inode on disk does not know yet of the data that stay is written first.
    pub(super) async fn shorten_file<M: Machine>(&self, m: &M, slot: u32, bytes: u32) {
        let inode = self.inodes.inode(slot);
        let given: u32 = self.layout.borrow().file_extents(inode.ino).iter().map(|(_, extent)| extent.len).sum();
        let blocks = given.min(bytes / BLOCK);
        if blocks == given {
            self.sync.shortened(slot, bytes - blocks * BLOCK);
        }
        self.storage.writeback.truncated(m, slot, self.dirty_pages(slot)).await;
        if self.sync.dirty.has_new(slot) {
            mapping::write_and_wait(self, m, slot, Wanted::All).await;
        }
        self.itruncate(m, &inode, Some(blocks)).await;
        inode.test_flags(m).await;
    }

    /// `xfs_extent_free_finish_item` of each extent that an inode has no more, each in a further transaction of the same chain.
    pub(super) async fn free_extents<M: Machine>(&self, m: &M, mut ticket: Ticket, extents: Vec<Placed>) -> Ticket {
        let c = &self.costs.space;
        for extent in extents {
            ticket = self.log.rolled(m, ticket).await;
            m.run(Account::System, c.roll + c.free_agf).await;
            let agf = self.group(extent.0).agf;
            agf.lock(m).await;
            let mut touches = Touches::default();
            self.layout.borrow_mut().free_file_extent(extent, &mut touches);
            self.get_buffers(m, &touches).await;
            m.run(Account::System, c.free).await;
            self.log.commit(m, Logged::items([agf.item()]).further(2).freeing_extents()).await;
            m.run(Account::System, c.free_commit).await;
            agf.unlock(m).await;
        }
        ticket
    }
}
