//! Block devices as filesystems use them. Who serves a request decides what it costs whom:
//!
//! | served by | examples | what a request does |
//! |---|---|---|
//! | submitter | persistent memory, RAM disk | the submitting task copies the data itself and never waits |
//! | worker | loop device | a kernel thread does it and raises a softirq, so that `ksoftirqd` of its CPU ends it |
//! | hardware | NVMe, SATA, disk | it is under way elsewhere, and its end interrupts the CPU that submitted it |
//!
//! A loop device has one hardware queue, and `blk_mq_complete_request_remote` leaves the end of a request of such a one to
//! the softirq; raised by a thread, that is `ksoftirqd`'s. Flushes, and writes ordered by them, go step by step through
//! `kblockd` (`blk_mq_kick_requeue_list`).

mod flush;
mod md;
mod metadata;
mod plug;
mod ram;
mod request;
mod timing;
mod worker;

use crate::kernel::Rules;
use crate::machine::Pipe;
use crate::memory::Memory;
use crate::spec::{DeviceSpec, ServedBy};
use crate::waist::time::from_ns;
use crate::waist::{Account, CpuId, DeviceId, Host, LockId, Machine, Placement, Side, SpawnKind, Then, Time};
use crate::workqueue::{Pools, Raised, Workqueue, HIGHPRI};
use crate::writeback::Writeback;
use flush::{Flushes, Next, Sequence, Step};
use md::{Bio, Md};
use plug::Plugs;
use ram::Pages;
pub use request::{End, Part, Place, Request, Work, NOTHING};
use request::{Job, StepOf};
use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use timing::Timing;
use worker::Queue;

enum Server {
    Submitter,
    Worker(Queue),
    Hardware(DeviceId),
}

/// A block device.
pub struct BlockDevice {
    /// Workers of unbound workqueues, here and in its filesystem.
    pub pools: Pools,
    /// What of its filesystem's data is dirty.
    pub writeback: Writeback,
    /// Memory for pages of its files.
    pub memory: Memory,
    server: Server,
    submit: Time,
    /// What of it comes before a request is made, or becomes part of another one.
    merge: Time,
    /// CPU time of the end of a request in the softirq.
    end: Time,
    dispatch: Time,
    fua: bool,
    /// Flushes are sent.
    write_cache: bool,
    /// It says that it rotates.
    pub rotational: bool,
    timing: Timing,
    /// Memory's bandwidth, where tasks copy.
    copying: RefCell<Pipe>,
    /// One for each of its queues (`blk_mq_hw_ctx`): one in all, or one for each CPU.
    flushes: Vec<RefCell<Flushes>>,
    softirq: Workqueue<Part>,
    kblockd: Workqueue<Job>,
    /// What tasks hold back.
    plugs: Plugs,
    /// Of a RAM disk, what its pages take that are written for the first time.
    pages: Option<Pages>,
    /// It is an array of such devices.
    md: Option<Md>,
}

impl BlockDevice {
    /// A device of this description, without its threads; `speed` multiplies the CPU times in it.
    fn new<M: Machine>(
        m: &M,
        spec: &DeviceSpec,
        (speed, rules, pools): (f64, Rules, Pools),
        (writeback, memory): (Writeback, Memory),
    ) -> Self {
        let end = from_ns(spec.interrupt_ns * speed);
        let server = match spec.served_by {
            ServedBy::Submitter => Server::Submitter,
            ServedBy::Worker => {
                let in_pool = rules.loop_in_pool && spec.parallelism == 1;
                Server::Worker(Queue { work: in_pool.then(|| pools.piece(m)), ..Queue::default() })
            }
            ServedBy::Hardware => Server::Hardware(m.new_device(timing::hardware(spec, end))),
        };
        Self {
            pools,
            writeback,
            memory,
            server,
            submit: from_ns(spec.submit_ns * speed),
            merge: from_ns(spec.merge_ns.min(spec.submit_ns) * speed),
            end,
            dispatch: from_ns(spec.dispatch_ns * speed),
            fua: spec.fua,
            write_cache: spec.write_cache,
            rotational: spec.rotational,
            timing: Timing::new(m, spec, speed),
            copying: RefCell::default(),
            flushes: (0..if spec.queue_per_cpu { m.cpus() } else { 1 }).map(|_| RefCell::default()).collect(),
            softirq: Workqueue::new(m),
            kblockd: Workqueue::new(m),
            plugs: Plugs::new(&rules),
            pages: spec.first_write.map(|times| Pages::new(m, spec.raid0.unwrap_or(1), times, speed)),
            md: spec.raid0.map(|members| Md::new(m, members, rules.md_flush)),
        }
    }

