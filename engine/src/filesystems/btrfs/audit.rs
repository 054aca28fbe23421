//! What `btrfs check` looks at: items of files and directories as the names need, every extent in use known to the extent tree and no
//! other, free space as the rest, checksums of the data that are there.
//!
//! What is delayed counts as done: delayed items are put into a copy of the tree, delayed refs into a copy of the list of extents.

use super::fs_root::{is_root_directory, subvolume_of};
use super::mount::Btrfs;
use super::space::cache_files::CacheFiles;
use super::space::delayed_refs::{Change, Extent, Head};
use super::space::runs::tiles;
use super::space::Usage;
use super::subvolume::now;
use super::transaction::delayed::Prepared;
use super::tree::items;
use super::tree::key::{Item, ItemKind, Key, NODE_SIZE};
use super::tree::locks::NoLocks;
use super::tree::search::{TreeOps, DEFAULT_RULES};
use super::tree::Tree;
use crate::filesystems::ledger::Ledger;
use crate::filesystems::{Audit, BLOCK, ROOT};
use crate::gathered::gathered;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Extents on disk: first byte and what lies there.
type Extents = BTreeMap<u64, Extent>;

impl Audit for Btrfs {
    fn under_way(&self) -> Option<&'static str> {
        let rest = [
            (self.storage.writeback.at_rest(), "writeback"),
            (self.workers.at_rest(), "a worker of delayed items"),
            (self.transaction.at_rest(), "a handle or a commit"),
            (self.ordered.at_rest(), "an ordered extent"),
            (self.extents.refs.at_rest(), "a delayed ref"),
        ];
        rest.into_iter().find(|(rests, _)| !rests).map(|(_, what)| what)
    }

    fn audit(&self, ledger: &Ledger) -> Result<(), String> {
        self.delayed.borrow().audit()?;
        let items = self.settled_items()?;
        let checks = self.of_trees(|name, tree| tree.check().map_err(|e| format!("{name} tree: {e}")));
        checks.into_iter().collect::<Result<(), String>>()?;
        self.audit_names(&items, ledger)?;
        self.audit_data_items(&items, ledger)?;
        let told = self.told();
        self.audit_free_space_tree(&told)?;
        self.audit_extents(&told, ledger)?;
        self.audit_users(ledger)?;
        self.audit_space(ledger)?;
        self.audit_csums(&told, ledger)
    }
}

