//! The transactions on names and inodes (`fs/xfs/xfs_inode.c`): `xfs_lookup`, `xfs_create`, `xfs_remove` and `xfs_rename`, with their
//! lock order and what is released at commit.
//!
//! The AGI of a directory's allocation group is held from the inode allocation to commit in `create`, from the unlinked-list
//! insertion to commit in `unlink`, and once more in the worker that frees the inode later: three times a file.

use super::super::directory_buffers::Blocks;
use super::super::inode::{Inode, Number};
use super::super::log::buffer::{lock_all, unlock_all, Buffer};
use super::super::log::grant::{Ticket, TR_CREATE, TR_MKDIR, TR_REMOVE, TR_RENAME};
use super::super::log::Logged;
use super::super::mount::{AllocationGroup, Xfs, XfsDirectory};
use super::super::structures::directory::checked::Act;
use super::super::structures::directory::DirForm;
use super::super::structures::groups::NoSpace;
use super::super::structures::layout::Unlinking;
use super::super::structures::touch::{BlockKind, Touches};
use super::parents::ParentChange;
use crate::filesystems::inodes::listed;
use crate::filesystems::{DirId, Renaming};
use crate::kernel::xfs::UnlinkedList;
use crate::waist::Machine;
use crate::waist::{Access, Account, ClassId, LockId, Side, Time};

/// What a rename does to directories.
pub(super) struct Renamed {
    pub(super) buffers: Blocks,
    pub(super) time: Time,
    pub(super) grows: bool,
    pub(super) shrinks: bool,
    pub(super) touches: [Touches; 2],
}

/// The ILOCKs of a rename, in the order of inode numbers (`xfs_sort_for_rename`).
fn sorted(old: &XfsDirectory, new: &XfsDirectory, inode: &Inode) -> arrayvec::ArrayVec<(u64, LockId), 3> {
    let mut inodes: arrayvec::ArrayVec<_, 3> = [(old.ino, old.ilock), (inode.ino, inode.ilock)].into_iter().collect();
    if new.id != old.id {
        inodes.push((new.ino, new.ilock));
    }
    inodes.sort_unstable_by_key(|(ino, _)| *ino);
    inodes
}

impl Xfs {
    /// A name that is free is looked up, unless it is known to be missing.
    pub(super) async fn look_up_name<M: Machine>(&self, m: &M, dir: DirId, name: &[u8]) {
        if self.sb.calls.dcache.missing(dir, name).is_none() {
            self.lookup(m, &self.directory(dir), name).await;
        }
    }

    /// `xfs_lookup`: the directory's ILOCK shared, and its blocks down to the leaf.
    async fn lookup<M: Machine>(&self, m: &M, d: &XfsDirectory, name: &[u8]) {
        let c = &self.costs.create;
        m.lock(d.ilock, Side::Read).await;
        let (form, touches) = {
            let layout = self.layout.borrow();
            let form = layout.dir(d.id).form();
            // A data block is read only where another name has the same hash.
            (form, if form == DirForm::Node { layout.lookup(d.id, name).1 } else { Touches::default() })
        };
        let scan = self.passed_by(d, name) * self.costs.short.look;
        self.get_buffers(m, &touches).await;
        let collides = touches.has(BlockKind::DirData);
        let look = self.costs.look_up_name_time(form) + self.costs.descent_time(&touches);
        let time = c.lookup_end + scan + look + if collides { c.lookup_data } else { 0 };
        let time = time + self.check_names(d, name, Act::LookUp);
        m.run(Account::System, time).await;
        m.unlock(d.ilock, Side::Read).await;
    }

    /// Names that a search for this one passes by in the directory's inode.
    pub(super) fn passed_by(&self, d: &XfsDirectory, name: &[u8]) -> Time {
        self.layout.borrow().dir(d.id).passed_by(name).into()
    }

