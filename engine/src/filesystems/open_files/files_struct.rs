//! The table of open files that the threads of a process share (`struct files_struct`, `fs/file.c`). A process without threads has
//! one of its own: nobody waits for it, and what it takes is part of its calls.
//!
//! What shares cache lines on x86-64: `file_lock` begins a line that also has `next_fd`, the bitmaps of the first 64 descriptors and
//! the pointers of the first four; the other pointers lie eight to a line. A table of more than 64 has its bitmaps in a line of
//! their own, and all pointers in an array. One of more than 128 has `full_fds_bits` in another line than `open_fds` (`alloc_fdtable`:
//! two bitmaps of 256 or 512 bits before it).

use crate::filesystems::by_slot::BySlot;
use crate::kernel::vfs::{FdInstall, FdSearch};
use crate::spec::RunSpec;
use crate::waist::time::from_ns;
use crate::waist::{Access, Account, LineId, LockId, Machine, Side, Time};
use std::cell::{Cell, RefCell};

/// Pointers of this table that lie in the line of `file_lock`.
const BESIDE_LOCK: u32 = 4;
/// Pointers to a line.
const IN_LINE: u32 = 8;
/// Words of a bitmap that lie in one line with the next bitmaps.
const WORDS_BESIDE: usize = 2;

/// Whether a call by a descriptor moves the file's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// It says where it reads or writes, or does neither.
    Kept,
    /// `read`, `write`, `getdents`.
    Moved,
}

/// What is done with a table, and how long it takes.
#[derive(Clone, Copy, Debug)]
pub struct TableWork {
    /// Under `file_lock`: `alloc_fd`, `file_close_fd`.
    alloc: Time,
    close: Time,
    /// `fd_install`, under the lock before 4.2.
    install: Time,
    installs: FdInstall,
    /// Under the lock: whether a descriptor is still that of a file.
    lookup: Time,
    /// `fdget` and `fput`, and what `fdget_pos` takes more.
    fdget: Time,
    fdget_pos: Time,
    /// A new descriptor's pointer is looked at under the lock.
    checked: bool,
    search: FdSearch,
    /// Descriptors that are open when the threads start: 0, 1 and 2, and what the program has opened before.
    standing: u32,
}

impl TableWork {
    /// By the kernel and the machine of a run; so many descriptors are open from the start.
    pub fn new(spec: &RunSpec, standing: u32) -> Self {
        let (c, rules) = (&spec.kernel.constants, &spec.kernel.rules);
        let work = |instructions: f64| from_ns(instructions * spec.machine.costs.instruction);
        Self {
            alloc: work(c.code_alloc_fd),
            close: work(c.code_close_fd),
            install: work(c.code_fd_install),
            installs: rules.fd_install,
            lookup: work(c.code_lookup_fd),
            fdget: work(c.code_fget),
            fdget_pos: if rules.f_pos_lock { work(c.code_f_pos_lock) } else { 0 },
            checked: rules.fd_check,
            search: rules.fd_search,
            standing,
        }
    }

    /// What a `dup` and its `close` take for the table and the reference.
    pub fn dup(&self) -> Time {
        self.traced() + self.fdget
    }

    /// What an open and its close take for the table, which their traced times have in them.
    pub fn traced(&self) -> Time {
        self.alloc + self.install + self.close
    }
}

/// A process's table.
pub struct FilesStruct {
    work: TableWork,
    file_lock: LockId,
    /// It has several users (`files_struct.count`).
    shared: bool,
    open_fds: RefCell<Vec<u64>>,
    /// It has had more than 64 descriptors (`NR_OPEN_DEFAULT`).
    expanded: Cell<bool>,
    bitmaps: LineId,
    full_fds_bits: LineId,
    /// Lines of pointers, inside the structure and of the array.
    inside: BySlot<LineId>,
    array: BySlot<LineId>,
    /// The descriptor that a thread opened last, until it is closed.
    opened: BySlot<Option<u32>>,
}

impl FilesStruct {
    /// That of a process with one thread or with several (`shared`) that has opened nothing.
    pub fn new<M: Machine>(m: &M, work: TableWork, shared: bool) -> Self {
        let table = Self {
            work,
            shared,
            file_lock: m.new_lock(m.class("vfs.file_lock", "vfs.file_lock")),
            open_fds: RefCell::new(vec![0]),
            expanded: Cell::new(false),
            bitmaps: m.new_line("vfs.open_fds", 1),
            full_fds_bits: m.new_line("vfs.full_fds_bits", 1),
            inside: BySlot::default(),
            array: BySlot::default(),
            opened: BySlot::default(),
        };
        for _ in 0..work.standing {
            table.take_lowest();
        }
        table
    }

    /// How long an open and its close take elsewhere than at the table, of a time that has both.
    pub fn without(&self, time: Time) -> Time {
        time.saturating_sub(self.work.traced())
    }

