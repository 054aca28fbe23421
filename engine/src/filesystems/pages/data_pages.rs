//! Pages of file data: copying one that has left the caches costs the way from memory; one of which another CPU has written lines, these; and
//! one that is read again goes to the list of active pages.
//!
//! A new page comes from memory, unless a file had it a moment ago: a CPU's list of free pages is last in, first out (`free_unref_page`,
//! `rmqueue_pcplist`).

use crate::filesystems::by_slot::{BySlot, FreeSlots};
use crate::filesystems::cached::{used_ago, Looks};
use crate::waist::{Access, CachedId, ContentsId, CpuId, Machine, TaskId};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const PAGE: u64 = 4096;
const LINE: u64 = 64;
/// Pages of a node of a file's tree of pages (`XA_CHUNK_SIZE`).
const NODE: usize = 64;
/// What is written of a new page: all of it, with zeroes where the program writes nothing, and `struct page`, beside that of the page
/// before.
const NEW: u32 = (PAGE + LINE) as u32;
/// Bytes that were used since a page was that no file has had in the run: more than any cache holds.
const LONG_AGO: u64 = 1 << 50;
/// A look at a folio before its pages are copied: the slot in the node, and `struct page` (`filemap_get_entry`).
const LOOK: Looks = Looks { chain: 2, others: 0 };
const NONE: Looks = Looks { chain: 0, others: 0 };

/// How often a page was read (`folio_mark_accessed`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accessed {
    Never,
    /// `PG_referenced`.
    Once,
    /// `PG_active`.
    Active,
}

/// Who has copied from a page or to it. What the first CPU has written before a second one comes is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Users {
    #[default]
    Nobody,
    One(CpuId),
    Several(ContentsId),
}

/// A page: its body, unless nobody has copied from it or to it, and how often it was read, unless nobody has looked.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    body: Option<CachedId>,
    users: Users,
    accessed: Option<Accessed>,
    /// Whether a folio begins with it, if it was written in the run.
    begins: Option<bool>,
}

impl Page {
    /// The task's CPU uses it. What is in it, if another CPU has used it too.
    fn used_by<M: Machine>(&mut self, m: &M) -> Option<ContentsId> {
        self.users = match self.users {
            Users::Nobody => Users::One(m.cpu()),
            Users::One(cpu) if cpu != m.cpu() => Users::Several(m.new_contents()),
            same => same,
        };
        match self.users {
            Users::Several(contents) => Some(contents),
            _ => None,
        }
    }
}

/// The pages under one node.
type Node = Box<[Page; NODE]>;

/// The pages of one file.
#[derive(Default)]
struct FilePages {
    /// Whether they were there before the run.
    laid_out: bool,
    /// Whether they were read then.
    read: bool,
    /// Pages in each of their folios then, at least one.
    folio: u64,
    nodes: RefCell<Vec<Option<Node>>>,
    /// Who read last, and which page (`prev_pos` of `struct file_ra_state`).
    last_read: Cell<Option<(TaskId, u64)>>,
}

impl FilePages {
    /// Does something with a page.
    fn with<T>(&self, page: u64, act: impl FnOnce(&mut Page) -> T) -> T {
        let (node, place) = (page as usize / NODE, page as usize % NODE);
        let mut nodes = self.nodes.borrow_mut();
        if nodes.len() <= node {
            nodes.resize_with(node + 1, || None);
        }
        act(&mut nodes[node].get_or_insert_with(|| Box::new([Page::default(); NODE]))[place])
    }

    /// Whether a folio begins with a page.
    fn begins(&self, of: &Page, page: u64) -> bool {
        of.begins.unwrap_or_else(|| page.is_multiple_of(self.folio.max(1)))
    }
}

/// The pages of the files of a mount.
#[derive(Default)]
pub struct DataPages {
    files: BySlot<Rc<FilePages>>,
    /// Pages that were in memory before the run.
    before: Cell<u64>,
    /// Bodies of pages that files have given back.
    free: RefCell<FreeSlots>,
}

impl DataPages {
    /// A file was laid out, with so many bytes; what is in memory of it was `read` before, or only written, and has folios of so many pages.
    pub fn laid_out(&self, slot: u32, bytes: u64, read: bool, folio: u64) {
        self.files.put(slot, Rc::new(FilePages { laid_out: true, read, folio, ..FilePages::default() }));
        self.before.set(self.before.get() + bytes.div_ceil(PAGE));
    }

    /// How many folios these bytes are in.
    pub fn folios(&self, slot: u32, offset: u64, bytes: u32) -> u64 {
        let file = self.files.get_or_make(slot, Rc::default);
        let (first, end) = (offset / PAGE, (offset + u64::from(bytes.max(1))).div_ceil(PAGE));
        1 + (first + 1..end).filter(|&page| file.with(page, |of| file.begins(of, page))).count() as u64
    }

