//! Turns of user and kernel time in one segment are what they are as a segment each: nobody can tell them apart.

#![recursion_limit = "256"] // constants are many

use simfs_engine::machine::Native;
use simfs_engine::spec::RunSpec;
use simfs_engine::waist::{Account, Host, Life, Machine, Placement, Time};
use std::cell::RefCell;
use std::rc::Rc;

const US: Time = 1_000_000;

fn spec(preemption: &str) -> RunSpec {
    let costs = serde_json::json!({
        "line_hit": 2, "line_smt": 8, "line_llc": 49, "line_socket": 49, "line_remote": 120, "line_overlap": 10, "step_cv": 0, "smt_speed": 0.5,
        "context_switch": 1500, "wakeup": 1000, "ipi_send": 0, "ipi_deliver": 0, "cpu_relax": 47, "speed": 1
    });
    let constants = serde_json::json!({
        "migration_cost": 5e5, "rwsem_handoff_wait": 4e6, "rwsem_reader_batch_max": 256, "rwsem_reader_spin_base": 1e4,
        "rwsem_reader_spin_per_reader": 500, "rwsem_reader_spin_cap": 2.5e4, "percpu_rwsem_grace_period": 1e7,
        "numa_spinlock_threshold": 1e7, "semaphore_count": 2, "cohort_handoffs": 64, "hqlock_fairness_threshold": 1000,
        "hqlock_general_handoffs_turn_numa": 50, "code_spin": 0, "code_attempt": 0, "code_taken": 0, "code_ask": 0, "code_queue": 0,
        "code_take": 0, "code_wake": 0, "code_mark": 0, "code_mark_reader": 0, "code_futex": 0, "code_futex_return": 0,
            "code_rcu_core": 0, "code_rcu_tick": 0, "code_rcu_note": 0, "code_rcu_report": 0, "rcu_inside": 0, "code_free_task": 0, "code_free_cred": 0, "code_free_map": 0, "code_free_area": 0,
            "code_free_dentry": 0, "code_free_proc": 0, "code_free_stack": 0, "code_vfree": 0, "code_rcu_thread": 0, "code_lru_add": 0, "code_lru_release": 0,
            "code_unmap_page": 0, "code_free_page": 0, "lru_batch": 15, "idle_timer": 1e9
    });
    let json = serde_json::json!({
        "seed": 1, "warmup_ns": 0, "duration_ns": 4e6,
        "machine": {
            "cpus": 2, "cpus_per_core": 2, "cpus_per_llc": 2, "cpus_per_socket": 2, "costs": costs,
            "idle_states": [], "watts_active": 4, "watts_spin": 4
        },
        "kernel": {
            "name": "test", "tick_ns": 5.3e4, "base_slice_ns": 2e4, "preemption": preemption, "locks": {}, "constants": constants
        },
        "filesystem": {"kind": "none"},
        "workload": {"kind": "python", "tasks": 1}
    });
    RunSpec::from_json(&json.to_string()).expect("a valid spec")
}

/// One task computes; one sleeps for `at` and then computes for a while on the same CPU, now and then; one does so on the other
/// CPU of the core. Returns when the second one came to run and when the first one was done, and what was booked.
fn story(preemption: &str, at: Time, as_one: bool) -> (Vec<Time>, Vec<Time>) {
    let spec = spec(preemption);
    let mut native = Native::new(&spec);
    let story = Rc::<RefCell<Vec<Time>>>::default();
    let told = story.clone();
    native.spawn(Placement::Pinned(0), Life::Foreground, move |m| async move {
        if as_one {
            m.run_turns(20, 30 * US, 10 * US).await;
        } else {
            for _ in 0..20 {
                m.run(Account::User, 30 * US).await;
                m.run(Account::System, 10 * US).await;
            }
        }
        told.borrow_mut().push(m.now());
    });
    for cpu in 0..2 {
        let told = story.clone();
        native.spawn(Placement::Pinned(cpu), Life::Foreground, move |m| async move {
            for _ in 0..5 {
                m.sleep(at).await;
                told.borrow_mut().push(m.now());
                m.run(Account::User, 17 * US).await;
            }
        });
    }
    let outcome = native.run(&spec);
    assert!(outcome.broken.is_empty() && outcome.stall.is_none(), "{outcome:?}");
    let booked = native.state().account_totals().to_vec();
    (story.take(), booked)
}

/// Whether times are equal but for what halving and doubling picoseconds leaves.
fn close(ours: &[Time], theirs: &[Time]) -> bool {
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| a.abs_diff(*b) < 100)
}

#[test]
fn who_waits_for_the_cpu_gets_it_when_it_would_in_segments_of_their_own() {
    let mut waited = 0;
    // no timer rings at the very moment at which a part ends
    for at in (1..120).map(|n| n * (US + 7003)) {
        let alone = story("full", at, true).0;
        assert!(close(&story("full", at, false).0, &alone), "full, after {at} ps");
        let (apart, as_one) = (story("voluntary", at, false), story("voluntary", at, true));
        assert!(close(&apart.0, &as_one.0) && close(&apart.1, &as_one.1), "after {at} ps: {apart:?} {as_one:?}");
        waited += usize::from(!close(&apart.0, &alone));
    }
    assert!(waited > 10, "the kernel's parts kept nobody waiting: {waited}");
}
