//! Items and pointers move between neighbours; items enter and leave leaves, and change their size.

use super::key::{Item, LEAF_DATA};
use super::{BlockId, Content, Tree};
use std::sync::Arc;

impl Tree {
    /// Moves the pointers or items of `from` from `at` on to the front of its right neighbour.
    pub fn move_to_right(&mut self, from: BlockId, at: usize, to: BlockId) {
        match self.pair(from, to) {
            (Content::Leaf { items, used }, Content::Leaf { items: right, used: right_used }) => {
                let bytes: u32 = items[at..].iter().map(Item::bytes).sum();
                right.splice(0..0, items.drain(at..));
                *used -= bytes;
                *right_used += bytes;
            }
            (Content::Node(pointers), Content::Node(right)) => {
                right.splice(0..0, pointers.drain(at..));
            }
            _ => unreachable!("neighbours are of one level"),
        }
    }

    /// Moves the first `count` pointers or items of `from` to the end of its left neighbour.
    pub fn move_to_left(&mut self, from: BlockId, count: usize, to: BlockId) {
        match self.pair(from, to) {
            (Content::Leaf { items, used }, Content::Leaf { items: left, used: left_used }) => {
                let bytes: u32 = items[..count].iter().map(Item::bytes).sum();
                left.extend(items.drain(..count));
                *used -= bytes;
                *left_used += bytes;
            }
            (Content::Node(pointers), Content::Node(left)) => left.extend(pointers.drain(..count)),
            _ => unreachable!("neighbours are of one level"),
        }
    }

    /// Puts items into a leaf that has room.
    pub fn insert_items(&mut self, leaf: BlockId, slot: usize, new: &[Item]) {
        let Content::Leaf { items, used } = &mut self.change(leaf).content else {
            unreachable!("block {leaf} is no leaf")
        };
        match new {
            _ if slot == items.len() => items.extend_from_slice(new),
            [item] => items.insert(slot, *item), // which needs no look at what is behind, as a splice does
            _ => drop(items.splice(slot..slot, new.iter().copied())),
        }
        *used += new.iter().map(Item::bytes).sum::<u32>();
        debug_assert!(*used <= LEAF_DATA, "leaf {leaf} overflows");
    }

    /// Takes `count` items out of a leaf.
    pub fn remove_items(&mut self, leaf: BlockId, slot: usize, count: usize) {
        let Content::Leaf { items, used } = &mut self.change(leaf).content else {
            unreachable!("block {leaf} is no leaf")
        };
        *used -= items[slot..slot + count].iter().map(Item::bytes).sum::<u32>();
        items.drain(slot..slot + count);
    }

    /// Changes the size of an item (`btrfs_extend_item`, `btrfs_truncate_item`).
    pub fn resize_item(&mut self, leaf: BlockId, slot: usize, size: u32) {
        let Content::Leaf { items, used } = &mut self.change(leaf).content else {
            unreachable!("block {leaf} is no leaf")
        };
        *used = *used + size - u32::from(items[slot].size);
        items[slot].size = size as u16;
        debug_assert!(*used <= LEAF_DATA, "leaf {leaf} overflows");
    }

    fn pair(&mut self, a: BlockId, b: BlockId) -> (&mut Content, &mut Content) {
        let [a, b] = self.blocks.get_disjoint_mut([a as usize, b as usize]).expect("two different blocks");
        (&mut Arc::make_mut(a).content, &mut Arc::make_mut(b).content)
    }
}