    /// `xfs_create` of a directory `name` in `d`, whose `i_rwsem` is held. Its inode is in the next group by rotor, not in the
    /// parent's.
    pub(super) async fn xfs_mkdir<M: Machine>(&self, m: &M, d: &XfsDirectory, name: &[u8]) -> Result<DirId, NoSpace> {
        let (c, found) = (&self.costs.mkdir, &self.costs.create);
        self.reserve_blocks(m).await?;
        let ticket = self.log.reserve(m, TR_MKDIR).await;
        m.run(Account::System, c.reserve + self.parents.reserve()).await;
        m.lock(d.ilock, Side::Write).await;
        m.touch(d.line, Access::Write);
        m.touch(self.rotor, Access::Write);
        m.run(Account::System, c.agi).await;
        let start = self.layout.borrow_mut().next_directory_group();
        let group = self.group(start);
        group.lock_inode_trees(m).await;
        let new = self.layout.borrow_mut().dialloc_directory(start, d.id)?;
        self.get_inode_buffers(m, &new).await;
        let (search, iget) = ((c.inode_btrees, found.iget_find), (c.iget_miss, found.iget_recycle));
        let (slot, work) = self.icreate(m, self.number(new.ino), self.directory_classes, search, iget).await;
        let times = (work, c.finish);
        let child = (self.inodes.inode(slot), new.new_chunk);
        self.enter_and_commit(m, d, name, group, child, times).await?;
        self.end_name(m, ticket, &child.0, ParentChange::First).await;
        m.run(Account::System, c.release).await;
        let id = self.layout.borrow_mut().add_directory(d.id, new.ino);
        let dir = self.new_directory(id, slot);
        self.inodes.inode(slot).iunlock(m).await;
        m.unlock(d.ilock, Side::Write).await;
        Ok(dir)
    }

    /// `xfs_icreate`: the inode of this number in core, locked; its slot, and how much work is left of it. Given is how long the search for
    /// it takes, and what follows with a new one and with one that was in core.
    async fn icreate<M: Machine>(
        &self,
        m: &M,
        number: Number,
        classes: [ClassId; 3],
        search: (Time, Time),
        (miss, recycle): (Time, Time),
    ) -> (u32, Time) {
        let search = (search.0 + self.check_allocation(number.agno), search.1);
        let (slot, recycled) = self.inodes.iget(m, self.inode_parts(m, number, classes), number, search).await;
        self.sb.calls.files.whole_inode(m, slot);
        self.sync.made(m, slot);
        self.inodes.inode(slot).ilock(m).await;
        if recycled {
            self.sb.line.recycled(m).await; // xfs_reinit_inode, xfs_init_new_inode
        }
        let iget = if recycled { recycle } else { miss };
        (slot, self.sb.inodes.enter(m, listed::file(slot), None, iget).await) // in no hash: inode_fake_hash
    }

    /// `xfs_create`: allocates an inode under the AGI, adds the name, commits. Returns the new file's slot.
    pub(super) async fn xfs_create<M: Machine>(&self, m: &M, d: &XfsDirectory, name: &[u8]) -> Result<u32, NoSpace> {
        let c = &self.costs.create;
        self.reserve_blocks(m).await?;
        let ticket = self.log.reserve(m, TR_CREATE).await;
        m.run(Account::System, c.reserve + self.parents.reserve()).await;
        m.lock(d.ilock, Side::Write).await;
        m.touch(d.line, Access::Write);
        m.run(Account::System, c.agi).await;
        let group = self.group_of(d.ino);
        group.lock_inode_trees(m).await;
        let new = self.layout.borrow_mut().dialloc(d.id)?;
        self.get_inode_buffers(m, &new).await;
        let (search, iget) = ((c.inode_btrees, c.iget_find), (c.iget_miss, c.iget_recycle));
        let (slot, work) = self.icreate(m, self.number(new.ino), self.inode_classes, search, iget).await;
        let times = (work, c.finish);
        let child = (self.inodes.inode(slot), new.new_chunk);
        self.enter_and_commit(m, d, name, group, child, times).await?;
        self.end_name(m, ticket, &child.0, ParentChange::First).await;
        m.run(Account::System, c.release).await;
        self.inodes.inode(slot).iunlock(m).await;
        m.unlock(d.ilock, Side::Write).await;
        Ok(slot)
    }

