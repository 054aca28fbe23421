//! What the operations do to inodes and names in a transaction (`fs/btrfs/inode.c`): `btrfs_create_common`, `btrfs_unlink`, `btrfs_rename`
//! and `btrfs_evict_inode`, by searches in the filesystem's tree.
//!
//! A create goes down the tree four times (two lookups, the inode, the entry by hash), an unlink six times in all (the
//! entry, the orphan record, and in the eviction the reference, the inode, the orphan record again).

use super::super::data::Placed;
use super::super::mount::{Btrfs, Directory, Inode};
use super::super::space::delayed_refs::Extent;
use super::super::transaction::reclaim::{CREATE, ITEM, UNLINK};
use super::super::transaction::Handle;
use super::super::tree::items;
use super::super::tree::key::{Item, ItemKind, Key};
use super::super::tree::locks::TreeLocks;
use super::super::tree::search::{Intent, TreeOps};
use crate::filesystems::vfs::INODE_CALLBACKS;
use crate::filesystems::{DirId, NoSpace, Renaming};
use crate::waist::Machine;
use crate::waist::{Access, Account, Side, Time};

/// Changes of items leave their path spinning, but for those of the records of orphans (`fs/btrfs/orphan.c`).
fn leaving<L: TreeLocks>(ops: TreeOps<'_, L>, key: Key) -> TreeOps<'_, L> {
    if key.kind() == ItemKind::OrphanItem {
        ops.blocking()
    } else {
        ops
    }
}

impl Btrfs {
    /// `btrfs_start_transaction` of one item; where there is no room for it the run is over.
    pub(in crate::filesystems::btrfs) async fn start_transaction<M: Machine>(&self, m: &M) -> Handle {
        self.start_or_give_up(m, 1, false).await
    }

    /// The same of several; `steals`: as `btrfs_start_transaction_fallback_global_rsv`.
    pub(super) async fn start_or_give_up<M: Machine>(&self, m: &M, items: u64, steals: bool) -> Handle {
        match self.start_items(m, items, steals).await {
            Ok(handle) => handle,
            Err(NoSpace) => {
                m.give_up("no space left in the filesystem");
                self.transaction.join(m).await
            }
        }
    }

    pub(super) async fn start_items<M: Machine>(&self, m: &M, items: u64, steals: bool) -> Result<Handle, NoSpace> {
        self.reclaim_if_needed(m);
        let bytes = self.reserve_items(m, items, steals).await?;
        Ok(self.transaction.start(m, bytes).await)
    }

    /// `btrfs_end_transaction`: the room that is given back may be what somebody waits for.
    pub(in crate::filesystems::btrfs) async fn end_transaction<M: Machine>(&self, m: &M, handle: Handle) {
        self.transaction.end(m, handle).await;
        self.note_dirty_blocks(m).await;
        self.grant_tickets(m).await;
    }

    /// A search that changes nothing; `time` goes by with the leaf locked.
    pub(in crate::filesystems::btrfs) async fn read_item<M: Machine>(&self, m: &M, key: Key, time: Time) {
        let fs_root = self.fs_root_with(key);
        let locked = fs_root.root.locked(m);
        let ops = locked.ops();
        let (mut path, _) = ops.search_slot(key, Intent::Read).await;
        m.run(Account::System, fs_root.root.after_search(time)).await;
        ops.release_path(&mut path).await;
    }

    /// `btrfs_insert_empty_items`.
    pub(in crate::filesystems::btrfs) async fn insert<M: Machine>(&self, m: &M, new: &[Item], time: Time) {
        let fs_root = self.fs_root_with(new[0].key);
        let locked = fs_root.root.locked(m);
        let ops = leaving(locked.ops(), new[0].key);
        let (mut path, _) = ops.insert_items(new).await;
        m.run(Account::System, fs_root.root.after_insertion(time)).await;
        ops.release_path(&mut path).await;
    }

    /// A search for deletion, and `btrfs_del_items`.
    async fn delete<M: Machine>(&self, m: &M, key: Key, time: Time) {
        let fs_root = self.fs_root_with(key);
        let locked = fs_root.root.locked(m);
        let ops = leaving(locked.ops(), key);
        let (mut path, found) = ops.search_slot(key, Intent::Delete).await;
        m.run(Account::System, fs_root.root.after_search(time)).await;
        if found {
            ops.del_items(&mut path, 1).await;
        }
        ops.release_path(&mut path).await;
    }

    /// Inserts an item, or adds it to the one that has its key.
    pub(super) async fn extend<M: Machine>(&self, m: &M, item: Item, time: Time) {
        let fs_root = self.fs_root_with(item.key);
        let locked = fs_root.root.locked(m);
        let ops = locked.ops();
        let mut path = ops.insert_or_extend(item).await;
        m.run(Account::System, fs_root.root.after_insertion(time)).await;
        ops.release_path(&mut path).await;
    }

    /// `btrfs_insert_dir_item`: the entry by hash now, the entry by index later.
    pub(in crate::filesystems::btrfs) async fn insert_dir_item<M: Machine>(
        &self,
        m: &M,
        dir: DirId,
        d: Directory,
        name: &[u8],
        time: Time,
    ) -> u64 {
        self.extend(m, items::dir_item(d.ino, name), time).await;
        let index = self.next_index(dir);
        m.lock(d.delayed, Side::Write).await;
        m.touch(self.delayed_line, Access::Write);
        self.sb.line.owner(m).await; // fill_stack_inode_item
        self.delayed.borrow_mut().insert_index(dir, items::dir_index(d.ino, index, name));
        self.delayed.borrow_mut().update_inode(dir);
        m.unlock(d.delayed, Side::Write).await;
        self.update_root_times(m, d.ino).await;
        self.count_names(dir, 1);
        index
    }

    /// `btrfs_lookup` of a name that is free, unless it is known to be missing.
    pub(super) async fn look_up_name<M: Machine>(&self, m: &M, dir: DirId, name: &[u8]) {
        let (c, d) = (&self.costs.create, self.directory(dir));
        m.run(Account::System, self.sb.calls.lookup_free(dir, name, c.lookup)).await;
        if self.sb.calls.dcache.missing(dir, name).is_none() {
            self.read_item(m, items::dir_item(d.ino, name).key, c.read_leaf).await;
        }
    }

    /// `btrfs_create_common` under the directory's lock, of a file in a slot or of a directory: the new inode's number and index.
    pub(super) async fn new_inode<M: Machine>(
        &self,
        m: &M,
        dir: DirId,
        name: &[u8],
        slot: Option<u32>,
    ) -> Result<(u64, u64), NoSpace> {
        let (c, d) = (&self.costs.create, self.directory(dir));
        m.touch(d.line, Access::Write);
        let lookup = self.sb.calls.look_up(m, dir, name);
        self.look_up_name(m, dir, name).await;
        self.sb.calls.dcache.looked_up(m, lookup);
        if let Some(slot) = slot {
            self.sb.calls.made(m, slot, (dir, name));
        }
        m.run(Account::System, c.new_inode).await;
        self.read_item(m, items::inode_key(d.ino), c.read_leaf_again).await;
        m.run(Account::System, c.start).await;
        let handle = self.start_items(m, CREATE, false).await?;
        let fs_root = self.fs_root(d.ino);
        let ino = fs_root.take_ino(m).await;
        self.insert(m, &[items::inode(ino), items::inode_ref(ino, d.ino, name)], c.insert_inode).await;
        self.sb.line.owner(m).await; // fill_inode_item
        let rest = self.sb.inodes.enter(m, self.listed(ino), Some(ino), c.inode_new).await;
        let rest = fs_root.open_inodes.enter(m, rest).await;
        m.run(Account::System, rest).await;
        self.update_root_times(m, ino).await;
        if self.delays_new_inodes {
            self.update_root_times(m, ino).await;
            m.touch(self.delayed_line, Access::Write);
            m.run(Account::System, self.costs.delayed.update_inode).await;
            self.delayed.borrow_mut().update_new_inode(ino);
        }
        let index = self.insert_dir_item(m, dir, d, name, c.insert_entry).await;
        m.run(Account::System, c.tail).await;
        self.end_transaction(m, handle).await;
        self.btree_balance_dirty(m).await;
        Ok((ino, index))
    }

    /// `btrfs_unlink` under the directory's and the file's lock.
    pub(super) async fn unlink_inode<M: Machine>(&self, m: &M, d: Directory, name: &[u8], inode: &Inode, slot: u32) {
        let c = &self.costs.unlink;
        let handle = self.start_or_give_up(m, UNLINK, true).await;
        self.remove_name(m, d, name, inode, Some((slot, true))).await;
        self.update_root_times(m, inode.ino).await;
        self.insert(m, &[items::orphan(inode.ino)], c.insert_orphan).await;
        m.run(Account::System, c.tail).await;
        self.end_transaction(m, handle).await;
        self.btree_balance_dirty(m).await;
    }

    /// `btrfs_rmdir` under the same locks: a directory is an orphan before it loses its name.
    pub(super) async fn rmdir_inode<M: Machine>(&self, m: &M, d: Directory, name: &[u8], inode: &Inode) {
        let c = &self.costs.unlink;
        let handle = self.start_or_give_up(m, UNLINK, true).await;
        self.insert(m, &[items::orphan(inode.ino)], c.insert_orphan).await;
        self.remove_name(m, d, name, inode, None).await;
        self.update_root_times(m, inode.ino).await;
        m.run(Account::System, c.tail).await;
        self.end_transaction(m, handle).await;
        self.btree_balance_dirty(m).await;
    }

    /// A directory as an inode with this name in its parent.
    pub(super) fn inode_of_directory(&self, parent: DirId, name: &[u8], dir: Directory) -> Inode {
        let entry = items::dir_item(self.directory(parent).ino, name).key;
        Inode { ino: dir.ino, dir: parent, index: dir.index, entry, i_rwsem: dir.i_rwsem }
    }

    /// `btrfs_commit_inode_delayed_inode` of a directory that is being evicted, whose inode the eviction writes.
    pub(super) async fn commit_delayed_directory<M: Machine>(&self, m: &M, dir: DirId) {
        let mutex = self.directory(dir).delayed;
        m.lock(mutex, Side::Write).await;
        if self.delayed.borrow_mut().take_inode(dir) {
            self.finish_delayed(m, 1).await;
        }
        m.unlock(mutex, Side::Write).await;
    }

    /// `btrfs_unlink_inode`: the entry by hash now, the entry by index later. What the log has of a file is its slot's;
    /// it may be its last name.
    pub(super) async fn remove_name<M: Machine>(
        &self,
        m: &M,
        d: Directory,
        name: &[u8],
        inode: &Inode,
        slot: Option<(u32, bool)>,
    ) {
        let (c, dir) = (&self.costs.unlink, inode.dir);
        self.delete_entry(m, items::dir_item(d.ino, name), c.delete_entry).await;
        if let Some((slot, last)) = slot {
            if self.names.had_several(slot) {
                self.delete_entry(m, items::inode_ref(inode.ino, d.ino, name), c.delete_ref).await;
            }
            self.unlink_in_log(m, slot, *inode).await;
            self.lose_name(slot, inode, last);
            if last {
                self.forget_new_name(dir, slot);
            }
        }
        m.lock(d.delayed, Side::Write).await;
        m.touch(self.delayed_line, Access::Write);
        self.sb.line.owner(m).await;
        self.delayed.borrow_mut().delete_index(dir, items::dir_index(d.ino, inode.index, name).key);
        self.delayed.borrow_mut().update_inode(dir);
        m.unlock(d.delayed, Side::Write).await;
        self.count_names(dir, -1);
        self.transaction.reservations.release(m).await;
        m.run(Account::System, c.delayed_index).await;
        self.update_root_times(m, d.ino).await;
    }

    /// `btrfs_rename`: the reference to the new name in, the old entry and reference out, the new entry in.
    /// Returns the new name's index.
    pub(super) async fn rename_inode<M: Machine>(
        &self,
        m: &M,
        (old, new): (Directory, Directory),
        names: Renaming<'_>,
        inode: &Inode,
        [before_unlink, before_ref, before_link]: [Time; 3],
    ) -> u64 {
        let (create, unlink) = (&self.costs.create, &self.costs.unlink);
        m.run(Account::System, before_unlink).await;
        self.delete_entry(m, items::dir_item(old.ino, names.from), unlink.delete_entry).await;
        m.run(Account::System, before_ref).await;
        self.delete_entry(m, items::inode_ref(inode.ino, old.ino, names.from), unlink.delete_ref).await;
        m.run(Account::System, before_link).await;
        m.lock(old.delayed, Side::Write).await;
        m.touch(self.delayed_line, Access::Write);
        self.delayed.borrow_mut().delete_index(inode.dir, items::dir_index(old.ino, inode.index, names.from).key);
        if new.ino != old.ino {
            self.delayed.borrow_mut().update_inode(inode.dir);
        }
        m.unlock(old.delayed, Side::Write).await;
        self.update_root_times(m, old.ino).await; // of the directory
        self.update_root_times(m, inode.ino).await; // and of the file
        self.count_names(inode.dir, -1);
        self.insert_dir_item(m, names.into, new, names.to, create.insert_entry).await
    }

    /// Deletes an item, or its part of the one that has its key.
    pub(super) async fn delete_entry<M: Machine>(&self, m: &M, entry: Item, time: Time) {
        let fs_root = self.fs_root_with(entry.key);
        let locked = fs_root.root.locked(m);
        let ops = locked.ops();
        let (mut path, found) = ops.search_slot(entry.key, Intent::Delete).await;
        m.run(Account::System, fs_root.root.after_search(time)).await;
        if found {
            ops.delete_one_dir_name(&mut path, entry).await;
        }
        ops.release_path(&mut path).await;
    }

    /// The extents' part of `btrfs_truncate_inode_items`: with each search all that follow each other in the leaf.
    pub(super) async fn delete_extents<M: Machine>(&self, m: &M, ino: u64, mut extents: &[(Placed, Option<Placed>)]) {
        let fs_root = self.fs_root(ino);
        while let Some((first, _)) = extents.first() {
            let locked = fs_root.root.locked(m);
            let ops = locked.ops();
            let (mut path, found) = ops.search_slot(items::extent(ino, first.offset).key, Intent::Delete).await;
            m.run(Account::System, fs_root.root.after_search(self.costs.unlink.delete_inode)).await;
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

    /// `btrfs_free_extent` of data that were on disk. Those that another file uses stay.
    pub(in crate::filesystems::btrfs) async fn give_back_data<M: Machine>(&self, m: &M, extent: Option<Placed>) {
        let Some(Placed { place, bytes, .. }) = extent.filter(|extent| extent.bytes > 0) else { return };
        if self.extents.refs.unshare(place) {
            self.extents.refs.count_data(m, place, bytes).await;
        } else {
            self.extents.refs.give_back(m, place, Extent::Data(bytes), false).await;
        }
    }

    /// `btrfs_evict_inode`, in the task that dropped the last reference. The reference to a directory goes here if its deletion was delayed.
    pub(super) async fn evict<M: Machine>(
        &self,
        m: &M,
        d: Option<Directory>,
        inode: &Inode,
        pages: bool,
        extents: &[(Placed, Option<Placed>)],
    ) {
        let c = &self.costs.unlink;
        let time = if pages { self.sb.calls.without_lru(c.evict_pages) } else { c.evict };
        let rest = self.sb.inodes.leave(m, self.listed(inode.ino), Some(inode.ino), time).await;
        m.run(Account::System, rest).await;
        let room = self.reserve_for_eviction(m, ITEM / 2 + self.ref_bytes()).await;
        self.transaction.reservations.reserve(m).await; // `evict_refill_and_join`
        let handle = self.transaction.join(m).await;
        if let Some(d) = d {
            self.delete(m, items::inode_ref(inode.ino, d.ino, b"").key, c.delete_ref).await;
        }
        m.run(Account::System, c.truncate).await;
        self.delete_extents(m, inode.ino, extents).await;
        self.delete(m, items::inode_key(inode.ino), c.delete_inode).await;
        let open_inodes = &self.fs_root(inode.ino).open_inodes;
        m.run(Account::System, open_inodes.without(c.after_truncate)).await;
        self.delete(m, items::orphan(inode.ino).key, c.delete_orphan).await;
        self.end_transaction(m, handle).await;
        self.btree_balance_dirty_nodelay(m).await;
        self.transaction.reservations.release(m).await; // `btrfs_free_block_rsv`
        self.transaction.give_back(room);
        self.grant_tickets(m).await;
        open_inodes.leave(m).await; // btrfs_destroy_inode
        m.call_rcu(INODE_CALLBACKS, c.callback); // its memory
    }
}
