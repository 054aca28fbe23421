//! Rules of XFS.

use super::choice::choice;

choice! {
    /// What a commit into the CIL takes `xc_cil_lock` for.
    pub enum Cil {
        /// Space counters and the list of items.
        Global = "global",
        /// The list of items; counters are per CPU.
        PerCpuCounters = "per-cpu-counters",
        /// Busy extents only; lists are per CPU too.
        PerCpuLists = "per-cpu-lists",
        /// Nothing.
        PerCpu = "per-cpu",
    }
}

choice! {
    /// How many checkpoints are written at a time.
    pub enum CilPush {
        /// One after the other (before 5.15).
        Serial = "serial",
        /// Up to four.
        Pipelined = "pipelined",
    }
}

choice! {
    /// Of what parts the queue of the workers is that write checkpoints, and for which a pool's lock is taken when it is flushed.
    pub enum CilQueue {
        /// One for each node (before 6.6).
        Node = "node",
        /// One for each CPU.
        Cpu = "cpu",
        /// One for each CPU, and the lock once for each pool (since 6.13).
        CpuByPool = "cpu-by-pool",
    }
}

choice! {
    /// Which writes of a checkpoint's log buffers flush the device's cache (`xlog_write_iclog`).
    pub enum LogFlushes {
        /// Each, which also goes past the cache (before 5.14).
        Each = "each",
        /// The last; the worker has flushed it before the first (5.14 to 5.17).
        Before = "before",
        /// The first and the last.
        Ends = "ends",
    }
}

choice! {
    /// Who frees unlinked inodes.
    pub enum Inactivation {
        /// The task that unlinked them (before 5.15).
        Task = "task",
        /// One worker for the mount, begun at once (posted in early 2021).
        PerMount = "per-mount",
        /// A worker for each allocation group, on any CPU.
        PerGroup = "per-group",
        /// A worker for each CPU, bound to it.
        PerCpu = "per-cpu",
    }
}

choice! {
    /// What a `statfs` does about unlinked inodes that wait for a worker.
    pub enum StatfsInodegc {
        /// Nothing (before 5.15).
        Nothing = "nothing",
        /// It has all workers start, and waits until they have returned.
        Flush = "flush",
        /// It has all workers start (since 5.19).
        Push = "push",
    }
}

choice! {
    /// When the pointers of unlinked lists that lie in inodes are changed.
    pub enum UnlinkedList {
        /// At once, in the inodes' buffers (before 6.0).
        OnDisk = "on-disk",
        /// In memory, and in the buffers at commit.
        InMemory = "in-memory",
    }
}

choice! {
    /// How a direct write looks at the file's size.
    pub enum DioSizeCheck {
        /// Under `i_flags_lock`, before it and at its end (before 5.13).
        Locked = "locked",
        /// Without a lock if it lies within the file.
        Lockless = "lockless",
    }
}

choice! {
    /// What a direct write of less than a block takes of the IOLOCK.
    pub enum DioUnaligned {
        /// It has the file for itself, waits for what is under way before it, and for its own end (before 5.12).
        Exclusive = "exclusive",
        /// It shares the file, if its blocks are there and written.
        Shared = "shared",
    }
}

choice! {
    /// What lies in the cache line of the ILOCK's count.
    pub enum IlockLine {
        /// The root of the extent map; the format of the map lies beside `i_flags_lock` (before 5.8).
        WithExtents = "with-extents",
        /// Both (before 6.0).
        WithFormat = "with-format",
        /// Neither.
        Apart = "apart",
    }
}

choice! {
    /// What lies in the cache line of the count of `i_rwsem`, the IOLOCK.
    pub enum IolockLine {
        /// The file's `ctime` and the size of its blocks (5.19).
        WithCtime = "with-ctime",
        /// The size of its blocks (before 6.11).
        WithBlockSize = "with-block-size",
        /// Neither.
        Apart = "apart",
    }
}

choice! {
    /// How `fsync` holds the ILOCK, shared.
    pub enum FsyncIlock {
        /// To read what log sequence number to force (before 4.4).
        Brief = "brief",
        /// Until the log is forced.
        Held = "held",
        /// The same, if the inode is pinned; not at all otherwise (5.12 to 6.17).
        HeldIfPinned = "held-if-pinned",
        /// Not at all.
        Free = "free",
    }
}

choice! {
    /// What extents are made of delayed blocks when they are written back (`xfs_bmapi_convert_delalloc`).
    pub enum Delalloc {
        /// Such as count as written (before 5.8).
        Written = "written",
        /// Unwritten ones; a worker makes them written when the data are on the device.
        Unwritten = "unwritten",
    }
}

choice! {
    /// After which log force `fsync` does not flush the device itself (`log_flushed`).
    pub enum LogFlushed {
        /// After one that waited (before 4.14).
        Waited = "waited",
        /// After one that had the log buffer written.
        Wrote = "wrote",
    }
}

choice! {
    /// What tells `xfsaild` how far to push.
    pub enum AilTarget {
        /// Each reservation, which counts what is reserved as used (before 6.11).
        Reservations = "reservations",
        /// The items in the AIL.
        Items = "items",
    }
}

choice! {
    /// What `xfsaild` does after it has met items that are pinned.
    pub enum AilForce {
        /// It forces the log and waits for that (before 5.15).
        Waits = "waits",
        /// It has the CIL written.
        Queues = "queues",
    }
}

choice! {
    /// How `xfsaild` goes along the AIL.
    pub enum AilTurn {
        /// To the target, calling upon what is being written, too; then it sleeps for 10 ms (before 6.11).
        Pauses = "pauses",
        /// It passes by what is being written, submits after a thousand items, and goes on.
        Submits = "submits",
    }
}

choice! {
    /// Whose `close` tries for the IOLOCK, to give back blocks behind the end of the file.
    pub enum Release {
        /// Everybody's, if there may be such blocks (before 5.13).
        Sized = "sized",
        /// Everybody's.
        Always = "always",
        /// That of who may write, until they were given back (since 6.12).
        Writers = "writers",
    }
}
