//! What files are cut into, on all filesystems here.

/// Bytes of a block of every filesystem here, and of a page.
pub const BLOCK: u32 = 4096;

/// The beginning of a file, which was written together with those of others, one block of each after the other.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Bytes that are there.
    pub bytes: u64,
    /// How many files.
    pub files: u32,
    /// Bytes of a block, each an extent of its own.
    pub block: u32,
}
