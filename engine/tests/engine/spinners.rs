//! A CPU on which a task spins ticks. Where nothing but such ticks is left, nobody will ever go on.

use super::common;
use simfs_engine::machine::Native;
use simfs_engine::waist::{Host, Machine, Placement, Side, SpawnKind, Time};

const US: Time = 1_000_000;

/// The first task takes a spinlock and ends, or releases it after 2 ms; the second asks for it. What the run stalls with.
fn stall(released: bool) -> Option<String> {
    let changes = serde_json::json!({"duration_ns": 5e6, "kernel": {"tick_ns": 1e6, "locks": {"lock": "qspinlock"}}});
    let spec = common::spec(2, &changes);
    let mut native = Native::new(&spec);
    let lock = native.setup(|m| m.new_lock(m.class("lock", "lock")));
    native.spawn(Placement::Pinned(0), SpawnKind::Foreground, move |m| async move {
        m.lock(lock, Side::Write).await;
        if released {
            m.sleep(2000 * US).await;
            m.unlock(lock, Side::Write).await;
            m.sleep(10_000 * US).await;
        }
    });
    native.spawn(Placement::Pinned(1), SpawnKind::Foreground, move |m| async move {
        m.sleep(US).await;
        m.lock(lock, Side::Write).await;
        m.unlock(lock, Side::Write).await;
        m.sleep(10_000 * US).await;
    });
    native.run(&spec).stall.map(|stall| format!("{}: {}", stall.kind, stall.cycle.join(", ")))
}

#[test]
fn who_spins_for_ever_is_a_stall_although_its_cpu_ticks() {
    let told = stall(false).expect("the run stalls");
    assert!(told.starts_with("stall: task 1 waits for lock#0 held by task 0"), "{told}");
}

#[test]
fn who_spins_for_a_sleeper_whose_timer_rings_is_none() {
    assert_eq!(stall(true), None);
}
