//! Tests: many tasks on one tree, interleaved at random at every lock and every piece of work.

use super::key::{Item, ItemKind, Key};
use super::locks::{TreeLocks, Work};
use super::search::{Intent, Rules, TreeOps, DEFAULT_RULES};
use super::{BlockId, Tree};
use crate::waist::{Mode, Side};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Reader-writer locks that a polled task takes when it finds them free; -1 is a writer.
#[derive(Default)]
struct PolledLocks {
    held: RefCell<HashMap<BlockId, i32>>,
    contended: Cell<u64>,
}

impl TreeLocks for PolledLocks {
    async fn lock(&self, block: BlockId, _: usize, side: Side) {
        let mut waited = false;
        poll_fn(|_| {
            let mut held = self.held.borrow_mut();
            let state = held.entry(block).or_default();
            let free = if side == Side::Write { *state == 0 } else { *state >= 0 };
            if free {
                *state += if side == Side::Write { -1 } else { 1 };
                self.contended.set(self.contended.get() + u64::from(waited));
                return Poll::Ready(());
            }
            waited = true;
            Poll::Pending
        })
        .await;
    }

    async fn try_lock(&self, block: BlockId, _: usize, side: Side) -> bool {
        let mut held = self.held.borrow_mut();
        let state = held.entry(block).or_default();
        let free = if side == Side::Write { *state == 0 } else { *state >= 0 };
        *state += if !free {
            0
        } else if side == Side::Write {
            -1
        } else {
            1
        };
        free
    }

    async fn convert(&self, block: BlockId, _: Side, _: Mode) {
        assert_ne!(self.held.borrow()[&block], 0, "only who holds block {block} converts it");
    }

    fn look_into(&self, block: BlockId) {
        assert_ne!(self.held.borrow()[&block], 0, "only who holds block {block} looks into it");
    }

    fn change(&self, block: BlockId) {
        assert_eq!(self.held.borrow()[&block], -1, "only who holds block {block} for writing changes it");
    }

    async fn unlock(&self, block: BlockId, side: Side) {
        let mut held = self.held.borrow_mut();
        let state = held.get_mut(&block).expect("it was locked");
        assert_eq!(*state < 0, side == Side::Write, "block {block} is unlocked as it was locked");
        *state -= if side == Side::Write { -1 } else { 1 };
    }

