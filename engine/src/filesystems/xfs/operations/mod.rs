//! XFS operations as the kernel does them: `xfs_create`, `xfs_remove`, the inodegc worker's `xfs_inactive`, buffered writes
//! and `xfs_file_release`, with their lock order, their transactions, and what is released at commit.
//!
//! Order and times are those of function traces of a 6.18 kernel. The AGI of a directory's allocation group is held
//! from the inode allocation to commit in `create`, from the unlinked-list insertion to commit in `unlink`, and once more in
//! the worker that frees the inode later: three times a file.

pub mod file_io;
pub mod fsync;
pub mod inactive;
pub mod inodegc;
pub mod release;
pub mod walk;

use crate::cost_table;
use super::log::buffer::{lock_all, unlock_all, Buffer};
use super::structures::directory::DirForm;
use super::log::grant::{Ticket, TR_CREATE, TR_ICHANGE, TR_MKDIR, TR_REMOVE, TR_RENAME};
use super::inode::{Inode, InodeParts, Number};
use super::log::Logged;
use super::mount::{Xfs, XfsDirectory};
use super::structures::groups::NoSpace;
use super::structures::touch::BlockKind;
use super::structures::layout::{Unlinking, ROOT};
use crate::kernel::xfs::{Inactivation, UnlinkedList};
use crate::filesystems::{initial_files, DirId, File, Filesystem, Io, LaidOut, PlainCall, Renaming};
use crate::machine::{Access, Account, Side, Time};
use crate::waist::Machine;

cost_table!(CreateCosts {
    walk: ["openat.before_i_rwsem"],
    lookup: ["openat.under_i_rwsem"],
    lookup_end: ["cu_short.unlock_dir_ilock_shared"],
    lookup_node: ["cu_node.lock_dir_da_node", "cu_node.lock_dir_leafn", "cu_node.unlock_dir_da_node", "cu_node.unlock_dir_leafn"],
    lookup_data: ["create_node_agf.lock_dir_data", "create_node_agf.unlock_dir_data"],
    reserve: ["cu_short.log_reserve", "cu_short.trans_alloc", "cu_short.lock_dir_ilock_excl"],
    agi: ["cu_short.read_agi", "cu_short.lock_agi"],
    inode_btrees: ["cu_short.lock_finobt", "cu_short.lock_inobt"],
    iget_recycle: ["cu_short.iget_recycle", "cu_short.try_file_ilock_excl", "cu_short.unlock_file_ilock_excl", "cu_short.lock_file_ilock_excl"],
    iget_miss: ["create_node.iget_miss", "create_node.try_file_ilock_excl"],
    finish: ["cu_short.defer_finish", "cu_short.trans_commit"],
    commit: ["cu_short.unlock_agi"],
    commit_node: ["cu_node.unlock_agi"],
    release: ["cu_short.unlock_finobt", "cu_short.unlock_inobt", "cu_short.trans_free", "cu_short.unlock_file_ilock_excl_2", "cu_short.unlock_dir_ilock_excl"],
    tail: ["openat.i_rwsem_tail"],
    open: ["openat.after_i_rwsem"],
});

cost_table!(NameCosts {
    add_da_node: ["cu_node.lock_dir_da_node_2"],
    add_leafn: ["cu_node.lock_dir_leafn_2"],
    add_freeindex: ["cu_node.lock_dir_freeindex"],
    add_data: ["cu_node.lock_dir_data"],
    remove_da_node: ["cu_node.lock_dir_da_node_3"],
    remove_leafn: ["cu_node.lock_dir_leafn_3"],
    remove_freeindex: ["cu_node.lock_dir_freeindex_2"],
    remove_data: ["cu_node.lock_dir_data_2"],
});

