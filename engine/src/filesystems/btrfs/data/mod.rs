//! What is known in memory of a file's data: its size, what waits to be written, where its extents begin, and whether the log has it.

pub mod direct;
mod extent;
mod flush;
mod logged;
mod maps;
pub mod ordered;
mod pages;
mod prealloc;
pub mod sums;

pub use extent::{Extent, Placed, Replaced};

use super::space::delalloc::WasDirty;
use super::tree::items;
use super::tree::key::Item;
use crate::filesystems::page_cache::PageCache;
use crate::filesystems::BLOCK;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Most bytes of a file that lies in the tree itself (`BTRFS_DEFAULT_MAX_INLINE`).
const MAX_INLINE: u64 = 2048;
/// Most bytes of an extent (`BTRFS_MAX_EXTENT_SIZE`).
const MAX_EXTENT: u64 = 128 << 20;

/// A file's data.
#[derive(Clone, Debug, Default)]
pub struct FileData {
    size: u64,
    /// Ranges of pages that wait to be written, first to end, none beside another (`EXTENT_DELALLOC`), and how many pages they are.
    dirty: BTreeMap<u64, u64>,
    dirty_pages: u64,
    /// The page where the flusher goes on (`writeback_index`).
    next: u64,
    /// Extents that the flusher has written, and in which transaction: an fsync of that one has to log them.
    flushed: Vec<(u64, Extent)>,
    /// Its extents, in order.
    extents: Vec<Placed>,
    /// Extents on disk that are in use in parts: by first byte the size, and the number of parts.
    shared: BTreeMap<u64, (u64, u32)>,
    /// How many bytes lie in the tree itself, if it was small when it was written back last.
    inline: Option<u32>,
    /// The transaction that changed it last.
    changed: u64,
    /// The transaction whose log has it, whether that has all changes, and the log transaction that they are in.
    logged: u64,
    logged_all: bool,
    logged_in: u64,
    /// The transactions that made it and that renamed it last (`last_unlink_trans`).
    made: u64,
    renamed: u64,
    /// Its items were not all logged or committed since it was made (`BTRFS_INODE_NEEDS_FULL_SYNC`).
    is_new: bool,
    /// The transaction in which it last got another name or lost one of several, and that its items go into the log together next time
    /// (`BTRFS_INODE_COPY_EVERYTHING`).
    linked: u64,
    copy_everything: bool,
    /// The same flag for another reason: the map of an extent is gone.
    lacks_maps: bool,
    /// A search has found that it has no extended attributes (`BTRFS_INODE_NO_XATTRS`).
    no_xattrs: bool,
    /// Its data are another file's and none was written since: no page of it is in memory.
    without_pages: bool,
    /// It was written in turns with other files, whose extents lie between its own, though they are laid out one file after the other.
    in_turns: bool,
    /// `fallocate` has made some of its extents (`BTRFS_INODE_PREALLOC`).
    preallocated: bool,
    /// The pages before this one have maps of the holes that they are until they are written back.
    mapped: u64,
    /// What of it is in memory, where memory has an end.
    pub pages: Option<Rc<PageCache>>,
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
            Placed { offset, place: allocate(bytes), bytes, generation: 0, unwritten: false }
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

    /// An extent takes a place in the file, and so perhaps the place of others.
    pub fn put(&mut self, extent: Placed) -> Replaced {
        let end = extent.end();
        let slot = self.extents.partition_point(|other| other.offset < extent.offset);
        let mut replaced = Replaced::default();
        if let Some(before) =
            slot.checked_sub(1).map(|before| self.extents[before]).filter(|other| other.end() > extent.offset)
        {
            replaced.tail = before.behind(end);
            self.extents[slot - 1].bytes = extent.offset - before.offset;
            self.share(before, 1 + u32::from(replaced.tail.is_some()));
        }
        let behind = slot + self.extents[slot..].partition_point(|other| other.offset < end);
        for other in self.extents.drain(slot..behind).collect::<Vec<_>>() {
            replaced.tail = other.behind(end);
            match replaced.tail {
                Some(_) => self.share(other, 1),
                None => replaced.gone.extend(self.release(other)),
            }
        }
        self.extents.splice(slot..slot, [extent].into_iter().chain(replaced.tail));
        replaced
    }

    /// So many parts of what was one part of an extent are in use, or of the whole.
    fn share(&mut self, part: Placed, parts: u32) {
        match self.shared_by(part.place) {
            Some((_, shared)) => shared.1 += parts - 1,
            None => _ = self.shared.insert(part.place, (part.bytes, parts)),
        }
    }

