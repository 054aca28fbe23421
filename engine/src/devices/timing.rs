//! How long requests take, alone and beside others.

use super::Request;
use crate::draw::{uniform, Draw};
use crate::spec::{BandwidthSpec, DeviceSpec, DiskSpec, ServedBy, ServiceSpec};
use crate::waist::time::from_ns;
use crate::waist::{Disk, Hardware, Io, Machine, Op, Span, Time};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::RefCell;

const NS_PER_SECOND: f64 = 1e9;

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
        self.first.draw(random) + self.further(bytes.saturating_sub(4096))
    }

    fn further(&self, bytes: u32) -> Time {
        from_ns(f64::from(bytes) / 1024.0 * self.per_kib)
    }
}

/// The arm of a disk on which each KiB passes the head in `per_kib_ns`.
fn arm(spec: &DiskSpec, per_kib_ns: f64, takes_writes: bool) -> Disk {
    Disk {
        revolution: from_ns(spec.revolution_ns),
        seek_track: from_ns(spec.seek_track_ns),
        seek_full: from_ns(spec.seek_full_ns),
        capacity: spec.capacity_bytes,
        track: (spec.revolution_ns / per_kib_ns * 1024.0) as u64,
        cache: if takes_writes { spec.cache_bytes } else { 0 },
    }
}

/// What the device itself is like; a disk serves one request at a time.
pub(super) fn hardware(spec: &DeviceSpec, interrupt: Time) -> Hardware {
    let disk = spec.disk.as_ref().map(|disk| arm(disk, spec.read.per_kib_ns, spec.write_cache));
    let slack = spec.small_writes.map_or(0.0, |writes| (writes.burst - 1.0).max(0.0) / writes.rate * NS_PER_SECOND);
    let parallelism = if disk.is_some() { 1 } else { spec.parallelism };
    let depth = spec.depth.unwrap_or(u32::MAX).max(1);
    Hardware { parallelism, depth, interrupt, slack: from_ns(slack), flush_alone: spec.flush_alone, disk }
}

/// What requests of a device take.
pub(super) struct Timing {
    read: Service,
    write: Service,
    flush: Service,
    /// What is written past its cache is in the flash before it is done, as after a flush.
    past_cache: bool,
    bandwidth: Option<BandwidthSpec>,
    /// How long a write keeps the flash.
    flash: Time,
    /// Bytes of a disk, whose arm goes somewhere for each request.
    capacity: Option<u64>,
    random: RefCell<Xoshiro256PlusPlus>,
}

impl Timing {
    /// Those of this description; `speed` multiplies the CPU times in it.
    pub fn new<M: Machine>(m: &M, spec: &DeviceSpec, speed: f64) -> Self {
        let served_at = if spec.served_by == ServedBy::Hardware { 1.0 } else { speed };
        let service = |spec: &ServiceSpec| Service::new(spec, served_at);
        Self {
            read: service(&spec.read),
            write: service(&spec.write),
            flush: service(&spec.flush),
            past_cache: spec.served_by == ServedBy::Hardware && spec.fua && spec.fua_waits && spec.write_cache,
            bandwidth: spec.bandwidth,
            flash: spec.small_writes.map_or(0, |writes| from_ns(NS_PER_SECOND / writes.rate)),
            capacity: spec.disk.map(|disk| disk.capacity_bytes),
            random: RefCell::new(m.stream("device")),
        }
    }

    /// How long a request takes alone.
    pub fn draw(&self, request: Request) -> Time {
        let random = &mut self.random.borrow_mut();
        match request {
            Request::Read { bytes, .. } => self.read.draw(random, bytes),
            Request::LogWrite { bytes, fua: true, .. } if self.past_cache => {
                self.write.draw(random, bytes) + self.flush.draw(random, 0)
            }
            Request::Write { bytes, .. } | Request::LogWrite { bytes, .. } => self.write.draw(random, bytes),
            Request::Flush => self.flush.draw(random, 0),
        }
    }

    /// How long a request keeps the pipe of bytes.
    pub fn transfer(&self, request: Request) -> Time {
        let Some(bandwidth) = self.bandwidth else { return 0 };
        let (bytes, rate) = match request {
            Request::Read { bytes, .. } => (bytes, bandwidth.read),
            Request::Write { bytes, .. } | Request::LogWrite { bytes, .. } => (bytes, bandwidth.write),
            Request::Flush => return 0,
        };
        from_ns(f64::from(bytes) / rate * NS_PER_SECOND)
    }

    /// What a request asks of hardware.
    pub fn io(&self, request: Request) -> Io {
        let service = self.draw(request);
        let (op, joined, flash) = match request {
            Request::Read { bytes, .. } => (Op::Read, self.read.further(bytes), 0),
            Request::Write { bytes, .. } | Request::LogWrite { bytes, .. } => {
                (Op::Write, self.write.further(bytes), self.flash)
            }
            Request::Flush => (Op::Flush, 0, 0),
        };
        Io { service, joined, transfer: self.transfer(request), flash, op, span: self.span(request) }
    }

    /// Where a request is; what has no place goes to a random one of a disk, and a flush nowhere.
    fn span(&self, request: Request) -> Option<Span> {
        let anywhere = |capacity| (uniform(&mut self.random.borrow_mut()) * capacity as f64) as u64;
        match request {
            Request::Flush => None,
            _ => request.span().or_else(|| {
                let write = !matches!(request, Request::Read { .. });
                Some(Span { at: self.capacity.map(anywhere)?, bytes: request.bytes(), write })
            }),
        }
    }
}
