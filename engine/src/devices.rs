//! Block devices as filesystems use them. Who serves a request decides what it costs whom:
//!
//! | served by | examples | what a request does |
//! |---|---|---|
//! | submitter | persistent memory, RAM disk | the submitting task copies the data itself and never waits |
//! | worker | loop device | a kernel thread does it: a wake-up to it, and one back to who waits |
//! | hardware | NVMe, SATA, disk | it is under way elsewhere, and its end interrupts the CPU that submitted it |

use crate::machine::time::from_ns;
use crate::machine::{Account, DeviceId, Disk, LockId, TaskId, Then, Time};
use crate::spec::{DeviceSpec, DiskSpec, ServedBy, ServiceSpec};
use crate::waist::Machine;
use crate::workloads::draw::{uniform, Draw};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Request {
    Read { bytes: u32, at: Place },
    Write { bytes: u32, at: Place },
    Flush,
}

/// Where a request is on a disk: so many bytes from the beginning of a file, or anywhere. Files are taken to lie over each
/// other at the beginning of the disk.
pub type Place = Option<u64>;

/// Time to serve one kind of request: drawn for the first 4 KiB, and so much for each further KiB.
struct Service {
    first: Draw,
    per_kib: f64,
}

impl Service {
    /// `speed` scales what is CPU time.
    fn new(spec: &ServiceSpec, speed: f64) -> Self {
        let first = match spec.cv {
            cv if cv > 0.0 => Draw::LogNormal { mean: from_ns(spec.time_ns * speed), cv },
            _ => Draw::Constant(from_ns(spec.time_ns * speed)),
        };
        Self { first, per_kib: spec.per_kib_ns * speed }
    }

    fn draw(&self, random: &mut Xoshiro256PlusPlus, bytes: u32) -> Time {
        let further = f64::from(bytes.saturating_sub(4096)) / 1024.0;
        self.first.draw(random) + from_ns(further * self.per_kib)
    }
}

/// The arm of a disk on which each KiB passes the head in `per_kib_ns`.
fn arm(spec: &DiskSpec, per_kib_ns: f64) -> Disk {
    Disk {
        revolution: from_ns(spec.revolution_ns),
        seek_track: from_ns(spec.seek_track_ns),
        seek_full: from_ns(spec.seek_full_ns),
        capacity: spec.capacity_bytes,
        track: (spec.revolution_ns / per_kib_ns * 1024.0) as u64,
        depth: spec.depth,
    }
}

/// Requests that wait for a worker, and workers that wait for requests.
#[derive(Default)]
struct Queue {
    requests: RefCell<VecDeque<(Time, LockId)>>,
    idle: RefCell<Vec<TaskId>>,
}

enum Server {
    Submitter,
    Worker(Queue),
    Hardware(DeviceId),
    /// With its capacity.
    Disk(DeviceId, u64),
}

/// A block device.
pub struct BlockDevice {
    server: Server,
    submit: Time,
    read: Service,
    write: Service,
    flush: Service,
    random: RefCell<Xoshiro256PlusPlus>,
}

impl BlockDevice {
    /// A device of this description; `speed` multiplies the CPU times in it.
    pub fn new<M: Machine>(m: &M, spec: &DeviceSpec, speed: f64) -> Self {
        let interrupt = from_ns(spec.interrupt_ns * speed);
        let server = match spec.served_by {
            ServedBy::Hardware if spec.disk.is_some() => {
                let disk = spec.disk.as_ref().map(|disk| arm(disk, spec.read.per_kib_ns)).expect("it is one");
                Server::Disk(m.new_disk(disk, interrupt), disk.capacity)
            }
            ServedBy::Submitter => Server::Submitter,
            ServedBy::Worker => Server::Worker(Queue::default()),
            ServedBy::Hardware => Server::Hardware(m.new_device(spec.parallelism, interrupt)),
        };
        let served_at = if spec.served_by == ServedBy::Hardware { 1.0 } else { speed };
        let service = |spec: &ServiceSpec| Service::new(spec, served_at);
        Self {
            server,
            submit: from_ns(spec.submit_ns * speed),
            read: service(&spec.read),
            write: service(&spec.write),
            flush: service(&spec.flush),
            random: RefCell::new(m.stream("device")),
        }
    }

    /// Does a request and waits for its end.
    pub async fn io<M: Machine>(&self, m: &M, request: Request) {
        if let Server::Submitter = self.server {
            return m.run(Account::System, self.submit + self.draw(request)).await;
        }
        let done = m.new_completion();
        self.submit(m, request, done).await;
        m.wait_for(done).await;
        m.drop_completion(done);
    }

