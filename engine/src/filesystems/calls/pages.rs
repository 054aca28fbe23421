//! Reads and writes of cached pages, and pages that go, on every filesystem.

use super::Calls;
use crate::filesystems::{File, LaidOut};
use crate::waist::Machine;
use crate::waist::{Account, Time};

/// Bytes of a page.
const PAGE: u64 = 4096;

impl Calls {
    /// The copying of cached pages to the reader.
    pub async fn read<M: Machine>(&self, m: &M, file: &File, (offset, bytes): (u64, u32)) {
        m.at("read");
        m.moved(u64::from(bytes));
        self.files.held(m, file.inode);
        self.pages.copy_from(m, file.inode, offset, bytes);
        let (pages, folios) = self.pages_and_folios(file, (offset, bytes));
        self.folio_words.copy_from(m, file, offset, self.costs.read + self.folios.read(pages, folios)).await;
        self.mark_accessed(m, file, (offset, bytes)).await;
    }

    /// The task has read these bytes in the page cache (`folio_mark_accessed` in `filemap_read`).
    pub async fn mark_accessed<M: Machine>(&self, m: &M, file: &File, (offset, bytes): (u64, u32)) {
        if self.reads_mark {
            self.lru.activate(m, self.pages.read(m, file.inode, offset, bytes)).await;
        }
    }

    /// The copying over cached pages that have blocks.
    pub async fn overwrite<M: Machine>(&self, m: &M, file: &File, (offset, bytes): (u64, u32)) {
        m.moved(u64::from(bytes));
        self.files.held(m, file.inode);
        self.pages.copy_to(m, file.inode, offset, bytes);
        self.folio_words.copy_to(m, file, offset, self.overwriting(file, (offset, bytes))).await;
    }

    /// How long a write over cached pages takes that have blocks, of these bytes.
    pub fn overwriting(&self, file: &File, place: (u64, u32)) -> Time {
        let (pages, folios) = self.pages_and_folios(file, place);
        self.costs.overwrite + self.folios.overwrite(pages, folios)
    }

    /// How much longer it takes than one of a page.
    pub fn overwriting_more(&self, file: &File, place: (u64, u32)) -> Time {
        let (pages, folios) = self.pages_and_folios(file, place);
        self.folios.overwrite(pages, folios) - self.folios.overwrite(1, 1)
    }

    /// How many pages of cached data so many bytes are, and in how many folios.
    fn pages_and_folios(&self, file: &File, (offset, bytes): (u64, u32)) -> (u64, u64) {
        let pages = pages(bytes);
        (pages, self.pages.folios(file.inode, offset, bytes).min(pages))
    }

    /// A file was laid out before the run.
    pub fn laid_out(&self, file: &File, laid: &LaidOut) {
        self.pages.laid_out(file.inode, laid.bytes, laid.read, self.folios.of_writes(laid.block));
    }

    /// How long so many new pages of a file take from an offset on, the first of them `first`.
    pub fn filling(&self, first: Time, offset: u64, bytes: u32) -> Time {
        let pages = pages(bytes);
        first + self.folios.append(pages, self.folios.of(offset / PAGE, pages), 0)
    }

    /// A filesystem charges this of each write over cached pages by itself.
    pub fn overwrite_apart(&mut self, time: Time) {
        self.costs.overwrite = self.costs.overwrite.saturating_sub(time);
    }

    /// A write at the end of a file of this size. The first new page takes `first`; what still fits the last page is written over it.
    pub async fn append<M: Machine>(&self, m: &M, file: &File, first: Time, size: u64, bytes: u32) {
        m.moved(u64::from(bytes));
        let new = new_pages(size, bytes);
        let before = size.div_ceil(PAGE);
        self.pages.make(m, file.inode, (before, new), self.folios.firsts(before, new));
        let folios = self.folios.of(before, new);
        let time = match new {
            0 => self.costs.overwrite + self.folios.overwrite(1, 1),
            more => first + self.folios.append(more, folios, self.lru.of_file().0),
        };
        m.run(Account::System, time).await;
        self.written.put(file.inode, self.written(file) + folios);
        self.lru.add(m, folios).await;
    }

    /// How many of a file's folios are new.
    pub fn written(&self, file: &File) -> u64 {
        self.written.get(file.inode).unwrap_or_default()
    }

    /// All pages of a file, which goes (`truncate_inode_pages_final`) or on ext4 is shortened to nothing. The filesystem's steps have the
    /// first folio, but for what lists take ([`Calls::without_lru`]).
    pub async fn drop_pages<M: Machine>(&self, m: &M, file: &File) {
        let folios = self.written(file);
        self.pages.free(m, file.inode);
        self.drop_folios(m, file, folios, self.dropping(folios.saturating_sub(1))).await;
    }

    /// The pages of a file that is shortened to nothing (`truncate_setsize`), which takes `once` besides.
    pub async fn truncate_pages<M: Machine>(&self, m: &M, file: &File, once: Time) {
        let folios = self.written(file);
        self.pages.free(m, file.inode);
        self.drop_folios(m, file, folios, once + self.dropping(folios)).await;
    }

    /// So many of a file's new folios are dropped, which takes so long besides what lists take.
    pub async fn drop_folios<M: Machine>(&self, m: &M, file: &File, folios: u64, time: Time) {
        if folios > 0 {
            self.written.put(file.inode, self.written(file).saturating_sub(folios));
            m.run(Account::System, time).await;
            self.lru.truncate(m, folios).await;
        }
    }

    /// What so many folios take that are dropped, without what lists take.
    pub fn dropping(&self, folios: u64) -> Time {
        self.without_lru(self.costs.drop_folio) * folios
    }

    /// The rest of a step that drops the page of a file that has one.
    pub fn without_lru(&self, step: Time) -> Time {
        let (add, release) = self.lru.of_file();
        step.saturating_sub(add + release)
    }
}

/// Pages that a write at the end of a file of this size adds.
pub fn new_pages(size: u64, bytes: u32) -> u64 {
    (size + u64::from(bytes)).div_ceil(PAGE) - size.div_ceil(PAGE)
}

fn pages(bytes: u32) -> u64 {
    u64::from(bytes).div_ceil(PAGE).max(1)
}