    /// Makes a device and starts its threads.
    pub fn start<H: Host>(
        host: &mut H,
        spec: &DeviceSpec,
        kernel: (f64, Rules, Pools),
        data: (Writeback, Memory),
    ) -> Rc<Self> {
        let device = Rc::new(host.setup(|m| Self::new(m, spec, kernel, data)));
        let workers = match &device.server {
            Server::Worker(Queue { work: None, .. }) => spec.parallelism,
            _ => 0,
        };
        for _ in 0..workers {
            let device = device.clone();
            host.spawn(Placement::Anywhere, SpawnKind::Background, move |m| Self::worker(m, device));
        }
        for cpu in 0..host.setup(|m| m.cpus()) {
            if spec.served_by != ServedBy::Submitter {
                let device = device.clone();
                host.spawn(Placement::Pinned(cpu), SpawnKind::Background, move |m| Self::kblockd(m, device, cpu));
            }
            if device.md.as_ref().is_some_and(Md::has_workers) {
                let device = device.clone();
                host.spawn(Placement::Pinned(cpu), SpawnKind::Background, move |m| md::worker(m, device, cpu));
            }
        }
        device
    }

    /// What is left of a request without flushes where there is no cache to flush (`submit_bio_noacct`, before 5.9
    /// `generic_make_request_checks`).
    fn as_sent(&self, request: Request) -> Option<Request> {
        match request {
            _ if self.write_cache => Some(request),
            Request::Flush => None,
            Request::LogWrite { bytes, at, .. } => Some(Request::LogWrite { bytes, at, preflush: false, fua: false }),
            Request::Read { .. } | Request::Write { .. } => Some(request),
        }
    }

    /// Does a request and waits for its end.
    pub async fn io<M: Machine>(&self, m: &M, request: Request) {
        let Some(done) = self.begin_io(m, request).await else { return };
        m.wchan("submit_bio_wait");
        m.wait_for_io(done).await;
        m.drop_completion(done);
    }

    /// The same, where the wait in `function` does not count as one for I/O (`wait_for_completion`).
    pub async fn io_uncounted<M: Machine>(&self, m: &M, request: Request, function: &'static str) {
        let Some(done) = self.begin_io(m, request).await else { return };
        m.wchan(function);
        m.wait_for(done).await;
        m.drop_completion(done);
    }

    /// What the end of a request completes, unless it is over already.
    async fn begin_io<M: Machine>(&self, m: &M, request: Request) -> Option<LockId> {
        let request = self.as_sent(request)?;
        if matches!(self.server, Server::Submitter) && self.md_that_flushes(request).is_none() {
            self.serve_here(m, request).await;
            return None;
        }
        let done = m.new_completion();
        self.submit(m, request, End::Complete(done)).await;
        Some(done)
    }

    /// Submits a request and goes on; under the plug if the task has begun one. Returns whether it became part of another one there.
    pub async fn submit<M: Machine>(&self, m: &M, request: Request, end: End) -> bool {
        let Some(request) = self.as_sent(request) else {
            Self::finish(m, end).await;
            return false;
        };
        if let Server::Submitter = self.server {
            self.writeback.throttle(m).await;
            self.serve_bio(m, Bio { request, end }).await;
            return false;
        }
        let preflush = request.flushes();
        let postflush = matches!(request, Request::LogWrite { fua: true, .. }) && !self.fua;
        if !preflush && !postflush && self.plugs.is_begun(m.task()) {
            return self.hold_back(m, request, end).await;
        }
        self.writeback.throttle(m).await;
        m.run(Account::System, self.submit).await;
        if preflush || postflush {
            let (data, queue) = (request.after_flush(), if self.flushes.len() > 1 { m.cpu() } else { 0 });
            self.flushes_of(queue).begin(Sequence { preflush, data, postflush, end });
            self.go_on(m, queue).await;
        } else {
            self.issue(m, request, Part::Alone(end)).await;
        }
        false
    }

    async fn serve_bio<M: Machine>(&self, m: &M, bio: Bio) {
        match self.md_that_flushes(bio.request) {
            Some(md) => self.flush_members(m, md, bio).await,
            None => {
                self.serve_here(m, bio.request).await;
                Self::finish(m, bio.end).await;
            }
        }
    }

    /// The array whose members are flushed for a request, if it is one.
    fn md_that_flushes(&self, request: Request) -> Option<&Md> {
        self.md.as_ref().filter(|_| request.flushes())
    }

    async fn serve_here<M: Machine>(&self, m: &M, request: Request) {
        let flushed = |asked: bool| if asked { self.timing.draw(Request::Flush) } else { 0 };
        let flushes = match request {
            Request::LogWrite { preflush, fua, .. } => flushed(preflush) + flushed(fua && !self.fua),
            _ => 0,
        };
        let time = self.submit + flushes + self.copy(m, request);
        match (&self.pages, request) {
            (Some(pages), Request::Write { first, .. }) if first > 0 => pages.write_first(m, time, first).await,
            _ => m.run(Account::System, time).await,
        }
    }

