//! What memory knows of the transactions that changed a file, and of what the log has of it.
//!
//! The kernel counts log transactions for that (`last_sub_trans` and `last_log_commit` of `struct btrfs_inode`, Linux 2.6.29 to 6.18): each update of
//! the inode notes the one that is being filled, `btrfs_log_inode` at its end that this is logged, and `btrfs_sync_log` which is on disk.

use super::FileData;

impl FileData {
    /// Something else of it has changed: the log must have it anew.
    pub fn change(&mut self, transid: u64) {
        self.changed = transid;
        self.logged_all = false;
    }

    /// It got another name.
    pub fn rename(&mut self, transid: u64) {
        self.renamed = transid;
        self.change(transid);
    }

    /// It got a further name.
    pub fn link(&mut self, transid: u64) {
        (self.linked, self.copy_everything) = (transid, true);
        self.change(transid);
    }

    /// It lost one of several names (`btrfs_record_unlink_dir`).
    pub fn unlink(&mut self, transid: u64) {
        self.linked = transid;
        self.rename(transid);
    }

    /// The last transaction in which one of that was.
    pub fn lost_or_got_link(&self) -> u64 {
        self.linked
    }

    /// Whether its items go into the log together; this is asked once.
    pub fn take_copy_everything(&mut self) -> bool {
        std::mem::take(&mut self.copy_everything)
    }

    /// A search finds no extended attributes; whether that was known.
    pub fn remember_no_xattrs(&mut self) -> bool {
        std::mem::replace(&mut self.no_xattrs, true)
    }

    /// The last transaction in which it was made or renamed.
    pub fn named(&self) -> u64 {
        self.made.max(self.renamed)
    }

    /// The transaction that made it (`generation`).
    pub fn made(&self) -> u64 {
        self.made
    }

    /// The log of this transaction has its inode and name, and nothing else of it.
    pub fn log_existence(&mut self, transid: u64) {
        self.logged = transid;
    }

    /// The last transaction in which it was renamed.
    pub fn renamed(&self) -> u64 {
        self.renamed
    }

    /// Whether the log of a transaction has it.
    pub fn is_logged(&self, transid: u64) -> bool {
        self.logged == transid
    }

    /// Whether it must be logged in full for what a transaction has done: it may be in that transaction's log, for all that is known
    /// in memory, as it may have been dropped from there meanwhile.
    pub fn may_be_logged(&self, transid: u64) -> bool {
        self.changed == transid && self.needs_full_sync()
    }

    /// Whether it was ever in a log; from now on this is so, or known not to be.
    pub fn note_logged_before(&mut self, transid: u64) -> bool {
        let known = self.logged > 0;
        self.logged = self.logged.max(transid - 1);
        known
    }

    /// Whether an fsync has anything to do: it was changed since transaction `committed`, and the log that is on disk, up to log
    /// transaction `synced`, lacks the change (`btrfs_inode_in_log`).
    pub fn needs_log(&self, transid: u64, committed: u64, synced: u64) -> bool {
        self.changed > committed && !(self.logged == transid && self.logged_all && self.logged_in <= synced)
    }

    /// Log transaction `number` of this transaction has all of it.
    pub fn log(&mut self, transid: u64, number: u64) {
        (self.logged, self.logged_all, self.logged_in) = (transid, true, number);
        (self.is_new, self.lacks_maps, self.copy_everything) = (false, false, false);
    }
}
