//! Rules of the VFS.

use super::choice::choice;

choice! {
    /// What one `inode_hash_lock` guards.
    pub enum InodeHash {
        /// All chains.
        Global = "global",
        /// One chain.
        PerChain = "per-chain",
    }
}

choice! {
    /// How many lists of inodes a superblock has.
    pub enum InodeList {
        /// One, under `s_inode_list_lock`.
        Global = "global",
        /// One for each CPU.
        PerCpu = "per-cpu",
    }
}
