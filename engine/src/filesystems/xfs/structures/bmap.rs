//! The extent map of a directory (`xfs_bmap.c`): a list in the inode as long as it fits, then a B+tree.

use super::groups::{Groups, NoSpace};
use super::iext::{Cursor, Extent, ExtentMap};
use super::touch::{BlockKind, Touches};
use crate::structures::btree::{BTree, BlockId, BlockSource, Limits, Record, Touch};

/// Capacities of bmbt blocks: 72-byte header, 16-byte records, 8-byte keys and pointers.
const BMBT: Limits = Limits::from_sizes(4096, 72, 16, 8, 8);
/// Bytes of the data fork of an inode without attributes: of the root directory, which mkfs makes, and of others where no security module
/// labels them.
pub const ROOT_FORK_SIZE: usize = 512 - 176;
/// Bytes of the data fork of other inodes: a kernel with a security module makes room for attributes at once
/// (`xfs_create_need_xattr`, `xfs_default_attroffset`).
pub const DATA_FORK_SIZE: usize = (4 + 12 * 16) / 8 * 8;
/// Gap up to which a new block keeps its place in line (`XFS_ALLOC_GAP_UNITS`).
const GAP_UNITS: u64 = 4;

/// What a directory operation may still allocate, and what it did.
pub struct Change<'a> {
    /// The groups to allocate from.
    pub groups: &'a mut Groups,
    /// Buffers touched so far.
    pub touches: &'a mut Touches,
    /// Blocks that the transaction may still need (`args->total`).
    pub total: u32,
    /// Highest group that the transaction allocated from, 0 at first.
    pub highest_agno: u32,
    /// Directory and map blocks allocated.
    pub new_blocks: u8,
    /// Directory and map blocks freed.
    pub freed_blocks: u8,
}

/// Consecutive blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    offset: u32,
    start: u64,
    len: u32,
}

impl Mapping {
    fn behind(&self) -> u32 {
        self.offset + self.len
    }

    fn joins(&self, next: &Self) -> bool {
        self.behind() == next.offset && self.start + u64::from(self.len) == next.start
    }
}

impl Extent for Mapping {
    fn offset(&self) -> u64 {
        u64::from(self.offset)
    }

    fn end(&self) -> u64 {
        u64::from(self.offset + self.len)
    }
}

impl Record for Mapping {
    type Key = u32;
    fn key(&self) -> u32 {
        self.offset
    }
}

impl BlockSource for Change<'_> {
    fn alloc(&mut self, near: BlockId) -> BlockId {
        self.take_run((near, 1), 0).expect("xfs_bmapi_minleft was kept free")
    }

    fn free(&mut self, block: BlockId) {
        self.groups.free_run(block, 1, self.touches);
        self.freed_blocks += 1;
    }
}

impl Change<'_> {
    fn take_run(&mut self, wanted: (u64, u32), minleft: u32) -> Result<u64, NoSpace> {
        let (highest, touches) = (&mut self.highest_agno, &mut *self.touches);
        let block = self
            .groups
            .alloc_run(wanted, minleft, self.total, highest, touches)
            .or_else(|| self.groups.alloc_run(wanted, 0, 0, highest, touches))
            .ok_or(NoSpace)?;
        self.total = self.total.saturating_sub(wanted.1);
        self.new_blocks += 1;
        Ok(block)
    }
}

/// Where the blocks of a directory are.
#[derive(Clone, Debug)]
pub struct BlockMap {
    fork_size: usize,
    extents: ExtentMap<Mapping>,
    tree: Option<BTree<Mapping>>,
}

impl BlockMap {
    /// An empty map in an inode with a data fork of `fork_size` bytes.
    pub fn new(fork_size: usize) -> Self {
        Self { fork_size, extents: ExtentMap::default(), tree: None }
    }

    /// Bytes of the data fork (`xfs_inode_data_fork_size`).
    pub fn fork_size(&self) -> usize {
        self.fork_size
    }

    /// Number of extents.
    pub fn extents(&self) -> usize {
        self.extents.len()
    }

