//! Pages of file data in the caches: copying one that has left them costs the way from memory.

use crate::filesystems::by_slot::BySlot;
use crate::filesystems::cached::{used_ago, Looks};
use crate::waist::{CachedId, Machine};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const PAGE: u64 = 4096;
/// Pages of a node of a file's tree of pages (`XA_CHUNK_SIZE`).
const NODE: usize = 64;
/// A look at a page before it is copied: the slot in the node, and `struct page` (`filemap_get_entry`).
const LOOK: Looks = Looks { chain: 2, others: 0 };

/// The bodies of the pages under one node; those that nobody has copied from or to have none.
type Node = Box<[Option<CachedId>; NODE]>;

/// The pages of one file.
#[derive(Default)]
struct FilePages {
    /// Whether they were there before the run.
    laid_out: bool,
    nodes: RefCell<Vec<Option<Node>>>,
}

/// The pages of the files of a mount.
#[derive(Default)]
pub struct DataPages {
    files: BySlot<Rc<FilePages>>,
    /// Pages that were in memory before the run.
    before: Cell<u64>,
}

impl DataPages {
    /// A file was laid out, with so many bytes in memory.
    pub fn laid_out(&self, slot: u32, bytes: u64) {
        self.files.put(slot, Rc::new(FilePages { laid_out: true, ..FilePages::default() }));
        self.before.set(self.before.get() + bytes.div_ceil(PAGE));
    }

    /// A task copies from or to the pages of these bytes.
    pub fn copy<M: Machine>(&self, m: &M, slot: u32, offset: u64, bytes: u32) {
        let file = self.files.get_or_make(slot, Rc::default);
        let end = offset + u64::from(bytes.max(1));
        for page in offset / PAGE..end.div_ceil(PAGE) {
            let body = self.body(m, &file, slot, page);
            let part = (end.min((page + 1) * PAGE) - offset.max(page * PAGE)) as u32;
            m.use_block(body, part + LOOK.bytes());
            m.fetch_block(body, LOOK.chain, LOOK.others);
            m.stream_block(body, part);
        }
    }

    /// The body of a page. One that was there before the run was used last at any time before; one that was written in it, now.
    fn body<M: Machine>(&self, m: &M, file: &FilePages, slot: u32, page: u64) -> CachedId {
        let (node, place) = (page as usize / NODE, page as usize % NODE);
        let mut nodes = file.nodes.borrow_mut();
        if nodes.len() <= node {
            nodes.resize_with(node + 1, || None);
        }
        let bodies = nodes[node].get_or_insert_with(|| Box::new([None; NODE]));
        *bodies[place].get_or_insert_with(|| {
            let number = (u64::from(slot) << 32) + page;
            m.new_block(0..0, file.laid_out.then(|| used_ago(number, self.before.get(), PAGE as u32)))
        })
    }
}
