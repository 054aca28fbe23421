//! Items go to their place on disk: inodes into their cluster buffer, buffers to the device, and off the list when they are there.

use super::{Ail, ItemId, Subject, NONE};
use crate::waist::LineId;

impl Ail {
    /// Copies the attached inodes into their cluster buffer that may be (`xfs_iflush_cluster`), and tells their lines to `seen`.
    pub fn flush_cluster(&mut self, cluster: ItemId, mut seen: impl FnMut(LineId)) -> u32 {
        let (mut id, mut flushed) = (self.at(cluster).next, 0);
        while id != NONE {
            let it = self.at_mut(id);
            if it.dirty && it.lsn > 0 && it.pins == 0 && !it.joined && !it.flushing {
                (it.dirty, it.flushing, it.flushed) = (false, true, it.lsn);
                it.fsync_fields = false;
                flushed += 1;
                if let Subject::Inode { line, .. } = it.subject {
                    seen(line);
                }
            }
            id = self.at(id).next;
        }
        flushed
    }

    /// Queues a buffer to be written (`xfs_buf_delwri_queue`); not if it is queued.
    pub fn queue(&mut self, id: ItemId) -> bool {
        !std::mem::replace(&mut self.at_mut(id).dirty, true)
    }

    /// A buffer is on its way to the device.
    pub fn submit(&mut self, id: ItemId) {
        let it = self.at_mut(id);
        (it.dirty, it.flushing, it.flushed) = (false, true, it.lsn);
    }

    /// A buffer is on disk, and the inodes in it (`xfs_buf_item_done`, `xfs_buf_inode_iodone`): what was not changed again meanwhile
    /// leaves the list. Returns how many inodes were in it.
    pub fn written(&mut self, id: ItemId) -> u32 {
        self.at_mut(id).flushing = false;
        self.clean(id);
        let (mut inode, mut inodes, mut last) = (self.at(id).next, 0, id);
        while inode != NONE {
            let next = self.at(inode).next;
            if std::mem::take(&mut self.at_mut(inode).flushing) {
                inodes += 1;
                self.clean(inode);
            }
            let it = self.at_mut(inode);
            if it.dirty {
                last = inode;
            } else {
                (it.attached, it.next) = (false, NONE);
                self.at_mut(last).next = next;
            }
            inode = next;
        }
        self.drop_unused(id);
        self.trim();
        inodes
    }

    fn clean(&mut self, id: ItemId) {
        let it = self.at(id);
        if it.lsn > 0 && it.lsn == it.flushed {
            self.delete(id);
            self.at_mut(id).chunks = 0; // xfs_buf_item_relse
            self.large.remove(&id);
        }
    }
}
