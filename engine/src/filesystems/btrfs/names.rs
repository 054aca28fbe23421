//! Names of files that have several. Without one of them, an inode knows its only name (`dir_index`).

use super::tree::key::Key;
use crate::filesystems::DirId;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub dir: DirId,
    /// Its place in its directory's `DIR_INDEX` items.
    pub index: u64,
    /// The key of its entry by hash there.
    pub entry: Key,
}

/// By slot of the files that were ever given another name: those that they have besides the one in their inode.
#[derive(Debug, Default)]
pub(super) struct Names(RefCell<BTreeMap<u32, Vec<Name>>>);

impl Names {
    /// A file gets another name.
    pub fn add(&self, slot: u32, name: Name) {
        self.0.borrow_mut().entry(slot).or_default().push(name);
    }

    /// Whether a file was ever given another name: then its inode does not know the index of any (`btrfs_link` clears `dir_index`).
    pub fn had_several(&self, slot: u32) -> bool {
        self.0.borrow().contains_key(&slot)
    }

    /// How many of these names are in a directory.
    pub fn count_in(&self, slot: u32, dir: DirId) -> usize {
        self.0.borrow().get(&slot).into_iter().flatten().filter(|name| name.dir == dir).count()
    }

    /// Directories of a file's names, besides that in its inode.
    pub fn directories(&self, slot: u32) -> Vec<DirId> {
        self.0.borrow().get(&slot).into_iter().flatten().map(|name| name.dir).collect()
    }

    /// One of these names by its entry.
    pub fn find(&self, slot: u32, dir: DirId, entry: Key) -> Option<Name> {
        let names = self.0.borrow();
        names.get(&slot)?.iter().find(|name| name.dir == dir && name.entry == entry).copied()
    }

    /// One of them becomes another or goes; false if the inode has that name.
    pub fn replace(&self, slot: u32, old: Name, new: Option<Name>) -> bool {
        let mut all = self.0.borrow_mut();
        let Some(names) = all.get_mut(&slot) else { return false };
        let Some(place) = names.iter().position(|name| *name == old) else { return false };
        match new {
            Some(new) => names[place] = new,
            None => _ = names.remove(place),
        }
        true
    }

    /// The one that was given last, which is the inode's from now on.
    pub fn pop(&self, slot: u32) -> Option<Name> {
        self.0.borrow_mut().get_mut(&slot)?.pop()
    }

    /// The file goes.
    pub fn forget(&self, slot: u32) {
        self.0.borrow_mut().remove(&slot);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::items::dir_item;
    use super::*;

    fn name(dir: DirId, index: u64) -> Name {
        Name { dir, index, entry: dir_item(u64::from(dir), &index.to_le_bytes()).key }
    }

    #[test]
    fn a_name_is_found_changed_and_dropped_and_the_last_becomes_the_inode_s() {
        let names = Names::default();
        assert!(!names.had_several(3) && !names.replace(3, name(1, 1), None));
        names.add(3, name(1, 2));
        names.add(3, name(2, 5));
        assert_eq!(names.find(3, 1, name(1, 2).entry), Some(name(1, 2)));
        assert_eq!(names.find(3, 2, name(1, 2).entry), None);
        assert!(names.replace(3, name(1, 2), Some(name(4, 9))));
        assert_eq!(names.directories(3), [4, 2]);
        assert!(names.replace(3, name(4, 9), None));
        assert_eq!((names.pop(3), names.pop(3), names.had_several(3)), (Some(name(2, 5)), None, true));
        names.forget(3);
        assert!(!names.had_several(3));
    }
}
