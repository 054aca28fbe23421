//! Changes of one leaf and nothing else, which most are: what `search` does for them where nobody has to lock.

use super::interpolation::{between, count_up_to, guess, Between};
use super::key::{Item, Key, MAX_POINTERS};
use super::{BlockId, Content, Tree};
use std::hint::black_box;

impl Tree {
    /// Puts items that follow each other where they belong, if they are not there, their leaf has room and none of the blocks
    /// on the way has to be copied, split, or given another lowest key. Says whether it did.
    pub fn insert_in_place(&mut self, items: &[Item]) -> bool {
        let Some((leaf, slot)) = self.room_in_place(items[0].key, items.iter().map(Item::bytes).sum()) else {
            return false;
        };
        self.insert_items(leaf, slot, items);
        true
    }

    /// Where so many bytes can be inserted at a key like that: the leaf, and the slot behind another item.
    pub fn room_in_place(&self, key: Key, bytes: u32) -> Option<(BlockId, usize)> {
        let (mut block, mut ends) = (self.root(), None);
        while let Content::Node(pointers) = &self.blocks[block as usize].content {
            let slot = count_up_to(pointers, key, ends, |pointer| pointer.key);
            if slot == 0 || pointers.len() >= MAX_POINTERS - 3 || self.should_cow(block) {
                return None;
            }
            ends = between(pointers[slot - 1].key, pointers.get(slot).map(|next| next.key));
            block = pointers[slot - 1].child;
        }
        if self.free_space(block) < bytes || self.should_cow(block) {
            return None;
        }
        let there = self.items(block);
        let slot = count_up_to(there, key, ends, |item| item.key);
        let follows = slot > 0 && there[slot - 1].key != key;
        follows.then_some((block, slot))
    }

    /// Loads the leaves in which keys belong, so that insertions find them in a cache. They lie anywhere in memory, which
    /// gives many at a time as long as none of the loads needs another.
    pub fn load_leaves(&self, keys: impl Iterator<Item = Key>) {
        let leaves: Vec<_> = keys.map(|key| self.leaf_between(key)).collect();
        let items: Vec<_> = leaves.iter().map(|&(leaf, key, ends)| (self.items(leaf), key, ends)).collect();
        let guessed = items.iter().filter_map(|(there, key, ends)| there.get(guess(there.len(), *key, (*ends)?)));
        black_box(guessed.fold(0, |sum, item| sum ^ item.size));
    }

    /// The leaf in which a key is or belongs.
    pub fn leaf_of(&self, key: Key) -> BlockId {
        self.leaf_between(key).0
    }

    /// The same, with the key and those it lies between.
    fn leaf_between(&self, key: Key) -> (BlockId, Key, Option<Between>) {
        let (mut block, mut ends) = (self.root(), None);
        for _ in 0..self.level(self.root()) {
            let pointers = self.pointers(block);
            let slot = count_up_to(pointers, key, ends, |pointer| pointer.key).max(1);
            ends = between(pointers[slot - 1].key, pointers.get(slot).map(|next| next.key));
            block = pointers[slot - 1].child;
        }
        (block, key, ends)
    }

    /// Puts an item in the place of the last one with a key up to `key`, if that is as large, `goes` says so, and the tree is one
    /// leaf that need not be copied. Says whether it did.
    pub fn replace_in_place(&mut self, key: Key, goes: impl FnOnce(&Item) -> Option<Item>) -> bool {
        let leaf = self.root();
        if self.level(leaf) > 0 || self.should_cow(leaf) {
            return false;
        }
        let there = self.items(leaf);
        let Some(slot) = count_up_to(there, key, None, |item| item.key).checked_sub(1) else { return false };
        let Some(new) = goes(&there[slot]).filter(|new| new.size == there[slot].size) else { return false };
        self.remove_items(leaf, slot, 1);
        self.insert_items(leaf, slot, &[new]);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::items::{dir_item, inode};
    use super::super::locks::NoLocks;
    use super::super::search::{TreeOps, DEFAULT_RULES};
    use super::super::Counts;
    use super::*;
    use crate::filesystems::btrfs::subvolume::now;
    use std::cell::RefCell;

    fn insert(tree: &RefCell<Tree>, item: Item) {
        now(async {
            let ops = TreeOps::new(tree, &NoLocks, DEFAULT_RULES);
            let mut path = ops.insert_or_extend(item).await;
            ops.release_path(&mut path).await;
        });
    }

    fn leaves(tree: &Tree) -> Vec<&[Item]> {
        tree.blocks().filter(|&block| tree.level(block) == 0).map(|leaf| tree.items(leaf)).collect()
    }

    #[test]
    fn the_tree_is_the_one_that_searches_with_paths_make() {
        let (quick, plain) = (RefCell::new(Tree::new()), RefCell::new(Tree::new()));
        let mut in_place = 0;
        for number in 0..40_000_u64 {
            let item =
                if number % 3 == 0 { inode(1000 + number) } else { dir_item(256, format!("{number}").as_bytes()) };
            if quick.borrow_mut().insert_in_place(&[item]) {
                in_place += 1;
            } else {
                insert(&quick, item);
            }
            insert(&plain, item);
            if number == 20_000 {
                quick.borrow_mut().transid += 1; // all blocks have to be copied again
                plain.borrow_mut().transid += 1;
            }
        }
        let (quick, plain) = (quick.borrow(), plain.borrow());
        assert_eq!(quick.check(), Ok(()));
        assert_eq!(leaves(&quick), leaves(&plain));
        assert_eq!(quick.counts, Counts { restarts: quick.counts.restarts, ..plain.counts });
        assert!(in_place > 30_000, "{in_place}");
    }

    #[test]
    fn the_leaf_that_is_loaded_is_the_one_in_which_the_key_is() {
        let tree = RefCell::new(Tree::new());
        tree.borrow().load_leaves([inode(5).key].into_iter());
        let items: Vec<_> = (0..40_000_u64).map(|number| dir_item(256, format!("{number}").as_bytes())).collect();
        items.iter().for_each(|item| insert(&tree, *item));
        let tree = tree.borrow();
        assert_eq!(tree.level(tree.root()), 1);
        for item in &items {
            assert!(tree.items(tree.leaf_of(item.key)).contains(item));
        }
        assert_eq!(
            Some(tree.leaf_of(inode(5).key)),
            tree.child(tree.root(), 0),
            "what is before all belongs in the first"
        );
        tree.load_leaves(items.iter().map(|item| item.key));
    }
}
