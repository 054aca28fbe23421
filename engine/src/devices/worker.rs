//! Devices that a kernel thread serves, one request after the other: the loop device.

use super::request::Part;
use super::{BlockDevice, Server};
use crate::waist::{Account, LockId, Machine, TaskId, Time};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Requests that wait for a worker, and workers that wait for requests.
#[derive(Default)]
pub struct Queue {
    pub requests: RefCell<VecDeque<(Time, Part)>>,
    pub workers: RefCell<Vec<TaskId>>,
    pub idle: RefCell<Vec<TaskId>>,
    /// What a pool has to do, if it has no workers of its own.
    pub work: Option<LockId>,
}

impl BlockDevice {
    /// Does what there is to do (`loop_process_work`).
    pub async fn process_work<M: Machine>(&self, m: &M, queue: &Queue) {
        loop {
            self.forget_flushed(m);
            let next = queue.requests.borrow_mut().pop_front();
            let Some((service, part)) = next else { return };
            m.run(Account::System, service).await;
            self.softirq.queue(m, part).await;
            m.cond_resched().await;
        }
    }

    /// The program of a worker thread of a device that has them (`kthread_worker_fn`).
    pub async fn worker<M: Machine>(m: M, device: Rc<Self>) {
        let Server::Worker(queue) = &device.server else { return };
        m.at("device worker");
        queue.workers.borrow_mut().push(m.task());
        loop {
            device.process_work(&m, queue).await;
            queue.idle.borrow_mut().push(m.task());
            while queue.idle.borrow().contains(&m.task()) && queue.requests.borrow().is_empty() {
                m.park().await;
                device.forget_flushed(&m);
            }
            queue.idle.borrow_mut().retain(|&idle| idle != m.task());
        }
    }
}
