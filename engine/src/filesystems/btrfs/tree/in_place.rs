//! Insertions that change one leaf and nothing else, which most are: what `search` does for them where nobody has to lock.

use super::key::{Item, MAX_POINTERS};
use super::{Content, Tree};

impl Tree {
    /// Puts items that follow each other where they belong, if they are not there, their leaf has room and none of the blocks
    /// on the way has to be copied, split, or given another lowest key. Says whether it did.
    pub fn insert_in_place(&mut self, items: &[Item]) -> bool {
        let key = items[0].key;
        let mut block = self.root();
        while let Content::Node(pointers) = &self.blocks[block as usize].content {
            let slot = pointers.partition_point(|pointer| pointer.key <= key);
            if slot < 2 || pointers.len() >= MAX_POINTERS - 3 || self.should_cow(block) {
                return false;
            }
            block = pointers[slot - 1].child;
        }
        let (found, slot) = self.search_block(block, key, 0);
        let bytes = items.iter().map(Item::bytes).sum();
        if found || slot == 0 || self.free_space(block) < bytes || self.should_cow(block) {
            return false;
        }
        self.insert_items(block, slot, items);
        true
    }
}
