//! What workers of unbound workqueues do for btrfs: `endio-write`, `endio`, `btrfs-worker`, `freespace-write`, delayed items, and the
//! requests of a loop device below.

use super::mount::Btrfs;
use crate::waist::{LockId, Machine};
use crate::workqueue::Works;

impl Works for Btrfs {
    async fn act<M: Machine>(&self, m: &M, work: LockId) {
        let (ordered, caches) = (&self.ordered, &self.extents.caches);
        if let Some(item) = ordered.writes.take(work) {
            self.end_write(m, item).await;
        } else if let Some(item) = ordered.reads.take(work) {
            self.end_read(m, item).await;
        } else if let Some(item) = self.sums.queue.take(work) {
            self.sum_data(m, item).await;
        } else if self.workers.has(work) {
            self.run_delayed_root(m).await;
        } else if let Some((caches, item)) = caches.as_ref().and_then(|c| c.ended.take(work).map(|item| (c, item))) {
            self.end_cache(m, caches, item).await;
        } else {
            self.storage.act(m, work).await;
        }
    }
}
