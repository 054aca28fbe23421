//! Devices: requests wait for one of a device's slots, take their service time, and complete by an interrupt on the CPU
//! that submitted them. The interrupt may release a lock that a task took long ago: a buffer that hardware was writing.
//!
//! A device has at most `depth` requests; the others wait before it, and there neighbours become one request
//! (`blk_attempt_bio_merge`, `block/blk-merge.c`). All share one pipe of so many bytes a second.

use super::lock::LockKind;
use super::locks::{bit_lock, completion, semaphore};
use super::pipe::Pipe;
use super::queue::Happening;
use super::state::State;
use super::trace::Object;
use crate::waist::time::Time;
use crate::waist::{CpuId, DeviceId, Hardware, Io, LockId, Span, TaskId, Then};
use std::collections::VecDeque;

/// The most bytes of a request that neighbours are merged to: `BLK_DEF_MAX_SECTORS`, 2560 sectors.
const MERGED: u32 = 1280 << 10;

impl Span {
    /// The two as one if they are neighbours.
    fn with(self, other: Self) -> Option<Self> {
        let (first, second) = if self.at < other.at { (self, other) } else { (other, self) };
        let bytes = self.bytes.saturating_add(other.bytes);
        let fit = self.write == other.write && first.at + u64::from(first.bytes) == second.at && bytes <= MERGED;
        fit.then_some(Self { at: first.at, bytes, write: self.write })
    }
}

/// Who submits a request, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Submitter {
    pub task: TaskId,
    pub cpu: CpuId,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    device: DeviceId,
    by: Submitter,
    io: Io,
    then: Then,
    /// The next one of those that were merged with it.
    merged: Option<u32>,
}

/// A device: how many requests it can serve now, and those that wait.
#[derive(Debug)]
pub(super) struct Device {
    is: Hardware,
    free_slots: u32,
    waiting: VecDeque<u32>,
    pipe: Pipe,
    flash: Pipe,
    /// Where the last request ended: there the head of a disk is.
    head: u64,
}

impl Device {
    /// Which of the waiting requests is served next.
    fn choose(&self, requests: &[Request], now: Time) -> usize {
        if self.is.disk.is_none() {
            return 0;
        }
        let queued = self.waiting.iter().take(self.is.depth as usize).enumerate();
        queued.map(|(at, &id)| (self.reaches(&requests[id as usize].io, now), at)).min().expect("somebody waits").1
    }

    /// From `now` until the arm of a disk is where a request is.
    fn reaches(&self, io: &Io, now: Time) -> Time {
        match (&self.is.disk, io.span) {
            (Some(disk), Some(span)) if span.at != self.head => disk.reaches(self.head, span.at, now),
            _ => 0,
        }
    }

    /// How many of those that wait are in the device's own queue.
    fn queued(&self) -> usize {
        (self.is.depth - (self.is.parallelism - self.free_slots).min(self.is.depth)) as usize
    }

    /// When a request that is taken `now` has been through its pipes and is served. A disk goes on where its head is: it has read
    /// ahead, or has the next write in its cache.
    fn serves(&mut self, io: &Io, now: Time) -> Time {
        let begins = now + self.reaches(io, now);
        let goes_on = self.is.disk.is_some() && io.span.is_some_and(|span| span.at == self.head);
        if let Some(span) = io.span {
            self.head = span.at + u64::from(span.bytes);
        }
        let waits = self.pipe.take(begins, io.transfer).max(self.flash.take(begins, io.flash));
        begins + waits + if goes_on { io.joined } else { io.service }
    }
}

/// All devices and their requests.
#[derive(Debug, Default)]
pub(super) struct Devices {
    devices: Vec<Device>,
    requests: Vec<Request>,
    unused: Vec<u32>,
}

impl Devices {
    fn add(&mut self, request: Request) -> u32 {
        match self.unused.pop() {
            Some(id) => {
                self.requests[id as usize] = request;
                id
            }
            None => {
                self.requests.push(request);
                (self.requests.len() - 1) as u32
            }
        }
    }

