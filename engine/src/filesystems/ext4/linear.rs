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

/// A name, and where in the block its entry begins. An entry goes on to the next, so what removed ones leave joins the one before them
/// (`ext4_generic_delete_entry`).
struct Entry {
    name: u64,
    at: u32,
    bytes: u32,
}

impl Entry {
    fn end(&self) -> u32 {
        self.at + self.bytes
    }
}

/// Entries in the order of their places.
#[derive(Default)]
pub(super) struct Entries(Vec<Entry>);

impl Entries {
    /// A name takes the first gap that is large enough (`ext4_find_dest_de`). Returns whether there is one; where there is none the
    /// directory becomes an htree (`make_indexed_dir`), whose entries are not gone through.
    pub fn enter(&mut self, name: &[u8]) -> bool {
        let bytes = record_bytes(name);
        let (place, at) = self.gap(bytes);
        if at + bytes > LINEAR_BYTES {
            self.0 = Vec::new();
            return false;
        }
        self.0.insert(place, Entry { name: key(name), at, bytes });
        true
    }

    /// A name leaves a gap.
    pub fn leave(&mut self, name: &[u8]) {
        if let Some(place) = self.place(name) {
            self.0.remove(place);
        }
    }

    fn place(&self, name: &[u8]) -> Option<usize> {
        let key = key(name);
        self.0.iter().position(|entry| entry.name == key)
    }

    /// How many names are before this one; all if it is not there.
    fn before(&self, name: &[u8]) -> Time {
        self.place(name).unwrap_or(self.0.len()) as Time
    }

    /// How many names are before the first place for so many bytes, and where that is.
    fn gap(&self, bytes: u32) -> (usize, u32) {
        let mut at = 0;
        for (place, entry) in self.0.iter().enumerate() {
            if entry.at - at >= bytes {
                return (place, at);
            }
            at = entry.end();
        }
        (self.0.len(), at)
    }

    /// How many names are before the first place for this one.
    fn before_room(&self, name: &[u8]) -> Time {
        self.gap(record_bytes(name)).0 as Time
    }

    /// In which cache line of the block a name is, or would be.
    pub fn line_of(&self, name: &[u8]) -> u32 {
        line_at(self.place(name).map_or_else(|| self.gap(record_bytes(name)).1, |place| self.0[place].at))
    }

    /// The last line of its record, which goes on to the next name or to the end of the block.
    pub fn end_of(&self, name: &[u8]) -> u32 {
        let behind = self.place(name).and_then(|place| self.0.get(place + 1));
        behind.map_or(LEAF_LINES - 1, |next| line_at(next.at))
    }
}

/// The cache line that what is at a place of the block begins in.
fn line_at(at: u32) -> u32 {
    (at / 64).min(LEAF_LINES - 1)
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
    fn a_name_takes_the_first_gap_and_is_found_behind_those_before_it() {
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
        assert_eq!(entries.before_room(b"x"), 3, "what is behind the last name is room");
    }

    #[test]
    fn a_long_name_fits_the_gap_of_two_short_ones_that_lay_side_by_side() {
        let mut entries = Entries::default();
        for name in [&b"short"[..], b"other", b"stays"] {
            entries.enter(name);
        }
        entries.leave(b"short");
        assert_eq!((entries.before_room(b"names"), entries.before_room(b"a long name")), (0, 2));
        entries.leave(b"other");
        assert_eq!(entries.before_room(b"a long name"), 0);
    }

    #[test]
    fn a_name_without_room_makes_an_htree_of_the_directory() {
        let mut entries = Entries::default();
        assert!((0..LINEAR_BYTES / 12).all(|number| entries.enter(&number.to_le_bytes())));
        entries.leave(&7_u32.to_le_bytes());
        assert!(!entries.enter(b"too long for that gap"));
        assert_eq!((entries.before(b"x"), entries.before_room(b"x")), (0, 0));
    }
}
