//! XFS buffers as transactions see them: a lock that is held from `xfs_trans_get_buf` to commit, and the lines that a
//! transaction writes.

use crate::filesystems::xfs::structures::touch::Map;
use crate::waist::Machine;
use crate::waist::{Access, CachedId, ClassId, LineId, LockId, Side};

const LINE_BYTES: u32 = 64;

/// Where a buffer is on disk, in blocks from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its first block.
    pub block: u64,
    /// How many they are.
    pub blocks: u32,
}

/// A metadata buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub(crate) lock: LockId,
    pub(crate) lines: LineId,
    pub(crate) place: Place,
    memory: CachedId,
    bytes: u32,
    /// Chunks of its block that the transaction logs; none where they are not told. Of larger blocks of directories that there are some.
    pub(super) chunks: Map,
}

/// Something that transactions log, told by its lines.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    /// An inode, which lies in a cluster buffer; `times_only` if nothing but its times is logged (`XFS_ILOG_TIMESTAMP`).
    #[allow(missing_docs)]
    Inode { line: LineId, cluster: Buffer, times_only: bool },
    /// A buffer.
    Buffer(Buffer),
}

impl Buffer {
    /// A buffer of which a transaction writes `lines` cache lines.
    pub fn new<M: Machine>(m: &M, class: ClassId, lines: u32, place: Place) -> Self {
        let (lock, span) = (m.new_lock(class), m.new_line("xfs.buffer", lines));
        Self {
            lock,
            lines: span,
            place,
            memory: m.new_block(span..span + 1, None),
            bytes: lines * LINE_BYTES,
            chunks: 0,
        }
    }

    /// Of which a transaction logs these chunks, too.
    pub fn logging(self, chunks: Map) -> Self {
        Self { chunks: self.chunks | chunks, ..self }
    }

    /// As transactions log it.
    pub fn item(&self) -> Item {
        Item::Buffer(*self)
    }

    /// `xfs_buf_lock`: waits on `b_sema`, then works on lines that its last user may have left in another CPU's cache, or that have
    /// left all of them since.
    pub async fn lock<M: Machine>(&self, m: &M) {
        m.lock(self.lock, Side::Write).await;
        m.use_block(self.memory, self.bytes);
        m.touch(self.lines, Access::Write);
    }

    /// `xfs_buf_trylock`: whether nobody had it.
    pub fn try_lock<M: Machine>(&self, m: &M) -> bool {
        let got = m.try_lock(self.lock, Side::Write);
        if got {
            m.use_block(self.memory, self.bytes);
            m.touch(self.lines, Access::Write);
        }
        got
    }

    /// `xfs_buf_unlock`, from `iop_committing` for a buffer that was joined to a transaction.
    pub async fn unlock<M: Machine>(&self, m: &M) {
        m.unlock(self.lock, Side::Write).await;
    }
}

/// Locks buffers in this order.
pub async fn lock_all<M: Machine>(m: &M, buffers: &[Buffer]) {
    for buffer in buffers {
        buffer.lock(m).await;
    }
}

/// Unlocks buffers in this order.
pub async fn unlock_all<M: Machine>(m: &M, buffers: &[Buffer]) {
    for buffer in buffers {
        buffer.unlock(m).await;
    }
}
