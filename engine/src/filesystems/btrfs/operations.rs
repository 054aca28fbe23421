//! btrfs operations as the kernel does them: `btrfs_create`, `btrfs_unlink` with the eviction in the same task, `btrfs_mkdir`,
//! buffered writes. Order and times are those of event traces of a 6.18 kernel.
//!
//! A create goes down the tree four times (two lookups, the inode, the entry by hash), an unlink six times in all (the
//! entry, the orphan record, and in the eviction the reference, the inode, the orphan record again).

use super::space::delayed_refs::Extent;
use super::tree::items;
use super::tree::key::{Item, ItemKind, Key};
use super::data::{FileData, Placed};
use super::mount::{Btrfs, Directory, Inode};
use super::space::reservations::Reservations;
use super::tree::search::{Intent, TreeLocks, TreeOps};
use super::transaction::Handle;
use crate::cost_table;
use crate::filesystems::{DirId, File, Filesystem, Io, LaidOut, NoSpace, PlainCall, Renaming};
use crate::machine::{Access, Account, Side, Time};
use crate::waist::Machine;

cost_table!(CreateCosts {
    walk: ["openat.before_i_rwsem"],
    lookup: ["openat.under_i_rwsem"],
    read_leaf: ["cu_l0.read_unlock_fs_l0"],
    new_inode: ["cu_l0.read_lock_fs_l0_2"],
    read_leaf_again: ["cu_l0.read_unlock_fs_l0_2"],
    start: ["cu_l0.read_lock_fs_l0_3"],
    insert_inode: ["cu_l0.write_unlock_fs_l0"],
    inode_new: ["cu_l0.inode_new", "cu_l0.read_lock_fs_l0_4"],
    insert_entry: ["cu_l0.write_unlock_fs_l0_2"],
    tail: ["openat.i_rwsem_tail"],
    open: ["openat.after_i_rwsem"],
    close: ["cu_l0.enter_close", "cu_l0.exit_close"],
});

cost_table!(WriteCosts {
    write: ["tmp_l0.enter_write", "tmp_l0.exit_write"],
    close: ["tmp_l0.enter_close", "tmp_l0.exit_close"],
});

cost_table!(UnlinkCosts {
    walk: ["cu_l0.enter_unlinkat", "unlinkat.before_i_rwsem"],
    lookup: ["unlinkat.under_i_rwsem"],
    delete_entry: ["cu_l0.write_unlock_fs_l0_3"],
    delayed_index: ["cu_l0.read_lock_fs_l0_6"],
    insert_orphan: ["cu_l0.write_unlock_fs_l0_4"],
    tail: ["unlinkat.i_rwsem_tail"],
    evict: ["unlinkat.after_i_rwsem", "cu_l0.read_lock_fs_l0_7"],
    evict_pages: ["unlinkat.after_i_rwsem", "tmp_l0.read_lock_fs_l0_7"],
    delete_ref: ["cu_l0.write_unlock_fs_l0_5"],
    truncate: ["cu_l0.read_lock_fs_l0_8"],
    delete_inode: ["cu_l0.write_unlock_fs_l0_6"],
    after_truncate: ["cu_l0.read_lock_fs_l0_9"],
    delete_orphan: ["cu_l0.write_unlock_fs_l0_7"],
    exit: ["cu_l0.exit_unlinkat"],
});

cost_table!(DelayedCosts {
    update_inode: ["delayed_update_inode"],
    run_node: ["delayed_run_node"],
});

/// Times of all operations.
pub(super) struct OperationCosts {
    delayed: DelayedCosts,
    create: CreateCosts,
    write: WriteCosts,
    unlink: UnlinkCosts,
}

impl OperationCosts {
    pub(super) fn new(costs: &crate::filesystems::costs::Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            delayed: DelayedCosts::new(costs)?,
            create: CreateCosts::new(costs)?,
            write: WriteCosts::new(costs)?,
            unlink: UnlinkCosts::new(costs)?,
        })
    }

    /// Takes what reservations are charged for out of the traced steps that they are part of.
    pub(super) fn without(mut self, reservations: &Reservations) -> Self {
        let Reservations { reserve_time, release_time, .. } = *reservations;
        let (create, unlink) = (&mut self.create, &mut self.unlink);
        for step in [&mut create.start, &mut unlink.lookup, &mut unlink.evict, &mut unlink.evict_pages] {
            *step = step.saturating_sub(reserve_time);
        }
        for step in [&mut create.tail, &mut unlink.delayed_index, &mut unlink.tail, &mut unlink.exit] {
            *step = step.saturating_sub(release_time);
        }
        let node = &mut self.delayed.run_node; // its handle, and its items' room
        *node = node.saturating_sub(2 * release_time);
        self
    }

    /// Of a worker, for each directory or inode, besides the work on the tree.
    pub(super) fn run_delayed_node(&self) -> Time {
        self.delayed.run_node
    }
}

