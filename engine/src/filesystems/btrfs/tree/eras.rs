//! Tests: what kernels before 5.18 do otherwise when items go.

use super::items::{extent, inode};
use super::key::{Item, LEAF_DATA};
use super::locks::NoLocks;
use super::search::{Rules, TreeOps, DEFAULT_RULES};
use super::Tree;
use crate::filesystems::btrfs::subvolume::now;
use std::cell::RefCell;

const OLD: Rules = Rules { pushes_some: true, replaces_in_one_leaf: true, ..DEFAULT_RULES };

/// Full leaves, as many as asked, of items that come one after the other; all must be copied before they change.
fn leaves_of(count: usize, item: impl Fn(u64) -> Item) -> RefCell<Tree> {
    let tree = RefCell::new(Tree::new());
    let each = u64::from(LEAF_DATA / item(0).bytes());
    for number in 0..count as u64 * each {
        now(async {
            let ops = TreeOps::new(&tree, &NoLocks, DEFAULT_RULES);
            let (mut path, _) = ops.insert_items(&[item(number)]).await;
            ops.release_path(&mut path).await;
        });
    }
    assert_eq!(tree.borrow().len(tree.borrow().root()), count);
    tree.borrow_mut().transid += 1;
    tree
}

#[test]
fn a_neighbour_without_room_for_an_item_is_copied_before_5_18_only() {
    let copied = |rules| {
        let tree = leaves_of(3, |number| inode(1000 + number));
        let before = tree.borrow().counts.copied;
        let ops = TreeOps::new(&tree, &NoLocks, rules);
        let each = u64::from(LEAF_DATA / inode(0).bytes());
        (0..2 * each / 3 + 1).for_each(|number| now(ops.delete_key(inode(1000 + each + number).key)));
        tree.borrow().check().unwrap();
        let copied = tree.borrow().counts.copied - before;
        copied
    };
    assert_eq!((copied(DEFAULT_RULES), copied(OLD)), (2, 4), "the root and the leaf, and its neighbours");
}

#[test]
fn an_extent_takes_the_place_of_others_in_two_leaves_in_the_second_since_5_18() {
    let leaf_of_new = |rules| {
        let tree = leaves_of(3, |number| extent(300, number * 4096));
        let each = u64::from(LEAF_DATA / extent(0, 0).bytes());
        let first = each - 3;
        now(async {
            let ops = TreeOps::new(&tree, &NoLocks, rules);
            let mut path = ops.replace_extent(extent(300, first * 4096), (first + 8) * 4096).await;
            ops.release_path(&mut path).await;
        });
        let tree = tree.into_inner();
        tree.check().unwrap();
        let leaf = |slot| tree.items(tree.child(tree.root(), slot).unwrap());
        let offsets = |slot: usize| leaf(slot).iter().map(|item| item.key.offset() / 4096).collect::<Vec<_>>();
        let all: Vec<_> = (0..3).flat_map(offsets).collect();
        assert_eq!(all, (0..=first).chain(first + 8..3 * each).collect::<Vec<_>>());
        (0..3).position(|slot| offsets(slot).contains(&first))
    };
    assert_eq!((leaf_of_new(OLD), leaf_of_new(DEFAULT_RULES)), (Some(0), Some(1)));
}

#[test]
fn what_begins_in_the_range_goes_also_where_the_range_begins_at_the_end_of_a_leaf() {
    let tree = leaves_of(2, |number| extent(300, number * 8192));
    let each = u64::from(LEAF_DATA / extent(0, 0).bytes());
    let (first, end) = (each * 8192 - 4096, (each + 2) * 8192);
    now(async {
        let ops = TreeOps::new(&tree, &NoLocks, DEFAULT_RULES);
        let mut path = ops.replace_extent(extent(300, first), end).await;
        ops.release_path(&mut path).await;
    });
    let tree = tree.into_inner();
    tree.check().unwrap();
    assert_eq!(
        (tree.next_within(extent(300, first).key, end), tree.next_within(extent(300, first + 1).key, end)),
        (Some(extent(300, first).key), None)
    );
}