cost_table!(SpaceCosts {
    agf: ["create_node_agf.read_agf", "create_node_agf.trylock_agf"],
    allocate: ["create_node_agf.lock_agfl", "create_node_agf.unlock_agfl", "create_node_agf.lock_cntbt", "create_node_agf.lock_bnobt", "create_node_agf.lock_bmbt"],
    new_dir_block: ["create_node_agf.lock_dir_freeindex_2"],
    commit: ["create_node_agf.unlock_agi"],
    roll: ["cu_node_agf.lock_bmbt_2", "cu_node_agf.defer_finish_2", "cu_node_agf.trans_roll", "cu_node_agf.trans_dup"],
    free_agf: ["cu_node_agf.read_agf_2", "cu_node_agf.lock_agf"],
    free: ["cu_node_agf.lock_agfl_2", "cu_node_agf.unlock_agfl_2", "cu_node_agf.lock_bnobt_2", "cu_node_agf.lock_cntbt_2", "cu_node_agf.trans_commit_3"],
    free_commit: ["cu_node_agf.unlock_agf_2", "cu_node_agf.unlock_bnobt_2", "cu_node_agf.unlock_cntbt_2", "cu_node_agf.trans_free_3"],
});

cost_table!(MkdirCosts {
    walk: ["mkdir_node.enter_mkdirat", "mkdir_node.lock_dir_ilock_shared"],
    reserve: ["mkdir_node.log_reserve", "mkdir_node.trans_alloc", "mkdir_node.lock_dir_ilock_excl"],
    agi: ["mkdir_node.read_agi", "mkdir_node.lock_agi"],
    inode: ["mkdir_node.lock_finobt", "mkdir_node.lock_inobt", "mkdir_node.iget_miss", "mkdir_node.try_file_ilock_excl"],
    finish: ["mkdir_node.defer_finish", "mkdir_node.trans_commit"],
    release: ["mkdir_node.unlock_finobt", "mkdir_node.unlock_inobt", "mkdir_node.trans_free", "mkdir_node.unlock_file_ilock_excl", "mkdir_node.unlock_dir_ilock_excl"],
    exit: ["mkdir_node.exit_mkdirat"],
});

cost_table!(WriteCosts {
    start: ["tmp_short.enter_write", "tmp_short.lock_file_iolock_excl"],
    attr: ["tmp_short.lock_file_ilock_shared", "tmp_short.unlock_file_ilock_shared", "tmp_short.file_buffered_write"],
    delalloc: ["tmp_short.lock_file_ilock_excl_2", "tmp_short.unlock_file_ilock_excl_3"],
    copy: ["tmp_short.unlock_file_iolock_excl"],
    end: ["tmp_short.exit_write"],
});

cost_table!(UnlinkCosts {
    walk: ["cu_short.enter_unlinkat", "unlinkat.before_i_rwsem"],
    lookup: ["unlinkat.under_i_rwsem"],
    reserve: ["cu_short.log_reserve_2", "cu_short.trans_alloc_2", "cu_short.lock_dir_ilock_excl_2", "cu_short.try_file_ilock_excl_2"],
    agi: ["cu_short.iunlink", "cu_short.read_agi_2", "cu_short.lock_agi_2"],
    finish: ["cu_short.defer_finish_2", "cu_short.trans_commit_2"],
    commit: ["cu_short.unlock_agi_2"],
    commit_node: ["cu_node.unlock_agi_2"],
    release: ["cu_short.trans_free_2", "cu_short.unlock_file_ilock_excl_3", "cu_short.unlock_dir_ilock_excl_2"],
    tail: ["unlinkat.i_rwsem_tail"],
    evict: ["unlinkat.after_i_rwsem"],
    queue: ["cu_short.inodegc_queue"],
    exit: ["cu_short.exit_unlinkat"],
    alone: ["unlink_node.lock_dir_da_node", "unlink_node.trans_commit", "unlink_node.unlock_agi"],
    listed: ["unlink_node_list.lock_dir_da_node", "unlink_node_list.trans_commit", "unlink_node_list.lock_inode_cluster", "unlink_node_list.unlock_agi", "unlink_node_list.unlock_inode_cluster"],
    evict_pages_and_all: ["tmp_short.inode_set_need_inactive"],
    evict_all: ["cu_short.inode_set_need_inactive"],
});

cost_table!(OpenCosts {
    open: ["wfsync.enter_openat", "wfsync.exit_openat"],
});

/// All times of the operations.
pub(super) struct OperationCosts {
    create: CreateCosts,
    mkdir: MkdirCosts,
    name: NameCosts,
    space: SpaceCosts,
    write: WriteCosts,
    unlink: UnlinkCosts,
    open: OpenCosts,
}

