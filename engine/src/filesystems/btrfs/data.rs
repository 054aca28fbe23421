//! What is known in memory of a file's data: its size, what waits to be written, where its extents begin, and whether the log has it.

use super::items;
use super::key::Item;
use crate::filesystems::BLOCK;
use std::ops::Range;

/// Most bytes of a file that lies in the tree itself (`BTRFS_DEFAULT_MAX_INLINE`).
const MAX_INLINE: u64 = 2048;
/// Most bytes of an extent (`BTRFS_MAX_EXTENT_SIZE`).
const MAX_EXTENT: u64 = 128 << 20;

/// A file's data.
#[derive(Clone, Debug, Default)]
pub struct FileData {
    size: u64,
    dirty: Vec<Range<u64>>,
    /// Its extents, in order.
    extents: Vec<Placed>,
    inline: bool,
    /// The transaction that changed it last.
    changed: u64,
    /// The transaction whose log has it, and whether that has all changes.
    logged: u64,
    logged_all: bool,
    /// The transactions that made it and that renamed it last (`last_unlink_trans`).
    made: u64,
    renamed: u64,
    /// Its items were not all logged or committed since it was made (`BTRFS_INODE_NEEDS_FULL_SYNC`).
    is_new: bool,
}

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its first byte in the file.
    pub offset: u64,
    /// Its first byte on disk.
    pub place: u64,
    /// Bytes on disk; none if it is inline.
    pub bytes: u64,
}

impl FileData {
    /// A file just made in this transaction.
    pub fn new(transid: u64) -> Self {
        Self { changed: transid, made: transid, is_new: true, ..Self::default() }
    }

    /// A file of this size that is on disk, its extents where `allocate` puts them.
    pub fn on_disk(size: u64, extents: u64, mut allocate: impl FnMut(u64) -> u64) -> Self {
        let each = (size / extents.max(1)).next_multiple_of(u64::from(BLOCK)).clamp(u64::from(BLOCK), MAX_EXTENT);
        let place = |offset: u64| {
            let bytes = each.min((size - offset).next_multiple_of(u64::from(BLOCK)));
            Placed { offset, place: allocate(bytes), bytes }
        };
        let extents = (0..size).step_by(each as usize).map(place).collect();
        Self { size, extents, ..Self::default() }
    }

    /// The end of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Its extents, in order.
    pub fn extents(&self) -> &[Placed] {
        &self.extents
    }

    /// The extent in which a byte lies.
    pub fn extent_of(&self, byte: u64) -> Option<Placed> {
        let behind = self.extents.partition_point(|extent| extent.offset <= byte);
        let extent = self.extents[behind.checked_sub(1)?];
        (byte < extent.offset + extent.bytes).then_some(extent)
    }

    /// An extent has been written; the one that began where it does, which it replaces.
    pub fn put(&mut self, extent: Placed) -> Option<Placed> {
        match self.extents.binary_search_by_key(&extent.offset, |extent| extent.offset) {
            Ok(slot) => Some(std::mem::replace(&mut self.extents[slot], extent)),
            Err(slot) => {
                self.extents.insert(slot, extent);
                None
            }
        }
    }

    /// The items of its extents.
    pub fn items(&self, ino: u64) -> Vec<Item> {
        if self.inline {
            return vec![items::inline_extent(ino, self.size as u32)];
        }
        self.extents.iter().map(|extent| items::extent(ino, extent.offset)).collect()
    }

    /// Whether its items go into the log as a whole.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Bytes are written in memory.
    pub fn write(&mut self, offset: u64, bytes: u64, transid: u64) {
        self.size = self.size.max(offset + bytes);
        self.change(transid);
        match self.dirty.last_mut() {
            Some(last) if last.start <= offset && offset <= last.end => last.end = last.end.max(offset + bytes),
            _ => self.dirty.push(offset..offset + bytes),
        }
    }

    /// Something else of it has changed: the log must have it anew.
    pub fn change(&mut self, transid: u64) {
        self.changed = transid;
        self.logged_all = false;
    }

    /// It got another name.
    pub fn rename(&mut self, transid: u64) {
        self.renamed = transid;
        self.change(transid);
    }