    /// The name of a new inode enters the directory (`xfs_dir_createname`), and the transaction commits: all buffers are released.
    async fn enter_and_commit<M: Machine>(
        &self,
        m: &M,
        d: &XfsDirectory,
        name: &[u8],
        group: AllocationGroup,
        (inode, new_chunk): (Inode, bool),
        (mut work, finish): (Time, Time),
    ) -> Result<(), NoSpace> {
        work += self.passed_by(d, name) * self.costs.short.add;
        let touch = self.layout.borrow_mut().add_name(d.id, name, inode.ino)?;
        let (form, new_blocks) = (touch.after, touch.new_blocks);
        let buffers = self.directory_blocks(m, &[touch.touches]);
        lock_all(m, &buffers).await;
        self.get_buffers(m, &touch.touches).await;
        work +=
            self.costs.add_name_time(form) + self.costs.scan_time(&touch.touches) + self.check_names(d, name, Act::Add);
        let allocates = new_chunk || new_blocks > 0;
        if allocates {
            work += self.costs.space.agf;
            m.run(Account::System, work).await;
            group.agf.lock(m).await;
            let space = &self.costs.space;
            work = space.allocate + if new_blocks > 0 { space.new_dir_block } else { 0 };
            work += if new_chunk { space.chunk } else { 0 };
        }
        m.run(Account::System, work + finish + self.parents.intend()).await;
        self.commit_create(m, d, inode, group, (form, allocates), &buffers).await;
        group.unlock_inode_trees(m).await;
        unlock_all(m, &buffers).await;
        if allocates {
            group.agf.unlock(m).await;
        }
        Ok(())
    }

    /// Into the log go both inodes, the group's buffers and trees, and the blocks of the directory.
    async fn commit_create<M: Machine>(
        &self,
        m: &M,
        d: &XfsDirectory,
        inode: Inode,
        group: AllocationGroup,
        (form, allocates): (DirForm, bool),
        blocks: &Blocks,
    ) {
        let records = group.records_of(self.number(inode.ino).agino);
        let items = [d.item(), inode.item(), group.agi.item()];
        let mut logged = Logged::items(items).buffers(&records).blocks(blocks);
        if allocates {
            logged = logged.buffers(&[group.agf]).further(2);
        }
        self.log.commit(m, logged).await;
        self.mod_ifree(m).await;
        m.run(Account::System, self.costs.commit_time(form, allocates)).await;
    }

    /// `xfs_remove`: puts the inode on the AGI's unlinked list, removes the name, commits. Of a directory too, whose `..` is a link less
    /// to its parent.
    pub(super) async fn xfs_remove<M: Machine>(
        &self,
        m: &M,
        d: &XfsDirectory,
        name: &[u8],
        inode: Inode,
        removed: Option<DirId>,
    ) {
        let c = &self.costs.unlink;
        let ticket = self.log.reserve(m, TR_REMOVE).await;
        m.run(Account::System, c.reserve + self.parents.reserve()).await;
        m.lock(d.ilock, Side::Write).await;
        m.touch(d.line, Access::Write);
        inode.ilock(m).await;
        m.run(Account::System, c.agi).await;
        let group = self.group_of(inode.ino);
        group.agi.lock(m).await;
        removed.into_iter().for_each(|removed| self.drop_directory(d, removed));
        let inodes = self.iunlink(m, d, inode).await;
        let (form, buffers, frees_blocks) = self.remove_entry(m, d, name).await;
        if self.unlinked == UnlinkedList::InMemory {
            lock_all(m, &inodes).await;
        }
        let items = Logged::items([d.item(), inode.item(), group.agi_of_unlinked(self.number(inode.ino).agino).item()]);
        self.commit_remove(m, items, form, &buffers, &inodes).await;
        group.agi.unlock(m).await;
        unlock_all(m, &buffers).await;
        unlock_all(m, &inodes).await;
        self.end_commit(m, d, ticket, frees_blocks, (&inode, ParentChange::Remove)).await;
        m.run(Account::System, c.release).await;
        inode.iunlock(m).await;
        m.unlock(d.ilock, Side::Write).await;
    }

