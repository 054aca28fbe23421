//! The active item list (`xfs_trans_ail.c`): what the log has and its place on disk has not, ordered by the position of the checkpoint
//! that wrote it last. Its first item is the tail of the log: nothing in the log may be overwritten from there on.
//!
//! An inode that is logged is attached to the buffer of its cluster until it is clean again (since 5.9), which takes that buffer's lock.
//! What is in a checkpoint that is not yet on disk is pinned and must not be written in place.

mod write;

use super::buffer::{Buffer, Item, Place};
use crate::filesystems::xfs::structures::touch::{LargeMap, Map, CHUNK};
use crate::fx::FxMap;
use crate::waist::{LineId, LockId};
use std::collections::VecDeque;

/// A log item.
pub type ItemId = u32;

/// A position in the log: bytes written to it before; 0 is no position.
pub type Lsn = u64;

/// No item.
const NONE: ItemId = 0;

/// Bytes that an item takes in a context: an inode; a buffer with one chunk; the most. Each further chunk takes its bytes.
const INODE: u32 = 256;
const BUFFER: u32 = 180;
const BLOCK: u32 = 4096;
/// 256 blocks of 512 bytes.
const LEAST_FREE: u64 = 128 << 10;

/// What a log item stands for.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// An inode, told by its lines, and the item of its cluster buffer.
    #[allow(missing_docs)]
    Inode { line: LineId, cluster: ItemId },
    /// A buffer.
    Buffer(Buffer),
    /// A block whose buffer stands for another one by now; nobody asks for its lock.
    Former(Place),
}

#[derive(Clone, Copy, Debug)]
struct LogItem {
    subject: Subject,
    /// The context that it was last logged in, and its bytes there.
    sequence: u32,
    bytes: u32,
    /// A buffer's chunks that were logged since it was written.
    chunks: Map,
    /// Contexts that have it and are not yet on disk.
    pins: u8,
    /// Where the checkpoint begins that has it, if it is in the list.
    lsn: Lsn,
    /// The same when it was last on its way to its place.
    flushed: Lsn,
    /// A cluster buffer's first attached inode, an inode's next.
    next: ItemId,
    attached: bool,
    /// Logged by a transaction that has yet to put it into the context.
    joined: bool,
    /// An inode: differs from its buffer (`ili_fields`). A buffer: queued for writing.
    dirty: bool,
    /// An inode: more than its times was logged since it was last written to its buffer, or the log forced for it (`ili_fsync_fields`).
    fsync_fields: bool,
    /// An inode: its buffer is queued or being written with it. A buffer: it is being written.
    flushing: bool,
}

/// A checkpoint on disk, and those of its items that no later one has.
#[derive(Debug)]
struct Committed {
    start: Lsn,
    items: Vec<ItemId>,
    live: u32,
}

/// Where a walk along the list is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    start: Lsn,
    next: usize,
}

/// The list, and all items whether in it or not.
#[derive(Debug)]
pub struct Ail {
    items: Vec<LogItem>,
    unused: Vec<ItemId>,
    by_line: Vec<ItemId>,
    /// Of larger blocks of directories the chunks that were logged since they were written.
    large: FxMap<ItemId, LargeMap>,
    committed: VecDeque<Committed>,
    /// Emptied lists of items.
    spare: Vec<Vec<ItemId>>,
    /// The end of what is on disk of the log.
    head: Lsn,
    target: Lsn,
}

impl From<Lsn> for Cursor {
    fn from(start: Lsn) -> Self {
        Self { start, next: 0 }
    }
}

impl Default for Ail {
    fn default() -> Self {
        Self {
            items: vec![LogItem::new(Subject::Former(Place::default()))],
            unused: Vec::new(),
            by_line: Vec::new(),
            large: FxMap::default(),
            committed: VecDeque::new(),
            spare: Vec::new(),
            head: 1,
            target: 0,
        }
    }
}

impl LogItem {
    fn new(subject: Subject) -> Self {
        Self {
            subject,
            sequence: 0,
            bytes: 0,
            chunks: 0,
            pins: 0,
            lsn: 0,
            flushed: 0,
            next: NONE,
            attached: false,
            joined: false,
            dirty: false,
            fsync_fields: false,
            flushing: false,
        }
    }
}

impl Ail {
    fn at(&self, id: ItemId) -> &LogItem {
        &self.items[id as usize]
    }

    fn at_mut(&mut self, id: ItemId) -> &mut LogItem {
        &mut self.items[id as usize]
    }

    fn add(&mut self, item: LogItem) -> ItemId {
        match self.unused.pop() {
            Some(id) => {
                self.large.remove(&id);
                self.items[id as usize] = item;
                id
            }
            None => {
                self.items.push(item);
                (self.items.len() - 1) as ItemId
            }
        }
    }

