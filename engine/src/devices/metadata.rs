//! Requests of a filesystem's metadata: writes in order, buffers whose lock ends with the request, and what a commit writes.

use super::{BlockDevice, End, Place, Request, Server};
use crate::waist::{LockId, Machine, Side};

/// Bytes of a write of a commit; a device takes many at once, and is busy all the same.
const COMMIT_WRITE: u32 = 1 << 20;

impl BlockDevice {
    /// Submits a write under the task's plug; its end completes what is returned.
    pub async fn submit_write_plugged<M: Machine>(&self, m: &M, bytes: u32, at: Place) -> LockId {
        let done = m.new_completion();
        self.submit_plugged(m, Request::write(bytes, at), End::Complete(done)).await;
        done
    }

    /// Writes after what was written before is safe, and waits until this is safe, too.
    pub async fn write_ordered<M: Machine>(&self, m: &M, bytes: u32, at: Place) {
        self.io(m, Request::LogWrite { bytes, at, preflush: true, fua: true }).await;
    }

    /// A flush, whose end is waited for, and then a write that is waited for until it is safe (`write_all_supers` of btrfs,
    /// `jbd2_journal_update_sb_log_tail`).
    pub async fn flush_then_write<M: Machine>(&self, m: &M, bytes: u32, at: Place) {
        self.io(m, Request::Flush).await;
        self.io(m, Request::LogWrite { bytes, at, preflush: false, fua: true }).await;
    }

    /// Reads and waits.
    pub async fn read<M: Machine>(&self, m: &M, bytes: u32) {
        self.io(m, Request::Read { bytes, at: None }).await;
    }

    /// The same where the wait in `function` does not count as one for I/O.
    pub async fn read_uncounted<M: Machine>(&self, m: &M, bytes: u32, function: &'static str) {
        self.io_uncounted(m, Request::Read { bytes, at: None }, function).await;
    }

    /// Reads a buffer that the task has locked, and waits. The end of the read unlocks it (`end_buffer_read_sync`), wherever that is,
    /// and wakes the reader and the first of those who wait for the lock.
    pub async fn read_buffer<M: Machine>(&self, m: &M, bytes: u32, buffer: LockId) {
        let done = self.hand_buffer(m, Request::Read { bytes, at: None }, buffer).await;
        Self::wait_on_buffer(m, done).await;
    }

    /// Submits the write of a buffer that the task has locked, whose end unlocks it in the same way (`end_buffer_write_sync`). What is
    /// returned is to be waited for.
    pub async fn submit_buffer<M: Machine>(&self, m: &M, bytes: u32, buffer: LockId) -> Option<LockId> {
        self.hand_buffer(m, Request::write(bytes, None), buffer).await
    }

    /// Waits for the end of a buffer's request, if it is not over (`__wait_on_buffer`).
    pub async fn wait_on_buffer<M: Machine>(m: &M, done: Option<LockId>) {
        if let Some(done) = done {
            m.wchan("__wait_on_buffer");
            m.wait_for_io(done).await;
            m.drop_completion(done);
        }
    }

    /// Submits a request with its buffer's lock. Where the submitter serves it, or the lock is of a type that only its owner may release,
    /// it is over when this returns.
    async fn hand_buffer<M: Machine>(&self, m: &M, request: Request, buffer: LockId) -> Option<LockId> {
        if matches!(self.server, Server::Submitter) || !m.hand_to_device(buffer) {
            self.io(m, request).await;
            m.unlock(buffer, Side::Write).await;
            return None;
        }
        let done = m.new_completion();
        self.submit(m, request, End::Unlock(done, buffer)).await;
        Some(done)
    }

    /// What a commit writes in the background, so many bytes one behind the other.
    pub async fn write_all<M: Machine>(&self, m: &M, bytes: u64, at: u64) {
        for (from, part) in parts(bytes) {
            self.io(m, Request::write(part, Some(at + from))).await;
        }
    }
}

/// Where the writes of so many bytes begin, and how long each is.
fn parts(bytes: u64) -> impl Iterator<Item = (u64, u32)> {
    (0..bytes)
        .step_by(COMMIT_WRITE as usize)
        .map(move |from| (from, (bytes - from).min(u64::from(COMMIT_WRITE)) as u32))
}

#[cfg(test)]
mod tests {
    use super::{parts, COMMIT_WRITE};

    #[test]
    fn no_write_of_a_commit_is_empty() {
        let whole = u64::from(COMMIT_WRITE);
        assert_eq!(parts(2 * whole).collect::<Vec<_>>(), [(0, COMMIT_WRITE), (whole, COMMIT_WRITE)]);
        assert_eq!(parts(whole + 512).collect::<Vec<_>>(), [(0, COMMIT_WRITE), (whole, 512)]);
        assert_eq!(parts(0).count(), 0);
    }
}