impl OperationCosts {
    pub(super) fn new(costs: &crate::filesystems::costs::Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            create: CreateCosts::new(costs)?,
            mkdir: MkdirCosts::new(costs)?,
            name: NameCosts::new(costs)?,
            space: SpaceCosts::new(costs)?,
            write: WriteCosts::new(costs)?,
            unlink: UnlinkCosts::new(costs)?,
            open: OpenCosts::new(costs)?,
        })
    }
}

impl<M: Machine> Filesystem<M> for Xfs {
    async fn mkdir(&self, m: &M, name: &[u8]) -> Result<DirId, NoSpace> {
        let c = &self.costs.mkdir;
        m.at("mkdir");
        self.sb.start_write(m).await;
        let parent = self.directory(ROOT.0);
        m.lock(parent.i_rwsem, Side::Write).await;
        m.run(Account::System, c.walk).await;
        self.lookup(m, &parent, name).await;
        let ticket = self.log.reserve(m, TR_MKDIR).await;
        m.run(Account::System, c.reserve).await;
        m.lock(parent.ilock, Side::Write).await;
        m.touch(parent.line, Access::Write);
        m.run(Account::System, c.agi).await;
        let (id, ino, form) = {
            let (id, made) = self.layout.borrow_mut().mkdir(ROOT, name)?;
            (id, made.inode.ino, made.dir.after)
        };
        let group = self.group_of(ino); // by the rotor, not the parent's
        group.agi.lock(m).await;
        group.finobt.lock(m).await;
        group.inobt.lock(m).await;
        let dir = self.new_directory(m, id, ino);
        m.run(Account::System, c.inode + self.add_name_time(form) + c.finish).await;
        self.log.commit(m, Logged::items([parent.item(), self.directory(dir).item(), group.agi.item(), group.finobt.item(), group.inobt.item()]).buffers(&parent.buffers(form))).await;
        m.run(Account::System, self.commit_time(form, false)).await;
        group.agi.unlock(m).await;
        group.finobt.unlock(m).await;
        group.inobt.unlock(m).await;
        self.log.committed(m, ticket).await;
        m.run(Account::System, c.release).await;
        m.unlock(parent.ilock, Side::Write).await;
        m.unlock(parent.i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, c.exit).await;
        Ok(dir)
    }

    fn fill(&self, dirs: &[DirId], files: u64, name_length: usize) -> Result<(), NoSpace> {
        let mut layout = self.layout.borrow_mut();
        initial_files(dirs, 0..files, name_length)
            .try_for_each(|(dir, name)| layout.create(self.directory(dir).id, &name).map(drop))
    }

