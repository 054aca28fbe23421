//! The extent map of a file in memory (`xfs_iext_tree.c`): a B+tree of blocks of 256 bytes, with 15 records in a leaf and 16 keys
//! and children in a node; keys are the first offset below a child.
//!
//! A full block is split in the middle, but appending just begins a new one, so a file that is written in order has full leaves. A block that
//! falls below half joins the neighbour before it or behind it if both fit into one, nodes only within their parent; else it stays until it is empty.

use arrayvec::ArrayVec;

const RECORDS: usize = 15;
const CHILDREN: usize = 16;

/// The number of a block.
pub type BlockNo = u32;

/// No block.
const NONE: BlockNo = BlockNo::MAX;

/// Consecutive blocks of a file.
pub trait Extent: Copy {
    /// The first of them.
    fn offset(&self) -> u64;
    /// The one behind the last.
    fn end(&self) -> u64;
}

#[derive(Clone, Debug)]
struct Leaf<E> {
    records: ArrayVec<E, RECORDS>,
    prev: BlockNo,
    next: BlockNo,
}

#[derive(Clone, Debug, Default)]
struct Node {
    keys: ArrayVec<u64, CHILDREN>,
    children: ArrayVec<BlockNo, CHILDREN>,
}

#[derive(Clone, Debug)]
enum Block<E> {
    Leaf(Leaf<E>),
    Node(Node),
    Free,
}

/// Where an extent is, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    leaf: BlockNo,
    pos: usize,
}

/// An extent map.
#[derive(Clone, Debug)]
pub struct ExtentMap<E> {
    blocks: Vec<Block<E>>,
    unused: Vec<BlockNo>,
    root: BlockNo,
    height: usize,
    count: usize,
}

impl<E> Default for ExtentMap<E> {
    fn default() -> Self {
        Self { blocks: Vec::new(), unused: Vec::new(), root: NONE, height: 0, count: 0 }
    }
}

impl Node {
    /// The child that an offset belongs to.
    fn child_of(&self, offset: u64) -> usize {
        self.keys.iter().skip(1).take_while(|&&key| key <= offset).count()
    }
}

