//! What the layer above filesystems has to know of each type of them: no more than these fields, and its name for costs.

use crate::costs::Costs;
use crate::kernel::Rules;

/// A type of filesystem (`struct file_system_type`).
pub struct FsType {
    /// By which its costs are called.
    pub name: &'static str,
    /// Percpu counters that its `statfs` adds up.
    pub statfs_counters: u32,
    /// It can encrypt directories, so that an `open` asks for the directory's key (`fscrypt_file_open`).
    pub encrypts: bool,
    /// Its files are in memory only: their dentries are always in use, and reads take the lock of each folio and do not mark it
    /// (`shmem_file_read_iter`).
    pub in_memory: bool,
    /// Whether a kernel gives it large folios; none where a folio is priced as a page whatever it is part of.
    pub large_folios: Option<fn(&Rules) -> bool>,
}

impl FsType {
    /// Cache lines of its inodes: `used` of one that is used, `struct` of one that is made or freed. The error names what is missing.
    pub fn inode_lines(&self, costs: &Costs<'_>, which: &str) -> Result<u32, String> {
        costs.number(&format!("{}_inode.{which}", self.name)).map(|lines| lines as u32)
    }
}