    /// Makes a request that waits before the device one with a neighbour of the same task: files lie over each other, so
    /// that the places of others say nothing.
    fn merge(&mut self, id: u32) -> bool {
        let Request { device, by, io, .. } = self.requests[id as usize];
        let Some(span) = io.span else { return false };
        let d = &self.devices[device as usize];
        let before = d.waiting.iter().skip(d.queued());
        let joined = |&other: &u32| {
            let other = &self.requests[other as usize];
            (other.by.task == by.task).then_some(other.io.span?).and_then(|other| other.with(span))
        };
        let Some((into, span)) = before.rev().find_map(|other| Some((*other, joined(other)?))) else { return false };
        let first = &mut self.requests[into as usize];
        first.io.span = Some(span);
        first.io.service += io.joined;
        first.io.joined += io.joined;
        first.io.transfer += io.transfer;
        let others = first.merged.replace(id);
        self.requests[id as usize].merged = others;
        true
    }
}

impl State {
    /// A device, with the head of a disk at its beginning.
    pub(super) fn new_device(&mut self, is: Hardware) -> DeviceId {
        let is = Hardware { parallelism: is.parallelism.max(1), ..is };
        let (pipe, flash) = (Pipe::default(), Pipe::new(is.slack));
        let device = Device { is, free_slots: is.parallelism, waiting: VecDeque::new(), pipe, flash, head: 0 };
        self.devices.devices.push(device);
        (self.devices.devices.len() - 1) as DeviceId
    }

    /// Submits a request.
    pub(super) fn submit(&mut self, device: DeviceId, by: Submitter, io: Io, then: Then) {
        self.note_cpu("submit", by.cpu, Object::Device(device));
        let id = self.devices.add(Request { device, by, io, then, merged: None });
        match then {
            Then::Complete(lock) | Then::Unlock(lock, _) => completion::expect(self, lock),
            Then::Release(lock) => self.hand_to_device(lock),
        }
        if !self.devices.merge(id) {
            self.devices.devices[device as usize].waiting.push_back(id);
            self.serve(device);
        }
    }

    /// A device has `lock` from now on, if that can be released by another than the task that took it.
    pub(super) fn try_hand_to_device(&mut self, lock: LockId) -> bool {
        let l = &self.locks[lock as usize];
        let ownerless = matches!(l.kind, LockKind::Semaphore(semaphore::Count::One) | LockKind::Bit(()));
        let handed = ownerless && l.parts.is_empty();
        if handed {
            self.hand_to_device(lock);
        }
        handed
    }

    fn serve(&mut self, device: DeviceId) {
        let Devices { devices, requests, .. } = &mut self.devices;
        let d = &mut devices[device as usize];
        if d.free_slots == 0 || d.waiting.is_empty() {
            return;
        }
        let next = d.choose(requests, self.now);
        let Some(id) = d.waiting.remove(next) else { return };
        d.free_slots -= 1;
        let end = d.serves(&requests[id as usize].io, self.now);
        self.push(end, Happening::DeviceDone, id, 0);
    }

    /// The completion interrupt of a request: steals its time and that of its wake-ups from whatever runs on its CPU.
    pub(super) fn device_done(&mut self, id: u32) {
        let Request { device, by, .. } = self.devices.requests[id as usize];
        self.note_cpu("device done", by.cpu, Object::Device(device));
        let d = &mut self.devices.devices[device as usize];
        d.free_slots += 1;
        let interrupt = d.is.interrupt;
        self.serve(device);
        self.interrupt(by.cpu, interrupt);
        let mut next = Some(id);
        while let Some(id) = next {
            let Request { then, merged, .. } = self.devices.requests[id as usize];
            self.devices.unused.push(id);
            self.finish(then);
            next = merged;
        }
    }

    fn finish(&mut self, then: Then) {
        match then {
            Then::Complete(lock) => completion::complete_from_interrupt(self, lock),
            Then::Release(lock) => self.release_from_interrupt(lock),
            Then::Unlock(done, lock) => {
                completion::complete_from_interrupt(self, done);
                self.release_from_interrupt(lock);
            }
        }
    }

    fn release_from_interrupt(&mut self, lock: LockId) {
        match self.locks[lock as usize].kind {
            LockKind::Removed(()) => {}
            LockKind::Bit(()) => bit_lock::clear_from_interrupt(self, lock),
            _ => semaphore::up_from_interrupt(self, lock),
        }
    }
}