    async fn create(&self, m: &M, dir: DirId, name: &[u8]) -> Result<File, NoSpace> {
        let c = &self.costs.create;
        m.at("create");
        m.run(Account::System, c.walk).await;
        self.sb.start_write(m).await;
        let d = self.directory(dir);
        m.lock(d.i_rwsem, Side::Write).await;
        m.run(Account::System, c.lookup).await;
        self.lookup(m, &d, name).await;
        let slot = self.xfs_create(m, &d, name).await?;
        m.run(Account::System, c.tail).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, c.open).await;
        Ok(File { inode: slot, written: false, writable: true })
    }

    async fn open(&self, m: &M, _: DirId, file: &File) {
        let (walk, whole) = (self.costs.create.walk, self.costs.open.open);
        self.sb.calls.open(m, file, walk.min(whole), whole.saturating_sub(walk)).await;
    }

    async fn write(&self, m: &M, file: &mut File, bytes: u32) {
        m.at("write");
        let c = &self.costs.write;
        let inode = self.inodes.inode(file.inode);
        m.run(Account::System, c.start).await;
        m.lock(inode.iolock, Side::Write).await;
        inode.peek(m).await;
        self.update_times(m, file.inode).await;
        inode.ilock(m).await;
        inode.iunlock(m).await;
        self.sync.dirty.append(file.inode, bytes);
        self.inodes.set_sized(file.inode);
        self.sb.calls.append(m, c.attr + c.delalloc + c.copy, bytes).await;
        self.dirtied(m, file.inode).await;
        m.unlock(inode.iolock, Side::Write).await;
        m.run(Account::System, c.end).await;
        file.written = true;
    }

    async fn overwrite(&self, m: &M, file: &File, bytes: u32) {
        m.at("write");
        let inode = self.inodes.inode(file.inode);
        m.lock(inode.iolock, Side::Write).await;
        self.update_times(m, file.inode).await;
        inode.peek(m).await; // xfs_bmbt_to_iomap
        self.sync.dirty.overwrite(file.inode, bytes);
        self.sb.calls.overwrite(m, file, bytes).await;
        self.dirtied(m, file.inode).await;
        m.unlock(inode.iolock, Side::Write).await;
    }

    async fn read(&self, m: &M, file: &File, bytes: u32) {
        m.at("read");
        let inode = self.inodes.inode(file.inode);
        m.lock(inode.iolock, Side::Read).await;
        self.sb.calls.read(m, file, bytes).await;
        m.unlock(inode.iolock, Side::Read).await;
    }

    async fn lay_out(&self, m: &M, dir: DirId, name: &[u8], laid: LaidOut) -> Result<File, NoSpace> {
        let file = self.create(m, dir, name).await?;
        let pages = self.io.open(m, file.inode, self.inodes.inode(file.inode), laid);
        self.storage.memory.lay_out(&pages);
        self.inodes.set_sized(file.inode);
        Ok(file)
    }

    async fn read_at(&self, m: &M, file: &File, io: Io) {
        self.read_file(m, file, io).await;
    }

    async fn write_at(&self, m: &M, file: &File, io: Io) {
        self.write_file(m, file, io).await;
    }

    async fn close(&self, m: &M, file: &File) {
        m.at("close");
        self.release(m, file).await;
        self.sb.calls.put(m, file).await;
    }

    async fn fsync(&self, m: &M, file: &File) {
        self.sync_file(m, file.inode).await;
    }

    async fn unlink(&self, m: &M, dir: DirId, name: &[u8], file: File) {
        let c = &self.costs.unlink;
        m.at("unlink");
        m.run(Account::System, c.walk).await;
        self.sb.start_write(m).await;
        let d = self.directory(dir);
        m.lock(d.i_rwsem, Side::Write).await;
        m.run(Account::System, c.lookup).await;
        let inode = self.inodes.inode(file.inode);
        m.lock(inode.iolock, Side::Write).await; // the victim
        self.xfs_remove(m, &d, name, inode).await;
        m.unlock(inode.iolock, Side::Write).await;
        m.run(Account::System, c.tail).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        self.storage.writeback.forget(m, file.inode).await;
        self.evict(m, file).await;
        self.sb.end_write(m).await;
        m.run(Account::System, c.exit).await;
    }

    async fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File) -> Result<(), NoSpace> {
        let (before, under, after) = self.sb.calls.rename();
        m.at("rename");
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let (d, inode) = (self.directory(dir), self.inodes.inode(file.inode));
        m.lock(d.i_rwsem, Side::Write).await;
        m.lock(inode.iolock, Side::Write).await;
        let done = self.xfs_rename(m, &d, names, inode, under).await;
        m.unlock(inode.iolock, Side::Write).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, after).await;
        done
    }

    async fn stat(&self, m: &M, file: &File) {
        self.sb.calls.stat(m, file).await;
    }

    async fn fstat(&self, m: &M, file: &File) {
        self.sb.calls.fstat(m, file).await;
    }

    async fn set_times(&self, m: &M, file: &File) {
        m.at("utimes");
        let (before, under) = self.sb.calls.setattr();
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let inode = self.inodes.inode(file.inode);
        m.lock(inode.iolock, Side::Write).await;
        let ticket = self.log.reserve(m, TR_ICHANGE).await;
        inode.ilock(m).await;
        self.log.commit(m, Logged::items([inode.item()])).await;
        m.run(Account::System, under).await;
        self.log.committed(m, ticket).await;
        inode.iunlock(m).await;
        m.unlock(inode.iolock, Side::Write).await;
        self.sb.end_write(m).await;
    }

    async fn walk(&self, m: &M, dir: DirId, nth: u32) {
        self.walk_to(m, dir, nth).await;
    }

    async fn readdir(&self, m: &M, dir: DirId) {
        let d = self.directory(dir);
        m.at("readdir");
        m.lock(d.i_rwsem, Side::Read).await;
        m.lock(d.ilock, Side::Read).await;
        m.touch(d.line, Access::Read);
        let names = self.layout.borrow().dir(d.id).names();
        m.run(Account::System, self.sb.calls.readdir(names)).await;
        m.unlock(d.ilock, Side::Read).await;
        m.unlock(d.i_rwsem, Side::Read).await;
    }

    async fn plain(&self, m: &M, call: PlainCall) {
        self.sb.calls.plain(m, call).await;
    }
}

