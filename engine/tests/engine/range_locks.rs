//! The laws of range locks, design by design, on the native machine: who may hold what together, who comes first, and that
//! nothing is left behind.

use super::common;
use super::common::draw::Draw;
use simfs_engine::machine::Native;
use simfs_engine::range_locks::{Design, Prices, Range, RangeLock};
use simfs_engine::spec::RunSpec;
use simfs_engine::waist::{Account, Host, Machine, Placement, Side, SpawnKind, Time};
use std::cell::RefCell;
use std::rc::Rc;

const US: Time = 1_000_000;
const NS: Time = 1000;

fn spec(cpus: u32, duration_ns: f64) -> RunSpec {
    let constants = serde_json::json!({
        "rwsem_reader_spin_base": 1e4, "rwsem_reader_spin_per_reader": 500, "rwsem_reader_spin_cap": 2.5e4,
        "percpu_rwsem_grace_period": 1e7
    });
    let changes = serde_json::json!({
        "duration_ns": duration_ns,
        "machine": {"costs": common::real_costs()},
        "kernel": {
            "tick_ns": 1e6, "preemption": "voluntary", "locks": {"range_lock": "qspinlock"}, "constants": constants
        }
    });
    common::spec(cpus, &changes)
}

const PRICES: Prices = Prices { work: 80 * NS, pause: 37 * NS, syscall: None };
const PTHREAD: Prices = Prices { syscall: Some(100 * NS), ..PRICES };
const INDEXED: [(Design, Prices); 5] = [
    (Design::IntervalTree, PRICES),
    (Design::IntervalTree, PTHREAD),
    (Design::BTree, PRICES),
    (Design::BTree, PTHREAD),
    (Design::Optimistic, PRICES),
];