    /// `get_unused_fd_flags`: the lowest descriptor that is free.
    pub async fn get_unused_fd<M: Machine>(&self, m: &M) -> u32 {
        m.lock(self.file_lock, Side::Write).await;
        let fd = self.take_lowest();
        self.touch_bitmaps(m);
        if matches!(self.work.search, FdSearch::Cleared | FdSearch::ClearedIfSet) {
            self.touch_full(m, Access::Read);
        }
        if self.is_full(fd) {
            self.touch_full(m, Access::Write);
        }
        if self.work.checked {
            self.touch_pointer(m, fd, Access::Read);
        }
        m.run(Account::System, self.work.alloc).await;
        m.unlock(self.file_lock, Side::Write).await;
        fd
    }

    /// `fd_install`.
    pub async fn install<M: Machine>(&self, m: &M, fd: u32) {
        let locked = self.work.installs == FdInstall::Locked;
        if locked {
            m.lock(self.file_lock, Side::Write).await;
        }
        self.touch_pointer(m, fd, Access::Write);
        m.run(Account::System, self.work.install).await;
        if locked {
            m.unlock(self.file_lock, Side::Write).await;
        }
        self.opened.put(m.task(), Some(fd));
    }

    /// `file_close_fd` of what the thread opened last. What was open before the run has no descriptor.
    pub async fn close_fd<M: Machine>(&self, m: &M) {
        let Some(fd) = self.opened.get(m.task()).flatten() else { return };
        self.opened.put(m.task(), None);
        m.lock(self.file_lock, Side::Write).await;
        self.touch_pointer(m, fd, Access::Read);
        self.touch_pointer(m, fd, Access::Write);
        self.touch_bitmaps(m);
        if self.work.search == FdSearch::Cleared || self.is_full(fd) {
            self.touch_full(m, Access::Write);
        } else {
            self.touch_full(m, Access::Read);
        }
        m.run(Account::System, self.work.close).await;
        self.open_fds.borrow_mut()[(fd / u64::BITS) as usize] &= !(1 << (fd % u64::BITS));
        m.unlock(self.file_lock, Side::Write).await;
    }

    /// How long `look_up_locked` takes, which the traced times of its callers have in them.
    pub fn looks_up(&self) -> Time {
        self.work.lookup
    }

    /// `files_lookup_fd_locked`, as `fcntl_setlk` does once it has a lock, against a `close` that came between (since 2.6.26; until 4.4 after
    /// an unlock, too).
    pub async fn look_up_locked<M: Machine>(&self, m: &M) {
        m.lock(self.file_lock, Side::Write).await;
        m.run(Account::System, self.work.lookup).await;
        m.unlock(self.file_lock, Side::Write).await;
    }

    /// `__fdget` of a table with several users and `fput`, with `f_pos_lock` if the file's position is `Moved`.
    pub async fn fdget<M: Machine>(&self, m: &M, position: Position) {
        let lock = if position == Position::Moved { self.work.fdget_pos } else { 0 };
        if self.shared {
            m.run(Account::System, self.work.fdget + lock).await;
        }
    }

    fn take_lowest(&self) -> u32 {
        let mut words = self.open_fds.borrow_mut();
        let place = words.iter().position(|&word| word != u64::MAX).unwrap_or(words.len());
        if place == words.len() {
            words.push(0);
            self.expanded.set(true);
        }
        let bit = words[place].trailing_ones();
        words[place] |= 1 << bit;
        place as u32 * u64::BITS + bit
    }

    fn touch_bitmaps<M: Machine>(&self, m: &M) {
        if self.expanded.get() {
            m.touch(self.bitmaps, Access::Write);
        }
        m.touch_beside(self.file_lock, Access::Write); // next_fd
    }

    /// Whether all descriptors in the word of this one are taken.
    fn is_full(&self, fd: u32) -> bool {
        self.open_fds.borrow()[(fd / u64::BITS) as usize] == u64::MAX
    }

    fn touch_full<M: Machine>(&self, m: &M, access: Access) {
        if self.work.search != FdSearch::Bitmap && self.open_fds.borrow().len() > WORDS_BESIDE {
            m.touch(self.full_fds_bits, access);
        }
    }

    fn touch_pointer<M: Machine>(&self, m: &M, fd: u32, access: Access) {
        if self.expanded.get() {
            m.touch(self.array.get_or_make(fd / IN_LINE, || m.new_line("vfs.fd array", 1)), access);
        } else if fd < BESIDE_LOCK {
            m.touch_beside(self.file_lock, access);
        } else {
            m.touch(self.inside.get_or_make((fd - BESIDE_LOCK) / IN_LINE, || m.new_line("vfs.fd array", 1)), access);
        }
    }
}