impl Xfs {
    /// `xfs_lookup`: the directory's ILOCK shared, and its blocks down to the leaf.
    async fn lookup<M: Machine>(&self, m: &M, d: &XfsDirectory, name: &[u8]) {
        let c = &self.costs.create;
        m.lock(d.ilock, Side::Read).await;
        let time = {
            let layout = self.layout.borrow();
            let node = layout.dir(d.id).form() == DirForm::Node;
            // A data block is read only where another name has the same hash.
            let collides = node && layout.lookup(d.id, name).1.has(BlockKind::DirData);
            c.lookup_end + if node { c.lookup_node } else { 0 } + if collides { c.lookup_data } else { 0 }
        };
        m.run(Account::System, time).await;
        m.unlock(d.ilock, Side::Read).await;
    }

    /// `xfs_create`: allocates an inode under the AGI, adds the name, commits. Returns the new file's slot.
    async fn xfs_create<M: Machine>(&self, m: &M, d: &XfsDirectory, name: &[u8]) -> Result<u32, NoSpace> {
        let c = &self.costs.create;
        let ticket = self.log.reserve(m, TR_CREATE).await;
        m.run(Account::System, c.reserve).await;
        m.lock(d.ilock, Side::Write).await;
        m.touch(d.line, Access::Write);
        m.run(Account::System, c.agi).await;
        let group = self.group_of(d.ino);
        group.agi.lock(m).await;
        group.finobt.lock(m).await;
        group.inobt.lock(m).await;
        let (number, new_chunk) = self.dialloc(d)?;
        let (slot, recycled) = self.inodes.iget(m, self.inode_parts(m, number), number).await;
        self.sync.made(m, slot);
        let inode = self.inodes.inode(slot);
        inode.ilock(m).await;
        let iget = if recycled { c.iget_recycle } else { c.iget_miss };
        let mut work = c.inode_btrees + self.sb.inodes.pass(m, None, iget).await; // in no hash: inode_fake_hash
        let touch = self.layout.borrow_mut().add_name(d.id, name, number.ino)?;
        let (form, new_blocks) = (touch.after, touch.new_blocks);
        let mut d = *d;
        let buffers = d.buffers(form);
        lock_all(m, &buffers).await;
        work += self.add_name_time(form);
        let allocates = new_chunk || new_blocks > 0;
        if allocates {
            work += self.costs.space.agf;
            m.run(Account::System, work).await;
            group.agf.lock(m).await;
            work = self.costs.space.allocate + if new_blocks > 0 { self.costs.space.new_dir_block } else { 0 };
        }
        m.run(Account::System, work + c.finish).await;
        if new_blocks > 0 {
            self.renew_data_block(&mut d, &touch.touches);
        }
        let mut logged = Logged::items([d.item(), inode.item(), group.agi.item(), group.finobt.item(), group.inobt.item()]).buffers(&d.buffers(form));
        if allocates {
            logged = logged.buffers(&[group.agf]).further(2);
        }
        self.log.commit(m, logged).await;
        m.run(Account::System, self.commit_time(form, allocates)).await;
        group.agi.unlock(m).await;
        group.finobt.unlock(m).await;
        group.inobt.unlock(m).await;
        unlock_all(m, &buffers).await;
        if allocates {
            group.agf.unlock(m).await;
        }
        self.log.committed(m, ticket).await;
        m.run(Account::System, c.release).await;
        inode.iunlock(m).await;
        m.unlock(d.ilock, Side::Write).await;
        Ok(slot)
    }

