//! Where those meet who use one page of a file: at its folio's count of references, and on tmpfs at its lock, a bit in the same line
//! (`flags` at 0 and `_refcount` at 52 of `struct page`, by the BTF of 6.18).
//!
//! Whoever copies has a reference of the folio (`folio_try_get`, before 5.16 `page_cache_get_speculative`) until all is copied
//! (`folio_put`): two atomic additions, whatever else is locked. tmpfs looks under the folio's lock whether it was truncated or swapped out
//! (`shmem_get_folio_gfp`, before 6.1 `shmem_getpage_gfp`): a reader unlocks it before it copies (`shmem_file_read_iter`), a writer afterwards
//! (`shmem_write_end`). Elsewhere readers take no lock, and writers of one file have its `i_rwsem`: their folio locks are left out.
//!
//! A call uses those of its first page only, and each page has a folio of its own here.

use crate::filesystems::fs_type::FsType;
use crate::filesystems::File;
use crate::fx::FxMap;
use crate::waist::{Access, Account, ClassId, LineId, LockId, Machine, Side, Time};
use std::cell::RefCell;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// The words of a folio that are used.
#[derive(Clone, Copy)]
enum Words {
    Count(LineId),
    CountAndLock(LockId),
}

impl Words {
    /// A reference is taken or given back.
    fn count<M: Machine>(self, m: &M) {
        match self {
            Self::Count(line) => m.touch(line, Access::Atomic),
            Self::CountAndLock(lock) => m.touch_beside(lock, Access::Atomic),
        }
    }

    /// `folio_lock`. Who has the bit waits for its line, which others ask for in order to count, before it goes on.
    async fn lock<M: Machine>(self, m: &M) {
        if let Self::CountAndLock(lock) = self {
            m.settle().await;
            m.lock(lock, Side::Write).await;
            m.pay().await;
        }
    }

    /// `folio_unlock`.
    async fn unlock<M: Machine>(self, m: &M) {
        if let Self::CountAndLock(lock) = self {
            m.unlock(lock, Side::Write).await;
        }
    }
}

/// Those of all folios of a mount.
pub struct FolioWords {
    /// Of their locks, where these are taken.
    locks: Option<ClassId>,
    /// By file and page.
    words: RefCell<FxMap<(u32, u64), Words>>,
}

impl FolioWords {
    /// Of a type of filesystem.
    pub fn new<M: Machine>(m: &M, fs: &FsType) -> Self {
        let locks = fs.in_memory.then(|| m.class("mm.folio_lock", "mm.folio_lock"));
        Self { locks, words: RefCell::default() }
    }

    /// The copying from an offset of a file takes so long (`filemap_read`).
    pub async fn copy_from<M: Machine>(&self, m: &M, file: &File, offset: u64, copy: Time) {
        m.cond_resched().await;
        let words = self.at(m, file, offset);
        words.count(m);
        words.lock(m).await;
        words.unlock(m).await;
        m.run(Account::System, copy).await;
        words.count(m);
    }

    /// The same to an offset (`generic_perform_write`).
    pub async fn copy_to<M: Machine>(&self, m: &M, file: &File, offset: u64, copy: Time) {
        let words = self.at(m, file, offset);
        words.count(m);
        words.lock(m).await;
        m.run(Account::System, copy).await;
        words.unlock(m).await;
        words.count(m);
        m.cond_resched().await;
    }

    fn at<M: Machine>(&self, m: &M, file: &File, offset: u64) -> Words {
        let new = || match self.locks {
            None => Words::Count(m.new_line("mm.folio refcount", 1)),
            Some(class) => Words::CountAndLock(m.new_lock(class)),
        };
        *self.words.borrow_mut().entry((file.inode, offset / PAGE)).or_insert_with(new)
    }
}
