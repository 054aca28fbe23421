//! The entries of a directory of one block, which are gone through one after the other (`fs/ext4/namei.c` of 6.12).

use super::directory::{LEAF_LINES, LINEAR_BYTES};
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

/// Bytes of a name's entry (`ext4_dir_rec_len`).
pub(super) fn record_bytes(name: &[u8]) -> u32 {
    (name.len() as u32 + 8).next_multiple_of(4)
}

/// A place in the block, and the name that is there if it is no hole that a removed one has left.
struct Entry {
    name: Option<u64>,
    bytes: u32,
}

/// Entries in the order of their places.
#[derive(Default)]
pub(super) struct Entries(Vec<Entry>);

impl Entries {
    /// A name takes the first hole (`ext4_find_dest_de`). A directory of more names than fit a block is an htree.
    pub fn enter(&mut self, name: &[u8]) {
        let (entry, bytes) = (Some(key(name)), record_bytes(name));
        match self.hole(bytes) {
            Some(hole) => self.0[hole].name = entry,
            None if self.bytes_before(self.0.len()) + bytes <= LINEAR_BYTES => {
                self.0.push(Entry { name: entry, bytes })
            }
            None => self.0.clear(),
        }
    }

    /// A name leaves a hole.
    pub fn leave(&mut self, name: &[u8]) {
        if let Some(place) = self.place(name) {
            self.0[place].name = None;
            let used = self.0.iter().rposition(|entry| entry.name.is_some()).map_or(0, |last| last + 1);
            self.0.truncate(used);
        }
    }

    fn place(&self, name: &[u8]) -> Option<usize> {
        let key = Some(key(name));
        self.0.iter().position(|entry| entry.name == key)
    }

    /// How many names are before this one; all if it is not there.
    fn before(&self, name: &[u8]) -> Time {
        self.names_in(self.place(name))
    }

    /// The first hole that has room for so many bytes.
    fn hole(&self, bytes: u32) -> Option<usize> {
        self.0.iter().position(|entry| entry.name.is_none() && entry.bytes >= bytes)
    }

    fn bytes_before(&self, place: usize) -> u32 {
        self.0[..place].iter().map(|entry| entry.bytes).sum()
    }

    /// How many names are before the first place for this one.
    fn before_room(&self, name: &[u8]) -> Time {
        self.names_in(self.hole(record_bytes(name)))
    }

    /// In which cache line of the block a name is, or would be.
    pub fn line_of(&self, name: &[u8]) -> u32 {
        let place = self.place(name).or_else(|| self.hole(record_bytes(name)));
        self.line_at(place.unwrap_or(self.0.len()))
    }

    /// The last line of its record, which goes on to the next name or to the end of the block.
    pub fn end_of(&self, name: &[u8]) -> u32 {
        let behind = self.place(name).and_then(|place| {
            let next = self.0[place + 1..].iter().position(|entry| entry.name.is_some())?;
            Some(self.line_at(place + 1 + next))
        });
        behind.unwrap_or(LEAF_LINES - 1)
    }

    fn names_in(&self, end: Option<usize>) -> Time {
        self.0[..end.unwrap_or(self.0.len())].iter().filter(|entry| entry.name.is_some()).count() as Time
    }

    /// The cache line that the entry at a place begins in.
    fn line_at(&self, place: usize) -> u32 {
        (self.bytes_before(place) / 64).min(LEAF_LINES - 1)
    }
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
    pub(super) fn room_time(&self, dir: DirId, name: &[u8]) -> Time {
        self.entry.room * self.entries(dir, |entries| entries.before_room(name))
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
        assert_eq!((entries.before(b"c"), entries.before(b"x"), entries.before_room(b"x")), (2, 4, 4));
        entries.leave(b"b");
        assert_eq!((entries.before(b"c"), entries.before(b"x"), entries.before_room(b"x")), (1, 3, 1));
        entries.enter(b"e");
        assert_eq!((entries.before(b"e"), entries.before_room(b"x")), (1, 4));
        entries.leave(b"d");
        assert_eq!(entries.before_room(b"x"), 3, "what is behind the last name is no hole");
    }

    #[test]
    fn a_long_name_does_not_fit_the_hole_of_a_short_one() {
        let mut entries = Entries::default();
        for name in [&b"short"[..], b"other"] {
            entries.enter(name);
        }
        entries.leave(b"short");
        assert_eq!((entries.before_room(b"names"), entries.before_room(b"a long name")), (0, 1));
    }

    #[test]
    fn an_htree_has_no_entries_to_go_through() {
        let mut entries = Entries::default();
        (0..=LINEAR_BYTES / 12).for_each(|number| entries.enter(&number.to_le_bytes()));
        assert_eq!((entries.before(b"x"), entries.before_room(b"x")), (0, 0));
    }
}