    fn inode_parts<M: Machine>(&self, m: &M, number: Number) -> InodeParts {
        let [iolock, ilock, flags_lock] = self.inode_classes;
        let cluster = self.clusters.of(m, number.agno, number.agino);
        InodeParts { iolock, ilock, flags_lock, lines: self.inode_lines, cluster }
    }

    /// `xfs_dialloc` on the structures: the new inode's number, and whether a chunk was allocated for it.
    fn dialloc(&self, d: &XfsDirectory) -> Result<(Number, bool), NoSpace> {
        let mut layout = self.layout.borrow_mut();
        let new = layout.dialloc(d.id)?;
        let (agno, agino) = layout.geometry().split_ino(new.ino);
        Ok((Number { agno, agino, ino: new.ino }, new.new_chunk))
    }

    /// `xfs_remove`: puts the inode on the AGI's unlinked list, removes the name, commits.
    async fn xfs_remove<M: Machine>(&self, m: &M, d: &XfsDirectory, name: &[u8], inode: Inode) {
        let c = &self.costs.unlink;
        let ticket = self.log.reserve(m, TR_REMOVE).await;
        m.run(Account::System, c.reserve).await;
        m.lock(d.ilock, Side::Write).await;
        m.touch(d.line, Access::Write);
        inode.ilock(m).await;
        m.run(Account::System, c.agi).await;
        let group = self.group_of(inode.ino);
        group.agi.lock(m).await;
        let list = self.layout.borrow_mut().iunlink(inode.ino);
        let inodes = self.rewritten(m, list);
        self.log.precommit(m, &[d.item(), inode.item()]).await;
        if self.iunlink == UnlinkedList::OnDisk {
            lock_all(m, &inodes).await;
        }
        let (form, frees_blocks) = {
            let removed = self.layout.borrow_mut().remove_name(d.id, name);
            removed.map_or((DirForm::Short, false), |(_, touch)| (touch.before, touch.freed_blocks > 0))
        };
        let buffers = d.buffers(form);
        lock_all(m, &buffers).await;
        m.run(Account::System, self.remove_name_time(form) + c.finish).await;
        if self.iunlink == UnlinkedList::InMemory {
            lock_all(m, &inodes).await;
        }
        m.run(Account::System, (c.listed - c.alone) * inodes.len() as Time).await;
        self.log.commit(m, Logged::items([d.item(), inode.item(), group.agi.item()]).buffers(&buffers).buffers(&inodes)).await;
        m.run(Account::System, if form == DirForm::Node { c.commit_node } else { c.commit }).await;
        group.agi.unlock(m).await;
        unlock_all(m, &buffers).await;
        unlock_all(m, &inodes).await;
        self.end_commit(m, d, ticket, frees_blocks).await;
        m.run(Account::System, c.release).await;
        inode.iunlock(m).await;
        m.unlock(d.ilock, Side::Write).await;
    }

    /// The buffers of the inodes in which an unlinked list changes, each once.
    pub(super) fn rewritten<M: Machine>(&self, m: &M, list: Unlinking) -> arrayvec::ArrayVec<Buffer, 2> {
        let mut buffers = arrayvec::ArrayVec::<Buffer, 2>::new();
        for agino in list.rewritten.into_iter().flatten() {
            let buffer = self.clusters.of(m, list.agno, agino);
            if !buffers.contains(&buffer) {
                buffers.push(buffer);
            }
        }
        buffers
    }