    /// Submits a request and goes on; its end completes `done`.
    pub async fn submit<M: Machine>(&self, m: &M, request: Request, done: LockId) {
        let service = self.draw(request);
        match &self.server {
            Server::Submitter => {
                m.run(Account::System, self.submit + service).await;
                m.complete(done).await;
            }
            Server::Worker(queue) => {
                m.run(Account::System, self.submit).await;
                queue.requests.borrow_mut().push_back((service, done));
                let worker = queue.idle.borrow_mut().pop();
                if let Some(worker) = worker {
                    m.wake(worker);
                }
            }
            Server::Hardware(device) => {
                m.run(Account::System, self.submit).await;
                m.submit(*device, service, Then::Complete(done));
            }
            Server::Disk(device, capacity) => {
                m.run(Account::System, self.submit).await;
                match self.place(request, *capacity) {
                    Some(place) => m.submit_at(*device, place, service, Then::Complete(done)),
                    None => m.submit(*device, service, Then::Complete(done)),
                }
            }
        }
    }

    /// Where the arm has to go: a flush needs none.
    fn place(&self, request: Request, capacity: u64) -> Place {
        match request {
            Request::Read { at, .. } | Request::Write { at, .. } => {
                let anywhere = || (uniform(&mut self.random.borrow_mut()) * capacity as f64) as u64;
                Some(at.unwrap_or_else(anywhere))
            }
            Request::Flush => None,
        }
    }

    fn draw(&self, request: Request) -> Time {
        let random = &mut self.random.borrow_mut();
        match request {
            Request::Read { bytes, .. } => self.read.draw(random, bytes),
            Request::Write { bytes, .. } => self.write.draw(random, bytes),
            Request::Flush => self.flush.draw(random, 0),
        }
    }

    /// The program of a worker thread of a device that has them.
    pub async fn worker<M: Machine>(m: M, device: Rc<Self>) {
        let Server::Worker(queue) = &device.server else { return };
        m.at("device worker");
        loop {
            let next = queue.requests.borrow_mut().pop_front();
            match next {
                Some((service, done)) => {
                    m.run(Account::System, service).await;
                    m.complete(done).await;
                }
                None => {
                    queue.idle.borrow_mut().push(m.task());
                    while queue.idle.borrow().contains(&m.task()) {
                        m.park().await;
                    }
                }
            }
        }
    }
}

/// Bytes of a write of a commit; a device takes many at once, and is busy all the same.
const COMMIT_WRITE: u32 = 1 << 20;

/// What a filesystem is stored on: the device of a run, or the loop device of the traces, whose times are the
/// filesystem's own costs.
pub struct Storage {
    device: Option<Rc<BlockDevice>>,
    traced: DeviceId,
}

impl Storage {
    /// The device of a run, if it names one.
    pub fn new<M: Machine>(m: &M, device: Option<Rc<BlockDevice>>) -> Self {
        Self { device, traced: m.new_device(1, 0) }
    }

    /// The device of a run; a run in which requests have no traced time has one.
    pub fn device(&self) -> &BlockDevice {
        self.device.as_ref().expect("workloads with direct I/O are checked for a device")
    }

    /// Writes and waits; the loop device of the traces takes `traced`.
    pub async fn write<M: Machine>(&self, m: &M, bytes: u32, traced: Time) {
        match &self.device {
            Some(device) => device.io(m, Request::Write { bytes, at: None }).await,
            None => self.traced_io(m, traced).await,
        }
    }

    /// Submits a write; its end completes what is returned. The loop device of the traces takes `traced`.
    pub async fn submit_write<M: Machine>(&self, m: &M, bytes: u32, traced: Time) -> LockId {
        let done = m.new_completion();
        match &self.device {
            Some(device) => device.submit(m, Request::Write { bytes, at: None }, done).await,
            None => m.submit(self.traced, traced, Then::Complete(done)),
        }
        done
    }

    /// What a commit writes in the background: so many bytes, and when they are safe so many more. The traces know no such writes.
    pub async fn commit<M: Machine>(&self, m: &M, bytes: u64, last: u32) {
        let Some(device) = &self.device else { return };
        for _ in 0..bytes / u64::from(COMMIT_WRITE) {
            device.io(m, Request::Write { bytes: COMMIT_WRITE, at: None }).await;
        }
        device.io(m, Request::Write { bytes: (bytes % u64::from(COMMIT_WRITE)) as u32, at: None }).await;
        self.write_ordered(m, last, 0).await;
    }

    /// Reads and waits; without a device what is to be read is in memory.
    pub async fn read<M: Machine>(&self, m: &M, bytes: u32) {
        if let Some(device) = &self.device {
            device.io(m, Request::Read { bytes, at: None }).await;
        }
    }

    /// Writes after what was written before is safe, as a log is written, and waits.
    pub async fn write_ordered<M: Machine>(&self, m: &M, bytes: u32, traced: Time) {
        match &self.device {
            Some(device) => {
                device.io(m, Request::Flush).await;
                device.io(m, Request::Write { bytes, at: None }).await;
            }
            None => self.traced_io(m, traced).await,
        }
    }

    async fn traced_io<M: Machine>(&self, m: &M, service: Time) {
        let done = m.new_completion();
        m.submit(self.traced, service, Then::Complete(done));
        m.wait_for(done).await;
        m.drop_completion(done);
    }
}
