//! `dentry_hashtable` and `inode_hashtable` (`fs/dcache.c`, `fs/inode.c`), by the lines of their buckets that new entries lead to.
//!
//! Entries are spread evenly over a table that is larger than most caches. So the bucket of one that is not in memory was last used
//! as many entries ago as the table has lines: who looks waits for it, and what comes after finds it warm. The bucket of an entry
//! that is in memory is as warm as that.

use crate::filesystems::cached::{used_ago, Looks};
use crate::filesystems::costs::Costs;
use crate::filesystems::fs_type::FsType;
use crate::fx::FxMap;
use crate::memory::hash_buckets;
use crate::waist::{CachedId, Machine};
use std::cell::RefCell;

/// A line has eight heads of 8 bytes (`struct hlist_head`).
const BUCKETS_OF_LINE: u64 = 8;
/// Where the size of memory is not known: the largest up to which tables grow with it.
const UNKNOWN: u64 = 64 << 30;

/// One table.
pub struct HashTable {
    lines: u64,
    look: Option<Looks>,
    /// Bytes that each entry before the run has used.
    bytes: u32,
    used: RefCell<FxMap<u64, CachedId>>,
}

impl HashTable {
    /// With a bucket for `2^scale` bytes of the machine's memory, of a type of filesystem; the error names what is missing.
    pub fn new(costs: &Costs<'_>, fs: &FsType, scale: u32) -> Result<Self, String> {
        let lines_of = |name: &str| costs.number(name).map(|n| n as u32);
        let look = lines_of("vfs_hash.new_index")?;
        let dentry = Looks::at(lines_of("vfs_dentry.index")?, lines_of("vfs_dentry.struct")?);
        let inode = Looks::at(0, fs.inode_lines(costs, "struct")?);
        Ok(Self {
            lines: lines(costs.memory().unwrap_or(UNKNOWN), scale),
            look: (look > 0).then(|| Looks::at(0, look)),
            bytes: dentry.bytes() + inode.bytes(),
            used: RefCell::default(),
        })
    }

    /// Who looks for an entry, by its hash, does not find it.
    pub fn look_up<M: Machine>(&self, m: &M, hash: u64) {
        if let Some(look) = self.look {
            look.of(m, self.line(m, (hash >> 32) % self.lines));
        }
    }

    fn line<M: Machine>(&self, m: &M, line: u64) -> CachedId {
        let ago = || used_ago(line, self.lines, self.bytes);
        *self.used.borrow_mut().entry(line).or_insert_with(|| m.new_block(0..0, Some(ago())))
    }
}

fn lines(memory: u64, scale: u32) -> u64 {
    (hash_buckets(memory, scale) / BUCKETS_OF_LINE).max(1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_of_dentries_of_a_guest_with_24_gib_has_32_mib() {
        assert_eq!(super::lines(25_276_514_304, 13) * 64, 32 << 20);
    }
}
