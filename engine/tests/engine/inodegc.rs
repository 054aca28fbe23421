//! When the worker that frees unlinked inodes starts, and with which of them.

use super::common;
use simfs_engine::filesystems::xfs::operations::inodegc::{InodeGc, Limits};
use simfs_engine::machine::Native;
use simfs_engine::spec::RunSpec;
use simfs_engine::waist::{Account, Host, Machine, Placement, SpawnKind, Time};
use std::cell::RefCell;
use std::rc::Rc;

const US: Time = 1_000_000;
const MS: Time = 1_000 * US;
const LIMITS: Limits = Limits { batch: 32, throttle: 256, at_once: false };

/// When the worker started, and how many inodes it took.
type Turns = Rc<RefCell<Vec<(Time, usize)>>>;

fn machine(cpus: u32) -> (RunSpec, Native) {
    let spec = common::spec(cpus, &serde_json::json!({"duration_ns": 4e7}));
    let native = Native::new(&spec);
    (spec, native)
}

/// The worker: takes `each` for an inode.
async fn working(m: impl Machine, list: Rc<InodeGc>, seen: Turns, each: Time) {
    let mut batch = Vec::new();
    loop {
        if !list.start(&m, &mut batch) {
            m.park().await;
            continue;
        }
        seen.borrow_mut().push((m.now(), batch.len()));
        m.run(Account::System, each * batch.len() as Time).await;
        batch.clear();
        list.flushed(&m).await;
    }
}

/// Inodes are queued every `interval`, `count` of them, by a task that sleeps or stays on its CPU meanwhile; the worker takes
/// `each` for one, on CPU 0.
fn turns(cpus: u32, count: u32, interval: Time, sleeps: bool, each: Time) -> Vec<(Time, usize)> {
    let (spec, mut native) = machine(cpus);
    let gc = Rc::new(InodeGc::new(LIMITS));
    let turns = Turns::default();
    let (list, seen) = (gc.clone(), turns.clone());
    let worker = native.spawn(Placement::Pinned(0), SpawnKind::Background, move |m| working(m, list, seen, each));
    gc.set_worker(worker);
    native.spawn(Placement::Pinned(cpus - 1), SpawnKind::Foreground, move |m| async move {
        for inode in 0..count {
            if sleeps {
                m.sleep(interval).await;
            } else {
                m.run(Account::System, interval).await;
            }
            assert!(gc.queue(&m, inode, false, false).is_none());
        }
        m.sleep(100 * MS).await;
    });
    let outcome = native.run(&spec);
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
    let turns = turns.borrow().clone();
    turns
}

#[test]
fn the_worker_starts_at_the_second_tick_after_the_last_inode() {
    let turn = |interval, count| turns(2, count, interval, true, US);
    assert_eq!(turn(9 * MS, 1), [(16 * MS, 1)]);
    assert_eq!(turn(3 * MS, 3), [(16 * MS, 3)]); // each moves the timer
    assert_eq!(turn(13 * MS, 2), [(20 * MS, 1), (32 * MS, 1)]);
}

#[test]
fn more_than_a_cluster_of_inodes_starts_it_at_once() {
    let turns = turns(2, 1000, 10 * US, true, 2 * US);
    assert!(turns[1..10].iter().all(|&(_, inodes)| (33..=34).contains(&inodes)), "{turns:?}");
}

#[test]
fn an_inode_that_comes_before_the_worker_has_started_puts_it_off() {
    // the timer rings at 16 ms, but the task is in the kernel on the worker's CPU until 18 ms; the other inode comes then
    assert_eq!(turns(1, 2, 9 * MS, false, US), [(24 * MS, 2)]);
}

/// When a task is done that queues `count` inodes and has the worker start, waiting or not; the worker takes 1 ms for each.
fn hurried(count: u32, waits: bool) -> (Vec<(Time, usize)>, Vec<Time>) {
    let (spec, mut native) = machine(2);
    let gc = Rc::new(InodeGc::new(LIMITS));
    let (turns, done) = (Turns::default(), Rc::new(RefCell::new(Vec::new())));
    let worker = native.spawn(Placement::Pinned(0), SpawnKind::Background, {
        let (list, turns) = (gc.clone(), turns.clone());
        move |m| working(m, list, turns, MS)
    });
    gc.set_worker(worker);
    let seen = done.clone();
    native.spawn(Placement::Pinned(1), SpawnKind::Foreground, move |m| async move {
        for _ in 0..2 {
            for inode in 0..count {
                assert!(gc.queue(&m, inode, false, false).is_none());
            }
            gc.push(&m);
            if let Some(flushed) = gc.flush(&m).filter(|_| waits) {
                m.wait_for(flushed).await;
            }
            seen.borrow_mut().push(m.now());
            m.sleep(MS / 2).await;
        }
        gc.push(&m);
        if let Some(flushed) = gc.flush(&m).filter(|_| waits) {
            m.wait_for(flushed).await; // nothing is on the list, but the worker may be at work
        }
        seen.borrow_mut().push(m.now());
        m.sleep(100 * MS).await;
    });
    let outcome = native.run(&spec);
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
    let answer = (turns.borrow().clone(), done.borrow().clone());
    answer
}

#[test]
fn who_pushes_has_the_worker_start_at_once_and_goes_on() {
    let (turns, done) = hurried(4, false);
    assert_eq!(turns.iter().map(|turn| turn.1).collect::<Vec<_>>(), [4, 4], "{turns:?}");
    assert!(turns[0].0 < MS && done[2] < 2 * MS, "{turns:?} {done:?}");
}

#[test]
fn who_flushes_waits_for_the_worker_and_for_nothing_if_it_rests() {
    let (turns, done) = hurried(4, true);
    assert_eq!(turns.len(), 2);
    assert!(done[0] >= 4 * MS && done[1] >= done[0] + 4 * MS, "{done:?}");
    assert!(done[2] < done[1] + MS, "{done:?}");
}

#[test]
fn who_flushes_waits_for_a_worker_whose_list_is_empty() {
    let (spec, mut native) = machine(2);
    let gc = Rc::new(InodeGc::new(LIMITS));
    let worker = native.spawn(Placement::Pinned(0), SpawnKind::Background, {
        let list = gc.clone();
        move |m| working(m, list, Turns::default(), 4 * MS)
    });
    gc.set_worker(worker);
    native.spawn(Placement::Pinned(1), SpawnKind::Foreground, move |m| async move {
        gc.queue(&m, 0, false, false);
        gc.push(&m);
        m.sleep(MS).await;
        let flushed = gc.flush(&m).expect("the worker is at work");
        m.wait_for(flushed).await;
        assert!(m.now() >= 4 * MS);
        assert!(gc.flush(&m).is_none());
    });
    let outcome = native.run(&spec);
    assert!(outcome.broken.is_empty() && outcome.stall.is_none(), "{:?}", outcome.broken);
}
