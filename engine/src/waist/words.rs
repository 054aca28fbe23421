//! The words that programs and machines share: numbers of what there is, and how it is used.

use super::time::Time;

/// A task's number.
pub type TaskId = u32;
/// A CPU's number.
pub type CpuId = u32;
/// A lock's number.
pub type LockId = u32;
/// The number of a lock that hardly anybody takes.
pub type SeldomId = u32;
/// A lock class's number.
pub type ClassId = u16;
/// A data line's number.
pub type LineId = u32;
/// The number of a block of a structure, as caches know it.
pub type CachedId = u32;
/// What a block holds, line by line.
pub type ContentsId = u32;
/// A device's number.
pub type DeviceId = u32;

/// Which side of a lock is taken; exclusive locks know only [`Side::Write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Shared.
    Read,
    /// Exclusive.
    Write,
}

/// How a btrfs tree lock of generation 2 or 3 is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// With the lock inside it: the holder must not sleep, and who waits for it spins.
    Spinning,
    /// Without: the holder may sleep, and so do those who wait.
    Blocking,
}

/// A step of RCU's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GracePeriod {
    /// Whether one is to begin.
    Wanted,
    /// It begins (`rcu_gp_init`).
    Begin,
    /// Whether all CPUs have reported.
    Passed,
    /// CPUs that idle are taken to have (`rcu_gp_fqs`).
    Force,
    /// It is over (`rcu_gp_cleanup`).
    End,
}

/// What the completion interrupt does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Completes a completion.
    Complete(LockId),
    /// Releases a semaphore that the submitting task has taken; until then the device holds it, not the task.
    Release(LockId),
    /// Completes a completion and releases a lock that it was handed.
    Unlock(LockId, LockId),
    /// Completes two completions, one after the other.
    Both(LockId, LockId),
}

/// What a device is like.
#[derive(Clone, Copy, Debug)]
pub struct Hardware {
    /// How many requests it serves at once.
    pub parallelism: u32,
    /// How many requests it has at most; others wait before it.
    pub depth: u32,
    /// CPU time of a completion interrupt, besides the wake-up in it.
    pub interrupt: Time,
    /// How far its flash may be behind the writes that it has taken.
    pub slack: Time,
    /// It does a flush alone.
    pub flush_alone: bool,
    /// Its arm if it is a disk.
    pub disk: Option<Disk>,
}

impl Hardware {
    /// A device that serves so many requests at once and has no other limit.
    pub fn serving(parallelism: u32, interrupt: Time) -> Self {
        Self { parallelism, depth: u32::MAX, interrupt, slack: 0, flush_alone: false, disk: None }
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    Read,
    #[default]
    Write,
    Flush,
}

impl Op {
    /// In results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
        }
    }
}

/// What a request asks of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// How long it takes when the device has nothing else to do.
    pub service: Time,
    /// How long it takes besides a neighbour in one request.
    pub joined: Time,
    /// How long it keeps the pipe of bytes.
    pub transfer: Time,
    /// How long it keeps the flash.
    pub flash: Time,
    /// What it asks for.
    pub op: Op,
    /// Where it is, if that is known.
    pub span: Option<Span>,
}

impl Io {
    /// A request that takes so long and shares nothing but the device.
    pub fn taking(service: Time) -> Self {
        Self { service, ..Self::default() }
    }
}

/// The part of a device that a request reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first byte.
    pub at: u64,
    /// How many.
    pub bytes: u32,
    /// Whether they are written.
    pub write: bool,
}

/// The most bytes of a request that neighbours are merged to: `BLK_DEF_MAX_SECTORS`, 2560 sectors.
const MERGED: u32 = 1280 << 10;

impl Span {
    /// The two as one if they are neighbours (`blk_attempt_bio_merge`).
    pub fn with(self, other: Self) -> Option<Self> {
        let (first, second) = if self.at < other.at { (self, other) } else { (other, self) };
        let bytes = self.bytes.saturating_add(other.bytes);
        let fit = self.write == other.write && first.at + u64::from(first.bytes) == second.at && bytes <= MERGED;
        fit.then_some(Self { at: first.at, bytes, write: self.write })
    }
}

/// What an access does to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load: any number of CPUs may share the line.
    Read,
    /// A store: the CPU takes the line for itself. It waits in the store buffer, and the CPU goes on.
    Store,
    /// A load and a store: the CPU waits for the line unless it has a copy.
    Write,
    /// An atomic read-modify-write: the CPU waits until the line is its own and all its earlier stores are done.
    Atomic,
}

/// The accounts into which every picosecond of a CPU goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Account {
    /// Program code in user mode.
    User,
    /// Kernel code, line transfers included.
    System,
    /// Waiting for a lock on the CPU.
    Spin,
    /// Context switches.
    Switch,
    /// Interrupts.
    Irq,
    /// Nothing to run, idle exit included.
    Idle,
}

/// What a disk is like.
#[derive(Clone, Copy, Debug)]
pub struct Disk {
    /// Time of one turn.
    pub revolution: Time,
    /// A seek to the next track.
    pub seek_track: Time,
    /// A seek over the whole disk.
    pub seek_full: Time,
    /// Bytes on the disk.
    pub capacity: u64,
    /// Bytes that pass under the head in one turn.
    pub track: u64,
    /// Bytes of its cache, which takes writes; 0 if none does.
    pub cache: u64,
}

/// Where a new task may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Wherever the scheduler puts it.
    Anywhere,
    /// On this CPU only.
    Pinned(CpuId),
}

/// What kind of task is spawned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnKind {
    /// Part of the workload: the run is stuck when none of these can go on.
    Foreground,
    /// Part of the workload too, but the run may end while it waits: a child process.
    Helper,
    /// Who sets things up and starts the tasks of the workload: the clock of the run starts when it has ended.
    Setup,
    /// A kernel thread that waits for work.
    Background,
}
