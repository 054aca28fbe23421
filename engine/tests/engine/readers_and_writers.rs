//! Readers and writers against closed forms and against each era's own rules; programs of the tests' own.
//!
//! X is acquisitions per unit of time. Between two writers served first come, first served, there are K readers with
//! P(K = k) = (1 - r) r^k; in a lock with phases all waiting readers go between two writers.

use super::common;
use simfs_engine::machine::trace::{Entry, Object};
use simfs_engine::machine::Native;
use simfs_engine::spec::RunSpec;
use simfs_engine::waist::{Account, ClassId, Host, LockId, Machine, Placement, Side, SpawnKind, Time};
use simfs_engine::workloads::draw::{chance, Draw};

const NS: Time = 1_000;
const US: Time = 1_000 * NS;

/// A machine on which only what `costs` says takes time, and one lock on it.
struct Bench {
    spec: RunSpec,
    native: Native,
    lock: LockId,
}

#[derive(Clone, Copy, Default)]
struct Costs {
    /// From a release until the woken task runs: a third each for the waker, the idle state and the switch.
    wake_ns: f64,
    /// How long writers spin on readers: base, a reader, at most.
    spin_us: (f64, f64, f64),
}

fn bench(lock: &str, cpus: u32, duration: Time, costs: Costs) -> Bench {
    let part = costs.wake_ns / 4.0;
    let (base, each, cap) = costs.spin_us;
    let changes = serde_json::json!({
        "duration_ns": duration / NS,
        "machine": {
            "costs": {"context_switch": part, "wakeup": part, "ipi_deliver": part},
            "idle_states": [{"name": "C1", "exit_ns": part, "residency_ns": 0, "watts": 1}]
        },
        "kernel": {
            "locks": {"lock": lock},
            "constants": {
                "rwsem_reader_spin_base": base * 1e3, "rwsem_reader_spin_per_reader": each * 1e3,
                "rwsem_reader_spin_cap": cap * 1e3
            }
        }
    });
    let spec = common::spec(cpus, &changes);
    let native = Native::new(&spec);
    let lock = native.setup(|m| {
        let class: ClassId = m.class("lock", "lock");
        m.new_lock(class)
    });
    Bench { spec, native, lock }
}

impl Bench {
    /// Runs it; gives back the number of operations.
    fn run(&mut self) -> u64 {
        let outcome = self.native.run(&self.spec);
        assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
        assert!(outcome.stall.is_none(), "{:?}", outcome.stall);
        outcome.batch_operations.iter().sum()
    }

    /// Runs it; gives back the trace.
    fn trace(mut self) -> Vec<Entry> {
        self.native.state().record_trace(0);
        self.run();
        self.native.state().take_trace()
    }

    fn spawn<F: std::future::Future<Output = ()> + 'static>(
        &mut self,
        program: impl FnOnce(<Native as Host>::Handle, LockId) -> F,
    ) {
        let lock = self.lock;
        self.native.spawn(Placement::Anywhere, SpawnKind::Foreground, |m| program(m, lock));
    }
}

// ---- convoy --------------------------------------------------------------------------------------------------

const THINK: Time = 100 * NS;
const HOLD: Time = 10 * NS;
const WAKE: f64 = 20.0;

/// Operations of tasks that start one after the other; the first of them holds the lock for long once, if `tipped`.
fn convoy(lock: &str, tasks: u32, staggered: bool, tipped: bool) -> f64 {
    let duration = 1000 * US;
    let mut bench = bench(lock, tasks, duration, Costs { wake_ns: WAKE, ..Costs::default() });
    for number in 0..tasks {
        bench.spawn(move |m, lock| async move {
            if staggered {
                m.run(Account::User, Time::from(number) * (THINK + HOLD) / Time::from(tasks)).await;
            }
            let mut long = tipped && number == 0;
            loop {
                m.run(Account::User, THINK).await;
                m.begin();
                m.lock(lock, Side::Write).await;
                m.run(Account::System, if std::mem::take(&mut long) { 5 * THINK } else { HOLD }).await;
                m.unlock(lock, Side::Write).await;
                m.end("cycle", true);
            }
        });
    }
    bench.run() as f64 / (duration / NS) as f64
}

