//! What becomes of the dentry of a name that is removed or made again (`d_delete`, `dput`, `d_lookup`).

use crate::cost_table;
use crate::filesystems::calls::Calls;
use crate::filesystems::inodes::listed::{self, Entry};
use crate::filesystems::names::dcache::Lookup;
use crate::filesystems::vfs::SuperBlock;
use crate::filesystems::DirId;
use crate::waist::{Account, Machine, Time};

cost_table!(pub(in crate::filesystems) KillCosts {
    used: ["memory.kill_used_dentry"],
    unused: ["memory.kill_dentry"],
});

impl Calls {
    /// `d_alloc_parallel` of a name that is to be made, unless it is known to be missing.
    pub fn look_up<M: Machine>(&self, m: &M, dir: DirId, name: &[u8]) -> Option<Lookup> {
        match self.dcache.missing(dir, name) {
            Some(_) => None,
            None => self.dcache.look_up(m, dir, name),
        }
    }

    /// What a lookup of a name that is to be made takes, if the filesystem's takes `time`: it is not asked for what is known to be missing.
    pub fn lookup_free(&self, dir: DirId, name: &[u8], time: Time) -> Time {
        match self.dcache.missing(dir, name) {
            Some(_) => self.lookup().min(time),
            None => time,
        }
    }

    /// A file is made, with its dentry.
    pub fn made<M: Machine>(&self, m: &M, slot: u32, name: (DirId, &[u8])) {
        self.files.made_inode(m, slot);
        self.made_dentry(m, slot, name);
    }

    /// The same of a dentry, unless the name's was there.
    pub fn made_dentry<M: Machine>(&self, m: &M, slot: u32, (dir, name): (DirId, &[u8])) {
        match self.dcache.missing(dir, name) {
            Some(dentry) => self.files.has_dentry(m, slot, dentry.memory),
            None => self.files.made_dentry(m, slot),
        }
    }

    /// The name that was made with the directory locked is this. One that was known to be missing is among the children already.
    pub fn is_named<M: Machine>(&self, m: &M, (dir, name): (DirId, &[u8]), entry: Entry) {
        match self.dcache.found(dir, name, listed::file_of(entry)) {
            true => self.stays_child(dir, entry),
            false => self.is_child(m, dir, entry),
        }
    }
}

/// `dput` of a name that has gone, of a file whose slot is told if it was its last, by its last user. Where the dentry does not stay, it
/// leaves the list of unused ones (`__dentry_kill`).
pub async fn dput_removed<M: Machine>(
    sb: &SuperBlock,
    m: &M,
    (dir, name): (DirId, &[u8]),
    (entry, slot): (Entry, Option<u32>),
) {
    let calls = &sb.calls;
    if calls.dcache.keeps_none() {
        return calls.dput_gone(m, dir, entry).await;
    }
    let memory = slot.map_or_else(|| m.new_block(0..0, None), |slot| calls.files.dentry_of(m, slot));
    if calls.dcache.keeps_removed() {
        return calls.dcache.is_removed((dir, name), slot, memory);
    }
    m.run(Account::System, calls.kill.as_ref().map_or(0, |kill| kill.used)).await;
    if let Some(slot) = slot {
        calls.dcache.unlist(m, slot).await;
    }
    calls.dput_gone(m, dir, entry).await;
    calls.files.free_dentry(m, memory);
    sb.free_dentries(m, 1);
}

/// `shrink_dcache_parent` of a directory that goes, which is locked.
pub async fn shrink_children<M: Machine>(sb: &SuperBlock, m: &M, dir: DirId) {
    let children = sb.calls.dcache.forget(dir);
    if let (Some(kill), 1..) = (&sb.calls.kill, children) {
        m.run(Account::System, kill.unused * children).await;
        sb.free_dentries(m, children);
    }
}

/// The dentry that said that the new name of a rename is missing goes with it.
pub async fn kill_replaced<M: Machine>(sb: &SuperBlock, m: &M, (dir, name): (DirId, &[u8])) {
    if let Some(dentry) = sb.calls.dcache.take(dir, name) {
        sb.calls.dcache.leave(m, dentry.list).await;
        sb.calls.files.free_dentry(m, dentry.memory);
    }
}
