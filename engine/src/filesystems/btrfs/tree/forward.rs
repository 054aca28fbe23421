//! What comes next in a tree.

use super::key::Key;
use super::Tree;

impl Tree {
    /// `btrfs_search_forward`: the first key of the object and kind of a key, from it on, in a leaf that the running transaction changed.
    pub fn first_changed(&self, from: Key) -> Option<Key> {
        let mut key = from;
        loop {
            let (mut block, mut behind) = (self.root(), None);
            while self.level(block) > 0 {
                let (found, slot) = self.search_block(block, key, 0);
                let slot = if found { slot } else { slot.saturating_sub(1) };
                behind = (slot + 1 < self.len(block)).then(|| self.key(block, slot + 1)).or(behind);
                block = self.child(block, slot).expect("a node has children");
            }
            let slot = self.search_block(block, key, 0).1;
            let here = self.items(block).get(slot).filter(|_| self.is_new(block));
            if let Some(item) = here {
                return Some(item.key).filter(|key| key.is_like(from));
            }
            key = behind.filter(|key| key.is_like(from))?;
        }
    }

    /// The first key of the object and kind of a key, from it on and before an offset.
    pub fn next_within(&self, from: Key, end: u64) -> Option<Key> {
        let (mut block, mut behind) = (self.root(), None);
        while self.level(block) > 0 {
            let (found, slot) = self.search_block(block, from, 0);
            let slot = if found { slot } else { slot.saturating_sub(1) };
            behind = (slot + 1 < self.len(block)).then(|| self.key(block, slot + 1)).or(behind);
            block = self.child(block, slot).expect("a node has children");
        }
        let slot = self.search_block(block, from, 0).1;
        let next = self.items(block).get(slot).map(|item| item.key).or(behind);
        next.filter(|key| key.is_like(from) && key.offset() < end)
    }
}