/// Changes of items leave their path spinning, but for those of the records of orphans (`fs/btrfs/orphan.c`).
fn leaving<L: TreeLocks>(ops: TreeOps<'_, L>, key: Key) -> TreeOps<'_, L> {
    if key.kind() == ItemKind::OrphanItem {
        ops.blocking()
    } else {
        ops
    }
}

impl Btrfs {
    /// `btrfs_start_transaction`.
    pub(super) async fn start_transaction<M: Machine>(&self, m: &M) -> Handle {
        self.reclaim_if_needed(m);
        self.transaction.start(m).await
    }

    /// A search that changes nothing; `time` goes by with the leaf locked.
    pub(super) async fn read_item<M: Machine>(&self, m: &M, key: Key, time: Time) {
        let locked = self.fs_root.locked(m);
        let ops = locked.ops();
        let (mut path, _) = ops.search_slot(key, Intent::Read).await;
        m.run(Account::System, self.fs_root.after_search(time)).await;
        ops.release_path(&mut path).await;
    }

    /// `btrfs_insert_empty_items`.
    pub(super) async fn insert<M: Machine>(&self, m: &M, new: &[Item], time: Time) {
        let locked = self.fs_root.locked(m);
        let ops = leaving(locked.ops(), new[0].key);
        let (mut path, _) = ops.insert_items(new).await;
        m.run(Account::System, self.fs_root.after_insertion(time)).await;
        ops.release_path(&mut path).await;
    }

    /// A search for deletion, and `btrfs_del_items`.
    async fn delete<M: Machine>(&self, m: &M, key: Key, time: Time) {
        let locked = self.fs_root.locked(m);
        let ops = leaving(locked.ops(), key);
        let (mut path, found) = ops.search_slot(key, Intent::Delete).await;
        m.run(Account::System, self.fs_root.after_search(time)).await;
        if found {
            ops.del_items(&mut path, 1).await;
        }
        ops.release_path(&mut path).await;
    }

    /// Inserts an item, or adds it to the one that has its key.
    async fn extend<M: Machine>(&self, m: &M, item: Item, time: Time) {
        let locked = self.fs_root.locked(m);
        let ops = locked.ops();
        let mut path = ops.insert_or_extend(item).await;
        m.run(Account::System, self.fs_root.after_insertion(time)).await;
        ops.release_path(&mut path).await;
    }

    /// `btrfs_insert_dir_item`: the entry by hash now, the entry by index later.
    async fn insert_dir_item<M: Machine>(&self, m: &M, dir: DirId, d: Directory, name: &[u8], time: Time) -> u64 {
        self.extend(m, items::dir_item(d.ino, name), time).await;
        let index = self.next_index(dir);
        m.lock(d.delayed, Side::Write).await;
        m.touch(self.delayed_line, Access::Write);
        self.delayed.borrow_mut().insert_index(dir, items::dir_index(d.ino, index, name));
        self.delayed.borrow_mut().update_inode(dir);
        m.unlock(d.delayed, Side::Write).await;
        self.count_names(dir, 1);
        index
    }

    /// `btrfs_create_common` under the directory's lock: the new inode's number and index.
    async fn new_inode<M: Machine>(&self, m: &M, dir: DirId, d: Directory, name: &[u8]) -> (u64, u64) {
        let c = &self.costs.create;
        m.touch(d.line, Access::Write);
        m.run(Account::System, c.lookup).await;
        self.read_item(m, items::dir_item(d.ino, name).key, c.read_leaf).await;
        m.run(Account::System, c.new_inode).await;
        self.read_item(m, items::inode_key(d.ino), c.read_leaf_again).await;
        m.run(Account::System, c.start).await;
        let handle = self.start_transaction(m).await;
        let ino = self.next_ino();
        self.insert(m, &[items::inode(ino), items::inode_ref(ino, d.ino, name)], c.insert_inode).await;
        let rest = self.sb.inodes.pass(m, Some(ino), c.inode_new).await;
        m.run(Account::System, rest).await;
        if self.delays_new_inodes {
            m.touch(self.delayed_line, Access::Write);
            m.run(Account::System, self.costs.delayed.update_inode).await;
            self.delayed.borrow_mut().update_new_inode(ino);
        }
        let index = self.insert_dir_item(m, dir, d, name, c.insert_entry).await;
        m.run(Account::System, c.tail).await;
        self.transaction.end(m, handle).await;
        self.balance_delayed_items(m).await;
        (ino, index)
    }

    /// `btrfs_unlink` under the directory's and the file's lock.
    async fn unlink_inode<M: Machine>(&self, m: &M, dir: DirId, d: Directory, name: &[u8], inode: &Inode, slot: u32) {
        let c = &self.costs.unlink;
        let handle = self.start_transaction(m).await;
        self.delete_entry(m, items::dir_item(d.ino, name), c.delete_entry).await;
        self.unlink_in_log(m, slot, *inode).await;
        m.lock(d.delayed, Side::Write).await;
        m.touch(self.delayed_line, Access::Write);
        self.delayed.borrow_mut().delete_index(dir, items::dir_index(d.ino, inode.index, name).key);
        self.delayed.borrow_mut().update_inode(dir);
        m.unlock(d.delayed, Side::Write).await;
        self.count_names(dir, -1);
        self.transaction.reservations.release(m).await;
        m.run(Account::System, c.delayed_index).await;
        self.insert(m, &[items::orphan(inode.ino)], c.insert_orphan).await;
        m.run(Account::System, c.tail).await;
        self.transaction.end(m, handle).await;
        self.balance_delayed_items(m).await;
    }

    /// `btrfs_rename` within a directory: the reference to the new name in, the old entry and reference out, the new entry in.
    /// Returns the new name's index.
    async fn rename_inode<M: Machine>(&self, m: &M, dir: DirId, d: Directory, names: Renaming<'_>, inode: &Inode) -> u64 {
        let (create, unlink) = (&self.costs.create, &self.costs.unlink);
        self.extend(m, items::inode_ref(inode.ino, d.ino, names.to), create.insert_entry).await;
        self.delete_entry(m, items::dir_item(d.ino, names.from), unlink.delete_entry).await;
        self.delete_entry(m, items::inode_ref(inode.ino, d.ino, names.from), unlink.delete_ref).await;
        m.lock(d.delayed, Side::Write).await;
        m.touch(self.delayed_line, Access::Write);
        self.delayed.borrow_mut().delete_index(dir, items::dir_index(d.ino, inode.index, names.from).key);
        m.unlock(d.delayed, Side::Write).await;
        self.count_names(dir, -1);
        self.insert_dir_item(m, dir, d, names.to, create.insert_entry).await
    }

    /// Deletes an item, or its part of the one that has its key.
    async fn delete_entry<M: Machine>(&self, m: &M, entry: Item, time: Time) {
        let locked = self.fs_root.locked(m);
        let ops = locked.ops();
        let (mut path, found) = ops.search_slot(entry.key, Intent::Delete).await;
        m.run(Account::System, self.fs_root.after_search(time)).await;
        if found {
            ops.delete_one_dir_name(&mut path, entry).await;
        }
        ops.release_path(&mut path).await;
    }

    /// The extents' part of `btrfs_truncate_inode_items`: with each search all that follow each other in the leaf.
    async fn delete_extents<M: Machine>(&self, m: &M, ino: u64, mut extents: &[(Placed, Option<Placed>)]) {
        while let Some((first, _)) = extents.first() {
            let locked = self.fs_root.locked(m);
            let ops = locked.ops();
            let (mut path, found) = ops.search_slot(items::extent(ino, first.offset).key, Intent::Delete).await;
            m.run(Account::System, self.fs_root.after_search(self.costs.unlink.delete_inode)).await;
            let keys = extents.iter().map(|(extent, _)| items::extent(ino, extent.offset).key);
            let run = if found { ops.run_of_keys(&path, keys) } else { 0 };
            if run > 0 {
                ops.del_items(&mut path, run).await;
            }
            ops.release_path(&mut path).await;
            for &(_, on_disk) in &extents[..run.max(1)] {
                self.give_back_data(m, on_disk).await;
            }
            extents = &extents[run.max(1)..];
        }
    }

    /// `btrfs_free_extent` of data that were on disk.
    pub(super) async fn give_back_data<M: Machine>(&self, m: &M, extent: Option<Placed>) {
        if let Some(Placed { place, bytes, .. }) = extent.filter(|extent| extent.bytes > 0) {
            self.extents.refs.give_back(m, place, Extent::Data(bytes), false).await;
        }
    }

    /// `btrfs_evict_inode`, in the task that dropped the last reference.
    async fn evict<M: Machine>(&self, m: &M, d: Directory, inode: &Inode, pages: bool, extents: &[(Placed, Option<Placed>)]) {
        let c = &self.costs.unlink;
        let rest = self.sb.inodes.pass(m, Some(inode.ino), if pages { c.evict_pages } else { c.evict }).await;
        m.run(Account::System, rest).await;
        self.transaction.reservations.reserve(m).await; // `evict_refill_and_join`
        let handle = self.transaction.join(m).await;
        self.delete(m, items::inode_ref(inode.ino, d.ino, b"").key, c.delete_ref).await;
        m.run(Account::System, c.truncate).await;
        self.delete_extents(m, inode.ino, extents).await;
        self.delete(m, items::inode_key(inode.ino), c.delete_inode).await;
        m.run(Account::System, c.after_truncate).await;
        self.delete(m, items::orphan(inode.ino).key, c.delete_orphan).await;
        self.transaction.end(m, handle).await;
    }
}

impl<M: Machine> Filesystem<M> for Btrfs {
    async fn mkdir(&self, m: &M, name: &[u8]) -> Result<DirId, NoSpace> {
        m.at("mkdir");
        m.run(Account::System, self.costs.create.walk).await;
        self.sb.start_write(m).await;
        let root = self.directory(0);
        m.lock(root.i_rwsem, Side::Write).await;
        let (ino, _) = self.new_inode(m, 0, root, name).await;
        m.unlock(root.i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        Ok(self.add_directory(m, ino))
    }

    fn fill(&self, dirs: &[DirId], files: u64, name_length: usize) -> Result<(), NoSpace> {
        self.fill_with(dirs, files, name_length);
        Ok(())
    }

    async fn create(&self, m: &M, dir: DirId, name: &[u8]) -> Result<File, NoSpace> {
        m.at("create");
        m.run(Account::System, self.costs.create.walk).await;
        self.sb.start_write(m).await;
        let d = self.directory(dir);
        m.lock(d.i_rwsem, Side::Write).await;
        let (ino, index) = self.new_inode(m, dir, d, name).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, self.costs.create.open).await;
        let inode = Inode { ino, dir, index, i_rwsem: self.sb.new_file(m) };
        Ok(File { inode: self.add_file(inode), written: false, writable: true })
    }

    async fn open(&self, m: &M, _: DirId, file: &File) {
        self.sb.calls.open(m, file, self.costs.create.walk, self.costs.create.open).await;
    }

    async fn write(&self, m: &M, file: &mut File, bytes: u32) {
        m.at("write");
        let lock = self.file(file.inode).i_rwsem;
        m.lock(lock, Side::Write).await;
        self.reclaim_if_needed(m); // btrfs_delalloc_reserve_metadata
        self.sb.calls.append(m, self.costs.write.write, bytes).await;
        let end = self.data(file.inode).size();
        self.data(file.inode).write(end, u64::from(bytes), self.transid());
        self.dirtied(m, file.inode).await;
        m.unlock(lock, Side::Write).await;
        file.written = true;
    }

    async fn lay_out(&self, m: &M, dir: DirId, name: &[u8], laid: LaidOut) -> Result<File, NoSpace> {
        let file = self.create(m, dir, name).await?;
        let data = FileData::on_disk(laid.bytes, laid.extents, |bytes| self.extents.lay_out_data(bytes, !self.nodatacow));
        let ino = self.file(file.inode).ino;
        let handle = self.start_transaction(m).await;
        for extent in data.items(ino) {
            self.insert(m, &[extent], 0).await;
        }
        self.transaction.end(m, handle).await;
        *self.data(file.inode) = data;
        Ok(file)
    }

    async fn read_at(&self, m: &M, file: &File, io: Io) {
        if io.direct {
            return self.direct_read(m, file, io).await;
        }
        self.sb.calls.read(m, file, io.bytes).await;
    }

    async fn write_at(&self, m: &M, file: &File, io: Io) {
        if io.direct {
            return self.direct_write(m, file, io).await;
        }
        m.at("write");
        let lock = self.file(file.inode).i_rwsem;
        m.lock(lock, Side::Write).await;
        self.reclaim_if_needed(m);
        self.sb.calls.overwrite(m, file, io.bytes).await;
        self.data(file.inode).write(io.offset, u64::from(io.bytes), self.transid());
        self.dirtied(m, file.inode).await;
        m.unlock(lock, Side::Write).await;
    }

    async fn overwrite(&self, m: &M, file: &File, bytes: u32) {
        m.at("write");
        let lock = self.file(file.inode).i_rwsem;
        m.lock(lock, Side::Write).await;
        self.reclaim_if_needed(m);
        self.sb.calls.overwrite(m, file, bytes).await;
        self.data(file.inode).write(0, u64::from(bytes), self.transid());
        self.dirtied(m, file.inode).await;
        m.unlock(lock, Side::Write).await;
    }

    async fn read(&self, m: &M, file: &File, bytes: u32) {
        self.sb.calls.read(m, file, bytes).await;
    }

    async fn close(&self, m: &M, file: &File) {
        m.at("close");
        m.run(Account::System, if file.written { self.costs.write.close } else { self.costs.create.close }).await;
        self.sb.calls.put(m, file).await;
    }

    async fn fsync(&self, m: &M, file: &File) {
        self.sync_file(m, file).await;
    }

    async fn unlink(&self, m: &M, dir: DirId, name: &[u8], file: File) {
        let c = &self.costs.unlink;
        m.at("unlink");
        m.run(Account::System, c.walk).await;
        self.sb.start_write(m).await;
        let (d, inode) = (self.directory(dir), self.file(file.inode));
        m.lock(d.i_rwsem, Side::Write).await;
        m.touch(d.line, Access::Write);
        m.run(Account::System, c.lookup).await;
        m.lock(inode.i_rwsem, Side::Write).await;
        self.unlink_inode(m, dir, d, name, &inode, file.inode).await;
        m.unlock(inode.i_rwsem, Side::Write).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        m.at("evict");
        self.log.storage.writeback.forget(m, file.inode).await;
        self.ordered.wait_for_file(m, file.inode).await; // they hold the inode
        let extents = self.data(file.inode).drop_extents();
        self.evict(m, d, &inode, file.written, &extents).await;
        self.sb.end_write(m).await;
        m.run(Account::System, c.exit).await;
        self.drop_file(m, file.inode);
    }
    async fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File) -> Result<(), NoSpace> {
        let (before, under, after) = self.sb.calls.rename();
        m.at("rename");
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let (d, inode) = (self.directory(dir), self.file(file.inode));
        m.lock(d.i_rwsem, Side::Write).await;
        m.lock(inode.i_rwsem, Side::Write).await;
        m.touch(d.line, Access::Write);
        self.read_item(m, items::dir_item(d.ino, names.to).key, self.costs.create.read_leaf).await;
        m.run(Account::System, under).await;
        let handle = self.start_transaction(m).await;
        self.log.pin(m);
        self.record_rename(m, file.inode, dir).await;
        self.unlink_in_log(m, file.inode, inode).await;
        let index = self.rename_inode(m, dir, d, names, &inode).await;
        self.log_new_name(m, file.inode, inode.ino).await;
        self.log.end(m).await;
        self.transaction.end(m, handle).await;
        self.balance_delayed_items(m).await;
        self.set_index(file.inode, index);
        m.unlock(inode.i_rwsem, Side::Write).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
        m.run(Account::System, after).await;
        Ok(())
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
        let i_rwsem = self.file(file.inode).i_rwsem;
        m.lock(i_rwsem, Side::Write).await;
        let handle = self.transaction.join(m).await;
        m.run(Account::System, under).await;
        self.transaction.end(m, handle).await;
        m.unlock(i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
    }

    async fn readdir(&self, m: &M, dir: DirId) {
        let d = self.directory(dir);
        m.at("readdir");
        m.lock(d.i_rwsem, Side::Write).await; // to take the delayed items (btrfs_readdir_get_delayed_items)
        m.lock(d.delayed, Side::Write).await;
        m.unlock(d.delayed, Side::Write).await;
        m.unlock(d.i_rwsem, Side::Write).await;
        m.lock(d.i_rwsem, Side::Read).await;
        m.touch(d.line, Access::Read);
        let key = items::dir_index(d.ino, items::DIR_START_INDEX, b"").key;
        self.read_item(m, key, self.sb.calls.readdir(self.names(dir))).await;
        m.unlock(d.i_rwsem, Side::Read).await;
    }

    async fn plain(&self, m: &M, call: PlainCall) {
        self.sb.calls.plain(m, call).await;
    }
}