    /// `xfs_rename` within one directory: the new name in, the old one out, one transaction under the directory's and the file's
    /// ILOCK. No allocation group is touched but for a directory block.
    async fn xfs_rename<M: Machine>(&self, m: &M, d: &XfsDirectory, names: Renaming<'_>, inode: Inode, under: Time) -> Result<(), NoSpace> {
        self.lookup(m, d, names.to).await;
        let ticket = self.log.reserve(m, TR_RENAME).await;
        m.lock(d.ilock, Side::Write).await;
        m.touch(d.line, Access::Write);
        inode.ilock(m).await;
        let (form, added, freed) = {
            let mut layout = self.layout.borrow_mut();
            let added = layout.add_name(d.id, names.to, inode.ino)?;
            let removed = layout.remove_name(d.id, names.from);
            (added.after, added.new_blocks > 0, removed.is_some_and(|(_, touch)| touch.freed_blocks > 0))
        };
        let buffers = d.buffers(form);
        lock_all(m, &buffers).await;
        let space = &self.costs.space;
        let larger = self.add_name_time(form) + self.remove_name_time(form);
        let group = self.group_of(d.ino);
        if added {
            m.run(Account::System, space.agf).await;
            group.agf.lock(m).await;
        }
        m.run(Account::System, under + larger + if added { space.allocate + space.new_dir_block } else { 0 }).await;
        let mut logged = Logged::items([d.item(), inode.item()]).buffers(&buffers);
        if added {
            logged = logged.buffers(&[group.agf]).further(2);
        }
        self.log.commit(m, logged).await;
        unlock_all(m, &buffers).await;
        if added {
            group.agf.unlock(m).await;
        }
        self.end_commit(m, d, ticket, freed).await;
        inode.iunlock(m).await;
        m.unlock(d.ilock, Side::Write).await;
        Ok(())
    }

    /// The last reference goes: pages are dropped, the inode is queued for this CPU's worker.
    async fn evict<M: Machine>(&self, m: &M, file: File) {
        let c = &self.costs.unlink;
        let pages = if file.written { c.evict_pages_and_all.saturating_sub(c.evict_all) } else { 0 };
        let rest = self.sb.inodes.pass(m, None, c.evict + pages + c.queue).await;
        m.run(Account::System, rest).await;
        self.inodes.set_need_inactive(file.inode);
        let gc = match self.inactivation {
            Inactivation::Task => return self.inactive(m, file.inode, file.written).await,
            Inactivation::PerCpu => &self.inodegc[m.cpu() as usize],
            Inactivation::PerGroup => &self.inodegc[self.group_number(self.inodes.inode(file.inode).ino)],
        };
        if let Some(flushed) = gc.queue(m, file.inode, file.written) {
            m.wchan("xfs_inodegc_queue");
            m.wait_for(flushed).await;
        }
    }

    /// The end of a commit, and where a directory's block was emptied, the rolled transaction that gives it back
    /// (`xfs_extent_free_finish_item`), still under the directory's ILOCK.
    async fn end_commit<M: Machine>(&self, m: &M, d: &XfsDirectory, ticket: Ticket, frees: bool) {
        if !frees {
            return self.log.committed(m, ticket).await;
        }
        let ticket = self.log.rolled(m, ticket).await;
        let c = &self.costs.space;
        m.run(Account::System, c.roll + c.free_agf).await;
        let group = self.group_of(d.ino);
        group.agf.lock(m).await;
        m.run(Account::System, c.free).await;
        self.log.commit(m, Logged::items([d.item(), group.agf.item()]).further(2).freeing_extents()).await;
        m.run(Account::System, c.free_commit).await;
        group.agf.unlock(m).await;
        self.log.committed(m, ticket).await;
    }

    /// A create's commit up to the first release, by how many buffers it has joined.
    fn commit_time(&self, form: DirForm, allocates: bool) -> Time {
        match form {
            DirForm::Node if allocates => self.costs.space.commit,
            DirForm::Node => self.costs.create.commit_node,
            _ => self.costs.create.commit,
        }
    }

    fn add_name_time(&self, form: DirForm) -> Time {
        let c = &self.costs.name;
        match form {
            DirForm::Short => 0,
            DirForm::Block => c.add_data,
            DirForm::Leaf => c.add_leafn + c.add_data,
            DirForm::Node => c.add_da_node + c.add_leafn + c.add_freeindex + c.add_data,
        }
    }

    fn remove_name_time(&self, form: DirForm) -> Time {
        let c = &self.costs.name;
        match form {
            DirForm::Short => 0,
            DirForm::Block => c.remove_data,
            DirForm::Leaf => c.remove_leafn + c.remove_data,
            DirForm::Node => c.remove_da_node + c.remove_leafn + c.remove_data + c.remove_freeindex,
        }
    }
}
