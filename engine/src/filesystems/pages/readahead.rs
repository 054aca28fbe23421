//! Reading ahead of who reads a file block after block through the page cache (`mm/readahead.c`, `filemap_get_pages` of `mm/filemap.c`;
//! 3.0 to 6.18, for single pages).
//!
//! A window of pages is read at once. Its reader meets a mark in it (`PG_readahead`), where the next window is submitted: so the
//! device works while he copies. A page that is under way is waited for. Who reads at random places (`POSIX_FADV_RANDOM`, as fio says) has
//! none of this.
//!
//! Left out: windows of readers that jump, and of files that are in memory in part (`try_context_readahead`); large folios (XFS, 5.18).

use crate::devices::{BlockDevice, End, Request};
use crate::filesystems::page_cache::PageCache;
use crate::filesystems::BLOCK;
use crate::fx::FxMap;
use crate::waist::{LockId, Machine, TaskId};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Pages of the largest window of a file that is read in order: `VM_READAHEAD_PAGES`, doubled by `POSIX_FADV_SEQUENTIAL`.
const WINDOW: u64 = 2 * (128 << 10) / BLOCK as u64;
/// Pages of the largest request (`io_pages`, from `BLK_DEF_MAX_SECTORS`, 1,280 KiB), as far as a call's window may grow.
const REQUEST: u64 = (1280 << 10) / BLOCK as u64;
/// Pages in a bio (`BIO_MAX_VECS`).
const BIO: u64 = 256;

/// How a filesystem reads pages.
pub trait ReadPages {
    /// Where they are.
    fn device(&self) -> &BlockDevice;
    /// Looks up the blocks of a part of the file in a slot.
    async fn find_blocks<M: Machine>(&self, m: &M, slot: u32, part: (u64, u32));
}

/// `struct file_ra_state` of an open file: the pages of the last window, and how many of them lie behind the mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Window {
    start: u64,
    size: u64,
    ahead: u64,
}

impl Window {
    /// `ondemand_readahead`: the window of a reader that wants so many pages from one on.
    fn next(self, page: u64, wanted: u64) -> Self {
        let most = if wanted > WINDOW { wanted.min(REQUEST) } else { WINDOW };
        let follows = self.size > 0 && (page == self.start + self.size - self.ahead || page == self.start + self.size);
        let mut next = if page > 0 && follows {
            let size = grown(self.size, most);
            Self { start: self.start + self.size, size, ahead: size }
        } else {
            let size = first(wanted, most);
            Self { start: page, size, ahead: if size > wanted { size - wanted } else { size } }
        };
        // The reader would meet the mark at once: what comes then is read now.
        if page == next.start && next.size == next.ahead {
            let more = grown(next.size, most);
            (next.size, next.ahead) =
                if next.size + more <= most { (next.size + more, more) } else { (most, most / 2) };
        }
        next
    }
}

/// `get_init_ra_size`.
fn first(wanted: u64, most: u64) -> u64 {
    match wanted.next_power_of_two() {
        size if size <= most / 32 => size * 4,
        size if size <= most / 4 => size * 2,
        _ => most,
    }
}

/// `get_next_ra_size`.
fn grown(size: u64, most: u64) -> u64 {
    if size < most / 16 {
        4 * size
    } else if size <= most / 2 {
        2 * size
    } else {
        most
    }
}

/// Pages that the device reads.
struct Reading {
    first: u64,
    end: u64,
    done: LockId,
    /// Somebody waits for the device, who then completes these.
    waiters: Option<Vec<LockId>>,
}

/// What is read ahead of a file.
pub struct Readahead {
    pages: u64,
    windows: RefCell<FxMap<TaskId, Window>>,
    marks: RefCell<BTreeSet<u64>>,
    reading: RefCell<Vec<Reading>>,
}

impl Readahead {
    /// Of a file of so many bytes.
    pub fn of(bytes: u64) -> Self {
        let (windows, marks, reading) = (RefCell::default(), RefCell::default(), RefCell::default());
        Self { pages: bytes.div_ceil(u64::from(BLOCK)), windows, marks, reading }
    }