#[test]
fn a_granted_rwsem_is_bistable_one_long_hold_tips_it_into_a_convoy_that_stays() {
    for lock in ["semaphore", "rwsem-2.6"] {
        let (fast, convoyed) = (5.0 / 110.0, 1.0 / (10.0 + WAKE));
        assert!(
            (convoy(lock, 4, true, false) / (4.0 / 110.0) - 1.0).abs() < 0.002,
            "{lock}: staggered tasks never meet"
        );
        assert!((convoy(lock, 5, true, false) / fast - 1.0).abs() < 0.002, "{lock}: staggered tasks never meet");
        assert!((convoy(lock, 5, true, true) / convoyed - 1.0).abs() < 0.002, "{lock}: after the long hold all queue");
        for tasks in [8, 16] {
            assert!((convoy(lock, tasks, false, false) / convoyed - 1.0).abs() < 0.002, "{lock} with {tasks} tasks");
        }
    }
}

#[test]
fn eras_whose_writers_spin_recover_from_the_same_long_hold_and_one_that_only_hints_loses_less() {
    let (fast, convoyed) = (5.0 / 110.0, 1.0 / (10.0 + WAKE));
    for lock in ["rwsem-3.16", "rwsem-5.3", "rwsem-5.11"] {
        assert!(convoy(lock, 5, true, true) > 0.999 * fast, "{lock}");
        assert!(convoy(lock, 16, false, false) > 0.95 / 10.0, "{lock}: somebody who runs is always there");
    }
    assert!(convoy("rwsem-3.10", 16, false, false) > 1.03 * convoyed, "who comes at the right moment steals");
}

// ---- first come, first served --------------------------------------------------------------------------------

/// Throughput (1/us) when saturated: a share of acquisitions are reads; holders sleep, so no CPU limits them. Writes are counted, one
/// a batch: how many readers a batch has spreads several times as much as how long it takes.
fn saturated(lock: &str, duration: Time, share: f64, read: Draw, write: Draw) -> f64 {
    let mut bench = bench(lock, 64, duration, Costs::default());
    for number in 0..1000 {
        let (read, write) = (read.clone(), write.clone());
        bench.spawn(move |m, lock| async move {
            let mut random = m.stream(&format!("task {number}"));
            loop {
                let side = if chance(&mut random, share) { Side::Read } else { Side::Write };
                let hold = if side == Side::Read { &read } else { &write }.draw(&mut random);
                m.sleep(1).await; // a picosecond, so that who is woken comes first
                m.begin();
                m.lock(lock, side).await;
                m.sleep(hold).await;
                m.unlock(lock, side).await;
                m.end("cycle", side == Side::Write);
            }
        });
    }
    bench.run() as f64 / (duration / US) as f64 / (1.0 - share)
}

fn exponential_reads(r: f64, read: f64, write: f64) -> f64 {
    1.0 / ((1.0 - r) * (write - read * (1.0 - r).ln()))
}

fn constant_reads(r: f64, read: f64, write: f64) -> f64 {
    1.0 / ((1.0 - r) * (write + r * read))
}

#[test]
fn the_formulas_give_their_printed_check_values() {
    for (r, exponential, constant) in [(0.5, 0.7426, 0.8), (0.9, 2.324, 3.448), (0.99, 15.14, 33.44)] {
        assert!((exponential_reads(r, 1.0, 2.0) / exponential - 1.0).abs() < 1e-3);
        assert!((constant_reads(r, 1.0, 2.0) / constant - 1.0).abs() < 1e-3);
    }
}

#[test]
fn eras_that_grant_the_run_at_the_head_serve_readers_in_the_batches_of_the_formula() {
    for lock in ["rwsem-2.6", "rwsem-3.10", "rwsem-3.16"] {
        for r in [0.5, 0.99] {
            let write = Draw::Constant(2 * US);
            let found =
                saturated(lock, 5_000 * US, r, Draw::Exponential(US), write.clone()) / exponential_reads(r, 1.0, 2.0);
            assert!((found - 1.0).abs() < 0.03, "{lock}, {r} exponential: {found}");
            if lock == "rwsem-2.6" {
                // How long a read takes is nothing to the rule of an era. In half of the time there are as many batches.
                let found = saturated(lock, 2_500 * US, r, Draw::Constant(US), write) / constant_reads(r, 1.0, 2.0);
                assert!((found - 1.0).abs() < 0.03, "{lock}, {r} constant: {found}");
            }
        }
    }
}

// ---- phases --------------------------------------------------------------------------------------------------