impl Btrfs {
    /// What `look` answers of each tree that the extent tree knows, by the kind of the tree.
    fn of_trees<T>(&self, mut look: impl FnMut(&'static str, &Tree) -> T) -> Vec<T> {
        let e = &self.extents;
        let space = [("extent", &e.extent), ("free space", &e.free_space), ("csum", &e.csum), ("root", &e.roots)];
        let subvolumes = self.fs_roots.borrow();
        let all = subvolumes.iter().map(|fs_root| ("fs", &fs_root.root)).chain(space);
        all.map(|(name, root)| look(name, &root.tree.borrow())).collect()
    }

    /// The items of all subvolumes, with all that is delayed.
    fn settled_items(&self) -> Result<Vec<Item>, String> {
        let subvolumes = self.fs_roots.borrow();
        let trees: Vec<_> = subvolumes.iter().map(|fs_root| fs_root.root.tree.clone()).collect();
        let mut delayed = self.delayed.borrow().clone();
        while let Some(next) = delayed.next_prepared() {
            match next {
                Prepared::File(_) => _ = delayed.finish(1),
                Prepared::Directory(dir) => {
                    let tree = &trees[subvolume_of(self.directory(dir).ino) as usize];
                    while let Some(batch) = delayed.next_batch(dir) {
                        let count = batch.len();
                        now(TreeOps::new(tree, &NoLocks, DEFAULT_RULES).commit_batch(batch));
                        delayed.finish(count);
                    }
                }
            }
        }
        if delayed.items() > 0 {
            return Err(format!("{} delayed items are counted that belong to nothing", delayed.items()));
        }
        let trees = trees.into_iter().map(RefCell::into_inner);
        trees.map(|tree| tree.check().map(|()| items_of(&tree)).map_err(|e| format!("fs tree: {e}"))).try_fold(
            Vec::new(),
            |mut all, items| {
                all.extend(items?);
                Ok(all)
            },
        )
    }

    /// Inodes, references and entries against the names.
    fn audit_names(&self, items: &[Item], ledger: &Ledger) -> Result<(), String> {
        let (needed, has) = (self.needed(ledger)?, Items::of(items)?);
        needed.refs.compare(&has.refs, "references")?;
        needed.entries.compare(&has.entries, "entries by index")?;
        if needed.inodes != has.inodes {
            return Err(format!("{} inodes are there, {} have names", has.inodes, needed.inodes));
        }
        let keys = needed.hashed.keys().chain(has.hashed.keys());
        match keys.into_iter().find(|key| needed.hashed.get(key) != has.hashed.get(key)) {
            None => Ok(()),
            Some(key) => {
                Err(format!("directory {}'s entry of hash {} is not what its names need", key.objectid(), key.offset()))
            }
        }
    }

    /// What the names need.
    fn needed(&self, ledger: &Ledger) -> Result<Items, String> {
        let mut needed = Items { inodes: 1, ..Items::default() };
        let all = ledger.directories();
        let subvolumes = all.iter().filter(|(dir, ..)| is_root_directory(self.directory(*dir).ino));
        let subvolumes: BTreeMap<_, _> = gathered(subvolumes.map(|(dir, parent, name)| ((*parent, name), *dir)));
        for dir in subvolumes.values().copied().chain([ROOT]) {
            needed.refs.add(self.directory(dir).ino, u64::from(items::inode_ref(0, 0, b"..").size));
        }
        for (dir, names) in ledger.names() {
            let ino = self.directory(dir).ino;
            if self.names_in(dir) as usize != names.len() {
                return Err(format!(
                    "directory {ino} counts {} names, {} should be there",
                    self.names_in(dir),
                    names.len()
                ));
            }
            needed.inodes += names.len();
            for name in names {
                let entry = items::dir_item(ino, &name);
                if !subvolumes.contains_key(&(dir, &name)) {
                    needed.refs.add(ino, u64::from(items::inode_ref(0, 0, &name).size));
                }
                needed.entries.add(ino, u64::from(entry.size));
                *needed.hashed.entry(entry.key).or_default() += u64::from(entry.size);
            }
        }
        needed.inodes -= ledger.files().len() - ledger.inodes().len();
        let mut known = BTreeSet::new();
        for (dir, _, slot) in ledger.files() {
            if !known.insert((dir, slot)) {
                needed.refs.join(self.directory(dir).ino);
            }
        }
        Ok(needed)
    }

    /// Items of file extents against the files' own lists.
    fn audit_data_items(&self, items: &[Item], ledger: &Ledger) -> Result<(), String> {
        let slots = ledger.files().into_iter().map(|(_, _, slot)| slot);
        let expected =
            slots.flat_map(|slot| self.data(slot).items(self.file(slot).ino)).map(|item| (item.key, item.size));
        let has = items.iter().filter(|item| item.key.kind() == ItemKind::ExtentData).map(|item| (item.key, item.size));
        let (expected, has): (BTreeSet<_>, BTreeSet<_>) = (gathered(expected), gathered(has));
        match expected.symmetric_difference(&has).next() {
            None => Ok(()),
            Some((key, _)) => {
                Err(format!("the extent of inode {} at byte {} is not what the file has", key.objectid(), key.offset()))
            }
        }
    }

    /// What the extent tree has been told.
    fn told(&self) -> Extents {
        let extent = |item: &Item| match item.key.kind() {
            ItemKind::MetadataItem => Some((item.key.objectid(), Extent::Block(item.key.offset() as u8))),
            ItemKind::ExtentItem => Some((item.key.objectid(), Extent::Data(item.key.offset()))),
            _ => None,
        };
        gathered(items_of(&self.extents.extent.tree.borrow()).iter().filter_map(extent))
    }

    /// Free extents and those that the extent tree has been told of fill each block group.
    fn audit_free_space_tree(&self, told: &Extents) -> Result<(), String> {
        if self.extents.caches.is_some() {
            return Ok(());
        }
        let mut free = BTreeMap::new();
        let mut counted = BTreeMap::new();
        for item in items_of(&self.extents.free_space.tree.borrow()) {
            let (start, bytes) = (item.key.objectid(), item.key.offset());
            match item.key.kind() {
                ItemKind::FreeSpaceInfo => _ = counted.insert(start, bytes),
                _ => _ = free.insert(start, bytes),
            }
        }
        let groups = items_of(&self.extents.extent.tree.borrow());
        let groups = groups
            .iter()
            .filter(|item| item.key.kind() == ItemKind::BlockGroupItem && item.key.objectid() != items::CHUNK_TREE);
        for group in groups {
            let (start, end) = (group.key.objectid(), group.key.objectid() + group.key.offset());
            if counted.get(&start) != Some(&(end - start)) {
                return Err(format!("the block group at {start} has no free space"));
            }
            let used = told.range(start..end).map(|(&place, extent)| (place, extent.bytes(), "an extent"));
            let free = free.range(start..end).map(|(&place, &bytes)| (place, bytes, "free space"));
            tiles(used.chain(free).collect(), start, end).map_err(|e| format!("trees: {e}"))?;
        }
        Ok(())
    }

    /// The extents that trees and files use are those that the extent tree knows, or is still to be told of.
    fn audit_extents(&self, told: &Extents, ledger: &Ledger) -> Result<(), String> {
        let mut known = told.clone();
        for Head { place, extent, change } in
            self.extents.refs.heads().into_iter().filter(|head| matches!(head.change, Change::Added | Change::Dropped))
        {
            let added = change == Change::Added;
            let before = if added { known.insert(place, extent) } else { known.remove(&place) };
            if before.is_some() == added {
                return Err(format!("a delayed ref of {extent:?} at {place} has nothing to do"));
            }
        }
        let mut used = self.data_extents(ledger);
        self.of_trees(|_, tree| {
            used.extend(tree.blocks().map(|block| (tree.place(block), Extent::Block(tree.level(block) as u8))));
        });
        for (place, extent) in &used {
            if known.get(place) != Some(extent) {
                return Err(format!("{extent:?} at {place} is used, the extent tree has {:?}", known.get(place)));
            }
        }
        let others = known.iter().filter(|(place, _)| !used.contains_key(place)).collect::<Vec<_>>();
        let of_mkfs = items::OTHER_TREES + 1 + self.extents.refs.space.borrow().ballast().len();
        if others.len() != of_mkfs {
            return Err(format!(
                "{} extents are in the extent tree and nobody's, besides {of_mkfs} of mkfs: {:?}",
                others.len(),
                others.last()
            ));
        }
        Ok(())
    }

    /// Free space in memory: what is used, given back and free fills each block group, and is what is counted.
    fn audit_space(&self, ledger: &Ledger) -> Result<(), String> {
        let space = self.extents.refs.space.borrow();
        let mut used: BTreeSet<(u64, u64)> =
            gathered(self.data_extents(ledger).iter().map(|(&place, extent)| (place, extent.bytes())));
        let mut use_all =
            |tree: &Tree| used.extend(tree.blocks().map(|block| (tree.place(block), u64::from(NODE_SIZE))));
        self.of_trees(|_, tree| use_all(tree));
        self.fs_roots.borrow().iter().for_each(|fs_root| use_all(&fs_root.log.root.tree.borrow()));
        use_all(&self.log_roots.root.tree.borrow());
        used.extend(space.ballast().iter().map(|&place| (place, u64::from(NODE_SIZE))));
        space.audit(&Usage { used: used.into_iter().collect(), others: items::OTHER_TREES })
    }

    /// Data that the extent tree has heard of or is to hear of have sums, also those that came and went meanwhile, and no others; what
    /// was allocated and not written has none.
    fn audit_csums(&self, told: &Extents, ledger: &Ledger) -> Result<(), String> {
        let block = u64::from(BLOCK);
        let mut data: BTreeMap<u64, u64> = BTreeMap::new();
        let waiting = self
            .extents
            .refs
            .heads()
            .into_iter()
            .filter(|head| head.change != Change::Dropped)
            .map(|head| (head.place, head.extent));
        for (place, extent) in told.iter().map(|(&place, &extent)| (place, extent)).chain(waiting) {
            if let Extent::Data(bytes) = extent {
                data.insert(place, bytes.next_multiple_of(block));
            }
        }
        let sums = items_of(&self.extents.csum.tree.borrow());
        let sums = sums.iter().map(|item| (item.key.offset(), u64::from(item.size / 4) * block));
        let caches = self.extents.caches.iter().flat_map(CacheFiles::extents);
        for (place, bytes) in self.unwritten(ledger).into_iter().chain(caches) {
            take_out(&mut data, place, bytes);
        }
        let (expected, has) = (joined(if self.nodatacow { BTreeMap::new() } else { data }), joined(gathered(sums)));
        let differs =
            expected.iter().find(|run| !has.contains(run)).or_else(|| has.iter().find(|run| !expected.contains(run)));
        match differs {
            None => Ok(()),
            Some((place, end)) => Err(format!("checksums are not those of the data: bytes {place} to {end}")),
        }
    }

    /// Data have as many users as there are files with them.
    fn audit_users(&self, ledger: &Ledger) -> Result<(), String> {
        let mut users: BTreeMap<u64, u32> = BTreeMap::new();
        let slots: BTreeSet<u32> = gathered(ledger.files().iter().map(|&(_, _, slot)| slot));
        for place in slots.into_iter().flat_map(|slot| self.data(slot).on_device()).map(|(place, _)| place) {
            *users.entry(place).or_default() += 1;
        }
        match users.iter().find(|&(&place, &count)| self.extents.refs.users(place) != count) {
            None => Ok(()),
            Some((place, count)) => {
                let told = self.extents.refs.users(*place);
                Err(format!("{count} files use the data at {place}, {told} are counted"))
            }
        }
    }

    /// What files have allocated and not written.
    fn unwritten(&self, ledger: &Ledger) -> Vec<(u64, u64)> {
        let files = ledger.files();
        files.iter().flat_map(|&(_, _, slot)| self.data(slot).unwritten()).collect()
    }

    /// Extents on disk that files use.
    fn data_extents(&self, ledger: &Ledger) -> Extents {
        let files = ledger.files();
        let places = files.iter().flat_map(|&(_, _, slot)| self.data(slot).on_device());
        let caches = self.extents.caches.iter().flat_map(CacheFiles::extents);
        gathered(places.chain(caches).map(|(place, bytes)| (place, Extent::Data(bytes))))
    }
}

/// Items that names are made of.
#[derive(Default)]
struct Items {
    inodes: usize,
    /// By directory.
    refs: Sizes,
    entries: Sizes,
    /// By hash: bytes.
    hashed: BTreeMap<Key, u64>,
}

impl Items {
    /// Of subvolumes; the error names one that belongs to nothing.
    fn of(items: &[Item]) -> Result<Self, String> {
        let (mut has, mut inode) = (Self::default(), 0);
        for item in items {
            let (key, size) = (item.key, u64::from(item.size));
            match key.kind() {
                ItemKind::InodeItem => (has.inodes, inode) = (has.inodes + 1, key.objectid()),
                ItemKind::OrphanItem => return Err(format!("inode {} is still an orphan", key.offset())),
                kind if inode != key.objectid() => {
                    return Err(format!(
                        "there is an {} of inode {}, which does not exist",
                        kind.name(),
                        key.objectid()
                    ));
                }
                ItemKind::InodeRef => has.refs.add(key.offset(), size),
                ItemKind::DirIndex => has.entries.add(key.objectid(), size),
                ItemKind::DirItem => _ = has.hashed.insert(key, size),
                ItemKind::ExtentData => (),
                kind => return Err(format!("an {} of inode {} is in the fs tree", kind.name(), key.objectid())),
            }
        }
        Ok(has)
    }
}

/// How many items each object has, and their bytes.
#[derive(Default)]
struct Sizes(BTreeMap<u64, (usize, u64)>);

impl Sizes {
    fn add(&mut self, object: u64, size: u64) {
        let sum = self.0.entry(object).or_default();
        *sum = (sum.0 + 1, sum.1 + size);
    }

