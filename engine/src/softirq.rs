//! The kernel threads of softirqs and of RCU: `ksoftirqd` of each CPU (`run_ksoftirqd`, `kernel/softirq.c`), and the one that begins
//! and ends grace periods (`rcu_gp_kthread`, `kernel/rcu/tree.c`).

use crate::spec::{RunSpec, WorkloadKind};
use crate::waist::time::from_ns;
use crate::waist::{Account, CpuId, GracePeriod, Time};
use crate::waist::{Host, Machine, Placement, SpawnKind};
use crate::workloads::process;
use crate::workqueue::{Raised, Workqueue};
use std::rc::Rc;

/// Jiffies after which CPUs that idle are looked for, again and again (`jiffies_till_first_fqs`): one to 250 Hz, two to 500.
fn till_force(tick: Time) -> u64 {
    1 + u64::from(tick < from_ns(4e6)) + u64::from(tick < from_ns(2e6))
}

/// Nothing raises softirqs but interrupts.
pub struct Nobody(Workqueue<()>);

impl Nobody {
    /// Without anything to do.
    pub fn new<M: Machine>(m: &M) -> Self {
        Self(Workqueue::new(m))
    }
}

impl Raised for Nobody {
    type Item = ();

    fn queue(&self) -> &Workqueue<()> {
        &self.0
    }

    async fn act<M: Machine>(&self, _: &M, (): ()) {}
}

/// Starts the threads.
pub fn start<H: Host, R: Raised>(host: &mut H, spec: &RunSpec, raised: &Rc<R>) {
    let mut ksoftirqds = Vec::new();
    for cpu in 0..spec.machine.cpus {
        let mine = raised.clone();
        let thread = host.spawn(Placement::Pinned(cpu), SpawnKind::Background, move |m| ksoftirqd(m, mine, cpu));
        ksoftirqds.push((thread, raised.queue().ready(cpu)));
    }
    let tick = from_ns(spec.kernel.tick_ns);
    let code = from_ns(spec.kernel.constants.code_rcu_thread * spec.machine.costs.instruction);
    let rcu =
        host.spawn(Placement::Anywhere, SpawnKind::Background, move |m| rcu_gp_kthread(m, till_force(tick), code));
    host.setup(|m| m.start_rcu(rcu, &ksoftirqds));
    if spec.loads().iter().any(|load| load.workload.kind == WorkloadKind::Compile) {
        process::start_workers(host, spec);
    }
}

async fn ksoftirqd<M: Machine, R: Raised>(m: M, raised: Rc<R>, cpu: CpuId) {
    m.at("ksoftirqd");
    loop {
        if let Some(item) = raised.queue().wait(&m, cpu).await {
            raised.act(&m, item).await;
        }
        if raised.queue().has_items(cpu) {
            continue; // all that is there is done in one round (`blk_complete_reqs`)
        }
        while let Some(round) = m.next_softirq() {
            m.run(Account::System, round).await;
            m.cond_resched().await;
        }
        m.cond_resched().await; // `run_ksoftirqd`
    }
}

async fn rcu_gp_kthread<M: Machine>(m: M, till_force: u64, code: Time) {
    m.at("rcu_gp_kthread");
    loop {
        while !m.grace_period(GracePeriod::Wanted) {
            m.park().await;
        }
        m.run(Account::System, code).await;
        m.grace_period(GracePeriod::Begin);
        while !m.grace_period(GracePeriod::Passed) {
            m.wake_at_tick(m.task(), till_force);
            m.park().await;
            if !m.grace_period(GracePeriod::Passed) {
                m.run(Account::System, code).await;
                m.grace_period(GracePeriod::Force);
            }
        }
        m.run(Account::System, code).await;
        m.grace_period(GracePeriod::End);
    }
}
