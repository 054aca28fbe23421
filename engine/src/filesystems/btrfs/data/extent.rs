//! An extent of a file, on its way to the disk and in its place.

use super::super::tree::key::Item;

/// Data that are on their way to the disk, as the extent that they become.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Its item.
    pub item: Item,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its first byte on disk, when it has got there.
    pub place: u64,
    /// Bytes on disk; none if it is inline.
    pub bytes: u64,
}

/// An extent of a file, and where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Its first byte in the file.
    pub offset: u64,
    /// Its first byte on disk.
    pub place: u64,
    /// Bytes on disk; none if it is inline.
    pub bytes: u64,
    /// The transaction that put its item into the tree.
    pub generation: u64,
    /// It was allocated by `fallocate`, and nothing was written to it.
    pub unwritten: bool,
}

impl Extent {
    /// The byte of the file behind it, at least behind its first.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.max(1)
    }
}

impl Placed {
    pub(super) fn end(&self) -> u64 {
        self.offset + self.bytes
    }

    /// Where a byte of the file that lies in it is on disk.
    pub(super) fn place_of(&self, byte: u64) -> u64 {
        self.place + (byte - self.offset)
    }

    /// Whether another is behind it, in the file and on disk.
    pub(super) fn goes_on_in(&self, next: &Self) -> bool {
        (self.end(), self.place + self.bytes, self.unwritten) == (next.offset, next.place, next.unwritten)
    }

    /// What of it is behind a byte of the file.
    pub(super) fn behind(&self, byte: u64) -> Option<Self> {
        let skipped = byte - self.offset;
        (skipped < self.bytes).then(|| Self {
            offset: byte,
            place: self.place + skipped,
            bytes: self.bytes - skipped,
            ..*self
        })
    }
}

/// What an extent takes the place of.
#[derive(Clone, Debug, Default)]
pub struct Replaced {
    /// Extents that are nobody's any more.
    pub gone: Vec<Placed>,
    /// The end of one that reaches beyond it, which becomes an extent of its own.
    pub tail: Option<Placed>,
}