/// Reads and writes per ms of tasks that always read or always write, for a ms (or a mean of one) each time.
fn phases(lock: &str, readers: u32, writers: u32, read: Draw) -> (f64, f64) {
    // Phases of a constant length are all alike.
    let duration = if matches!(read, Draw::Constant(_)) { 360_000 * US } else { 1_800_000 * US };
    let mut bench = bench(lock, 64, duration, Costs::default());
    for number in 0..readers + writers {
        let side = if number < readers { Side::Read } else { Side::Write };
        let hold = if side == Side::Read { read.clone() } else { Draw::Constant(1000 * US) };
        bench.spawn(move |m, lock| async move {
            let mut random = m.stream(&format!("task {number}"));
            loop {
                m.sleep(1).await;
                m.lock(lock, side).await;
                m.sleep(hold.draw(&mut random)).await;
                m.unlock(lock, side).await;
            }
        });
    }
    let object = Object::Lock(bench.lock);
    let trace = bench.trace();
    let count = |what: &str| trace.iter().filter(|e| e.what == what && e.object == object).count();
    let per_ms = |what: &str| count(what) as f64 / (duration / (1000 * US)) as f64;
    (per_ms("release shared"), per_ms("release"))
}

/// Readers that come back queue behind the writers that wait already, and those are served in order: all writers go, then
/// all readers. (With one writer that is the alternation of phase-fair locks.)
#[test]
fn in_a_lock_with_phases_all_readers_go_together_after_all_writers() {
    for lock in ["rwsem-5.3", "rwsem-5.11"] {
        for (readers, writers) in [(4, 1), (16, 1), (16, 4), (64, 2)] {
            let harmonic: f64 = (1..=readers).map(|k| 1.0 / f64::from(k)).sum();
            let cases = [(Draw::Constant(1000 * US), 1.0), (Draw::Exponential(1000 * US), harmonic)];
            for (draw, longest) in cases {
                let (reads, writes) = phases(lock, readers, writers, draw.clone());
                let cycle = longest + f64::from(writers);
                let (reads, writes) = (reads * cycle / f64::from(readers), writes * cycle / f64::from(writers));
                let close = |x: f64| (x - 1.0).abs() < 0.03;
                assert!(close(reads) && close(writes), "{lock} {readers}+{writers} {draw:?}: {reads} {writes}");
            }
        }
    }
}

// ---- spinning on readers -------------------------------------------------------------------------------------

/// How long (ns) each of some writers, that come 100 us apart while `readers` hold the lock for a ms, spins before it sleeps.
fn spins(lock: &str, readers: u32) -> Vec<Time> {
    let costs = Costs { spin_us: (10.0, 0.5, 25.0), ..Costs::default() };
    let mut bench = bench(lock, readers + 4, 1500 * US, costs);
    for number in 0..readers + 4 {
        bench.spawn(move |m, lock| async move {
            if number < readers {
                m.lock(lock, Side::Read).await;
                m.run(Account::System, 1000 * US).await;
                m.unlock(lock, Side::Read).await;
            } else {
                m.run(Account::User, Time::from(number - readers + 1) * 100 * US).await;
                m.lock(lock, Side::Write).await;
                m.unlock(lock, Side::Write).await;
            }
            m.park().await;
        });
    }
    bench.native.state().record_trace(0);
    bench.native.run(&bench.spec);
    let trace = bench.native.state().take_trace();
    let first = |task: u32, what: &str, after: Time| {
        trace.iter().find(|e| e.task == i32::try_from(task).ok() && e.what == what && e.time >= after).map(|e| e.time)
    };
    (readers..readers + 4)
        .map(|task| {
            let asked = first(task, "wait", 0).expect("the writer waits");
            (first(task, "sleep", asked).expect("the writer sleeps") - asked) / NS
        })
        .collect()
}

#[test]
fn a_writer_spins_on_readers_for_10_to_25_us_and_then_nobody_does_until_they_have_left() {
    for lock in ["rwsem-5.3", "rwsem-5.11"] {
        assert_eq!(spins(lock, 1), [10_500, 0, 0, 0], "{lock}");
        assert_eq!(spins(lock, 10), [15_000, 0, 0, 0], "{lock}");
        assert_eq!(spins(lock, 50), [25_000, 0, 0, 0], "{lock}");
    }
    for lock in ["rwsem-2.6", "rwsem-3.10", "rwsem-3.16"] {
        assert_eq!(spins(lock, 10), [0, 0, 0, 0], "{lock}: a lock without a running writer is not spun on");
    }
}
