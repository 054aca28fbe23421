//! The tree against a model, and the limits of the real ones.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair(u32, u32);

impl Record for Pair {
    type Key = u32;
    fn key(&self) -> u32 {
        self.0
    }
}

#[derive(Default)]
struct Blocks {
    next: BlockId,
    used: BTreeSet<BlockId>,
}

impl BlockSource for Blocks {
    fn alloc(&mut self, _near: BlockId) -> BlockId {
        self.next += 1;
        self.used.insert(self.next);
        self.next
    }
    fn free(&mut self, block: BlockId) {
        assert!(self.used.remove(&block), "block {block} freed twice");
    }
}

/// Marsaglia's xorshift: the tests want variety, not quality.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

const SMALL: Limits = Limits { leaf_max: 6, leaf_min: 3, node_max: 5, node_min: 2 };
const INOBT: Limits = Limits::from_sizes(4096, 56, 16, 4, 4);

fn against_a_model(mut tree: BTree<Pair>, mut blocks: Blocks, seed: u64, extra: usize) {
    let mut model: BTreeMap<u32, u32> = tree.iter().map(|r| (r.0, r.1)).collect();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for step in 0..3000u32 {
        let key = (random(&mut state) % 400) as u32;
        let grow = random(&mut state) % 100 < if step % 1000 < 500 { 70 } else { 30 };
        match (model.contains_key(&key), grow) {
            (false, true) => {
                model.insert(key, step);
                tree.insert(Pair(key, step), &mut blocks);
            }
            (true, false) if model.len() > 1 => {
                model.remove(&key);
                tree.delete(&key, &mut blocks);
            }
            (true, true) => {
                model.insert(key, step);
                tree.update(&key, Pair(key, step));
            }
            _ => {}
        }
        tree.check().unwrap_or_else(|e| panic!("seed {seed} step {step}: {e}"));
        assert_eq!(tree.blocks(), blocks.used.len() + extra, "seed {seed} step {step}: blocks leak");
        let at = (random(&mut state) % 400) as u32;
        let below = model.range(..=at).next_back().map(|(k, _)| *k);
        assert_eq!(tree.floor(&at).map(|r| r.0), below, "seed {seed} step {step}");
        let above = model.range(at..).next().map(|(k, _)| *k);
        assert_eq!(tree.ceil(&at).map(|r| r.0), above, "seed {seed} step {step}");
    }
    assert!(tree.iter().map(|r| (r.0, r.1)).eq(model));
}

#[test]
fn random_operations_agree_with_a_model() {
    for seed in 1..=12 {
        against_a_model(BTree::new(SMALL, 0), Blocks::default(), seed, 1);
    }
}

#[test]
fn random_operations_with_the_root_in_the_inode() {
    for seed in 1..=12 {
        let records: Vec<Pair> = (0..4).map(|k| Pair(k * 7, 0)).collect();
        against_a_model(BTree::in_inode(SMALL, 3, 0, &records), Blocks::default(), seed, 1);
    }
}

#[test]
fn ascending_inserts_leave_full_leaves() {
    let (mut tree, mut blocks) = (BTree::new(INOBT, 3), Blocks::default());
    for key in 0..7813 {
        tree.insert(Pair(key, 0), &mut blocks);
    }
    tree.check().unwrap();
    assert_eq!((tree.levels(), tree.len(), tree.blocks()), (2, 7813, 33));
    assert_eq!(tree.fill(0).iter().filter(|&&n| n == 252).count(), 30);
}

#[test]
fn limits_of_the_real_trees() {
    assert_eq!(INOBT, Limits { leaf_max: 252, leaf_min: 126, node_max: 505, node_min: 252 });
    let bnobt = Limits::from_sizes(4096, 56, 8, 8, 4);
    assert_eq!(bnobt, Limits { leaf_max: 505, leaf_min: 252, node_max: 336, node_min: 168 });
}

#[test]
fn a_report_names_the_path_and_what_happened() {
    let (mut tree, mut blocks) = (BTree::new(SMALL, 100), Blocks::default());
    for key in 0..6 {
        assert_eq!(tree.insert(Pair(key, 0), &mut blocks).blocks(), [100]);
    }
    let touch = tree.insert(Pair(6, 0), &mut blocks);
    assert_eq!((touch.blocks(), touch.splits), ([100, 1, 2].as_slice(), 2));
    assert_eq!(tree.visit(&6).blocks(), [2, 1]);
}