    /// CPU time to serve a request; who copies while memory is busy runs that much longer.
    fn copy<M: Machine>(&self, m: &M, request: Request) -> Time {
        let behind = self.copying.borrow_mut().take(m.now(), self.timing.transfer(request));
        behind + self.timing.draw(request)
    }

    /// Gives a request to who serves it.
    async fn issue<M: Machine>(&self, m: &M, request: Request, part: Part) {
        let device = match &self.server {
            Server::Submitter => unreachable!("it serves itself"),
            Server::Worker(queue) => {
                queue.requests.borrow_mut().push_back((self.copy(m, request), part));
                if let Some(work) = queue.work {
                    return m.complete(work).await;
                }
                let worker = queue.idle.borrow_mut().pop();
                return worker.map_or((), |worker| m.wake(worker));
            }
            Server::Hardware(device) => *device,
        };
        let then = match part {
            Part::Alone(end) => Self::then(m, end),
            Part::Merged(_) => unreachable!("the machine merges what hardware serves"),
            Part::Sequence(step) => Then::Complete(self.kblockd.push(m.cpu(), Job::Ended(step))),
        };
        m.submit(device, self.timing.io(request), then);
    }

    /// What the interrupt does that ends a request. It comes on this CPU; what ends there does so in the order of submission.
    fn then<M: Machine>(m: &M, end: End) -> Then {
        match end {
            End::Complete(done) => Then::Complete(done),
            End::Unlock(done, lock) => Then::Unlock(done, lock),
            End::Queue(queue, work) => Then::Complete(queue.push(m.cpu(), work)),
            End::Both(queue, (work, done)) => Then::Both(queue.push(m.cpu(), (work, NOTHING)), done),
        }
    }

    async fn finish<M: Machine>(m: &M, end: End) {
        match end {
            End::Complete(done) => m.complete(done).await,
            End::Unlock(done, lock) => {
                m.complete(done).await;
                m.unlock(lock, Side::Write).await;
            }
            End::Queue(queue, work) => queue.queue(m, work).await,
            End::Both(queue, (work, done)) => {
                queue.queue(m, (work, NOTHING)).await;
                m.complete(done).await;
            }
        }
    }

    fn flushes_of(&self, queue: CpuId) -> RefMut<'_, Flushes> {
        self.flushes[queue as usize].borrow_mut()
    }

    /// A step of a sequence is done.
    async fn ended<M: Machine>(&self, m: &M, (queue, step): StepOf) {
        match step {
            Step::Flush => self.flushes_of(queue).flushed(),
            Step::Data(id) => self.flushes_of(queue).written(id),
        }
        self.go_on(m, queue).await;
    }

    async fn go_on<M: Machine>(&self, m: &M, queue: CpuId) {
        loop {
            let next = self.flushes_of(queue).next();
            match next {
                None => return,
                Some(Next::Issue(step)) => self.kblockd.queue(m, Job::Issue((queue, step))).await,
                Some(Next::End(end)) => Self::finish(m, end).await,
            }
        }
    }

    /// Does a piece of work of a pool, if it is the device's.
    pub async fn act<M: Machine>(&self, m: &M, work: LockId) -> bool {
        match &self.server {
            Server::Worker(queue) if queue.work == Some(work) => {
                m.at("device worker");
                self.process_work(m, queue).await;
                true
            }
            _ => false,
        }
    }

    /// The program of a CPU's `kblockd` (`blk_mq_requeue_work`).
    async fn kblockd<M: Machine>(m: M, device: Rc<Self>, cpu: CpuId) {
        m.at("kblockd");
        m.set_nice(HIGHPRI);
        loop {
            match device.kblockd.next(&m, cpu).await {
                Job::Ended(step) => device.ended(&m, step).await,
                Job::Issue((queue, step)) => {
                    m.run(Account::System, device.dispatch).await;
                    let request = match step {
                        Step::Flush => Request::Flush,
                        Step::Data(id) => device.flushes_of(queue).data(id),
                    };
                    device.issue(&m, request, Part::Sequence((queue, step))).await;
                }
            }
        }
    }
}

/// The program of `kswapd`.
pub async fn kswapd<M: Machine>(m: M, device: Rc<BlockDevice>) {
    m.at("kswapd");
    while device.memory.balance(&m, &device.writeback).await {}
}

impl Raised for BlockDevice {
    type Item = Part;

    fn queue(&self) -> &Workqueue<Part> {
        &self.softirq
    }

    /// Ends a request (`blk_done_softirq`).
    async fn act<M: Machine>(&self, m: &M, part: Part) {
        m.run(Account::System, self.end).await;
        match part {
            Part::Alone(end) => Self::finish(m, end).await,
            Part::Merged(ends) => {
                for end in ends {
                    Self::finish(m, end).await;
                }
            }
            Part::Sequence(step) => self.ended(m, step).await,
        }
    }
}
