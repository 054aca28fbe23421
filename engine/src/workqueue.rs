//! Workqueues: what is queued on a CPU is done by a kernel thread of that CPU, one item after the other; what is queued on an
//! unbound one (`WQ_UNBOUND`) by a worker of the pool that all of these share in a pod of CPUs, which may run anywhere.
use crate::kernel::workqueue::Pods;
use crate::kernel::Rules;
use crate::spec::MachineSpec;
use crate::waist::{CpuId, Host, LockId, Machine, Placement, SpawnKind};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::rc::Rc;

/// The nice level of the threads of a workqueue for high priority (`WQ_HIGHPRI`, `HIGHPRI_NICE_LEVEL`).
pub const HIGHPRI: i32 = -20;

#[derive(Debug)]
struct OfCpu<T> {
    items: RefCell<VecDeque<T>>,
    /// Completed once for each item.
    ready: LockId,
}

/// Items that wait for the kernel thread of their CPU, or for a worker of their pod.
#[derive(Debug)]
pub struct Workqueue<T> {
    parts: Vec<OfCpu<T>>,
    /// So many CPUs have a part together.
    cpus: CpuId,
}

impl<T> Workqueue<T> {
    /// One that is empty; its threads are the owner's programs.
    pub fn new<M: Machine>(m: &M) -> Self {
        let cpu = |_| OfCpu { items: RefCell::default(), ready: m.new_completion() };
        Self { parts: (0..m.cpus()).map(cpu).collect(), cpus: 1 }
    }

    /// One that is not bound to CPUs, of which workers do so many items at a time in each pod (`max_active`); they ask for these by
    /// [`Workqueue::take`]. Where one at a time is ordered, all pods are one.
    pub fn unbound<M: Machine>(m: &M, pools: &Pools, most: u32) -> Self {
        pools.workers.set(pools.workers.get() + most);
        let pods = if most == 1 && pools.orders_one { &pools.pods[..1] } else { &pools.pods };
        let part = |&pool: &LockId| OfCpu { items: RefCell::default(), ready: m.new_work(pool, most, false) };
        Self { parts: pods.iter().map(part).collect(), cpus: pools.cpus }
    }

    /// The same of one piece of work that is queued again and again.
    pub fn piece<M: Machine>(m: &M, pools: &Pools) -> Self {
        let ready = pools.piece(m);
        Self { parts: vec![OfCpu { items: RefCell::default(), ready }], cpus: 1 }
    }

    fn of(&self, cpu: CpuId) -> &OfCpu<T> {
        &self.parts[(cpu / self.cpus) as usize % self.parts.len()]
    }

    /// The next item that `work` is about, if it is one of this queue.
    pub fn take(&self, work: LockId) -> Option<T> {
        let part = self.parts.iter().find(|part| part.ready == work)?;
        part.items.borrow_mut().pop_front()
    }

    /// Queues an item on a CPU, from an interrupt there that will complete what is returned.
    pub fn push(&self, cpu: CpuId, item: T) -> LockId {
        let cpu = self.of(cpu);
        cpu.items.borrow_mut().push_back(item);
        cpu.ready
    }

    /// `queue_work`: queues an item on the CPU of this task.
    pub async fn queue<M: Machine>(&self, m: &M, item: T) {
        let ready = self.push(m.cpu(), item);
        m.complete(ready).await;
    }

    /// Whether something waits for the thread of a CPU.
    pub fn has_items(&self, cpu: CpuId) -> bool {
        !self.of(cpu).items.borrow().is_empty()
    }

    /// What is completed for the thread of a CPU.
    pub fn ready(&self, cpu: CpuId) -> LockId {
        self.of(cpu).ready
    }

    /// Waits until the thread of a CPU is told to look: for an item, or for something else.
    pub async fn wait<M: Machine>(&self, m: &M, cpu: CpuId) -> Option<T> {
        let cpu = self.of(cpu);
        m.wait_for(cpu.ready).await;
        cpu.items.borrow_mut().pop_front()
    }

    /// The next item of a CPU, for its thread.
    pub async fn next<M: Machine>(&self, m: &M, cpu: CpuId) -> T {
        loop {
            if let Some(item) = self.wait(m, cpu).await {
                return item;
            }
        }
    }
}

/// The pools of unbound workqueues, one for each pod of CPUs (`struct wq_pod_type`).
#[derive(Clone, Debug)]
pub struct Pools {
    pods: Rc<[LockId]>,
    /// How many CPUs a pod has.
    cpus: CpuId,
    /// How many workers may be at work in each.
    workers: Rc<Cell<u32>>,
    /// A queue that does one item at a time does so in all pods together.
    orders_one: bool,
}

impl Pools {
    /// Without queues and workers, for pods of so many CPUs.
    pub fn new<M: Machine>(m: &M, cpus: CpuId, orders_one: bool) -> Self {
        let cpus = cpus.clamp(1, m.cpus());
        let pods = (0..m.cpus().div_ceil(cpus)).map(|_| m.new_pool()).collect();
        Self { pods, cpus, workers: Rc::default(), orders_one }
    }

    /// Those of a machine.
    pub fn of<M: Machine>(m: &M, machine: &MachineSpec, rules: &Rules) -> Self {
        let cpus = match rules.workqueue_pods {
            Pods::Node => machine.cpus_per_socket,
            Pods::Cache => machine.cpus_per_llc,
        };
        Self::new(m, cpus, rules.workqueue_orders_one)
    }

    /// A piece of work that is queued again and again. It is always for the same pool here, as if it were queued on one CPU.
    pub fn piece<M: Machine>(&self, m: &M) -> LockId {
        self.workers.set(self.workers.get() + 1);
        m.new_work(self.pods[0], u32::MAX, true)
    }

    /// Starts as many workers as can be at work, and one more, which takes what another one already does.
    pub fn start<H: Host, W: Works>(&self, host: &mut H, works: &Rc<W>) {
        let workers = self.workers.get();
        for &pool in self.pods.iter().filter(|_| workers > 0) {
            for _ in 0..=workers {
                let works = works.clone();
                host.spawn(Placement::Anywhere, SpawnKind::Background, move |m| kworker(m, pool, works));
            }
        }
    }
}

/// The program of a worker (`worker_thread`).
async fn kworker<M: Machine, W: Works>(m: M, pool: LockId, works: Rc<W>) {
    loop {
        let work = m.next_work(pool).await;
        works.act(&m, work).await;
    }
}

/// What workers of unbound workqueues do.
pub trait Works: 'static {
    /// Does a piece of work.
    fn act<M: Machine>(&self, m: &M, work: LockId) -> impl Future<Output = ()>;
}

/// What softirqs do for threads that raise them.
pub trait Raised: 'static {
    /// What they are raised for.
    type Item: 'static;
    /// What waits for `ksoftirqd`.
    fn queue(&self) -> &Workqueue<Self::Item>;
    /// Does it.
    fn act<M: Machine>(&self, m: &M, item: Self::Item) -> impl Future<Output = ()>;
}
