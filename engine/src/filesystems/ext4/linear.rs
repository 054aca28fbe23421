//! The entries of a directory of one block, which are gone through one after the other (`fs/ext4/namei.c` of 6.12).

use super::directory::{LEAF_LINES, LINEAR_NAMES};
use super::Ext4;
use crate::cost_table;
use crate::filesystems::DirId;
use crate::waist::Time;
use std::hash::{DefaultHasher, Hash, Hasher};

cost_table!(pub(super) EntryCosts {
    search: ["dirent.search"],
    room: ["dirent.room"],
    delete: ["dirent.delete"],
});

/// A name of twelve bytes (`ext4_dir_rec_len`).
const ENTRY_BYTES: u32 = 20;

/// Names in the order of their places, and the holes that removed names have left.
#[derive(Default)]
pub(super) struct Entries(Vec<Option<u64>>);

impl Entries {
    /// A name takes the first hole (`ext4_find_dest_de`). A directory of more names than fit a block is an htree.
    pub fn enter(&mut self, name: &[u8]) {
        match self.0.iter().position(Option::is_none) {
            Some(hole) => self.0[hole] = Some(key(name)),
            None if self.0.len() < LINEAR_NAMES as usize => self.0.push(Some(key(name))),
            None => self.0.clear(),
        }
    }

    /// A name leaves a hole.
    pub fn leave(&mut self, name: &[u8]) {
        if let Some(place) = self.place(name) {
            self.0[place] = None;
            let used = self.0.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            self.0.truncate(used);
        }
    }

    fn place(&self, name: &[u8]) -> Option<usize> {
        let key = Some(key(name));
        self.0.iter().position(|&entry| entry == key)
    }

    /// How many names are before this one; all if it is not there.
    fn before(&self, name: &[u8]) -> Time {
        self.names_in(self.place(name))
    }

    /// How many names are before the first hole.
    fn before_room(&self) -> Time {
        self.names_in(self.0.iter().position(Option::is_none))
    }

    /// In which cache line of the block a name is, or would be.
    pub fn line_of(&self, name: &[u8]) -> u32 {
        let hole = || self.0.iter().position(Option::is_none);
        line_at(self.place(name).or_else(hole).unwrap_or(self.0.len()))
    }

    /// The last line of its record, which goes on to the next name or to the end of the block.
    pub fn end_of(&self, name: &[u8]) -> u32 {
        let behind = self.place(name).and_then(|place| {
            let next = self.0[place + 1..].iter().position(Option::is_some)?;
            Some(line_at(place + 1 + next))
        });
        behind.unwrap_or(LEAF_LINES - 1)
    }

    fn names_in(&self, end: Option<usize>) -> Time {
        self.0[..end.unwrap_or(self.0.len())].iter().flatten().count() as Time
    }
}

/// The cache line that the entry at a place begins in.
fn line_at(place: usize) -> u32 {
    (place as u32 * ENTRY_BYTES / 64).min(LEAF_LINES - 1)
}

fn key(name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

impl Ext4 {
    fn entries<T>(&self, dir: DirId, ask: impl FnOnce(&Entries) -> T) -> T {
        ask(&self.directories.borrow().of(dir).entries.borrow())
    }

    /// `ext4_search_dir`, besides the name itself, which the times of steps have.
    pub(super) fn search_time(&self, dir: DirId, name: &[u8]) -> Time {
        self.entry.search * self.entries(dir, |entries| entries.before(name))
    }

    /// `ext4_find_dest_de`.
    pub(super) fn room_time(&self, dir: DirId) -> Time {
        self.entry.room * self.entries(dir, Entries::before_room)
    }

    /// `ext4_generic_delete_entry`.
    pub(super) fn delete_time(&self, dir: DirId, name: &[u8]) -> Time {
        self.entry.delete * self.entries(dir, |entries| entries.before(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_takes_the_first_hole_and_is_found_behind_those_before_it() {
        let mut entries = Entries::default();
        for name in [b"a", b"b", b"c", b"d"] {
            entries.enter(name);
        }
        assert_eq!((entries.before(b"c"), entries.before(b"x"), entries.before_room()), (2, 4, 4));
        entries.leave(b"b");
        assert_eq!((entries.before(b"c"), entries.before(b"x"), entries.before_room()), (1, 3, 1));
        entries.enter(b"e");
        assert_eq!((entries.before(b"e"), entries.before_room()), (1, 4));
        entries.leave(b"d");
        assert_eq!(entries.before_room(), 3, "what is behind the last name is no hole");
    }

    #[test]
    fn an_htree_has_no_entries_to_go_through() {
        let mut entries = Entries::default();
        (0..=LINEAR_NAMES).for_each(|number| entries.enter(&number.to_le_bytes()));
        assert_eq!((entries.before(b"x"), entries.before_room()), (0, 0));
    }
}