    /// A name is taken out of the blocks of its directory, which are locked: the directory's form, these buffers, and whether a block was
    /// emptied.
    pub(super) async fn remove_entry<M: Machine>(
        &self,
        m: &M,
        d: &XfsDirectory,
        name: &[u8],
    ) -> (DirForm, Blocks, bool) {
        let scan = self.passed_by(d, name) * self.costs.short.remove
            + self.check_names(d, name, Act::Remove)
            + self.check_remove();
        let removed = self.layout.borrow_mut().remove_name(d.id, name).map(|(_, touch)| touch);
        let (form, frees_blocks) =
            removed.map_or((DirForm::Short, false), |touch| (touch.before, touch.freed_blocks > 0));
        let touches = removed.map_or_else(Touches::default, |touch| touch.touches);
        let scan = scan + self.costs.scan_time(&touches);
        let buffers = self.directory_blocks(m, &[touches]);
        lock_all(m, &buffers).await;
        self.get_buffers(m, &touches).await;
        let finish = self.costs.unlink.finish + self.parents.intend();
        m.run(Account::System, scan + self.costs.remove_name_time(form) + finish).await;
        (form, buffers, frees_blocks)
    }

    /// Into the log go both inodes, the AGI, the blocks of the directory and the inodes in which the unlinked list changes.
    pub(super) async fn commit_remove<M: Machine>(
        &self,
        m: &M,
        items: Logged,
        form: DirForm,
        blocks: &Blocks,
        listed: &[Buffer],
    ) {
        let c = &self.costs.unlink;
        let each = (c.listed - c.alone).saturating_sub(c.traced_regions);
        m.run(Account::System, self.clusters.logging(m, listed, each)).await;
        self.log.commit(m, items.blocks(blocks).buffers(listed)).await;
        m.run(Account::System, self.costs.commit_remove_time(form)).await;
    }

    /// `xfs_iunlink`, with the AGI locked: the buffers of the inodes that the list is in.
    async fn iunlink<M: Machine>(&self, m: &M, d: &XfsDirectory, inode: Inode) -> arrayvec::ArrayVec<Buffer, 2> {
        let list = self.layout.borrow_mut().iunlink(inode.ino);
        let inodes = self.rewritten(m, list);
        self.log.precommit(m, &[d.item(), inode.item()]).await;
        if self.unlinked == UnlinkedList::OnDisk {
            lock_all(m, &inodes).await;
        }
        inodes
    }

    /// The buffers of the inodes in which an unlinked list changes, each once.
    pub(super) fn rewritten<M: Machine>(&self, m: &M, list: Unlinking) -> arrayvec::ArrayVec<Buffer, 2> {
        let mut buffers = arrayvec::ArrayVec::<Buffer, 2>::new();
        for agino in list.rewritten.into_iter().flatten() {
            let buffer = self.clusters.change(m, list.agno, agino);
            if !buffers.contains(&buffer) {
                buffers.push(buffer);
            }
        }
        buffers
    }

    /// `xfs_rename`: the new name in, the old one out, one transaction under the ILOCKs of directories and file, in the order of their
    /// numbers (`xfs_lock_inodes`). No allocation group is touched but for a directory block.
    pub(super) async fn xfs_rename<M: Machine>(
        &self,
        m: &M,
        (old, new): (&XfsDirectory, &XfsDirectory),
        names: Renaming<'_>,
        inode: Inode,
        under: Time,
    ) -> Result<(), NoSpace> {
        self.look_up_name(m, names.into, names.to).await;
        self.reserve_blocks(m).await?;
        let ticket = self.log.reserve(m, TR_RENAME).await;
        let inodes = sorted(old, new, &inode);
        for &(_, ilock) in &inodes {
            m.lock(ilock, Side::Write).await;
        }
        m.touch(old.line, Access::Write);
        let renamed = self.change_names(m, old, new, names, inode.ino)?;
        let mut logged = Logged::items([old.item(), inode.item()]).blocks(&renamed.buffers);
        if old.id != new.id {
            m.touch(new.line, Access::Write);
            logged = logged.and(new.item());
        }
        self.commit_rename(m, new, &renamed, logged, under).await;
        self.end_commit(m, old, ticket, renamed.shrinks, (&inode, ParentChange::Replace)).await;
        for &(_, ilock) in inodes.iter().rev() {
            m.unlock(ilock, Side::Write).await;
        }
        Ok(())
    }

