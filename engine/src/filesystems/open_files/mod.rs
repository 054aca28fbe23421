//! Open files: descriptors, references, locks, and the calls on them (`fs/file.c`, `fs/open.c`, `fs/locks.c`).

pub(in crate::filesystems) mod apparmor;
pub(in crate::filesystems) mod file_locks;
pub mod files_struct;
pub(in crate::filesystems) mod open_file;
pub(in crate::filesystems) mod read_write;
pub mod thread_group;
