//! The cache lines of an inode that direct I/O of many tasks fights for: two rwsems, a spinlock and a count are in them, and
//! beside these what every request reads, so that a read costs a transfer as well.
//!
//! From the order of the fields in `struct xfs_inode` and `struct inode` of Linux 5.1 and 6.1 (x86-64, with POSIX ACLs,
//! security modules and cgroup writeback; inodes begin on a line of their own), offsets in bytes:
//!
//! | line | written | read beside it |
//! |---|---|---|
//! | 64 | 5.1: count of the ILOCK (120) | 5.1: root and height of the extent map (`i_df`, 72 to 104), at each lookup |
//! | 128 | owner of the ILOCK (5.1: 152), which each reader stores since 4.20; 6.1: with its count (168) | |
//! | 192 | 5.1: `i_flags_lock` (204) | 5.1: `di_format` (225), before the ILOCK is taken |
//! | 448 | count and owner of `i_rwsem`, which is the IOLOCK (472 to 512) | `i_blkbits` (454), for each bio |
//! | 640 | `i_dio_count` (652; 6.1: 660) | `i_version` (640) and, for leases, `i_flctx` (672; 6.1: 680) by writes; `i_flctx` for mandatory file locks (`rw_verify_area`, until 5.14) by all |
//!
//! In 5.19 the count of `i_rwsem` has `i_ctime` beside it, at which all readers look; since 6.11 `i_blkbits` lies before its line
//! (`xfs.iolock_line`). The rule `xfs.ilock_line` says where a kernel has the ILOCK and what lies beside it.

use super::inode::Inode;
use crate::kernel::xfs::{DioSizeCheck, IlockLine, IolockLine};
use crate::kernel::Rules;
use crate::waist::Machine;
use crate::waist::{Access, LineId, LockId};

/// The lines of one open file's inode.
pub(super) struct InodeLines {
    iolock: LockId,
    ilock: LockId,
    dio_count: LineId,
    before: Before,
}

/// What was elsewhere, or was asked for, before some kernel.
struct Before {
    ilock_line: IlockLine,
    iolock_line: IolockLine,
    mandatory_locks: bool,
    /// The owner word of the ILOCK where it is not in the line of its count.
    ilock_owner: LineId,
    /// `i_flags_lock`, and whether direct writes take it.
    flags_lock: LockId,
    takes_flags_lock: bool,
}

impl InodeLines {
    /// The lines of an inode with these locks, in a kernel with these rules.
    pub fn new<M: Machine>(m: &M, inode: &Inode, rules: &Rules) -> Self {
        let before = Before {
            ilock_line: rules.ilock_line,
            iolock_line: rules.iolock_line,
            mandatory_locks: rules.mandatory_locks,
            ilock_owner: m.new_line("xfs.ILOCK owner", 1),
            flags_lock: inode.flags_lock,
            takes_flags_lock: rules.dio_size_check == DioSizeCheck::Locked,
        };
        Self { iolock: inode.iolock, ilock: inode.ilock, dio_count: m.new_line("vfs.i_dio_count", 1), before }
    }

    /// `i_flags_lock`, where writes take it.
    pub fn flags_lock(&self) -> Option<LockId> {
        self.before.takes_flags_lock.then_some(self.before.flags_lock)
    }

    /// A request comes: `rw_verify_area` asks for mandatory locks.
    pub fn enter<M: Machine>(&self, m: &M) {
        if self.before.mandatory_locks {
            m.touch(self.dio_count, Access::Read);
        }
    }

    /// A write looks for leases (`break_layout`), or whether anybody has asked for the version (`file_update_time`).
    pub fn check_write<M: Machine>(&self, m: &M) {
        m.touch(self.dio_count, Access::Read);
    }

    /// `inode_dio_begin` and `inode_dio_end`.
    pub fn count<M: Machine>(&self, m: &M) {
        m.touch(self.dio_count, Access::Atomic);
    }

    /// `xfs_ilock_data_map_shared` looks how the extents are stored.
    pub fn look_at_format<M: Machine>(&self, m: &M) {
        match self.before.ilock_line {
            IlockLine::WithExtents => m.touch_beside(self.before.flags_lock, Access::Read),
            IlockLine::WithFormat => m.touch_beside(self.ilock, Access::Read),
            IlockLine::Apart => {}
        }
    }

    /// A reader has got the ILOCK and notes itself.
    pub fn own_ilock<M: Machine>(&self, m: &M) {
        if self.before.ilock_line != IlockLine::Apart {
            m.touch(self.before.ilock_owner, Access::Write);
        }
    }

    /// `xfs_iext_lookup_extent` begins at the root of the extent map.
    pub fn find_extent_map<M: Machine>(&self, m: &M) {
        if self.before.ilock_line != IlockLine::Apart {
            m.touch_beside(self.ilock, Access::Read);
        }
    }

    /// `iomap_dio_bio_actor` asks for the size of blocks.
    pub fn build_bio<M: Machine>(&self, m: &M) {
        if self.before.iolock_line != IolockLine::Apart {
            m.touch_beside(self.iolock, Access::Read);
        }
    }
}
