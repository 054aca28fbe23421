//! A tree as tasks see it: each block with its lock and its cache lines, and what the work on blocks costs.

use super::space::delayed_refs::{DelayedRefs, Extent};
use super::tree::key::NODE_SIZE;
use super::tree::locks::{TreeLocks, Work};
use super::tree::search::{Rules, TreeOps};
use super::tree::{BlockId, Dirty, Tree, MAX_LEVEL};
use crate::filesystems::cached::used_ago;
use crate::filesystems::costs::Costs;
use crate::waist::Machine;
use crate::waist::{Access, Account, CachedId, ClassId, ContentsId, LineId, LockId, Mode, Side, Time};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

crate::cost_table!(BlockCosts {
    node: ["node"],
    enter_leaf: ["leaf_entry"],
    search_leaf: ["leaf_search"],
    read_root: ["root_read"],
    trade_root: ["root_trade"],
    copy: ["copy"],
    allocate: ["allocate"],
    free: ["free"],
    extent_item: ["extent_item"],
    free_space_item: ["free_space_item"],
    csum_item: ["csum_item"],
    log_item: ["wfsync.log_item"],
    shift_item: ["shift_item"],
    delayed_item: ["delayed_item"],
    delayed_inode: ["delayed_inode"],
});

impl BlockCosts {
    fn of(&self, work: Work) -> Time {
        match work {
            Work::Node => self.node,
            Work::EnterLeaf => self.enter_leaf,
            Work::SearchLeaf => self.search_leaf,
            Work::ReadRoot => self.read_root,
            Work::TradeRoot => self.trade_root,
            Work::Copy(_) => self.copy,
            Work::Free => self.free,
            Work::Shift(_, items) => self.shift_item * items as Time,
            Work::DelayedInode => self.delayed_inode,
            Work::ExtentItem => self.extent_item,
            Work::FreeSpaceItem => self.free_space_item,
            Work::CsumLookup => 0,
            Work::CsumItem => self.csum_item,
            Work::DelayedItems(items) => self.delayed_item * items as Time,
        }
    }
}

/// Bytes of a cache line.
const LINE: u32 = 64;
/// Room for the lines that a search looks at.
const MOST_PROBES: usize = 8;

/// A block's lock and the lines that its users read and write. They stay with the block's number, also when it is reused.
#[derive(Clone, Copy)]
struct BlockBuffer {
    lock: LockId,
    /// The reference count, which all who come by change.
    refs: LineId,
    /// What who locks it looks at: the buffer's struct, the block's header and its first key.
    head: LineId,
    /// What a search looks at one after the other, since each look decides on the next.
    probes: [LineId; MOST_PROBES],
    /// All these lines and the rest of the block.
    memory: CachedId,
    /// Its items.
    contents: ContentsId,
}

/// Where a tree's blocks come from.
#[derive(Clone)]
pub enum Space {
    /// They have references in the extent tree.
    Referenced(Rc<DelayedRefs>),
    /// They go with the transaction, and the extent tree never hears of them: those of the log.
    Fleeting(Rc<DelayedRefs>),
}

/// A tree with its locks (`struct btrfs_root`).
pub struct Root {
    /// The structure.
    pub tree: RefCell<Tree>,
    rules: Rules,
    costs: BlockCosts,
    buffers: RefCell<Vec<Option<BlockBuffer>>>,
    classes: [ClassId; MAX_LEVEL],
    space: Space,
    ref_lines: u32,
    head_lines: u32,
    probes: usize,
    /// Cache lines that lead to a block's struct.
    index: u32,
    /// Block numbers that were given out before the run.
    grown: Cell<BlockId>,
}

