//! When the worker that frees unlinked inodes starts, and with which of them.

use simfs_engine::filesystems::xfs::operations::inodegc::{InodeGc, Limits};
use simfs_engine::machine::{Account, Native, Time};
use simfs_engine::spec::RunSpec;
use simfs_engine::waist::{Host, Life, Machine, Placement};
use std::cell::RefCell;
use std::rc::Rc;

const US: Time = 1_000_000;
const MS: Time = 1_000 * US;
const TICK: Time = 4 * MS;
const LIMITS: Limits = Limits { batch: 32, throttle: 256 };

/// When the worker started, and how many inodes it took.
type Turns = Rc<RefCell<Vec<(Time, usize)>>>;

fn machine(cpus: u32) -> (RunSpec, Native) {
    let text = format!(
        r#"{{"seed": 1, "warmup_ns": 0, "duration_ns": 2e7, "batches": 1,
        "machine": {{"cpus": {cpus}, "cpus_per_core": 1, "cpus_per_llc": {cpus}, "cpus_per_socket": {cpus},
          "costs": {{"line_hit": 0, "line_smt": 0, "line_llc": 0, "line_socket": 0, "line_remote": 0, "line_overlap": 1, "step_cv": 0,
            "smt_speed": 1, "cpu_relax": 0, "context_switch": 0, "wakeup": 0, "ipi_send": 0, "ipi_deliver": 0, "speed": 1}},
          "idle_states": [], "watts_active": 4, "watts_spin": 4}},
        "kernel": {{"name": "test", "tick_ns": 4e6, "base_slice_ns": 3e6, "preemption": "none", "locks": {{}},
          "constants": {{"migration_cost": 5e5, "rwsem_handoff_wait": 4e6, "rwsem_reader_batch_max": 256, "rwsem_reader_spin_base": 0,
            "rwsem_reader_spin_per_reader": 0, "rwsem_reader_spin_cap": 0, "percpu_rwsem_grace_period": 0,
            "numa_spinlock_threshold": 10000000}}}},
        "filesystem": {{"kind": "none"}}, "workload": {{"kind": "python", "tasks": 1}}}}"#
    );
    let spec = RunSpec::from_json(&text).expect("a valid spec");
    let native = Native::new(&spec);
    (spec, native)
}

/// Inodes are queued every `interval`, `count` of them, by a task that sleeps or stays on its CPU meanwhile; the worker takes
/// `each` for one, on CPU 0.
fn turns(cpus: u32, count: u32, interval: Time, sleeps: bool, each: Time) -> Vec<(Time, usize)> {
    let (spec, mut native) = machine(cpus);
    let gc = Rc::new(InodeGc::new(LIMITS, TICK));
    let turns = Turns::default();
    let (list, seen) = (gc.clone(), turns.clone());
    let worker = native.spawn(Placement::Pinned(0), Life::Background, move |m| async move {
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
    });
    gc.set_worker(worker);
    native.spawn(Placement::Pinned(cpus - 1), Life::Foreground, move |m| async move {
        for inode in 0..count {
            if sleeps {
                m.sleep(interval).await;
            } else {
                m.run(Account::System, interval).await;
            }
            assert!(gc.queue(&m, inode, false).is_none());
        }
        m.sleep(100 * MS).await;
    });
    let outcome = native.run(&spec);
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
    let turns = turns.borrow().clone();
    turns
}

#[test]
fn what_comes_while_the_worker_is_at_work_waits_for_the_next_tick() {
    // 10 inodes a tick; the worker is busy for half a tick with those of the last one
    let turns = turns(2, 1000, 400 * US, true, 200 * US);
    assert!(turns.len() > 3);
    for (start, inodes) in turns {
        assert!(start % TICK < US, "a turn began {} us after a tick", start % TICK / US);
        assert!((9..=10).contains(&inodes), "{inodes} inodes");
    }
}

#[test]
fn more_than_a_cluster_of_inodes_starts_it_at_once() {
    let turns = turns(2, 1000, 10 * US, true, 2 * US);
    assert!(turns[1..10].iter().all(|&(_, inodes)| (33..=34).contains(&inodes)), "{turns:?}");
}

#[test]
fn an_inode_that_comes_before_the_worker_has_started_puts_it_off_to_the_next_tick() {
    // the task is in the kernel on the worker's CPU until 10 ms, past two ticks; the last inode comes then
    let turns = turns(1, 20, 500 * US, false, US);
    assert_eq!(turns.len(), 1);
    assert!((12 * MS..12 * MS + US).contains(&turns[0].0));
    assert_eq!(turns[0].1, 20);
}
