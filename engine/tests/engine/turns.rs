//! Turns of user and kernel time in one segment are what they are as a segment each: nobody can tell them apart.

use super::common;
use simfs_engine::machine::Native;
use simfs_engine::spec::RunSpec;
use simfs_engine::waist::{Account, Host, Machine, Placement, SpawnKind, Time};
use std::cell::RefCell;
use std::rc::Rc;

const US: Time = 1_000_000;

fn spec(preemption: &str) -> RunSpec {
    let mut costs = common::real_costs();
    costs["smt_speed"] = 0.5.into();
    let changes = serde_json::json!({
        "duration_ns": 4e6,
        "machine": {"cpus_per_core": 2, "costs": costs},
        "kernel": {"tick_ns": 5.3e4, "base_slice_ns": 2e4, "preemption": preemption}
    });
    common::spec(2, &changes)
}

/// One task computes; one sleeps for `at` and then computes for a while on the same CPU, now and then; one does so on the other
/// CPU of the core. Returns when the second one came to run and when the first one was done, and what was booked.
fn story(preemption: &str, at: Time, as_one: bool) -> (Vec<Time>, Vec<Time>) {
    let spec = spec(preemption);
    let mut native = Native::new(&spec);
    let story = Rc::<RefCell<Vec<Time>>>::default();
    let told = story.clone();
    native.spawn(Placement::Pinned(0), SpawnKind::Foreground, move |m| async move {
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
        native.spawn(Placement::Pinned(cpu), SpawnKind::Foreground, move |m| async move {
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