    /// Two of an object's items are one: names of one inode in a directory.
    fn join(&mut self, object: u64) {
        self.0.entry(object).or_default().0 -= 1;
    }

    fn compare(&self, has: &Self, what: &str) -> Result<(), String> {
        for object in self.0.keys().chain(has.0.keys()) {
            let at = |sizes: &Self| sizes.0.get(object).copied().unwrap_or_default();
            let ((needs, needed), (items, bytes)) = (at(self), at(has));
            if (needs, needed) != (items, bytes) {
                return Err(format!(
                    "directory {object} has {items} {what} of {bytes} bytes, its names need {needs} of {needed}"
                ));
            }
        }
        Ok(())
    }
}

fn items_of(tree: &Tree) -> Vec<Item> {
    let leaves = tree.blocks().filter(|&block| tree.level(block) == 0);
    leaves.flat_map(|leaf| tree.items(leaf).to_vec()).collect()
}

/// A range goes out of the one in which it lies.
fn take_out(runs: &mut BTreeMap<u64, u64>, place: u64, bytes: u64) {
    let Some((&first, &all)) = runs.range(..=place).next_back() else { return };
    let (end, behind) = (first + all, place + bytes);
    runs.remove(&first);
    runs.extend([(first, place - first), (behind, end - behind)].into_iter().filter(|&(_, bytes)| bytes > 0));
}

/// Runs of bytes, those that touch together: first byte and the one behind the last.
fn joined(runs: BTreeMap<u64, u64>) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (place, bytes) in runs {
        match joined.last_mut() {
            Some(last) if last.1 == place => last.1 += bytes,
            _ => joined.push((place, place + bytes)),
        }
    }
    joined
}