impl Root {
    /// A tree; `name` begins the names of its lock classes, one for each level.
    pub fn new<M: Machine>(
        m: &M,
        name: &str,
        mut tree: Tree,
        space: Space,
        rules: Rules,
        costs: &Costs<'_>,
    ) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|lines| lines as u32);
        if let Space::Fleeting(refs) = &space {
            tree.set_place(tree.root(), refs.take_block());
        }
        Ok(Self {
            tree: RefCell::new(tree),
            rules,
            costs: BlockCosts::new(costs)?,
            buffers: RefCell::default(),
            classes: std::array::from_fn(|level| m.class(&format!("btrfs.{name} tree L{level}"), "btrfs.tree")),
            space,
            probes: (lines("btrfs_block.probes")? as usize).min(MOST_PROBES),
            index: lines("btrfs_block.index")?,
            ref_lines: lines("btrfs_block.refs")?,
            head_lines: lines("btrfs_block.struct")? + lines("btrfs_block.head")?,
            grown: Cell::new(0),
        })
    }

    /// Another tree of the same kind.
    pub fn another(&self, mut tree: Tree) -> Self {
        if let Space::Fleeting(refs) = &self.space {
            tree.set_place(tree.root(), refs.take_block());
        }
        Self {
            tree: RefCell::new(tree),
            buffers: RefCell::default(),
            grown: Cell::new(0),
            space: self.space.clone(),
            costs: self.costs.clone(),
            ..*self
        }
    }

    /// What is left of the time under a leaf's lock when the leaf has been searched.
    pub fn after_search(&self, time: Time) -> Time {
        time.saturating_sub(self.costs.search_leaf)
    }

    /// The same for an insertion.
    pub fn after_insertion(&self, time: Time) -> Time {
        self.after_search(time).saturating_sub(self.costs.enter_leaf)
    }

    /// A search of the tree as the last commit left it, which needs no locks.
    pub fn unlocked_search(&self) -> Time {
        let tree = self.tree.borrow();
        self.costs.node * tree.level(tree.root()) as Time + self.costs.search_leaf
    }

    /// Gives all blocks back, to begin anew: a log that is of no use any more.
    pub fn clear(&self) {
        let (Space::Fleeting(refs) | Space::Referenced(refs)) = &self.space;
        let mut tree = self.tree.borrow_mut();
        for block in tree.blocks() {
            refs.space.borrow_mut().give_back(tree.place(block), u64::from(NODE_SIZE), false);
        }
        tree.clear(refs.take_block());
    }

    /// Runs `work` on the tree as a task that locks its blocks.
    pub fn locked<'a, M: Machine>(&'a self, m: &'a M) -> Locked<'a, M> {
        Locked { m, root: self }
    }

    fn buffer<M: Machine>(&self, m: &M, block: BlockId, level: usize) -> BlockBuffer {
        let mut buffers = self.buffers.borrow_mut();
        if buffers.len() <= block as usize {
            buffers.resize(block as usize + 1, None);
        }
        *buffers[block as usize].get_or_insert_with(|| {
            let (lock, refs) =
                (m.new_lock(self.classes[level]), m.new_line("btrfs.extent buffer refs", self.ref_lines));
            let (head, probes) = (
                m.new_line("btrfs.tree block", self.head_lines),
                std::array::from_fn(|_| m.new_line("btrfs.tree block", 1)),
            );
            let memory = m.new_block(refs..probes[MOST_PROBES - 1] + 1, self.used_ago(block));
            BlockBuffer { lock, refs, head, probes, memory, contents: m.new_contents() }
        })
    }

    /// The tree as it is now was there before the run.
    pub fn was_grown(&self) {
        let mut tree = self.tree.borrow_mut();
        tree.was_written();
        self.grown.set(tree.numbers());
    }

    /// How many bytes before the run a block was used.
    fn used_ago(&self, block: BlockId) -> Option<u64> {
        let blocks = u64::from(self.grown.get());
        (u64::from(block) < blocks).then(|| used_ago(u64::from(block), blocks, self.used_bytes(0, Side::Write)))
    }

    /// Bytes of a block that who locks it uses: the lines, and half of a leaf where items come or go.
    fn used_bytes(&self, level: usize, side: Side) -> u32 {
        let moved = if level == 0 && side == Side::Write { NODE_SIZE / 2 } else { 0 };
        (self.index + self.ref_lines + self.head_lines + self.probes as u32) * LINE + moved
    }

    fn known_buffer(&self, block: BlockId) -> BlockBuffer {
        self.buffers.borrow()[block as usize].expect("it was locked")
    }
}

/// A task's locks on a tree.
pub struct Locked<'a, M> {
    m: &'a M,
    root: &'a Root,
}

