//! When the worker that frees unlinked inodes starts, and with which of them.

use simfs_engine::filesystems::xfs::operations::inodegc::{InodeGc, Limits};
use simfs_engine::machine::Native;
use simfs_engine::spec::RunSpec;
use simfs_engine::waist::{Account, Host, Life, Machine, Placement, Time};
use std::cell::RefCell;
use std::rc::Rc;

const US: Time = 1_000_000;
const MS: Time = 1_000 * US;
const LIMITS: Limits = Limits { batch: 32, throttle: 256 };

/// When the worker started, and how many inodes it took.
type Turns = Rc<RefCell<Vec<(Time, usize)>>>;

fn machine(cpus: u32) -> (RunSpec, Native) {
    let text = format!(
        r#"{{"seed": 1, "warmup_ns": 0, "duration_ns": 4e7, "batches": 1,
        "machine": {{"cpus": {cpus}, "cpus_per_core": 1, "cpus_per_llc": {cpus}, "cpus_per_socket": {cpus},
          "costs": {{"line_hit": 0, "line_smt": 0, "line_llc": 0, "line_socket": 0, "line_remote": 0, "line_overlap": 1, "step_cv": 0,
            "smt_speed": 1, "cpu_relax": 0, "context_switch": 0, "wakeup": 0, "ipi_send": 0, "ipi_deliver": 0, "speed": 1}},
          "idle_states": [], "watts_active": 4, "watts_spin": 4}},
        "kernel": {{"name": "test", "tick_ns": 4e6, "base_slice_ns": 3e6, "preemption": "none", "locks": {{}},
          "constants": {{"migration_cost": 5e5, "rwsem_handoff_wait": 4e6, "rwsem_reader_batch_max": 256, "rwsem_reader_spin_base": 0,
            "rwsem_reader_spin_per_reader": 0, "rwsem_reader_spin_cap": 0, "percpu_rwsem_grace_period": 0,
            "numa_spinlock_threshold": 10000000,
            "semaphore_count": 2, "cohort_handoffs": 64, "hqlock_fairness_threshold": 1000,
            "hqlock_general_handoffs_turn_numa": 50,
            "code_spin": 0, "code_attempt": 0, "code_taken": 0, "code_ask": 0, "code_queue": 0, "code_take": 0,
            "code_wake": 0, "code_mark": 0, "code_mark_reader": 0, "code_futex": 0, "code_futex_return": 0,
            "code_rcu_core": 0, "code_rcu_tick": 0, "code_rcu_note": 0, "code_rcu_report": 0, "rcu_inside": 0, "code_free_task": 0, "code_free_cred": 0, "code_free_map": 0, "code_free_area": 0,
            "code_free_dentry": 0, "code_free_proc": 0, "code_free_stack": 0, "code_vfree": 0, "code_rcu_thread": 0, "code_lru_add": 0, "code_lru_release": 0,
            "code_unmap_page": 0, "code_free_page": 0, "lru_batch": 15, "idle_timer": 1e9}}}},
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
    let gc = Rc::new(InodeGc::new(LIMITS));
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
