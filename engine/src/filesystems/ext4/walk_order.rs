//! In which order a walk comes to the files of a directory: `getdents` gives names in the order of their hashes, that of the leaves
//! (`ext4_dx_readdir`, also of a directory of one block), and inodes lie in the order in which files were made, which hashes do not know.
//! Who walks is `find`: its `fts` sorts the names of a directory by their inodes if there are more than 10,000 (gnulib,
//! `FTS_INODE_SORT_DIR_ENTRIES_THRESHOLD`, since coreutils 7.0 of 2008).

use super::ialloc::INODES_PER_BLOCK;
use crate::filesystems::DirId;

const SORTED: u32 = 10_000;

/// Where a file's name and its inode are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The leaf to which listing has come.
    pub listed: u32,
    /// That of its name.
    pub leaf: u32,
    /// The block of its inode, of those that the directory's files have.
    pub inodes: u32,
}

/// Of the `nth` file of so many that have their names in so many leaves.
pub(super) fn place(dir: DirId, nth: u32, names: u32, leaves: u32) -> Place {
    let names = names.max(nth + 1);
    let part = |of: u32, parts: u32| (u64::from(of) * u64::from(parts) / u64::from(names)) as u32;
    let other = drawn(dir, nth) % names;
    let (by_name, by_inode) = if names > SORTED { (other, nth) } else { (nth, other) };
    Place { listed: part(nth, leaves), leaf: part(by_name, leaves), inodes: by_inode / INODES_PER_BLOCK }
}

/// A number that looks like chance (the finalizer of MurmurHash3).
fn drawn(dir: DirId, nth: u32) -> u32 {
    let mut word = (u64::from(dir) << 32 | u64::from(nth)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    word = (word ^ word >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (word ^ word >> 33) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_ten_thousand_names_come_by_leaf_and_more_by_inode() {
        let leaf_runs =
            |names| (0..500).filter(|&n| place(7, n, names, 71).leaf == place(7, n + 1, names, 71).leaf).count();
        let inode_runs =
            |names| (0..500).filter(|&n| place(7, n, names, 71).inodes == place(7, n + 1, names, 71).inodes).count();
        assert!(leaf_runs(10_000) > 490 && inode_runs(10_000) < 20);
        assert!(leaf_runs(10_001) < 30 && inode_runs(10_001) > 460);
    }
}