    /// The extent on disk of which a part lies at a place: its first byte, its size, and how many parts are in use.
    fn shared_by(&mut self, place: u64) -> Option<(u64, &mut (u64, u32))> {
        let (&first, shared) = self.shared.range_mut(..=place).next_back()?;
        (place < first + shared.0).then_some((first, shared))
    }

    /// A part of an extent, or a whole one, is no more in use: the extent on disk that nobody needs now.
    fn release(&mut self, part: Placed) -> Option<Placed> {
        let Some((place, shared)) = self.shared_by(part.place) else { return Some(part) };
        shared.1 -= 1;
        let (bytes, parts) = *shared;
        if parts > 0 {
            return None;
        }
        self.shared.remove(&place);
        Some(Placed { place, bytes, ..part })
    }

    /// The file goes: its extents, each with the extent on disk that nobody needs then.
    pub fn drop_extents(&mut self) -> Vec<(Placed, Option<Placed>)> {
        let extents = std::mem::take(&mut self.extents);
        extents.into_iter().map(|extent| (extent, self.release(extent))).collect()
    }

    /// What it has on disk, whole extents though it may use parts of them: first byte and size.
    pub fn on_device(&self) -> Vec<(u64, u64)> {
        let whole = |part: &Placed| {
            let shared = self.shared.range(..=part.place).next_back();
            let shared = shared.filter(|(&first, &(bytes, _))| part.place < first + bytes);
            shared.map_or((part.place, part.bytes), |(&first, &(bytes, _))| (first, bytes))
        };
        let mut extents: Vec<_> = self.extents.iter().filter(|part| part.bytes > 0).map(whole).collect();
        extents.sort_unstable();
        extents.dedup();
        extents
    }

    /// A file without data has those of another from this transaction on; the next fsync logs all of it (`btrfs_set_inode_full_sync`).
    pub fn share_data_of(&mut self, other: &Self, transid: u64) {
        self.extents = other.extents.iter().map(|extent| Placed { generation: transid, ..*extent }).collect();
        (self.size, self.shared, self.inline) = (other.size, other.shared.clone(), other.inline);
        (self.lacks_maps, self.without_pages) = (true, true);
        self.change(transid);
    }

    /// Whether an eviction finds pages of it.
    pub fn has_pages(&self) -> bool {
        !self.without_pages
    }

    /// Nothing of it is to be written any more (`truncate_setsize`).
    pub fn truncate(&mut self) {
        self.size = 0;
        (self.dirty, self.dirty_pages, self.mapped) = Default::default();
    }

    /// Whether a write into a dirty page before the end has to ask the tree for an extent, which makes a map of the hole that it finds.
    pub fn lacks_map(&mut self, offset: u64, was: WasDirty) -> bool {
        let page = offset / u64::from(BLOCK);
        let asks = was.range && page * u64::from(BLOCK) < self.size && page >= self.mapped;
        self.mapped = self.mapped.max(if asks { page + 1 } else { 0 });
        asks
    }

    /// Its extents have gone in this transaction; the next fsync logs all of it (`BTRFS_INODE_NEEDS_FULL_SYNC`).
    pub fn truncated(&mut self, transid: u64) {
        self.flushed.clear();
        (self.inline, self.is_new) = (None, true);
        self.change(transid);
    }

    /// The items of its extents.
    pub fn items(&self, ino: u64) -> Vec<Item> {
        self.extents.iter().map(|extent| self.item(ino, extent)).collect()
    }

    /// The item of one of them.
    pub fn item(&self, ino: u64, extent: &Placed) -> Item {
        match self.inline {
            Some(bytes) => items::inline_extent(ino, bytes),
            None => items::extent(ino, extent.offset),
        }
    }

    /// The extent that begins at a byte.
    pub fn extent_at(&self, byte: u64) -> Option<Placed> {
        let slot = self.extents.binary_search_by_key(&byte, |extent| extent.offset).ok()?;
        Some(self.extents[slot])
    }

    /// An extent is on disk, and this transaction has its item.
    pub fn written(&mut self, written: Extent, transid: u64) {
        self.change(transid);
        if let Ok(slot) = self.extents.binary_search_by_key(&written.offset, |extent| extent.offset) {
            self.extents[slot].generation = transid;
        }
        if let Some(pages) = &self.pages {
            pages.clean(written.offset, written.bytes as u32);
        }
    }

    /// Whether the next fsync logs all that the transaction has of it (`BTRFS_INODE_NEEDS_FULL_SYNC`).
    pub fn needs_full_sync(&self) -> bool {
        self.is_new || self.lacks_maps
    }

