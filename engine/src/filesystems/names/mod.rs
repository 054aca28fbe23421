//! Names: walks of paths, dentries, and the calls that change names (`fs/namei.c`, `fs/dcache.c`).

pub mod dcache;
pub(in crate::filesystems) mod dentry;
pub mod lockref;
pub(in crate::filesystems) mod lookup;
pub(in crate::filesystems) mod namei;
pub mod negative;
pub(in crate::filesystems) mod parents;
pub(in crate::filesystems) mod removal;
pub(in crate::filesystems) mod rename_lock;
