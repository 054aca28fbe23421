//! Devices that a kernel thread serves, one request after the other: the loop device.

use super::request::{Part, Request};
use super::{BlockDevice, Server};
use crate::waist::{Account, LockId, Machine, TaskId, Time};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// A request in the plug of a task, which has been flushed so often before.
pub struct Plugged {
    pub task: TaskId,
    pub flushed: u64,
    pub request: Request,
    pub part: Part,
}

/// Requests that wait for a worker, and workers that wait for requests.
#[derive(Default)]
pub struct Queue {
    pub requests: RefCell<VecDeque<(Time, Part)>>,
    pub plugged: RefCell<Vec<Plugged>>,
    pub workers: RefCell<Vec<TaskId>>,
    pub idle: RefCell<Vec<TaskId>>,
    /// What a pool has to do, if it has no workers of its own.
    pub work: Option<LockId>,
}

impl BlockDevice {
    /// What was in plugs that have been flushed waits for a worker now.
    fn take_flushed<M: Machine>(&self, m: &M, queue: &Queue) {
        let out = |plugged: &mut Plugged| m.plug_flushed(plugged.task) > plugged.flushed;
        for Plugged { request, part, .. } in queue.plugged.borrow_mut().extract_if(.., out) {
            queue.requests.borrow_mut().push_back((self.copy(m, request), part));
        }
    }

    /// Does what there is to do (`loop_process_work`).
    pub async fn process_work<M: Machine>(&self, m: &M, queue: &Queue) {
        loop {
            self.take_flushed(m, queue);
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
                device.take_flushed(&m, queue);
            }
            queue.idle.borrow_mut().retain(|&idle| idle != m.task());
        }
    }
}