    /// File offset, filesystem block and length of each extent.
    pub fn mappings(&self) -> impl Iterator<Item = (u32, u64, u32)> + '_ {
        self.extents.iter().map(|extent| (extent.offset, extent.start, extent.len))
    }

    /// Blocks of the tree.
    pub fn tree_blocks(&self) -> usize {
        self.tree.as_ref().map_or(0, BTree::blocks)
    }

    /// The blocks of the tree (filesystem block numbers).
    pub fn tree_block_numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.tree.iter().flat_map(BTree::block_numbers)
    }

    /// Whether the map is a tree.
    pub fn is_tree(&self) -> bool {
        self.tree.is_some()
    }

    /// Checks the map.
    pub fn check(&self) -> Result<(), String> {
        self.extents.check()?;
        if let Some((extent, next)) =
            self.extents.iter().zip(self.extents.iter().skip(1)).find(|(extent, next)| extent.joins(next))
        {
            return Err(format!("extents {extent:?} and {next:?} should be one"));
        }
        let Some(tree) = &self.tree else { return Ok(()) };
        tree.check().map_err(|e| format!("bmbt: {e}"))?;
        if tree.iter().eq(self.extents.iter()) {
            Ok(())
        } else {
            Err("bmbt differs from the extent list".into())
        }
    }

    /// Allocates `blocks` blocks for the hole at `offset` of the inode in block `inode` (`xfs_da_grow_inode_int`): in one run, else in runs as
    /// long as there are. Returns the first.
    pub fn grow(&mut self, inode: u64, offset: u32, blocks: u32, change: &mut Change<'_>) -> Result<u64, NoSpace> {
        let (mut first, mut done) = (None, 0);
        while done < blocks {
            let run = (1..=blocks - done).rev();
            let (start, len) = { run }
                .find_map(|len| Some((self.grow_run(inode, offset + done, len, change).ok()?, len)))
                .ok_or(NoSpace)?;
            first = first.or(Some(start));
            done += len;
        }
        let first = first.ok_or(NoSpace)?;
        change.touches.allocate(first);
        Ok(first)
    }

    /// One run of so many blocks (`xfs_bmapi_write` with `XFS_BMAPI_CONTIG`).
    fn grow_run(&mut self, inode: u64, offset: u32, len: u32, change: &mut Change<'_>) -> Result<u64, NoSpace> {
        let at = self.extents.lookup(u64::from(offset));
        let minleft = self.tree.as_ref().map_or(1, |tree| tree.levels() as u32);
        let near = self.adjacent(at, (offset, len), change.groups).unwrap_or(inode);
        let start = change.take_run((near, len), minleft)?;
        self.add(at, Mapping { offset, start, len }, change);
        if self.tree.is_none() && self.extents.len() > self.inline_extents() {
            let leaf = change.take_run((inode, 1), 0)?;
            change.touches.add(BlockKind::Bmbt, leaf);
            self.tree = Some(BTree::in_inode(
                BMBT,
                self.inline_children(),
                leaf,
                &self.extents.iter().copied().collect::<Vec<_>>(),
            ));
        }
        Ok(start)
    }

    /// Frees the blocks at `offset`, the last run first (`xfs_bunmapi`).
    pub fn shrink(&mut self, offset: u32, blocks: u32, change: &mut Change<'_>) {
        let mut end = offset + blocks;
        while end > offset {
            let last = *self.extents.get(self.extents.lookup(u64::from(end - 1))).expect("the blocks are mapped");
            let start = last.offset.max(offset);
            self.shrink_run(start, end - start, change);
            end = start;
        }
    }

    /// Frees blocks that lie in one extent.
    fn shrink_run(&mut self, offset: u32, len: u32, change: &mut Change<'_>) {
        let at = self.extents.lookup(u64::from(offset));
        let old = *self.extents.get(at).expect("the blocks are mapped");
        let before = Mapping { len: offset - old.offset, ..old };
        let skip = before.len + len;
        let after = Mapping { offset: offset + len, start: old.start + u64::from(skip), len: old.len - skip };
        change.groups.free_run(old.start + u64::from(before.len), len, change.touches);
        change.freed_blocks += 1;
        match (before.len, after.len) {
            (0, 0) => self.remove(at, change),
            (0, _) => self.replace(at, after, change),
            (_, 0) => self.replace(at, before, change),
            _ => {
                self.replace(at, before, change);
                self.insert(after, change);
            }
        }
        if self.extents.len() <= self.inline_extents() {
            if let Some(tree) = self.tree.take() {
                change.free(tree.visit(&0).blocks()[0]);
            }
        }
    }

    /// Most extents in the inode (`XFS_IFORK_MAXEXT`).
    fn inline_extents(&self) -> usize {
        self.fork_size / 16
    }

    /// Most children of a tree root in the inode (`xfs_bmdr_maxrecs`).
    fn inline_children(&self) -> usize {
        (self.fork_size - 4) / 16
    }

    /// `xfs_bmap_adjacent`: the block that continues the extent before or leads to the one behind, whichever is
    /// nearer in the file.
    fn adjacent(&self, at: Cursor, (offset, len): (u32, u32), groups: &Groups) -> Option<u64> {
        let near = GAP_UNITS * u64::from(len);
        let same_group = |a: u64, b: u64| groups.geometry.split_fsblock(a).0 == groups.geometry.split_fsblock(b).0;
        let valid = |block: u64, of: u64| {
            same_group(block, of) && groups.geometry.split_fsblock(block).1 < groups.geometry.agblocks
        };
        let next = self.extents.get(at);
        let prev = self.previous(at).and_then(|(_, prev)| {
            let end = prev.start + u64::from(prev.len);
            let gap = u64::from(offset - prev.behind());
            if !valid(end, prev.start) {
                return None;
            }
            let close = next.is_none() || gap <= near;
            Some(if close && valid(end + gap, prev.start) { (end + gap, gap) } else { (end, 2 * gap) })
        });
        let next = next.map(|next| {
            let gap = u64::from(next.offset - offset);
            if gap <= near && next.start >= gap && valid(next.start - gap, next.start) {
                (next.start - gap, gap)
            } else if next.start >= u64::from(len) && valid(next.start - u64::from(len), next.start) {
                (next.start - u64::from(len), 2 * gap - u64::from(len))
            } else {
                (next.start, 2 * gap)
            }
        });
        match (prev, next) {
            (Some((prev, before)), Some((_, behind))) if before <= behind => Some(prev),
            (_, Some((next, _))) => Some(next),
            (prev, None) => prev.map(|(prev, _)| prev),
        }
    }

    /// `xfs_bmap_add_extent_hole_real`.
    fn add(&mut self, at: Cursor, new: Mapping, change: &mut Change<'_>) {
        let left = self.previous(at).filter(|(_, left)| left.joins(&new));
        let right = self.extents.get(at).copied().filter(|right| new.joins(right));
        match (left, right) {
            (Some((_, left)), Some(right)) => {
                self.remove(at, change);
                self.replace(
                    self.extents.lookup(u64::from(left.offset)),
                    Mapping { len: left.len + new.len + right.len, ..left },
                    change,
                );
            }
            (Some((before, left)), None) => self.replace(before, Mapping { len: left.len + new.len, ..left }, change),
            (None, Some(right)) => self.replace(at, Mapping { len: right.len + new.len, ..new }, change),
            (None, None) => self.insert(new, change),
        }
    }

    fn previous(&self, at: Cursor) -> Option<(Cursor, Mapping)> {
        let before = self.extents.before(at)?;
        self.extents.get(before).map(|extent| (before, *extent))
    }

    fn insert(&mut self, new: Mapping, change: &mut Change<'_>) {
        self.extents.insert(new);
        if let Some(tree) = &mut self.tree {
            let touch = tree.insert(new, change);
            report(change, &touch);
        }
    }

    fn remove(&mut self, at: Cursor, change: &mut Change<'_>) {
        let old = self.extents.remove(at);
        if let Some(tree) = &mut self.tree {
            let touch = tree.delete(&old.offset, change);
            report(change, &touch);
        }
    }

    fn replace(&mut self, at: Cursor, new: Mapping, change: &mut Change<'_>) {
        let old = *self.extents.get(at).expect("there is an extent");
        self.extents.update(at, new);
        if let Some(tree) = &mut self.tree {
            let touch = tree.update(&old.offset, new);
            report(change, &touch);
        }
    }
}

fn report(change: &mut Change<'_>, touch: &Touch) {
    change.touches.add_tree(BlockKind::Bmbt, 0, touch);
}