    /// The last transaction in which it was made or renamed.
    pub fn named(&self) -> u64 {
        self.made.max(self.renamed)
    }

    /// The last transaction in which it was renamed.
    pub fn renamed(&self) -> u64 {
        self.renamed
    }

    /// Whether the log of a transaction has it.
    pub fn is_logged(&self, transid: u64) -> bool {
        self.logged == transid
    }

    /// Takes what waits to be written, whole pages, as the extents that it becomes: within the tree if the file is small.
    pub fn write_back(&mut self, ino: u64) -> Vec<Extent> {
        let dirty = std::mem::take(&mut self.dirty);
        self.inline = !dirty.is_empty() && self.size <= MAX_INLINE;
        if self.inline {
            self.extents = vec![Placed { offset: 0, place: 0, bytes: 0 }];
            return vec![Extent { item: items::inline_extent(ino, self.size as u32), offset: 0, place: 0, bytes: 0 }];
        }
        let page = u64::from(BLOCK);
        let mut written = Vec::new();
        for range in dirty {
            let end = range.end.next_multiple_of(page);
            let mut start = range.start / page * page;
            while start < end {
                let bytes = (end - start).min(MAX_EXTENT);
                written.push(Extent { item: items::extent(ino, start), offset: start, place: 0, bytes });
                start += bytes;
            }
        }
        written
    }

    /// Whether an fsync has anything to log: it was changed since transaction `committed`, and since it was last logged.
    pub fn needs_log(&self, transid: u64, committed: u64) -> bool {
        self.changed > committed && !(self.logged == transid && self.logged_all)
    }

    /// The log of this transaction has all of it.
    pub fn log(&mut self, transid: u64) {
        (self.logged, self.logged_all, self.is_new) = (transid, true, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_lies_in_the_tree_until_it_outgrows_it() {
        let mut data = FileData::new(7);
        data.write(0, 9, 7);
        let written = data.write_back(300);
        assert_eq!(written.len(), 1);
        assert_eq!((written[0].bytes, written[0].item.size), (0, 30));
        data.write(9, 4096, 7);
        let written = data.write_back(300);
        assert_eq!((written.len(), written[0].bytes, written[0].item.size), (1, 8192, 53));
        let inline = data.put(Placed { offset: 0, place: 1 << 20, bytes: 8192 });
        assert_eq!(inline.map(|extent| extent.bytes), Some(0), "what was inline is no more");
        assert_eq!(data.extents().len(), 1);
    }

    #[test]
    fn writes_one_after_the_other_are_one_extent_and_others_each_their_own() {
        let mut data = FileData::on_disk(1 << 20, 1, |_| 0);
        for offset in [0, 4096, 8192, 65536] {
            data.write(offset, 4096, 3);
        }
        let bytes: Vec<u64> = data.write_back(300).iter().map(|extent| extent.bytes).collect();
        assert_eq!(bytes, [3 * 4096, 4096]);
        assert!(data.write_back(300).is_empty());
    }

    #[test]
    fn a_byte_lies_in_the_extent_that_begins_before_it() {
        let mut next = 0;
        let data = FileData::on_disk(300 << 20, 1, |bytes| {
            next += bytes;
            next - bytes
        });
        let places: Vec<u64> = data.extents().iter().map(|extent| extent.place).collect();
        assert_eq!(places, [0, 128 << 20, 256 << 20], "extents of at most 128 MiB");
        assert_eq!(data.extent_of((128 << 20) + 5).map(|extent| extent.place), Some(128 << 20));
        assert_eq!(data.extent_of(300 << 20), None, "the file has ended");
    }

    #[test]
    fn what_is_logged_or_committed_is_not_logged_again() {
        let mut data = FileData::new(7);
        assert!(data.needs_log(7, 6));
        data.log(7);
        assert!(!data.needs_log(7, 6));
        data.write(0, 9, 7);
        assert!(data.needs_log(7, 6));
        assert!(data.needs_log(8, 6), "the commit of 7 is on its way");
        assert!(!data.needs_log(8, 7), "the commit of 7 has it on disk");
    }
}
