//! The B-tree of ranges against a plain sorted list: the same overlaps, the tree's rules after each change, and no node
//! written that was not named before.

use super::common::draw::Draw;
use simfs_engine::structures::range_btree::{Changes, Key, RangeBTree, Record, CHILDREN, RECORDS};
use simfs_engine::structures::NodeId;
use simfs_engine::waist::Access;
use std::collections::BTreeMap;

fn nothing(_: NodeId, _: Access) {}

fn overlaps(tree: &RangeBTree, start: u64, last: u64) -> Vec<Key> {
    let mut found = Vec::new();
    tree.overlapping(start, last, &mut nothing, |_, record| {
        found.push(record.key);
        false
    });
    found
}

/// Runs a change and checks that the nodes it writes were named, or were not in the tree.
fn only_named(
    tree: &mut RangeBTree,
    changes: Changes,
    change: impl FnOnce(&mut RangeBTree, &mut dyn FnMut(NodeId, Access)),
) {
    let (before, mut written) = (tree.clone(), Vec::new());
    change(tree, &mut |node, access| {
        if access == Access::Write {
            written.push(node)
        }
    });
    let surprise = written.iter().find(|&&node| before.is_in_use(node) && !changes.nodes().contains(&node));
    assert_eq!(surprise, None, "written {written:?}, named {:?}", changes.nodes());
}

/// Locks and unlocks ranges as a range lock would: reads may overlap reads, writes overlap nothing.
fn churn(seed: u64, space: u64, longest: u64, reads: u64, most: usize, steps: u64) -> usize {
    let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (mut tree, mut held, mut levels) = (RangeBTree::default(), BTreeMap::<Key, Record>::new(), 0);
    for step in 0..steps {
        let (start, hold, readers) = (draw.below(space), step as u32, u32::from(draw.below(100) < reads));
        let record = Record { key: Key { start, hold }, last: start + draw.below(longest), readers };
        let expected: Vec<Key> =
            held.values().filter(|r| r.key.start <= record.last && start <= r.last).map(|r| r.key).collect();
        assert_eq!(overlaps(&tree, start, record.last), expected, "seed {seed}, step {step}");
        let free = expected.iter().all(|key| readers > 0 && held[key].readers > 0);
        if draw.below(100) < 60 && held.len() < most && free {
            tree.insert(record, &mut nothing);
            held.insert(record.key, record);
        } else if let Some(&key) = held.keys().nth(draw.below(held.len().max(1) as u64) as usize) {
            assert_eq!(Some(tree.remove(key, &mut nothing)), held.remove(&key), "seed {seed}, step {step}");
        }
        tree.check().unwrap_or_else(|broken| panic!("seed {seed}, step {step}: {broken}"));
        assert_eq!(tree.len(), held.len());
        levels = levels.max(tree.levels());
    }
    levels
}

#[test]
fn overlaps_are_those_of_a_plain_list_while_exclusive_ranges_come_and_go() {
    (0..60).for_each(|seed| assert!(churn(seed, 1000, 8, 0, 100, 500) >= 2));
}

#[test]
fn overlaps_are_those_of_a_plain_list_when_reads_of_all_lengths_lie_on_each_other() {
    (0..60).for_each(|seed| assert!(churn(seed, 100, 60, 95, 60, 500) >= 2));
}

#[test]
fn a_tree_of_three_levels_keeps_its_rules() {
    assert_eq!(churn(1, 1_000_000, 100, 50, 600, 3000), 3);
}

#[test]
fn fourteen_ranges_take_one_level_and_the_fifteenth_a_second() {
    let mut tree = RangeBTree::default();
    for i in 0..(RECORDS * CHILDREN + 1) as u32 {
        let expected = if i as usize <= RECORDS { 1 } else { 2 };
        assert_eq!(tree.levels(), expected, "with {i} ranges");
        tree.insert(Record { key: Key { start: i.into(), hold: i }, last: i.into(), readers: 0 }, &mut nothing);
    }
    assert_eq!(tree.levels(), 3, "ranges that come in order fill every leaf: 14 * 15 fit into two levels");
}

#[test]
fn a_change_writes_only_nodes_that_it_named_before() {
    let (mut draw, mut tree, mut held, mut levels) = (Draw(7), RangeBTree::default(), Vec::new(), 0);
    for hold in 0..6000 {
        if held.is_empty() || draw.below(100) < if hold < 3000 { 65 } else { 35 } {
            let start = draw.below(1_000_000);
            let record = Record { key: Key { start, hold }, last: start, readers: 0 };
            let changes = tree.insert_changes(record.key);
            only_named(&mut tree, changes, |tree, mut touch| tree.insert(record, &mut touch));
            held.push(record.key);
        } else {
            let key = held.swap_remove(draw.below(held.len() as u64) as usize);
            let changes = tree.remove_changes(key);
            only_named(&mut tree, changes, |tree, mut touch| {
                tree.remove(key, &mut touch);
            });
        }
        levels = levels.max(tree.levels());
    }
    assert_eq!(levels, 3, "so that all levels split and join");
}
