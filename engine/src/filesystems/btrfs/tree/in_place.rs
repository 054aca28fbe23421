//! Insertions that change one leaf and nothing else, which most are: what `search` does for them where nobody has to lock.

use super::interpolation::{between, count_up_to};
use super::key::{Item, MAX_POINTERS};
use super::{Content, Tree};

impl Tree {
    /// Puts items that follow each other where they belong, if they are not there, their leaf has room and none of the blocks
    /// on the way has to be copied, split, or given another lowest key. Says whether it did.
    pub fn insert_in_place(&mut self, items: &[Item]) -> bool {
        let key = items[0].key;
        let (mut block, mut ends) = (self.root(), None);
        while let Content::Node(pointers) = &self.blocks[block as usize].content {
            let slot = count_up_to(pointers, key, ends, |pointer| pointer.key);
            if slot == 0 || pointers.len() >= MAX_POINTERS - 3 || self.should_cow(block) {
                return false;
            }
            ends = between(pointers[slot - 1].key, pointers.get(slot).map(|next| next.key));
            block = pointers[slot - 1].child;
        }
        let bytes = items.iter().map(Item::bytes).sum();
        if self.free_space(block) < bytes || self.should_cow(block) {
            return false;
        }
        let there = self.items(block);
        let slot = count_up_to(there, key, ends, |item| item.key);
        if slot == 0 || there[slot - 1].key == key {
            return false;
        }
        self.insert_items(block, slot, items);
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
}
