//! A task that is moved when it begins another program has waited beside the CPU that it came to, not the one that it left.

use super::common;
use simfs_engine::machine::Native;
use simfs_engine::waist::{Account, Host, Machine, Placement, SpawnKind, Time};

const US: Time = 1_000_000;

/// Tasks that compute, sleep and begin programs on four CPUs, of which some are alone and idle for longer than others. The clock of
/// the CPU that a task left may be ahead of the other's: a difference between the two would be below zero.
#[test]
fn whoever_is_moved_counts_the_idling_of_the_cpu_that_it_waits_for() {
    let changes = serde_json::json!({"duration_ns": 4e6, "machine": {"costs": common::real_costs()}});
    let spec = common::spec(4, &changes);
    let mut native = Native::new(&spec);
    for task in 0..7 {
        native.spawn(Placement::Anywhere, SpawnKind::Foreground, move |m| async move {
            for turn in 0..40 {
                m.run(Account::User, (11 + 7 * (task + turn) % 23) * US).await;
                m.exec().await;
                m.run(Account::User, 5 * US).await;
                m.sleep((3 + 13 * (task * turn) % 61) * US).await;
            }
        });
    }
    let outcome = native.run(&spec);
    assert!(outcome.broken.is_empty() && outcome.stall.is_none(), "{outcome:?}");
    assert!(native.state().counters.migrations > 0);
}
