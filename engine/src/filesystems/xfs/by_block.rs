//! Something of each block of a filesystem, by its number: few blocks have it, and numbers of blocks leave gaps between groups.

use crate::filesystems::paged::Paged;

/// What each block has; the default where nothing was set.
#[derive(Clone, Debug)]
pub(super) struct ByBlock<T> {
    groups: Vec<Paged<T>>,
    agblklog: u32,
}

impl<T: Copy + Default> ByBlock<T> {
    /// No block has any. Numbers of blocks have the group above these bits (`sb_agblklog`).
    pub fn new(agblklog: u32) -> Self {
        Self { groups: Vec::new(), agblklog }
    }

    /// What a block has.
    pub fn of(&mut self, fsblock: u64) -> &mut T {
        let group = (fsblock >> self.agblklog) as usize;
        if self.groups.len() <= group {
            self.groups.resize_with(group + 1, Paged::default);
        }
        self.groups[group].of(fsblock & ((1 << self.agblklog) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_far_apart_keep_what_they_have_in_little_room() {
        let mut found = ByBlock::new(28);
        let far = (499 << 28) + 70_000;
        *found.of(far) = 7;
        *found.of(far + 1) += 1;
        assert_eq!([far, far + 1, far + 2, 70_000].map(|block| *found.of(block)), [7, 1, 0, 0]);
        let pages: usize = found.groups.iter().map(Paged::pages).sum();
        assert!(pages < 300, "two groups have pages, up to the block: {pages}");
    }
}
