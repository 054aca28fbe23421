//! When inodes were last changed and read, as far as it decides whether a read writes the inode (`touch_atime`,
//! `relatime_need_update`). The clock of inodes goes on once a tick (`ktime_get_coarse_real_ts64`). Since 6.13 a change of an inode whose
//! `ctime` somebody has asked for has the exact time, and the clock of all inodes is never behind that (`inode_set_ctime_current`,
//! `ktime_get_coarse_real_ts64_mg`).

use crate::filesystems::by_slot::BySlot;
use crate::filesystems::costs::Costs;
use crate::filesystems::DirId;
use crate::kernel::vfs::{Atime, InodeClock};
use crate::waist::{Machine, Time};
use std::cell::Cell;

/// Whose times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// The file in this slot.
    File(u32),
    /// A directory.
    Directory(DirId),
}

/// What was there before the run was not read since it was written.
#[derive(Clone, Copy, Default)]
struct Stamps {
    /// The later of `mtime` and `ctime`.
    changed: Time,
    accessed: Option<Time>,
    /// Somebody has asked for it since (`I_CTIME_QUERIED`).
    queried: bool,
}

/// The times of a mount's inodes.
pub struct Times {
    tick: Time,
    rule: Atime,
    clock: InodeClock,
    /// The latest exact time that an inode has (`mg_floor`).
    floor: Cell<Time>,
    files: BySlot<Stamps>,
    directories: BySlot<Stamps>,
}

impl Times {
    /// Nothing was made yet.
    pub fn new(costs: &Costs<'_>) -> Self {
        let (files, directories) = (BySlot::default(), BySlot::default());
        let (rule, clock) = (costs.rules().atime, costs.rules().inode_clock);
        Self { tick: costs.tick(), rule, clock, floor: Cell::default(), files, directories }
    }

    /// A new inode: all its times are now.
    pub fn made<M: Machine>(&self, m: &M, inode: Timed) {
        let now = self.coarse(m);
        self.put(inode, Stamps { changed: now, accessed: Some(now), queried: false });
    }

    /// `mtime` or `ctime` is now.
    pub fn changed<M: Machine>(&self, m: &M, inode: Timed) {
        let stamps = self.of(inode);
        let now = self.current(m, &stamps);
        self.floor.set(self.floor.get().max(if now == m.now() { now } else { 0 }));
        self.put(inode, Stamps { changed: now, queried: false, ..stamps });
    }

    /// `utimes`: `ctime` is now, and `atime` is any other time.
    pub fn set<M: Machine>(&self, m: &M, inode: Timed) {
        self.changed(m, inode);
        self.put(inode, Stamps { accessed: None, ..self.of(inode) });
    }

    /// Somebody asks for the times (`fill_mg_cmtime`).
    pub fn asked(&self, inode: Timed) {
        self.put(inode, Stamps { queried: true, ..self.of(inode) });
    }

    /// Whether who reads has to write the inode (`atime_needs_update`), whose `atime` is now then. That it is a day old is left out.
    pub fn read<M: Machine>(&self, m: &M, inode: Timed) -> bool {
        let stamps = self.of(inode);
        let now = self.current(m, &stamps);
        let outdated = stamps.accessed.is_none_or(|accessed| accessed <= stamps.changed && accessed != now);
        let writes = self.rule == Atime::Relatime && outdated;
        if writes {
            self.put(inode, Stamps { accessed: Some(now), ..stamps });
        }
        writes
    }

    /// `current_time`.
    fn current<M: Machine>(&self, m: &M, stamps: &Stamps) -> Time {
        let (coarse, exact) = (self.coarse(m), self.clock == InodeClock::AsAsked && stamps.queried);
        if exact && coarse <= stamps.changed {
            m.now()
        } else {
            coarse
        }
    }

    fn coarse<M: Machine>(&self, m: &M) -> Time {
        (m.now() / self.tick * self.tick).max(self.floor.get())
    }

    fn of(&self, inode: Timed) -> Stamps {
        match inode {
            Timed::File(slot) => self.files.get(slot),
            Timed::Directory(dir) => self.directories.get(dir),
        }
        .unwrap_or_default()
    }

    fn put(&self, inode: Timed, stamps: Stamps) {
        match inode {
            Timed::File(slot) => self.files.put(slot, stamps),
            Timed::Directory(dir) => self.directories.put(dir, stamps),
        }
    }
}