    /// Changes the blocks of the directories and commits, with the group's free space where the new name needs a block.
    pub(super) async fn commit_rename<M: Machine>(
        &self,
        m: &M,
        new: &XfsDirectory,
        renamed: &Renamed,
        mut logged: Logged,
        under: Time,
    ) {
        lock_all(m, &renamed.buffers).await;
        for touches in &renamed.touches {
            self.get_buffers(m, touches).await;
        }
        let group = self.group_of(new.ino);
        if renamed.grows {
            m.run(Account::System, self.costs.space.agf).await;
            group.agf.lock(m).await;
            logged = logged.buffers(&[group.agf]).further(2);
        }
        m.run(Account::System, under + renamed.time + self.parents.reserve() + self.parents.intend()).await;
        self.log.commit(m, logged).await;
        unlock_all(m, &renamed.buffers).await;
        if renamed.grows {
            group.agf.unlock(m).await;
        }
    }

    /// The new name in, the old one out.
    fn change_names<M: Machine>(
        &self,
        m: &M,
        old: &XfsDirectory,
        new: &XfsDirectory,
        names: Renaming<'_>,
        ino: u64,
    ) -> Result<Renamed, NoSpace> {
        let scans = self.passed_by(new, names.to) * self.costs.short.add
            + self.passed_by(old, names.from) * self.costs.short.remove
            + self.check_names(old, names.from, Act::Remove)
            + self.check_rename();
        let mut layout = self.layout.borrow_mut();
        let added = layout.add_name(new.id, names.to, ino)?;
        let removed = layout.remove_name(old.id, names.from).map(|(_, touch)| touch);
        let (before, shrinks) = removed.map_or((DirForm::Short, false), |touch| (touch.before, touch.freed_blocks > 0));
        let touches = [added.touches, removed.map_or_else(Touches::default, |touch| touch.touches)];
        let same = old.id == new.id;
        drop(layout);
        let scans = scans + self.check_names(new, names.to, Act::Add);
        let scans = scans + touches.iter().map(|touches| self.costs.scan_time(touches)).sum::<Time>();
        let buffers = self.directory_blocks(m, &touches);
        let grows = added.new_blocks > 0;
        let space = &self.costs.space;
        let grown = scans + if grows { space.allocate + space.new_dir_block } else { 0 };
        let c = &self.costs;
        let left = if same {
            c.remove_name_time(added.after)
        } else {
            c.remove_name_time(before) + c.commit_names_time(before)
        };
        let entered = c.add_name_time(added.after) + c.commit_names_time(added.after);
        Ok(Renamed { buffers, time: entered + left + grown, grows, shrinks, touches })
    }

    /// The end of a commit, and where a directory's block was emptied, the rolled transaction that gives it back
    /// (`xfs_extent_free_finish_item`), still under the directory's ILOCK.
    pub(super) async fn end_commit<M: Machine>(
        &self,
        m: &M,
        d: &XfsDirectory,
        mut ticket: Ticket,
        frees: bool,
        (inode, change): (&Inode, ParentChange),
    ) {
        if frees {
            ticket = self.finish_free(m, self.group_of(d.ino).agf, ticket, Logged::items([d.item()])).await;
        }
        self.end_name(m, ticket, inode, change).await;
    }

    /// Blocks of a group go back in the rolled transaction, which also logs these items, and is the last.
    pub(super) async fn free_blocks<M: Machine>(&self, m: &M, agf: Buffer, ticket: Ticket, logged: Logged) {
        let ticket = self.finish_free(m, agf, ticket, logged).await;
        self.log.committed(m, ticket).await;
    }

    /// The same up to its end (`xfs_extent_free_finish_item`).
    async fn finish_free<M: Machine>(&self, m: &M, agf: Buffer, ticket: Ticket, logged: Logged) -> Ticket {
        let ticket = self.log.rolled(m, ticket).await;
        let c = &self.costs.space;
        m.run(Account::System, c.roll + c.free_agf).await;
        agf.lock(m).await;
        m.run(Account::System, c.free).await;
        self.log.commit(m, logged.buffers(&[agf]).further(2).freeing_extents()).await;
        m.run(Account::System, c.free_commit).await;
        agf.unlock(m).await;
        ticket
    }
}
