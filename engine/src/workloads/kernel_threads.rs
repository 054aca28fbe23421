//! Kernel threads that have nothing to do with the workload, and yet take a CPU for a moment: one bound to each CPU (its memory
//! statistics are folded once a second by `vmstat_update`), and some that run anywhere (RCU, write-back, timers of drivers).
//!
//! What they do hardly counts; that they come does. Who spins on a lock gives up and sleeps when its CPU is wanted, and all
//! who spin on an owner do when the owner's is.

use super::draw::{uniform, Draw};
use crate::spec::KernelThreadsSpec;
use crate::waist::time::from_ns;
use crate::waist::{Account, Host, Machine, Placement, SpawnKind, Time};

/// Starts them on a machine with `cpus` CPUs; `speed` multiplies their CPU time.
pub fn start<H: Host>(host: &mut H, spec: &KernelThreadsSpec, cpus: u32, speed: f64) {
    let run = from_ns(spec.run_ns * speed);
    let interval = from_ns(spec.bound_interval_ns);
    for cpu in 0..cpus {
        host.spawn(Placement::Pinned(cpu), SpawnKind::Background, move |m| bound(m, cpu, interval, run));
    }
    let pause = Draw::Exponential(from_ns(spec.unbound_interval_ns));
    host.spawn(Placement::Anywhere, SpawnKind::Background, move |m| unbound(m, pause, run));
}

async fn bound<M: Machine>(m: M, cpu: u32, interval: Time, run: Time) {
    m.at("kernel thread");
    let phase = uniform(&mut m.stream(&format!("kernel thread {cpu}")));
    m.sleep((interval as f64 * phase) as Time).await;
    loop {
        m.run(Account::System, run).await;
        m.sleep(interval).await;
    }
}

async fn unbound<M: Machine>(m: M, pause: Draw, run: Time) {
    m.at("kernel thread");
    let mut random = m.stream("kernel threads");
    loop {
        m.sleep(pause.draw(&mut random)).await;
        m.run(Account::System, run).await;
    }
}