impl<M: Machine> Locked<'_, M> {
    /// The tree's operations under these locks.
    pub fn ops(&self) -> TreeOps<'_, Self> {
        TreeOps::new(&self.root.tree, self, self.root.rules)
    }

    /// `lock_extent_buffer_for_io`: from now on a block is written, if it is still dirty at this place, and has to be copied before it
    /// changes again.
    pub async fn begin_write(&self, block: BlockId, place: u64) -> Option<Dirty> {
        let level = self.root.tree.borrow().level(block);
        self.lock(block, level, Side::Write).await;
        let dirty = self.root.tree.borrow_mut().begin_write(block, place);
        self.unlock(block, Side::Write).await;
        dirty
    }

    /// `find_extent_buffer`: the block's struct, with a reference.
    fn find(&self, block: BlockId, level: usize, side: Side) -> BlockBuffer {
        let buffer = self.root.buffer(self.m, block, level);
        self.m.use_block(buffer.memory, self.root.used_bytes(level, side));
        self.m.fetch_block(buffer.memory, self.root.index, 0);
        self.m.touch(buffer.refs, Access::Write);
        buffer
    }

    /// Reads and writes of a block from one end to the other.
    fn go_through(&self, block: BlockId, bytes: u32) {
        self.m.fetch_block(self.root.known_buffer(block).memory, 0, bytes.div_ceil(LINE));
    }

    /// Writes to these bytes of a block; what others have written there comes from their caches.
    fn rewrite(&self, block: BlockId, bytes: Range<u32>) {
        let lines = bytes.start / LINE..bytes.end.div_ceil(LINE);
        self.m.touch_contents(self.root.known_buffer(block).contents, lines, Access::Write);
    }
}

impl<M: Machine> TreeLocks for Locked<'_, M> {
    async fn lock(&self, block: BlockId, level: usize, side: Side) {
        let buffer = self.find(block, level, side);
        self.m.lock(buffer.lock, side).await;
        self.m.touch(buffer.head, access(side));
    }

    async fn try_lock(&self, block: BlockId, level: usize, side: Side) -> bool {
        let buffer = self.find(block, level, side);
        let taken = self.m.try_lock_spinning(buffer.lock, side).await;
        if taken {
            self.m.touch(buffer.head, access(side));
        }
        taken
    }

    async fn convert(&self, block: BlockId, side: Side, mode: Mode) {
        let buffer = self.root.known_buffer(block);
        self.m.convert(buffer.lock, side, mode).await;
    }

    fn look_into(&self, block: BlockId) {
        for &probe in &self.root.known_buffer(block).probes[..self.root.probes] {
            self.m.touch(probe, Access::Read);
        }
    }

    fn change(&self, block: BlockId) {
        for &probe in &self.root.known_buffer(block).probes[..self.root.probes] {
            self.m.touch(probe, Access::Write);
        }
    }

    async fn unlock(&self, block: BlockId, side: Side) {
        let buffer = self.root.known_buffer(block);
        self.m.unlock(buffer.lock, side).await;
        self.m.touch(buffer.refs, Access::Write);
    }

    async fn work(&self, work: Work) {
        match work {
            Work::Shift(leaf, items) => {
                let tree = self.root.tree.borrow();
                self.go_through(leaf, (items * tree.bytes_of_item(leaf)) as u32);
                tree.places_of_last(leaf, items + 1).into_iter().for_each(|bytes| self.rewrite(leaf, bytes));
            }
            Work::Copy(block) => {
                self.go_through(block, NODE_SIZE);
                self.rewrite(block, 0..NODE_SIZE);
            }
            _ => {}
        }
        let time = match (&self.root.space, work) {
            (Space::Fleeting(_), Work::CsumLookup | Work::CsumItem) => self.root.after_search(self.root.costs.log_item),
            _ => self.root.costs.of(work),
        };
        if time > 0 {
            self.m.run(Account::System, time).await;
        }
    }

    async fn place(&self, level: usize) -> u64 {
        let time = self.root.costs.allocate;
        match &self.root.space {
            Space::Referenced(refs) => {
                self.m.run(Account::System, time.saturating_sub(refs.time())).await;
                refs.add_block(self.m, level).await
            }
            Space::Fleeting(refs) => {
                self.m.run(Account::System, time).await;
                refs.take_block()
            }
        }
    }

    async fn give_back(&self, place: u64, level: usize, new: bool) {
        match &self.root.space {
            Space::Referenced(refs) => refs.give_back(self.m, place, Extent::Block(level as u8), new).await,
            Space::Fleeting(refs) => refs.space.borrow_mut().give_back(place, u64::from(NODE_SIZE), false),
        }
    }
}

/// Who has a block for writing changes its header, sooner or later.
fn access(side: Side) -> Access {
    if side == Side::Write {
        Access::Write
    } else {
        Access::Read
    }
}