    /// Whether it was made, and neither logged nor committed since.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Bytes are written in memory.
    pub fn write(&mut self, offset: u64, bytes: u64, transid: u64) {
        self.size = self.size.max(offset + bytes);
        self.without_pages = false;
        self.change(transid);
        let page = u64::from(BLOCK);
        let (mut first, mut end) = (offset / page, (offset + bytes).div_ceil(page));
        while let Some((&other, &other_end)) =
            self.dirty.range(..=end).next_back().filter(|(_, other_end)| **other_end >= first)
        {
            self.dirty.remove(&other);
            self.dirty_pages -= other_end - other;
            (first, end) = (first.min(other), end.max(other_end));
        }
        self.dirty.insert(first, end);
        self.dirty_pages += end - first;
    }

    /// Which pages wait to be written, of a range and besides.
    pub fn was_dirty(&self, offset: u64, bytes: u64) -> WasDirty {
        let page = u64::from(BLOCK);
        let (first, end) = (offset / page, (offset + bytes).div_ceil(page));
        let overlaps = self.dirty.range(..end).rev().take_while(|(_, &other_end)| other_end > first);
        let inside: u64 = overlaps.map(|(&other, &other_end)| other_end.min(end) - other.max(first)).sum();
        WasDirty { range: inside > 0, others: self.dirty_pages > inside }
    }

    /// Extents that its dirty pages will be, as far as is known, and how many pages they are (`count_max_extents`).
    pub fn outstanding(&self) -> (u64, u64) {
        let full = self.dirty_pages * u64::from(BLOCK) / MAX_EXTENT;
        (self.dirty.len() as u64 + full, self.dirty_pages)
    }

    /// Pages that wait to be written.
    pub fn dirty_pages(&self) -> u64 {
        self.dirty_pages
    }

    /// The flusher has written this in a transaction.
    pub fn flush(&mut self, transid: u64, extents: &[Extent]) {
        self.flushed.extend(extents.iter().map(|&extent| (transid, extent)));
    }

    /// What the flusher has written since that transaction was on disk.
    pub fn take_flushed(&mut self, committed: u64) -> impl Iterator<Item = Extent> {
        std::mem::take(&mut self.flushed)
            .into_iter()
            .filter_map(move |(transid, extent)| (transid > committed).then_some(extent))
    }

    /// Takes what waits to be written, as the extents that it becomes: within the tree if the file is small.
    pub fn write_back(&mut self, ino: u64) -> Vec<Extent> {
        if self.dirty.is_empty() {
            return Vec::new(); // it lies where it lay
        }
        if self.is_small() {
            let size = self.size as u32;
            self.inline = Some(size);
            (self.dirty, self.dirty_pages) = Default::default();
            self.extents = vec![Placed { generation: self.changed, ..Placed::default() }];
            return vec![Extent { item: items::inline_extent(ino, size), offset: 0, place: 0, bytes: 0 }];
        }
        self.next = 0;
        std::iter::from_fn(|| self.take_extent(ino, MAX_EXTENT)).collect()
    }

    /// The next page that waits to be written (`extent_write_cache_pages`).
    fn next_dirty(&self) -> Option<u64> {
        let within = self.dirty.range(..=self.next).next_back().filter(|(_, &end)| end > self.next);
        let behind = || self.dirty.range(self.next..).next().or_else(|| self.dirty.first_key_value());
        within.map(|_| self.next).or_else(|| behind().map(|(&first, _)| first))
    }

    /// The next extent that waits to be written, of at most so many bytes, as part of a file that is not inline.
    pub fn take_extent(&mut self, ino: u64, most: u64) -> Option<Extent> {
        let page = u64::from(BLOCK);
        let first = self.next_dirty()?;
        let (&begin, &end) = self.dirty.range(..=first).next_back()?;
        self.inline = None;
        let pages = (end - first).min((most / page).max(1)).min(self.pages_alike(first, end));
        self.next = first + pages;
        self.dirty.remove(&begin);
        for (first, end) in [(begin, first), (self.next, end)].into_iter().filter(|(first, end)| first < end) {
            self.dirty.insert(first, end);
        }
        self.dirty_pages -= pages;
        let offset = first * page;
        Some(Extent { item: items::extent(ino, offset), offset, place: 0, bytes: pages * page })
    }

    /// Whether it lies in the tree, or will.
    pub fn is_small(&self) -> bool {
        self.size <= MAX_INLINE
    }
}

#[cfg(test)]
mod tests;