/// What happened: when, which task, what.
type Story = Rc<RefCell<Vec<(Time, usize, &'static str)>>>;

/// One task's part: it comes at `at`, asks for a range, holds it for `hold`.
#[derive(Clone, Copy)]
struct Part {
    at: Time,
    range: (u64, u64),
    side: Side,
    hold: Time,
}

fn part(at: Time, range: (u64, u64), side: Side, hold: Time) -> Part {
    Part { at: at * US, range, side, hold: hold * US }
}

/// Lets each task play its part once. Returns when each got its range and when it gave it back.
fn play(design: Design, prices: Prices, parts: &[Part]) -> Vec<(Time, Time)> {
    let mut spec = spec(parts.len() as u32, 1e7);
    if design == Design::Rwsem {
        spec.kernel.locks.insert("range_lock".into(), "rwsem".into());
    }
    let mut native = Native::new(&spec);
    let lock = Rc::new(native.setup(|m| RangeLock::new(m, design, prices)));
    let story = Story::default();
    for (number, &Part { at, range: (start, last), side, hold }) in parts.iter().enumerate() {
        let (lock, story) = (lock.clone(), story.clone());
        native.spawn(Placement::Pinned(number as u32), SpawnKind::Foreground, move |m| async move {
            let request = lock.new_request(&m);
            m.sleep(at).await;
            lock.lock(&m, request, Range { start, last }, side).await;
            story.borrow_mut().push((m.now(), number, "got"));
            m.run(Account::User, hold).await;
            story.borrow_mut().push((m.now(), number, "gave"));
            lock.unlock(&m, request).await;
        });
    }
    let outcome = native.run(&spec);
    assert!(outcome.broken.is_empty() && outcome.stall.is_none(), "{design:?}: {outcome:?}");
    assert_eq!(lock.check_empty(), Ok(()), "{design:?}");
    let story = story.borrow();
    let when = |number, what| story.iter().find(|s| s.1 == number && s.2 == what).map(|s| s.0);
    let times = |number| Some((when(number, "got")?, when(number, "gave")?));
    (0..parts.len())
        .map(|number| times(number).unwrap_or_else(|| panic!("{design:?}: task {number} never got its range")))
        .collect()
}

fn order(times: &[(Time, Time)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|&number| times[number].0);
    order
}

/// Each of `tasks` locks and unlocks `turns` random ranges of `units`; ranges that exclude each other are never held together.
fn crowd(design: Design, prices: Prices, tasks: u32, cpus: u32, units: u64, turns: u32, seed: u64) {
    let spec = spec(cpus, 1e9);
    let mut native = Native::new(&spec);
    let lock = Rc::new(native.setup(|m| RangeLock::new(m, design, prices)));
    let held = Rc::new(RefCell::new(vec![None::<(Range, Side)>; tasks as usize]));
    let done = Rc::new(RefCell::new(0));
    for task in 0..tasks {
        let (lock, held, done) = (lock.clone(), held.clone(), done.clone());
        native.spawn(Placement::Anywhere, SpawnKind::Foreground, move |m| async move {
            let mut draw = Draw((seed * 1000 + u64::from(task) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let request = lock.new_request(&m);
            for _ in 0..turns {
                let start = draw.below(units);
                let range = Range { start, last: start + draw.below(4) };
                let side = if draw.below(2) == 0 { Side::Read } else { Side::Write };
                lock.lock(&m, request, range, side).await;
                let excludes = |o: &&(Range, Side)| o.0.overlaps(&range) && (o.1 == Side::Write || side == Side::Write);
                assert_eq!(
                    held.borrow().iter().flatten().find(excludes),
                    None,
                    "{design:?}: held beside {range:?} {side:?}"
                );
                held.borrow_mut()[task as usize] = Some((range, side));
                m.run(Account::User, draw.below(2000) * NS).await;
                held.borrow_mut()[task as usize] = None;
                lock.unlock(&m, request).await;
                *done.borrow_mut() += 1;
            }
        });
    }
    let outcome = native.run(&spec);
    assert!(outcome.broken.is_empty() && outcome.stall.is_none(), "{design:?}: {outcome:?}");
    assert_eq!(*done.borrow(), tasks * turns, "{design:?}: everybody comes to the end");
    assert_eq!(lock.check_empty(), Ok(()), "{design:?}: and nothing is left");
}

#[test]
fn conflicting_ranges_are_never_held_together_and_nothing_is_left_at_the_end() {
    for (design, prices) in INDEXED {
        (0..8).for_each(|seed| crowd(design, prices, 12, 8, 40, 60, seed));
    }
}

#[test]
fn the_laws_hold_with_more_tasks_than_cpus_and_on_one_unit() {
    for (design, prices) in INDEXED {
        crowd(design, prices, 9, 2, 1, 40, 1);
        crowd(design, prices, 9, 1, 3, 40, 2);
    }
}

#[test]
fn the_laws_hold_when_splits_and_joins_meet_each_other() {
    for (design, prices) in INDEXED {
        crowd(design, prices, 64, 32, 4000, 60, 3);
    }
}

#[test]
fn readers_of_overlapping_ranges_hold_them_at_the_same_time() {
    let parts = [part(1, (0, 9), Side::Read, 100), part(2, (0, 9), Side::Read, 100), part(3, (5, 14), Side::Read, 100)];
    for (design, prices) in INDEXED {
        let times = play(design, prices, &parts);
        assert!(times.iter().all(|t| t.0 < times[0].1), "{design:?}: {times:?}");
    }
}

#[test]
fn a_writer_waits_for_the_last_of_those_who_share_a_range() {
    let parts = [part(1, (0, 9), Side::Read, 100), part(2, (0, 9), Side::Read, 200), part(5, (9, 9), Side::Write, 1)];
    for (design, prices) in INDEXED {
        let times = play(design, prices, &parts);
        assert!(times[2].0 >= times[1].1, "{design:?}: {times:?}");
    }
}

#[test]
fn a_long_read_that_began_far_before_is_found() {
    let short: Vec<Part> = (0..30).map(|i| part(2 + i, (200 + 2 * i, 200 + 2 * i), Side::Read, 5)).collect();
    let mut parts = vec![part(1, (0, 1000), Side::Read, 300)];
    parts.extend(short);
    parts.push(part(100, (900, 900), Side::Write, 1));
    for (design, prices) in INDEXED {
        let times = play(design, prices, &parts);
        assert!(times[31].0 >= times[0].1, "{design:?}: {times:?}");
    }
}

#[test]
fn the_interval_tree_serves_overlapping_requests_in_the_order_of_arrival() {
    let mut draw = Draw(11);
    let parts: Vec<Part> =
        (0..12).map(|i| part(1 + 3 * i, (draw.below(50), 50 + draw.below(50)), Side::Write, 40)).collect();
    for prices in [PRICES, PTHREAD] {
        assert_eq!(order(&play(Design::IntervalTree, prices, &parts)), (0..12).collect::<Vec<_>>());
    }
}

#[test]
fn in_the_interval_tree_a_reader_does_not_pass_a_writer_that_waits() {
    let parts = [part(1, (0, 9), Side::Read, 100), part(10, (0, 9), Side::Write, 10), part(20, (0, 9), Side::Read, 10)];
    let times = play(Design::IntervalTree, PRICES, &parts);
    assert_eq!(order(&times), [0, 1, 2]);
    let times = play(Design::BTree, PRICES, &parts);
    assert!(times[2].0 < times[0].1, "in the B-tree only holders count, so it passes: {times:?}");
}

#[test]
fn convoy_through_overlap_the_interval_tree_waits_for_a_waiter_whose_range_nobody_holds() {
    let parts =
        [part(1, (0, 9), Side::Write, 100), part(10, (5, 14), Side::Write, 10), part(20, (12, 19), Side::Write, 10)];
    let times = play(Design::IntervalTree, PRICES, &parts);
    assert!(times[2].0 >= times[1].1 && times[1].0 >= times[0].1, "disjoint from the holder, and yet third: {times:?}");
    for (design, prices) in &INDEXED[2..] {
        let times = play(*design, *prices, &parts);
        assert!(times[2].0 < 25 * US, "{design:?}: only holders are in the tree, so it need not wait: {times:?}");
    }
}

/// One who has all, and three who wait for him and come in another order than that of their ranges.
fn three_behind_one() -> [Part; 4] {
    [
        part(1, (0, 99), Side::Write, 100),
        part(10, (60, 69), Side::Write, 5),
        part(20, (20, 29), Side::Write, 5),
        part(30, (40, 49), Side::Write, 5),
    ]
}

#[test]
fn a_release_wakes_in_the_order_of_the_starts() {
    assert_eq!(order(&play(Design::IntervalTree, PRICES, &three_behind_one())), [0, 2, 3, 1]);
}

#[test]
fn a_released_b_tree_range_wakes_all_who_wait_first_come_first() {
    for design in [Design::BTree, Design::Optimistic] {
        let times = play(design, PRICES, &three_behind_one());
        assert_eq!(order(&times), [0, 1, 2, 3], "{design:?}");
        assert!(times[3].0 < times[0].1 + 20 * US, "{design:?}: none waits for another: {times:?}");
    }
}

#[test]
fn an_rwsem_makes_disjoint_writers_wait_for_each_other() {
    let parts: Vec<Part> = (0..4).map(|i| part(1 + i, (10 * i, 10 * i + 9), Side::Write, 50)).collect();
    for (design, prices) in INDEXED {
        let times = play(design, prices, &parts);
        assert!(times[3].0 < times[0].1, "{design:?}: {times:?}");
    }
    let mut times = play(Design::Rwsem, PRICES, &parts);
    times.sort_unstable();
    assert!(times.windows(2).all(|pair| pair[1].0 >= pair[0].1), "one after the other: {times:?}");
}