    async fn work(&self, _: Work) {
        let mut yielded = false;
        poll_fn(|_| if std::mem::replace(&mut yielded, true) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    async fn place(&self, _: usize) -> u64 {
        self.work(Work::Node).await;
        0
    }

    async fn give_back(&self, _: u64, _: usize, _: bool) {}
}

/// Large items, so that leaves split and merge often.
fn item(number: u64) -> Item {
    Item::new(Key::new(number, ItemKind::ExtentData, 0), 200 + (number % 7) as u32 * 300)
}

/// Inserts every `tasks`-th number from its own on, then deletes all but those that `keeps`.
async fn grow_and_shrink(ops: TreeOps<'_, PolledLocks>, numbers: Vec<u64>, keeps: fn(u64) -> bool) {
    for &number in &numbers {
        let (mut path, inserted) = ops.insert_items(&[item(number)]).await;
        assert!(inserted, "{number} is new");
        ops.release_path(&mut path).await;
    }
    for &number in &numbers {
        let (mut path, found) = ops.search_slot(item(number).key, Intent::Read).await;
        assert!(found, "{number} was inserted");
        ops.release_path(&mut path).await;
        if !keeps(number) {
            ops.delete_key(item(number).key).await;
        }
    }
}

/// Polls unfinished tasks in random order; panics when nobody gets on.
fn run_interleaved(mut tasks: Vec<Pin<Box<dyn Future<Output = ()> + '_>>>, seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut polls = 0_u64;
    while !tasks.is_empty() {
        let chosen = random.next_u64() as usize % tasks.len();
        if tasks[chosen].as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            drop(tasks.swap_remove(chosen));
        }
        polls += 1;
        assert!(polls < 20_000_000, "the tasks wait for each other");
    }
}

#[test]
fn tasks_that_lock_as_they_go_leave_the_tree_that_one_task_would() {
    for (seed, early_unlock) in [(1, true), (2, true), (3, false), (4, false)] {
        let (tree, locks) = (RefCell::new(Tree::new()), PolledLocks::default());
        let (tasks, each) = (8_u64, 600_u64);
        let keeps: fn(u64) -> bool = |number| number % 5 == 0;
        let programs = (0..tasks).map(|task| {
            let ops = TreeOps::new(&tree, &locks, Rules { early_unlock, modes: !early_unlock, ..DEFAULT_RULES });
            // Half of the tasks go through the same range, half have one of their own.
            let number = |i: u64| if task % 2 == 0 { i * tasks + task } else { task * 100_000 + i };
            let program = grow_and_shrink(ops, (0..each).map(number).collect(), keeps);
            Box::pin(program) as Pin<Box<dyn Future<Output = ()> + '_>>
        });
        run_interleaved(programs.collect(), seed);
        assert!(locks.held.borrow().values().all(|&state| state == 0), "a lock is left behind");
        assert!(locks.contended.get() > 1000, "they must meet");
        let tree = tree.into_inner();
        tree.check().unwrap();
        assert!(tree.counts.restarts > 0 && tree.counts.freed > 0, "{:?}", tree.counts);
        let leaves = tree.blocks().filter(|&block| tree.level(block) == 0);
        let found: BTreeSet<u64> = leaves.flat_map(|leaf| tree.items(leaf).iter().map(|i| i.key.objectid())).collect();
        let expected = (0..tasks)
            .flat_map(|task| (0..each).map(move |i| if task % 2 == 0 { i * tasks + task } else { task * 100_000 + i }));
        assert_eq!(found, expected.filter(|&number| keeps(number)).collect());
    }
}

/// Inserts a few large items and deletes them again, `rounds` times, so that the tree is one leaf by turns.
async fn come_and_go(ops: TreeOps<'_, PolledLocks>, numbers: Vec<u64>, rounds: usize) {
    for _ in 0..rounds {
        for &number in &numbers {
            let (mut path, inserted) = ops.insert_items(&[item(number)]).await;
            assert!(inserted, "{number} was deleted");
            ops.release_path(&mut path).await;
        }
        for &number in &numbers {
            ops.delete_key(item(number).key).await;
        }
    }
}

#[test]
fn a_task_that_waited_for_the_root_goes_down_the_tree_that_it_finds() {
    let mut freed = 0;
    for (seed, early_unlock) in (0..20).map(|seed| (seed, seed % 2 == 0)) {
        let (tree, locks) = (RefCell::new(Tree::new()), PolledLocks::default());
        let programs = (0..6_u64).map(|task| {
            let ops = TreeOps::new(&tree, &locks, Rules { early_unlock, modes: !early_unlock, ..DEFAULT_RULES });
            let program = come_and_go(ops, (0..3).map(|i| i * 6 + task).collect(), 200);
            Box::pin(program) as Pin<Box<dyn Future<Output = ()> + '_>>
        });
        run_interleaved(programs.collect(), seed);
        let tree = tree.into_inner();
        assert!(tree.is_empty(tree.root()) && tree.level(tree.root()) == 0, "everything was deleted");
        freed += tree.counts.freed;
    }
    assert!(freed > 200, "the trees must shrink often: {freed}");
}

#[test]
fn a_block_is_copied_once_in_a_transaction_and_its_parents_with_it() {
    let (tree, locks) = (RefCell::new(Tree::new()), super::locks::NoLocks);
    let run = |new: Item| {
        let ops = TreeOps::new(&tree, &locks, DEFAULT_RULES);
        let mut change = Box::pin(async move {
            let (mut path, _) = ops.insert_items(&[new]).await;
            ops.release_path(&mut path).await;
        });
        assert!(change.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    };
    (0..200).for_each(|number| run(item(number * 2)));
    assert_eq!(tree.borrow().level(tree.borrow().root()), 1);
    assert_eq!(tree.borrow().counts.copied, 0);
    tree.borrow_mut().transid += 1;
    let small = |number| Item::new(Key::new(number, ItemKind::ExtentData, 0), 0); // fits without pushing
    run(small(1));
    assert_eq!(tree.borrow().counts.copied, 2, "the leaf and the root");
    run(small(3));
    assert_eq!(tree.borrow().counts.copied, 2, "the same leaf again");
}