impl<E: Extent> ExtentMap<E> {
    /// Number of extents.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Levels, 0 of an empty map.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Blocks, numbered below this; some may be free.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    fn leaf(&self, no: BlockNo) -> &Leaf<E> {
        match &self.blocks[no as usize] {
            Block::Leaf(leaf) => leaf,
            _ => unreachable!("level 1 has leaves"),
        }
    }

    fn leaf_mut(&mut self, no: BlockNo) -> &mut Leaf<E> {
        match &mut self.blocks[no as usize] {
            Block::Leaf(leaf) => leaf,
            _ => unreachable!("level 1 has leaves"),
        }
    }

    fn node(&self, no: BlockNo) -> &Node {
        match &self.blocks[no as usize] {
            Block::Node(node) => node,
            _ => unreachable!("nodes are above level 1"),
        }
    }

    fn node_mut(&mut self, no: BlockNo) -> &mut Node {
        match &mut self.blocks[no as usize] {
            Block::Node(node) => node,
            _ => unreachable!("nodes are above level 1"),
        }
    }

    fn alloc(&mut self, block: Block<E>) -> BlockNo {
        if let Some(no) = self.unused.pop() {
            self.blocks[no as usize] = block;
            return no;
        }
        self.blocks.push(block);
        (self.blocks.len() - 1) as BlockNo
    }

    fn free(&mut self, no: BlockNo) {
        self.blocks[no as usize] = Block::Free;
        self.unused.push(no);
    }

    /// `xfs_iext_find_level`: the block of a level on the way to an offset; tells all above it, and it, to `visit`.
    fn find_level(&self, offset: u64, level: usize, mut visit: impl FnMut(BlockNo)) -> BlockNo {
        let mut no = self.root;
        visit(no);
        for _ in level..self.height {
            let node = self.node(no);
            no = node.children[node.child_of(offset)];
            visit(no);
        }
        no
    }

    /// `xfs_iext_lookup_extent`: the extent that has an offset, else the first behind it, else the end. The blocks on the way are told
    /// to `visit`.
    pub fn lookup_visiting(&self, offset: u64, mut visit: impl FnMut(BlockNo)) -> Cursor {
        if self.height == 0 {
            return Cursor { leaf: NONE, pos: 0 };
        }
        let no = self.find_level(offset, 1, &mut visit);
        let leaf = self.leaf(no);
        let pos = leaf.records.iter().take_while(|record| record.end() <= offset).count();
        if pos == leaf.records.len() && leaf.next != NONE {
            visit(leaf.next);
            return Cursor { leaf: leaf.next, pos: 0 };
        }
        Cursor { leaf: no, pos }
    }

    /// The same.
    pub fn lookup(&self, offset: u64) -> Cursor {
        self.lookup_visiting(offset, |_| ())
    }

    /// The extent there.
    pub fn get(&self, cursor: Cursor) -> Option<&E> {
        if cursor.leaf == NONE {
            None
        } else {
            self.leaf(cursor.leaf).records.get(cursor.pos)
        }
    }

    /// The place before (`xfs_iext_prev`).
    pub fn before(&self, cursor: Cursor) -> Option<Cursor> {
        if cursor.leaf == NONE {
            return None;
        }
        match cursor.pos.checked_sub(1) {
            Some(pos) => Some(Cursor { pos, ..cursor }),
            None => {
                let leaf = self.leaf(cursor.leaf).prev;
                (leaf != NONE).then(|| Cursor { leaf, pos: self.leaf(leaf).records.len() - 1 })
            }
        }
    }

    /// All extents in order.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        let first = if self.height == 0 { NONE } else { self.find_level(0, 1, |_| ()) };
        let next = |&no: &BlockNo| Some(self.leaf(no).next).filter(|&next| next != NONE);
        std::iter::successors((first != NONE).then_some(first), next).flat_map(|no| &self.leaf(no).records)
    }

    /// `xfs_iext_update_node`: what is first below some child has another offset now.
    fn update_keys(&mut self, old: u64, new: u64, level: usize) {
        let mut no = self.root;
        for _ in level..self.height {
            let node = self.node_mut(no);
            let child = node.child_of(old);
            node.keys[..=child].iter_mut().filter(|key| **key == old).for_each(|key| *key = new);
            no = node.children[child];
        }
    }

    /// `xfs_iext_insert`: enters an extent that overlaps none.
    pub fn insert(&mut self, extent: E) {
        if self.height == 0 {
            self.root = self.alloc(Block::Leaf(Leaf { records: ArrayVec::new(), prev: NONE, next: NONE }));
            self.height = 1;
        }
        let offset = extent.offset();
        let Cursor { leaf: mut no, mut pos } = self.lookup(offset);
        let new = if self.leaf(no).records.is_full() { Some(self.split_leaf(&mut no, &mut pos)) } else { None };
        let first = self.leaf(no).records.first().map(Extent::offset);
        if let (0, Some(first), true) = (pos, first, new != Some(no)) {
            self.update_keys(first, offset, 1);
        }
        self.leaf_mut(no).records.insert(pos, extent);
        self.count += 1;
        if let Some(new) = new {
            let first = self.leaf(new).records[0].offset();
            self.insert_node(first, new, 2);
        }
    }

    /// `xfs_iext_split_leaf`: the new leaf; `no` and `pos` say where the record is to go.
    fn split_leaf(&mut self, no: &mut BlockNo, pos: &mut usize) -> BlockNo {
        let keep = if *pos == RECORDS { RECORDS } else { RECORDS - RECORDS / 2 };
        let old = *no;
        let leaf = self.leaf_mut(old);
        let (records, next) = (leaf.records.drain(keep..).collect(), leaf.next);
        let new = self.alloc(Block::Leaf(Leaf { records, prev: old, next }));
        self.leaf_mut(old).next = new;
        if next != NONE {
            self.leaf_mut(next).prev = new;
        }
        if *pos >= keep {
            (*no, *pos) = (new, *pos - keep);
        }
        new
    }

    /// `xfs_iext_insert_node`: enters a child at a level, and its parent's new sibling above, and so on.
    fn insert_node(&mut self, mut offset: u64, mut child: BlockNo, mut level: usize) {
        loop {
            if self.height < level {
                self.grow();
            }
            let mut no = self.find_level(offset, level, |_| ());
            let mut pos = self.node(no).keys.iter().take_while(|&&key| key <= offset).count();
            let new = if self.node(no).keys.is_full() { Some(self.split_node(&mut no, &mut pos)) } else { None };
            let first = self.node(no).keys.first().copied();
            if let (0, Some(first), true) = (pos, first, new != Some(no)) {
                self.update_keys(first, offset, level);
            }
            let node = self.node_mut(no);
            node.keys.insert(pos, offset);
            node.children.insert(pos, child);
            let Some(new) = new else { return };
            (offset, child, level) = (self.node(new).keys[0], new, level + 1);
        }
    }

    /// `xfs_iext_grow`: a new root above the old one.
    fn grow(&mut self) {
        let first = match &self.blocks[self.root as usize] {
            Block::Leaf(leaf) => leaf.records[0].offset(),
            Block::Node(node) => node.keys[0],
            Block::Free => unreachable!("the root is in use"),
        };
        let (keys, children) = ([first].into_iter().collect(), [self.root].into_iter().collect());
        self.root = self.alloc(Block::Node(Node { keys, children }));
        self.height += 1;
    }

    /// `xfs_iext_split_node`.
    fn split_node(&mut self, no: &mut BlockNo, pos: &mut usize) -> BlockNo {
        let keep = if *pos == CHILDREN { CHILDREN } else { CHILDREN / 2 };
        let node = self.node_mut(*no);
        let (keys, children) = (node.keys.drain(keep..).collect(), node.children.drain(keep..).collect());
        let new = self.alloc(Block::Node(Node { keys, children }));
        if *pos >= keep {
            (*no, *pos) = (new, *pos - keep);
        }
        new
    }

    /// Another extent in place of the one there (`xfs_iext_update_extent`), that keeps its place in the order.
    pub fn update(&mut self, cursor: Cursor, extent: E) {
        let old = std::mem::replace(&mut self.leaf_mut(cursor.leaf).records[cursor.pos], extent);
        if cursor.pos == 0 && old.offset() != extent.offset() {
            self.update_keys(old.offset(), extent.offset(), 1);
        }
    }

    /// `xfs_iext_remove`: takes the extent there out.
    pub fn remove(&mut self, cursor: Cursor) -> E {
        let Cursor { leaf: no, pos } = cursor;
        let leaf = self.leaf_mut(no);
        let mut offset = leaf.records[0].offset();
        let removed = leaf.records.remove(pos);
        let left = leaf.records.len();
        self.count -= 1;
        if pos == 0 && left > 0 {
            let first = self.leaf(no).records[0].offset();
            self.update_keys(offset, first, 1);
            offset = first;
        }
        if left < RECORDS / 2 && self.height > 1 {
            self.rebalance_leaf(no, offset);
        } else if left == 0 {
            self.free(no);
            (self.root, self.height) = (NONE, 0);
        }
        removed
    }

    /// `xfs_iext_rebalance_leaf`: joins a leaf with the one before it or the one behind it, if both fit into one.
    fn rebalance_leaf(&mut self, no: BlockNo, offset: u64) {
        let Leaf { prev, next, .. } = *self.leaf(no);
        let len = |no: BlockNo| self.leaf(no).records.len();
        let (left, joins) = (len(no), |other: BlockNo| other != NONE && len(other) + len(no) <= RECORDS);
        let (victim, offset, heir) = match () {
            () if left == 0 => (no, offset, None),
            () if joins(prev) => (no, offset, Some(prev)),
            () if joins(next) => (next, self.leaf(next).records[0].offset(), Some(no)),
            () => return,
        };
        if let Some(heir) = heir {
            let records = std::mem::take(&mut self.leaf_mut(victim).records);
            self.leaf_mut(heir).records.extend(records);
        }
        let Leaf { prev, next, .. } = *self.leaf(victim);
        if prev != NONE {
            self.leaf_mut(prev).next = next;
        }
        if next != NONE {
            self.leaf_mut(next).prev = prev;
        }
        self.remove_node(offset, victim);
    }

    /// `xfs_iext_remove_node`: takes a leaf out of its parent, and what joins or becomes empty above.
    fn remove_node(&mut self, mut offset: u64, mut victim: BlockNo) {
        let mut level = 2;
        let mut no = self.find_level(offset, level, |_| ());
        let mut pos = self.node(no).child_of(offset);
        loop {
            debug_assert_eq!(self.node(no).children[pos], victim);
            self.free(victim);
            let node = self.node_mut(no);
            let first = node.keys[0];
            node.keys.remove(pos);
            node.children.remove(pos);
            let left = node.keys.len();
            offset = first;
            if pos == 0 && left > 0 {
                offset = self.node(no).keys[0];
                self.update_keys(first, offset, level);
            }
            if left >= CHILDREN / 2 {
                return;
            }
            if level == self.height {
                if left == 1 {
                    self.root = self.node(no).children[0];
                    self.height -= 1;
                    self.free(no);
                }
                return;
            }
            level += 1;
            let parent = self.find_level(offset, level, |_| ());
            pos = self.node(parent).child_of(offset);
            match self.rebalance_node(parent, &mut pos, no) {
                Some(emptied) => (victim, no) = (emptied, parent),
                None => return,
            }
        }
    }

    /// `xfs_iext_rebalance_node`: joins a node with a neighbour below the same parent; the one to take out, and its place there.
    fn rebalance_node(&mut self, parent: BlockNo, pos: &mut usize, no: BlockNo) -> Option<BlockNo> {
        let len = |no: BlockNo| self.node(no).keys.len();
        if len(no) == 0 {
            return Some(no);
        }
        let sibling = |at: Option<usize>| at.and_then(|at| self.node(parent).children.get(at)).copied();
        let fits = |other: &BlockNo| len(*other) + len(no) <= CHILDREN;
        let (heir, victim) = match sibling(pos.checked_sub(1)).filter(fits) {
            Some(prev) => (prev, no),
            None => {
                let next = sibling(Some(*pos + 1)).filter(fits)?;
                *pos += 1;
                (no, next)
            }
        };
        let Node { keys, children } = std::mem::take(self.node_mut(victim));
        let heir = self.node_mut(heir);
        heir.keys.extend(keys);
        heir.children.extend(children);
        Some(victim)
    }

    /// Checks order, keys, links and levels.
    pub fn check(&self) -> Result<(), String> {
        let mut leaves = Vec::new();
        if self.height > 0 {
            self.check_below(self.root, self.height, &mut leaves)?;
        }
        let mut prev = NONE;
        for (at, &no) in leaves.iter().enumerate() {
            let leaf = self.leaf(no);
            if leaf.prev != prev || leaf.next != leaves.get(at + 1).copied().unwrap_or(NONE) {
                return Err(format!("leaf {no} has the wrong neighbours"));
            }
            prev = no;
        }
        let extents: Vec<&E> = self.iter().collect();
        if extents.len() != self.count || extents.windows(2).any(|pair| pair[0].end() > pair[1].offset()) {
            return Err("extents are lost or overlap".into());
        }
        Ok(())
    }

    /// Checks a block, and returns the first offset in it.
    fn check_below(&self, no: BlockNo, level: usize, leaves: &mut Vec<BlockNo>) -> Result<u64, String> {
        if level == 1 {
            leaves.push(no);
            return self.leaf(no).records.first().map(Extent::offset).ok_or_else(|| format!("leaf {no} is empty"));
        }
        let node = self.node(no);
        if node.keys.len() != node.children.len() || node.keys.is_empty() || (no == self.root && node.keys.len() == 1) {
            return Err(format!("node {no} has {} keys for {} children", node.keys.len(), node.children.len()));
        }
        for (&key, &child) in node.keys.iter().zip(&node.children) {
            let first = self.check_below(child, level - 1, leaves)?;
            if key != first {
                return Err(format!("a key of node {no} is {key}, and {first} is first below it"));
            }
        }
        Ok(node.keys[0])
    }
}

#[cfg(test)]
mod tests;
