//! What a `statfs` adds up: counts of which each CPU keeps a part (`struct percpu_counter`). Who wants the sum takes the counter's lock
//! and looks at the parts of all CPUs under it (`__percpu_counter_sum`, lib/percpu_counter.c, 3.0 to 6.18), so callers on one mount wait for each other.

use crate::waist::{Account, LockId, Machine, Side, Time};

/// The counters of a filesystem, in the order in which they are added up (`xfs_fs_statfs`, `ext4_statfs`, `shmem_statfs` of 6.12). btrfs has
/// none: it adds up its space_infos.
fn counters(kind: &str) -> &'static [&'static str] {
    match kind {
        "xfs" => &["xfs.m_icount", "xfs.m_ifree", "xfs.m_fdblocks"],
        "ext4" => &["ext4.s_freeclusters_counter", "ext4.s_dirtyclusters_counter", "ext4.s_freeinodes_counter"],
        "tmpfs" => &["tmpfs.used_blocks"],
        _ => &[],
    }
}

/// The locks of those that one mount's `statfs` adds up.
pub struct StatfsSums(Vec<LockId>);

impl StatfsSums {
    /// Of a filesystem by its kind.
    pub fn new<M: Machine>(m: &M, kind: &str) -> Self {
        Self(counters(kind).iter().map(|name| m.new_lock(m.class(name, "vfs.percpu_counter"))).collect())
    }

    /// The sums are taken one after the other, all together in `time`.
    pub async fn sum<M: Machine>(&self, m: &M, time: Time) {
        for lock in &self.0 {
            m.lock(*lock, Side::Write).await;
            m.run(Account::System, time / self.0.len() as Time).await;
            m.unlock(*lock, Side::Write).await;
        }
    }
}