    fn find(&mut self, line: LineId, subject: impl FnOnce(&mut Self) -> Subject) -> ItemId {
        let at = line as usize;
        if self.by_line.len() <= at {
            self.by_line.resize(at + 1, NONE);
        }
        if self.by_line[at] == NONE {
            let item = LogItem::new(subject(self));
            self.by_line[at] = self.add(item);
        }
        self.by_line[at]
    }

    fn of(&mut self, item: Item) -> ItemId {
        match item {
            Item::Buffer(buffer) => self.find(buffer.lines, |_| Subject::Buffer(buffer)),
            Item::Inode { line, cluster, .. } => {
                let cluster = self.of(Item::Buffer(cluster));
                self.find(line, |_| Subject::Inode { line, cluster })
            }
        }
    }

    /// A transaction that is about to commit has changed the item; an inode that is attached to no buffer has to be.
    pub fn join(&mut self, item: Item) -> bool {
        let id = self.of(item);
        let it = self.at_mut(id);
        let Subject::Inode { .. } = it.subject else { return false };
        (it.joined, it.dirty) = (true, true);
        it.fsync_fields |= !matches!(item, Item::Inode { times_only: true, .. });
        !it.attached
    }

    /// Attaches an inode to its cluster buffer, whose lock the transaction has (`xfs_inode_item_precommit`).
    pub fn attach(&mut self, item: Item) {
        let id = self.of(item);
        if let Subject::Inode { cluster, .. } = self.at(id).subject {
            let first = std::mem::replace(&mut self.at_mut(cluster).next, id);
            let it = self.at_mut(id);
            (it.attached, it.next) = (true, first);
        }
    }

    /// Adds an item to a context, once however often it is logged there: its number if it was not there, and its further bytes.
    /// Of a buffer each context has all that was logged since it was written (`blf_data_map`, `xfs_buf_item_format`), whatever contexts
    /// before have.
    pub fn log(&mut self, item: Item, sequence: u32, large: Option<&LargeMap>) -> (Option<ItemId>, u64) {
        let id = self.of(item);
        let told = if let Item::Buffer(buffer) = item { buffer.chunks } else { 0 };
        let chunks = large.map(|map| self.chunks_of_large(id, map));
        let it = self.at_mut(id);
        (it.joined, it.chunks) = (false, it.chunks | told);
        let further = chunks.unwrap_or(it.chunks.count_ones()).saturating_sub(1);
        let (first, most) = match it.subject {
            Subject::Inode { .. } => (INODE, INODE),
            _ => (BUFFER + u32::from(CHUNK) * further, BLOCK),
        };
        let again = it.sequence == sequence;
        let before = if again { it.bytes } else { 0 };
        let more = if again && told == 0 {
            u32::from(CHUNK).min(most.saturating_sub(before))
        } else {
            first.saturating_sub(before)
        };
        (it.sequence, it.bytes) = (sequence, before + more);
        it.pins += u8::from(!again);
        ((!again).then_some(id), more.into())
    }

    /// Chunks of a larger block of a directory that each context has.
    pub fn chunks_of(&mut self, item: Item) -> u32 {
        let id = self.of(item);
        self.large.get(&id).map_or(0, LargeMap::count)
    }

    /// The same with these.
    fn chunks_of_large(&mut self, id: ItemId, map: &LargeMap) -> u32 {
        let all = self.large.entry(id).or_default();
        all.merge(map);
        all.count()
    }

    /// A buffer's lines stand for another block from now on, which was not logged before.
    pub fn renew(&mut self, buffer: LineId) {
        let id = self.by_line.get_mut(buffer as usize).map_or(NONE, std::mem::take);
        if id != NONE {
            self.at_mut(id).subject = Subject::Former(self.place(id));
            self.drop_unused(id);
        }
    }

    fn drop_unused(&mut self, id: ItemId) {
        let it = self.at(id);
        if matches!(it.subject, Subject::Former(_)) && it.pins == 0 && it.lsn == 0 && !it.dirty && !it.flushing {
            self.unused.push(id);
        }
    }

    /// The next checkpoint, of so many bytes, is on disk: its items are unpinned, and belong where it is
    /// (`xfs_trans_ail_update_bulk`). Returns whether the list was empty.
    pub fn insert(&mut self, items: Vec<ItemId>, bytes: u64) -> bool {
        let (was_empty, start) = (self.is_empty(), self.head);
        for &id in &items {
            self.delete(id);
            let it = self.at_mut(id);
            (it.pins, it.lsn) = (it.pins - 1, start);
        }
        self.pass(bytes);
        if !items.is_empty() {
            self.committed.push_back(Committed { start, live: items.len() as u32, items });
        }
        self.trim();
        was_empty
    }

    /// So many bytes of the log are on disk and belong to no checkpoint.
    pub fn pass(&mut self, bytes: u64) {
        self.head += bytes;
    }

    fn delete(&mut self, id: ItemId) {
        let lsn = std::mem::take(&mut self.at_mut(id).lsn);
        if lsn > 0 {
            let at = self.committed.partition_point(|c| c.start < lsn);
            self.committed[at].live -= 1;
        }
    }

