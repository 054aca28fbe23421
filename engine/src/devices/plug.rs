//! What a task holds back to submit it together (`struct blk_plug`), and what becomes one request there (`blk_attempt_plug_merge`).

use super::md::Bio;
use super::request::{End, Part, Request};
use super::worker::Queue;
use super::{BlockDevice, Server};
use crate::kernel::{block::PlugLimit, Rules};
use crate::waist::{Account, DeviceId, Machine, TaskId};
use std::cell::RefCell;

/// A request in the plug of a task, which has been flushed so often before.
pub(super) struct Plugged {
    task: TaskId,
    flushed: u64,
    request: Request,
    /// Of how many it was made.
    bios: u32,
    /// What it ends with, where a worker serves it.
    part: Option<Part>,
}

/// A neighbour in the plug.
#[derive(Clone, Copy)]
struct Joined {
    /// How many requests of the task are behind it.
    before: usize,
    /// Its place among those of all tasks.
    place: usize,
}

/// Of how many bios a request is made at most, which lie apart in memory (`BLK_MAX_SEGMENTS`, 2.6.32 to 6.18).
const SEGMENTS: u32 = 128;

/// Requests in plugs, and the kernel's rules for them.
pub(super) struct Plugs {
    held: RefCell<Vec<Plugged>>,
    /// Tasks that hold back all that they submit.
    begun: RefCell<Vec<TaskId>>,
    limit: PlugLimit,
    /// What is submitted joins any request of the plug, not the last one only.
    merges_any: bool,
    /// The flusher has one for all files of a round.
    of_flusher: bool,
}

impl Plugs {
    /// Nobody holds anything back.
    pub fn new(rules: &Rules) -> Self {
        Self {
            held: RefCell::default(),
            begun: RefCell::default(),
            limit: rules.plug_limit,
            merges_any: rules.plug_merges_any,
            of_flusher: rules.flusher_plugs,
        }
    }

    /// Whether a task holds back what it submits.
    pub fn is_begun(&self, task: TaskId) -> bool {
        self.begun.borrow().contains(&task)
    }

    /// Makes a request part of a neighbour in the task's plug.
    fn join(&self, task: TaskId, request: Request) -> Option<Joined> {
        let mut held = self.held.borrow_mut();
        let of_task = held.iter_mut().enumerate().rev().filter(|(_, plugged)| plugged.task == task);
        let mut candidates = of_task.take(if self.merges_any { usize::MAX } else { 1 }).enumerate();
        candidates.find_map(|(before, (place, plugged))| {
            plugged.request = plugged.request.with(request).filter(|_| plugged.bios < SEGMENTS)?;
            plugged.bios += 1;
            Some(Joined { before, place })
        })
    }

    /// Whether the task's plug takes no other request.
    fn is_full(&self, task: TaskId) -> bool {
        let held = self.held.borrow();
        let mut of_task = held.iter().rev().filter(|plugged| plugged.task == task).peekable();
        let large = of_task.peek().is_some_and(|last| last.request.bytes() >= self.limit.bytes());
        large || of_task.count() >= self.limit.requests()
    }
}

impl BlockDevice {
    /// The flusher begins a round: it holds back what it submits from now on (`blk_start_plug`), if its kernel has that for all files.
    pub fn start_flusher_plug<M: Machine>(&self, m: &M) {
        if self.plugs.of_flusher {
            self.plugs.begun.borrow_mut().push(m.task());
        }
    }

    /// The task lets go of it, and does so no more (`blk_finish_plug`).
    pub fn finish_plug<M: Machine>(&self, m: &M) {
        self.plugs.begun.borrow_mut().retain(|&task| task != m.task());
        m.flush_plug();
    }

    /// Submits a request under the task's plug, and goes on: it comes to the device when the plug is flushed. Who serves requests himself
    /// has none. Returns whether it became part of another one.
    pub async fn submit_plugged<M: Machine>(&self, m: &M, request: Request, end: End) -> bool {
        if let Server::Submitter = self.server {
            return self.submit(m, request, end).await;
        }
        self.hold_back(m, request, end).await
    }

    pub(super) async fn hold_back<M: Machine>(&self, m: &M, request: Request, end: End) -> bool {
        m.run(Account::System, self.merge).await;
        self.forget_flushed(m);
        let joined = self.plugs.join(m.task(), request);
        if joined.is_none() {
            self.writeback.throttle(m).await;
            m.run(Account::System, self.submit - self.merge).await;
            if self.plugs.is_full(m.task()) {
                m.flush_plug();
            }
            self.forget_flushed(m);
        }
        match &self.server {
            Server::Hardware(device) => self.hold_for_hardware(m, *device, Bio { request, end }, joined),
            Server::Worker(queue) => self.hold_for_worker(m, queue, Bio { request, end }, joined),
            Server::Submitter => unreachable!("it serves itself"),
        }
        joined.is_some()
    }

    fn hold_for_hardware<M: Machine>(&self, m: &M, device: DeviceId, bio: Bio, joined: Option<Joined>) {
        let (io, then) = (self.timing.io(bio.request), Self::then(m, bio.end));
        match joined {
            Some(Joined { before, .. }) => m.join_plugged(before, io, then),
            None => {
                m.submit_plugged(device, io, then);
                self.hold(m, bio.request, None);
            }
        }
    }

    fn hold_for_worker<M: Machine>(&self, m: &M, queue: &Queue, bio: Bio, joined: Option<Joined>) {
        if let Some(Joined { place, .. }) = joined {
            let part = &mut self.plugs.held.borrow_mut()[place].part;
            return part.as_mut().expect("a worker serves it").add(bio.end);
        }
        queue.workers.borrow().iter().for_each(|&worker| m.wake_plugged(worker));
        queue.work.iter().for_each(|&work| m.queue_plugged(work));
        self.hold(m, bio.request, Some(Part::Alone(bio.end)));
    }

    fn hold<M: Machine>(&self, m: &M, request: Request, part: Option<Part>) {
        let (task, flushed) = (m.task(), m.plug_flushed(m.task()));
        self.plugs.held.borrow_mut().push(Plugged { task, flushed, request, bios: 1, part });
    }

    /// What was in plugs that have been flushed waits for a worker now, if there is one.
    pub(super) fn forget_flushed<M: Machine>(&self, m: &M) {
        let out = |plugged: &mut Plugged| m.plug_flushed(plugged.task) > plugged.flushed;
        for Plugged { request, part, .. } in self.plugs.held.borrow_mut().extract_if(.., out) {
            if let (Server::Worker(queue), Some(part)) = (&self.server, part) {
                queue.requests.borrow_mut().push_back((self.copy(m, request), part));
            }
        }
    }
}
