//! The tasks of workloads that need no filesystem: lock cycles and range locks.

use super::work_of;
use crate::draw::Draw;
use crate::range_locks::{Prices, RangeLock};
use crate::spec::{Change, RunSpec, WorkloadSpec};
use crate::waist::time::from_ns;
use crate::waist::{DeviceId, Hardware, Host, LineId, LockId, Machine, SpawnKind};
use crate::workloads::arrivals::Arrivals;
use crate::workloads::binding::{at_nice, placements};
use crate::workloads::lock_cycle::{self, Cycle};
use crate::workloads::range_lock::{self, Load};
use std::rc::Rc;

/// Tasks that think and hold locks. All groups have the same locks.
pub(super) fn lock_cycle<H: Host>(host: &mut H, spec: &RunSpec) -> Result<(), String> {
    let w = &spec.workload;
    let write = match w.number("device_ns") {
        ns if ns > 0.0 => Some(Draw::of(w, "device")?),
        _ => None,
    };
    if write.is_some() {
        has_semaphore(spec)?;
    }
    let (nested, opposite) = (w.number("locks") > 1.0, w.word("order") == "opposite");
    let (parallelism, lines) = (w.number("device_parallelism") as u32, w.number("data_lines") as u32);
    let (first, second, device, data) = host.setup(|m| {
        let class = m.class("lock", "lock");
        let (device, data) =
            (m.new_device(Hardware::serving(parallelism, 0)), (lines > 0).then(|| m.new_line("data", lines)));
        (m.new_lock(class), nested.then(|| m.new_lock(class)), device, data)
    });
    for load in spec.loads() {
        let w = load.workload;
        let even = cycle(w, (first, second), data, write.clone().map(|service| (device, service)))?;
        let odd = match second {
            Some(second) if opposite => Cycle { outer: second, inner: Some(first), ..even.clone() },
            _ => even.clone(),
        };
        let requests = host.setup(|m| Arrivals::of(m, w, load.first))?;
        let cycles = [Rc::new(even), Rc::new(odd)];
        for (task, placement) in load.numbers().zip(placements(&spec.machine, load)) {
            let (cycle, requests) = (cycles[task as usize % 2].clone(), requests.clone());
            let program = move |m: H::Handle| lock_cycle::run(m, cycle, requests, &format!("task {task}"));
            match load.nice {
                None => host.spawn(placement, SpawnKind::Foreground, program),
                Some(nice) => host.spawn(placement, SpawnKind::Foreground, move |m| at_nice(m, nice, program)),
            };
        }
    }
    Ok(())
}

/// Tasks that lock ranges.
pub(super) fn range_lock<H: Host>(host: &mut H, spec: &RunSpec) -> Result<(), String> {
    let w = &spec.workload;
    let load = Load::of(w)?;
    let time = |name: &str| from_ns(w.number(name) * spec.machine.costs.speed);
    let work = work_of(load.design).map_or(0, time);
    let syscall = (w.word("index_lock") == "pthread").then(|| time("syscall_ns"));
    let prices = Prices { work, pause: from_ns(spec.machine.costs.cpu_relax), syscall };
    let lock = Rc::new(host.setup(|m| RangeLock::new(m, load.design, prices)));
    let ledger = load.ledger();
    for (task, placement) in (0..w.tasks).zip(placements(&spec.machine, spec.loads()[0])) {
        let (lock, load, ledger) = (lock.clone(), load.clone(), ledger.clone());
        host.spawn(placement, SpawnKind::Foreground, move |m| range_lock::run(m, lock, load, task, ledger));
    }
    Ok(())
}

/// Whether the lock is one that a device can release; the error says that it is not.
fn has_semaphore(spec: &RunSpec) -> Result<(), String> {
    let becomes_another =
        spec.whatif.as_ref().is_some_and(|w| matches!(&w.change, Change::Kind(k) if k != "semaphore"));
    if becomes_another {
        return Err("whatif.change.kind: only a semaphore can be released by a device".into());
    }
    match spec.kernel.locks.get("lock").map(String::as_str) {
        Some("semaphore") => Ok(()),
        _ => Err("workload.params.device_ns: only a semaphore can be released by a device".into()),
    }
}

/// What the tasks of a load do over and over with these locks.
fn cycle(
    w: &WorkloadSpec,
    (outer, inner): (LockId, Option<LockId>),
    data: Option<LineId>,
    write: Option<(DeviceId, Draw)>,
) -> Result<Cycle, String> {
    Ok(Cycle {
        outer,
        inner,
        think: Draw::of(w, "think")?,
        hold: Draw::of(w, "hold")?,
        thinks_on_cpu: w.word("think") == "cpu",
        data,
        readers: w.number("readers"),
        blocking: w.number("blocking"),
        write,
        begin: from_ns(w.number("begin_ns")),
    })
}