    fn trim(&mut self) {
        while self.committed.front().is_some_and(|c| c.live == 0) {
            let mut items = self.committed.pop_front().expect("there is one").items;
            items.clear();
            self.spare.push(items);
        }
    }

    /// A list for the items of a context.
    pub fn spare(&mut self) -> Vec<ItemId> {
        self.spare.pop().unwrap_or_default()
    }

    /// Whether nothing is left to be written.
    pub fn is_empty(&self) -> bool {
        self.committed.is_empty()
    }

    /// Bytes of the log that are still needed (`l_tail_space`).
    pub fn tail_space(&self) -> u64 {
        self.head - self.committed.front().map_or(self.head, |c| c.start)
    }

    /// How far is to be pushed (`xfs_ail_calc_push_target` since 6.11): to the end if `all`, else so far that a quarter of a log of `size` is
    /// free.
    pub fn push_target(&mut self, all: bool, size: u64) -> Option<Lsn> {
        let last = self.committed.iter().rev().find(|c| c.live > 0)?.start;
        let first = self.committed.front()?.start;
        if all {
            self.target = last;
        } else if size.saturating_sub(last - first) < size / 4 {
            self.target = self.target.max(first + size / 4).min(last);
        }
        Some(self.target)
    }

    /// `xlog_grant_push_ail` before 6.11: where only `free` bytes of a log of `size` are not reserved, the target is so far that `need`, a quarter or
    /// 128 KiB become free. Returns whether it is farther now.
    pub fn raise_target(&mut self, free: u64, need: u64, size: u64) -> bool {
        let wanted = need.max(size / 4).max(LEAST_FREE);
        let (Some(first), Some(last)) = (self.committed.front(), self.committed.back()) else { return false };
        let target = (first.start + wanted).min(last.start);
        let farther = free < wanted && target > self.target;
        if farther {
            self.target = target;
        }
        farther
    }

    /// How far is to be pushed.
    pub fn target(&self) -> Lsn {
        self.target
    }

    /// The next item of a walk, and where it is; the walk begins with the items that are not before `cursor`.
    pub fn next(&self, cursor: &mut Cursor) -> Option<(ItemId, Lsn)> {
        let at = self.committed.partition_point(|c| c.start < cursor.start);
        for c in self.committed.iter().skip(at) {
            if c.start != cursor.start {
                *cursor = Cursor { start: c.start, next: 0 };
            }
            while let Some(&id) = c.items.get(cursor.next) {
                cursor.next += 1;
                if self.at(id).lsn == c.start {
                    return Some((id, c.start));
                }
            }
        }
        None
    }

    /// What an item stands for.
    pub fn subject(&self, id: ItemId) -> Subject {
        self.at(id).subject
    }

    /// The last context that has the item of these lines, if one that has it is not yet on disk.
    pub fn pinned_by(&self, line: LineId) -> Option<u32> {
        let id = self.by_line.get(line as usize).copied().unwrap_or(NONE);
        let it = self.at(id);
        (it.pins > 0).then_some(it.sequence)
    }

    /// The context that an `fsync` of the inode of these lines has forced, or an `fdatasync`, which does not need its times.
    pub fn synced_by(&self, line: LineId, data_only: bool) -> Option<u32> {
        let id = self.by_line.get(line as usize).copied().unwrap_or(NONE);
        self.pinned_by(line).filter(|_| !data_only || self.at(id).fsync_fields)
    }

    /// The log was forced for the inode of these lines, and what of it was logged is forgotten.
    pub fn forced(&mut self, line: LineId) {
        let id = self.by_line[line as usize];
        self.at_mut(id).fsync_fields = false;
    }

    /// Whether a checkpoint that is not yet on disk has it; an inode also must not be written while its buffer is pinned.
    pub fn is_pinned(&self, id: ItemId) -> bool {
        let it = self.at(id);
        it.pins > 0 || matches!(it.subject, Subject::Inode { cluster, .. } if self.at(cluster).pins > 0)
    }

    /// Whether an item is an inode that is in a buffer which is queued or being written (`XFS_LI_FLUSHING`).
    pub fn is_flushed(&self, id: ItemId) -> bool {
        self.is_writing(id) && matches!(self.at(id).subject, Subject::Inode { .. })
    }

    /// Whether an item is on its way to the device.
    pub fn is_writing(&self, id: ItemId) -> bool {
        self.at(id).flushing
    }

    /// Where a buffer is on disk.
    pub fn place(&self, id: ItemId) -> Place {
        match self.at(id).subject {
            Subject::Buffer(buffer) => buffer.place,
            Subject::Former(place) => place,
            Subject::Inode { cluster, .. } => self.place(cluster),
        }
    }

    /// The lock of a buffer that can be asked for.
    pub fn lock(&self, id: ItemId) -> Option<LockId> {
        match self.at(id).subject {
            Subject::Buffer(buffer) => Some(buffer.lock),
            _ => None,
        }
    }
}
