//! How dirty pages get to the device where blocks are allocated as they are written (`mm/filemap.c`, `mm/page-writeback.c`).

use crate::filesystems::pages::dirty::{DirtyFiles, Piece, Wanted};
use crate::waist::LockId;
use crate::waist::Machine;
use crate::writeback::{Flushed, REQUEST_PAGES};

/// What `writepages` of such a filesystem does with one piece of a file after the other.
pub trait Mapping: Flushed {
    /// What one call of `writepages` has done that it does once.
    type Call: Default;
    /// The next piece of a file that is to be written back.
    async fn take_piece<M: Machine>(&self, m: &M, slot: u32, wanted: Wanted, call: &mut Self::Call) -> Option<Piece>;
    /// Submits it; `done` is completed when it is no longer under writeback. Returns whether it became part of another request.
    async fn write_piece<M: Machine>(&self, m: &M, slot: u32, piece: Piece, done: LockId) -> bool;
    /// `writepages` has written something, and looks whether there is more.
    async fn look_for_more<M: Machine>(&self, _m: &M) {}
}

/// `file_write_and_wait_range`: what is dirty is written and waited for, and what the flusher has under way, of a range as of the whole
/// file. Returns whether anything was dirty.
pub async fn write_and_wait<M: Machine, F: Mapping>(fs: &F, m: &M, slot: u32, wanted: Wanted) -> bool {
    let (wb, done, mut call) = (fs.writeback(), m.new_completion(), F::Call::default());
    let (mut submitted, mut pages) = (0, 0);
    while let Some(piece) = fs.take_piece(m, slot, wanted, &mut call).await {
        wb.begin(piece.pages());
        (submitted, pages) = (submitted + 1, pages + piece.pages());
        fs.write_piece(m, slot, piece, done).await;
        if wanted.is_all_of(&piece) {
            break;
        }
    }
    if submitted > 0 {
        fs.look_for_more(m).await;
    }
    for _ in 0..submitted {
        m.wchan("folio_wait_writeback");
        m.wait_for_io(done).await;
    }
    m.drop_completion(done);
    wb.end(pages);
    wb.wait_for_pages(m, slot).await;
    submitted > 0
}

/// What a sync has submitted, and is to wait for.
#[derive(Default)]
pub struct Submitted {
    done: Option<LockId>,
    requests: u32,
    pages: u64,
    files: Vec<u32>,
}

/// `writeback_sb_inodes` of a sync: what is dirty of all files is submitted.
pub async fn submit_inodes<M: Machine, F: Mapping>(fs: &F, m: &M, dirty: &DirtyFiles) -> Submitted {
    let (wb, done) = (fs.writeback(), m.new_completion());
    let (mut requests, mut pages) = (0, 0);
    let files: Vec<_> = dirty.slots().into_iter().filter(|&slot| !wb.is_going(slot)).collect();
    files.iter().for_each(|&slot| wb.begins_sync(slot));
    for &slot in &files {
        let mut call = F::Call::default();
        while let Some(piece) = fs.take_piece(m, slot, Wanted::All, &mut call).await {
            wb.begin(piece.pages());
            (requests, pages) = (requests + 1, pages + piece.pages());
            fs.write_piece(m, slot, piece, done).await;
        }
        fs.look_for_more(m).await;
    }
    Submitted { done: Some(done), requests, pages, files }
}

/// `wait_sb_inodes`.
pub async fn wait_inodes<M: Machine, F: Mapping>(fs: &F, m: &M, written: Submitted) {
    let Submitted { done: Some(done), requests, pages, files } = written else { return };
    for _ in 0..requests {
        m.wchan("folio_wait_writeback");
        m.wait_for_io(done).await;
    }
    m.drop_completion(done);
    fs.writeback().end(pages);
    files.into_iter().for_each(|slot| fs.writeback().ends_sync(m, slot));
    fs.writeback().wait_for_all(m).await;
}

/// `sync_inodes_sb`: what is dirty of all files is written and waited for.
pub async fn sync_inodes<M: Machine, F: Mapping>(fs: &F, m: &M, dirty: &DirtyFiles) {
    for slot in dirty.slots() {
        write_and_wait(fs, m, slot, Wanted::All).await;
    }
}

/// `writepages` for the flusher: requests of at most so many pages together.
pub async fn write_pages<M: Machine, F: Mapping>(fs: &F, m: &M, slot: u32, most: u64) {
    let (wb, mut left, mut call) = (fs.writeback(), most, F::Call::default());
    while left > 0 {
        let Some(piece) = fs.take_piece(m, slot, Wanted::Any(left.min(REQUEST_PAGES)), &mut call).await else { break };
        left -= piece.pages().min(left);
        let done = m.new_completion();
        wb.submitted(done, slot, piece.pages());
        if fs.write_piece(m, slot, piece, done).await {
            wb.joined();
        }
    }
    if left < most {
        fs.look_for_more(m).await;
    }
}
