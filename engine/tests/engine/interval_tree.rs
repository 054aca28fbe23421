//! The interval tree against a plain list: the same overlaps in the same order, and the red-black rules after each change.

use super::common::draw::Draw;
use simfs_engine::structures::interval_tree::IntervalTree;
use simfs_engine::structures::NodeId;
use simfs_engine::waist::Access;

fn nothing(_: NodeId, _: Access) {}

fn overlaps(tree: &IntervalTree, start: u64, last: u64) -> Vec<(u64, u64)> {
    let first = tree.first_overlap(start, last, &mut nothing);
    let all = std::iter::successors(first, |&node| tree.next_overlap(node, start, last, &mut nothing));
    all.map(|node| tree.interval(node)).collect()
}

/// Adds and removes intervals in `0..space` at random, most of them up to `longest` long.
fn churn(seed: u64, space: u64, longest: u64, most: usize, steps: u64) {
    let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (mut tree, mut held, mut spare) =
        (IntervalTree::default(), Vec::new(), (0..most as NodeId).collect::<Vec<_>>());
    for step in 0..steps {
        if held.is_empty() || (draw.below(100) < 55 && held.len() < most) {
            let (start, slot) = (draw.below(space), spare.pop().expect("fewer are held than there are slots"));
            let last = start + draw.below(longest);
            tree.insert(slot, start, last, &mut nothing);
            held.push((slot, start, last));
        } else {
            let (slot, ..) = held.swap_remove(draw.below(held.len() as u64) as usize);
            tree.erase(slot, &mut nothing);
            spare.push(slot);
        }
        assert_eq!(tree.check(), Ok(held.len()), "seed {seed}, step {step}");
        let start = draw.below(space);
        let last = start + draw.below(longest);
        let mut expected: Vec<_> =
            held.iter().map(|&(_, s, l)| (s, l)).filter(|&(s, l)| s <= last && start <= l).collect();
        let found = overlaps(&tree, start, last);
        assert!(found.windows(2).all(|pair| pair[0].0 <= pair[1].0), "seed {seed}, step {step}: {found:?}");
        let mut sorted = found;
        sorted.sort_unstable();
        expected.sort_unstable();
        assert_eq!(sorted, expected, "seed {seed}, step {step}: what meets {start}..={last}");
    }
}

#[test]
fn overlaps_are_those_of_a_plain_list_while_short_intervals_come_and_go() {
    (0..100).for_each(|seed| churn(seed, 1000, 10, 60, 400));
}

#[test]
fn overlaps_are_those_of_a_plain_list_when_all_lie_on_each_other() {
    (0..100).for_each(|seed| churn(seed, 20, 30, 40, 300));
}

#[test]
fn a_tree_of_hundreds_keeps_its_rules() {
    churn(1, 100_000, 1000, 700, 4000);
}

#[test]
fn a_search_in_a_large_tree_reads_a_few_nodes_and_writes_none() {
    let mut tree = IntervalTree::default();
    (0..1000).for_each(|i| tree.insert(i, u64::from(i) * 10, u64::from(i) * 10 + 4, &mut nothing));
    for i in 0..1000 {
        let (mut reads, mut writes) = (0, 0);
        let mut count =
            |_: NodeId, access: Access| *(if access == Access::Write { &mut writes } else { &mut reads }) += 1;
        assert!(tree.first_overlap(i * 10 + 5, i * 10 + 9, &mut count).is_none());
        assert!(reads <= 2 * 20 && writes == 0, "{reads} reads, {writes} writes: at most 2 log2(n) levels");
    }
}
