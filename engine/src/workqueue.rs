//! Workqueues: what is queued on a CPU is done by a kernel thread of that CPU, one item after the other; what is queued on an
//! unbound one (`WQ_UNBOUND`) by a thread that may run anywhere.
use crate::waist::Machine;
use crate::waist::{CpuId, LockId};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;

/// The nice level of the threads of a workqueue for high priority (`WQ_HIGHPRI`, `HIGHPRI_NICE_LEVEL`).
pub const HIGHPRI: i32 = -20;

#[derive(Debug)]
struct OfCpu<T> {
    items: RefCell<VecDeque<T>>,
    /// Completed once for each item.
    ready: LockId,
}

/// Items that wait for the kernel thread of their CPU.
#[derive(Debug)]
pub struct Workqueue<T> {
    cpus: Vec<OfCpu<T>>,
}

impl<T> Workqueue<T> {
    /// One that is empty; its threads are the owner's programs.
    pub fn new<M: Machine>(m: &M) -> Self {
        let cpu = |_| OfCpu { items: RefCell::default(), ready: m.new_completion() };
        Self { cpus: (0..m.cpus()).map(cpu).collect() }
    }

    /// One that is not bound to CPUs; its threads take the items of CPU 0. Of idle threads the one that has idled least is woken.
    pub fn unbound<M: Machine>(m: &M) -> Self {
        Self { cpus: vec![OfCpu { items: RefCell::default(), ready: m.new_pool() }] }
    }

    fn of(&self, cpu: CpuId) -> &OfCpu<T> {
        &self.cpus[cpu as usize % self.cpus.len()]
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

/// What softirqs do for threads that raise them.
pub trait Raised: 'static {
    /// What they are raised for.
    type Item: 'static;
    /// What waits for `ksoftirqd`.
    fn queue(&self) -> &Workqueue<Self::Item>;
    /// Does it.
    fn act<M: Machine>(&self, m: &M, item: Self::Item) -> impl Future<Output = ()>;
}