    /// Has these bytes of the file in a slot in memory.
    pub async fn read<M: Machine, F: ReadPages>(
        &self,
        m: &M,
        fs: &F,
        (slot, cache): (u32, &Rc<PageCache>),
        (offset, bytes): (u64, u32),
    ) {
        let page = u64::from(BLOCK);
        let (from, end) = (offset / page, (offset + u64::from(bytes)).div_ceil(page));
        for page in from..end {
            // A mark is met where its page is there; a page that is not is read first, and may be marked.
            if !cache.is_present(page) {
                self.submit_window(m, fs, (slot, cache), (page, end - page)).await;
            }
            if self.marks.borrow_mut().remove(&page) {
                self.submit_window(m, fs, (slot, cache), (page, end - page)).await;
            }
            self.wait(m, page).await;
        }
        cache.has(offset, bytes);
    }

    /// `page_cache_sync_ra` and `page_cache_async_ra`.
    async fn submit_window<M: Machine, F: ReadPages>(
        &self,
        m: &M,
        fs: &F,
        file: (u32, &Rc<PageCache>),
        (page, wanted): (u64, u64),
    ) {
        let window = {
            let mut windows = self.windows.borrow_mut();
            let window = windows.entry(m.task()).or_default();
            *window = window.next(page, wanted);
            *window
        };
        let end = (window.start + window.size).min(self.pages);
        let mark = window.start + window.size - window.ahead;
        if mark < end && !file.1.is_present(mark) {
            self.marks.borrow_mut().insert(mark);
        }
        let mut at = window.start;
        while at < end {
            let absent = (at..end.min(at + BIO)).take_while(|&page| !file.1.is_present(page)).count() as u64;
            if absent > 0 {
                self.submit(m, fs, file, (at, absent)).await;
            }
            at += absent.max(1);
        }
    }

    /// `mpage_readahead`, `iomap_readahead`: pages get memory, and a bio.
    async fn submit<M: Machine, F: ReadPages>(
        &self,
        m: &M,
        fs: &F,
        (slot, cache): (u32, &Rc<PageCache>),
        (first, count): (u64, u64),
    ) {
        let (device, part) = (fs.device(), (first * u64::from(BLOCK), count as u32 * BLOCK));
        let done = m.new_completion();
        self.reading.borrow_mut().push(Reading { first, end: first + count, done, waiters: None });
        device.memory.add(m, &device.writeback, cache, part).await;
        fs.find_blocks(m, slot, part).await;
        device.submit(m, Request::Read { bytes: part.1, at: Some(part.0) }, End::Complete(done)).await;
    }

    /// `folio_wait_locked`: waits for a page that is under way.
    async fn wait<M: Machine>(&self, m: &M, page: u64) {
        let (done, first) = {
            let mut reading = self.reading.borrow_mut();
            let Some(part) = reading.iter_mut().find(|part| part.first <= page && page < part.end) else { return };
            match &mut part.waiters {
                Some(others) => {
                    others.push(m.new_completion());
                    (others[others.len() - 1], false)
                }
                none => {
                    *none = Some(Vec::new());
                    (part.done, true)
                }
            }
        };
        m.wchan("folio_wait_bit_common");
        m.wait_for(done).await;
        m.drop_completion(done);
        if first {
            let part = {
                let mut reading = self.reading.borrow_mut();
                let place = reading.iter().position(|part| part.done == done).expect("it is under way");
                reading.swap_remove(place)
            };
            for other in part.waiters.into_iter().flatten() {
                m.complete(other).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Window, WINDOW};

    fn windows(wanted: u64, pages: &[u64]) -> Vec<(u64, u64, u64)> {
        let step = |window: &mut Window, &page: &u64| {
            *window = window.next(page, wanted);
            Some((window.start, window.size, window.ahead))
        };
        pages.iter().scan(Window::default(), step).collect()
    }

    #[test]
    fn windows_of_a_reader_of_pages_grow_to_the_largest() {
        assert_eq!(WINDOW, 64);
        let grows = [(0, 4, 3), (4, 8, 8), (12, 16, 16), (28, 32, 32), (60, 64, 64), (124, 64, 64)];
        assert_eq!(windows(1, &[0, 1, 4, 12, 28, 60]), grows);
    }

    #[test]
    fn a_large_call_is_read_at_once_and_as_much_again_by_half() {
        assert_eq!(windows(16, &[0]), [(0, 32, 16)]);
        assert_eq!(windows(256, &[0, 128]), [(0, 256, 128), (256, 256, 256)]);
    }

    #[test]
    fn who_jumps_begins_anew() {
        assert_eq!(windows(1, &[0, 1000]), [(0, 4, 3), (1000, 4, 3)]);
    }
}