    /// A task copies from the pages of these bytes.
    pub fn copy_from<M: Machine>(&self, m: &M, slot: u32, offset: u64, bytes: u32) {
        self.copy(m, slot, (offset, bytes), Access::Read, false);
    }

    /// The same to them.
    pub fn copy_to<M: Machine>(&self, m: &M, slot: u32, offset: u64, bytes: u32) {
        self.copy(m, slot, (offset, bytes), Access::Write, false);
    }

    /// The same behind the bytes that it copied to just now, with whose last folio it may go on.
    pub fn copy_on_to<M: Machine>(&self, m: &M, slot: u32, offset: u64, bytes: u32) {
        self.copy(m, slot, (offset, bytes), Access::Write, true);
    }

    fn copy<M: Machine>(&self, m: &M, slot: u32, (offset, bytes): (u64, u32), access: Access, goes_on: bool) {
        let file = self.files.get_or_make(slot, Rc::default);
        let end = offset + u64::from(bytes.max(1));
        for page in offset / PAGE..end.div_ceil(PAGE) {
            let (body, contents, begins) =
                file.with(page, |of| (self.body(m, &file, of, (slot, page)), of.used_by(m), file.begins(of, page)));
            let look = if begins || (page == offset / PAGE && !goes_on) { LOOK } else { NONE };
            let (from, to) = (offset.max(page * PAGE) - page * PAGE, end.min((page + 1) * PAGE) - page * PAGE);
            let part = (to - from) as u32;
            let in_memory = m.use_block(body, part + look.bytes());
            m.fetch_block(body, look.chain, look.others);
            m.stream_block(body, part);
            if let Some(contents) = contents.filter(|_| !in_memory) {
                m.touch_contents(contents, (from / LINE) as u32..to.div_ceil(LINE) as u32, access);
            }
        }
    }

    /// A task writes so many new pages of a file, from one on, in folios that begin with these: nobody has read them, nor has another
    /// CPU their lines.
    pub fn make<M: Machine>(&self, m: &M, slot: u32, (from, pages): (u64, u64), firsts: impl Iterator<Item = u64>) {
        let file = self.files.get_or_make(slot, Rc::default);
        let mut firsts = firsts.peekable();
        for page in from..from + pages {
            let begins = firsts.next_if_eq(&page).is_some();
            let body = file.with(page, |page| {
                (page.accessed, page.users, page.begins) = (Some(Accessed::Never), Users::Nobody, Some(begins));
                *page.body.get_or_insert_with(|| self.take_free(m))
            });
            m.use_block(body, NEW);
            m.stream_block(body, NEW);
        }
    }

    /// `rmqueue`.
    fn take_free<M: Machine>(&self, m: &M) -> CachedId {
        self.free.borrow_mut().pop(m.cpu()).unwrap_or_else(|| m.new_block(0..0, Some(LONG_AGO)))
    }

    /// A file gives its pages back (`free_unref_folios`).
    pub fn free<M: Machine>(&self, m: &M, slot: u32) {
        let Some(file) = self.files.get(slot) else { return };
        let mut free = self.free.borrow_mut();
        for node in file.nodes.borrow_mut().iter_mut().flatten() {
            node.iter_mut().filter_map(|page| page.body.take()).for_each(|body| free.push(m.cpu(), body));
        }
    }

    /// A task reads these bytes. How many pages it finds active for the first time. Who reads on in a page does not count anew
    /// (`filemap_read`).
    pub fn read<M: Machine>(&self, m: &M, slot: u32, offset: u64, bytes: u32) -> u64 {
        let file = self.files.get_or_make(slot, Rc::default);
        let (first, end) = (offset / PAGE, (offset + u64::from(bytes.max(1))).div_ceil(PAGE));
        let same = file.last_read.replace(Some((m.task(), end - 1))) == Some((m.task(), first));
        let before = if file.read { Accessed::Active } else { Accessed::Never };
        let access = |page: &mut Page| {
            let accessed = page.accessed.unwrap_or(before);
            page.accessed = Some(if accessed == Accessed::Never { Accessed::Once } else { Accessed::Active });
            accessed == Accessed::Once
        };
        (first + u64::from(same)..end).filter(|&page| file.with(page, access)).count() as u64
    }

    /// The body of a page. One that was there before the run was used last at any time before; one that was written in it, now.
    fn body<M: Machine>(&self, m: &M, file: &FilePages, of: &mut Page, (slot, page): (u32, u64)) -> CachedId {
        let number = (u64::from(slot) << 32) + page;
        let ago = || used_ago(number, self.before.get(), PAGE as u32);
        *of.body.get_or_insert_with(|| m.new_block(0..0, file.laid_out.then(ago)))
    }
}
