//! Devices: requests wait for one of a device's slots, take their service time, and complete by an interrupt on the CPU
//! that submitted them. The interrupt may release a lock that a task took long ago: a buffer that hardware was writing.
//!
//! A device has at most `depth` requests; the others wait before it, and there neighbours become one request
//! (`blk_attempt_bio_merge`, `block/blk-merge.c`). All share one pipe of so many bytes a second.
//!
//! A request that the device does alone waits until it has nothing else, and what comes meanwhile waits before the device, as
//! behind a command of SATA that is not queued (`ata_std_qc_defer`, `scsi_set_blocked`, `hctx->dispatch`).
//!
//! A write is done when it is in the cache of a disk that has one, and a flush when all of the cache is on the platters.

use super::context::record;
use super::disk::Cache;
use super::lock::LockKind;
use super::locks::{bit_lock, completion, semaphore};
use super::pipe::Pipe;
use super::queue::Happening;
use super::state::State;
use super::trace::Object;
use crate::waist::time::Time;
use crate::waist::{CpuId, DeviceId, Hardware, Io, LockId, Op, TaskId, Then};
use std::collections::VecDeque;

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
    since: Time,
    then: Then,
    /// The next one of those that were merged with it.
    merged: Option<u32>,
}

/// A device: how many requests it serves now, and those that wait.
#[derive(Debug)]
pub(super) struct Device {
    is: Hardware,
    under_way: u32,
    waiting: VecDeque<u32>,
    /// How many wait that it does alone, and whether it does such a one.
    alone_waiting: u32,
    alone: bool,
    pipe: Pipe,
    flash: Pipe,
    /// Where the last request ended: there the head of a disk is.
    head: u64,
    /// The request for which the arm of a disk moves.
    arm: Option<u32>,
    cache: Option<Cache>,
}

impl Device {
    fn new(is: Hardware) -> Self {
        let (pipe, flash) = (Pipe::default(), Pipe::new(is.slack));
        let cache = is.disk.and_then(|disk| Cache::of(&disk));
        let (under_way, waiting, alone_waiting, alone, head, arm) = (0, VecDeque::new(), 0, false, 0, None);
        Self { is, under_way, waiting, alone_waiting, alone, pipe, flash, head, arm, cache }
    }

    /// Which of the waiting requests is served next, if one can be, and when it is reached.
    fn choose(&self, requests: &[Request], now: Time) -> Option<(Time, usize)> {
        if self.alone || self.waiting.is_empty() {
            return None;
        }
        if self.first_alone(requests) == Some(0) {
            return (self.under_way == 0).then_some((0, 0));
        }
        if self.is.disk.is_none() {
            return (self.under_way < self.is.parallelism).then_some((0, 0));
        }
        let queued = self.waiting.iter().take(self.queued(requests)).enumerate();
        queued.filter_map(|(at, &id)| Some((self.comes_to(&requests[id as usize].io, now)?, at))).min()
    }

    /// When a disk comes to a request, if it can now.
    fn comes_to(&self, io: &Io, now: Time) -> Option<Time> {
        match &self.cache {
            Some(cache) if io.op == Op::Write => cache.has_room(io).then_some(0),
            Some(_) if io.op == Op::Flush => Some(0),
            _ => self.arm.is_none().then(|| self.reaches(io, now)),
        }
    }

    /// Which of the writes in a disk's cache goes to the platters next, if one can, and when it is reached.
    fn choose_cached(&self, requests: &[Request], now: Time) -> Option<(Time, usize)> {
        let cache = self.cache.as_ref().filter(|_| self.arm.is_none())?;
        let oldest = cache.waiting.iter().take(self.is.depth as usize).enumerate();
        oldest.map(|(at, &id)| (self.reaches(&requests[id as usize].io, now), at)).min()
    }

    /// Takes the request, or the write in the cache, that is served next, and says when it is served.
    fn take(&mut self, requests: &[Request], now: Time) -> Option<(u32, Time)> {
        let (next, cached) = (self.choose(requests, now), self.choose_cached(requests, now));
        if let Some((_, at)) = cached.filter(|&(reached, _)| next.is_none_or(|(first, _)| reached < first)) {
            let id = self.cache.as_mut().and_then(|cache| cache.waiting.remove(at))?;
            return Some((id, self.writes_out(id, &requests[id as usize].io, now)));
        }
        let id = next.and_then(|(_, at)| self.waiting.remove(at))?;
        let io = &requests[id as usize].io;
        self.under_way += 1;
        self.alone = self.does_alone(io);
        self.alone_waiting -= u32::from(self.alone);
        Some((id, self.serves(id, io, now)))
    }

    /// A request is done.
    fn give_back(&mut self, id: u32) {
        self.under_way -= 1;
        self.alone = false;
        self.arm = self.arm.filter(|&arm| arm != id);
    }

    /// Where the first one waits that the device does alone.
    fn first_alone(&self, requests: &[Request]) -> Option<usize> {
        if self.alone_waiting == 0 {
            return None;
        }
        self.waiting.iter().position(|&id| self.does_alone(&requests[id as usize].io))
    }

    fn does_alone(&self, io: &Io) -> bool {
        self.is.flush_alone && io.op == Op::Flush
    }

    /// From `now` until the arm of a disk is where a request is. What follows the last read has been read ahead; what follows the
    /// last write has to come round, if the arm did not go on to it at once.
    fn reaches(&self, io: &Io, now: Time) -> Time {
        match (&self.is.disk, io.span) {
            (Some(disk), Some(span)) if span.write || span.at != self.head => disk.reaches(self.head, span.at, now),
            _ => 0,
        }
    }

    /// How many of those that wait are in the device's own queue, if so many wait: none that came after one that it does alone.
    fn queued(&self, requests: &[Request]) -> usize {
        if self.alone {
            return 0;
        }
        let room = (self.is.depth - self.under_way.min(self.is.depth)) as usize;
        self.first_alone(requests).map_or(room, |at| at.min(room))
    }

    /// A request begins to wait; one that the device does alone goes before those that the device does not have yet.
    fn wait(&mut self, id: u32, requests: &[Request]) {
        if self.does_alone(&requests[id as usize].io) {
            let at = self.queued(requests).min(self.waiting.len());
            self.waiting.insert(at, id);
            self.alone_waiting += 1;
        } else {
            self.waiting.push_back(id);
        }
    }

    /// When a request that is taken `now` has been through its pipes and is served.
    fn serves(&mut self, id: u32, io: &Io, now: Time) -> Time {
        if let Some(cache) = self.cache.as_mut().filter(|_| io.op != Op::Read) {
            cache.take(io);
            return now + self.pipe.take(now, io.transfer) + io.service;
        }
        let begins = now + self.reaches(io, now);
        let follows = self.is.disk.is_some() && io.span.is_some_and(|span| span.at == self.head);
        let goes_on = follows && io.op == Op::Read;
        self.moves(id, io);
        let waits = self.pipe.take(begins, io.transfer).max(self.flash.take(begins, io.flash));
        begins + waits + if goes_on { io.joined } else { io.service }
    }

    /// When a write of the cache is on the platters.
    fn writes_out(&mut self, id: u32, io: &Io, now: Time) -> Time {
        let begins = now + self.reaches(io, now);
        self.moves(id, io);
        begins + self.is.disk.map_or(0, |disk| disk.passes(io.span))
    }

    fn moves(&mut self, id: u32, io: &Io) {
        if self.is.disk.is_some() {
            self.arm = Some(id);
        }
        if let Some(span) = io.span {
            self.head = span.at + u64::from(span.bytes);
        }
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
        let Request { device, by, .. } = self.requests[id as usize];
        let d = &self.devices[device as usize];
        (d.queued(&self.requests)..d.waiting.len()).rev().any(|at| {
            let into = self.devices[device as usize].waiting[at];
            self.requests[into as usize].by.task == by.task && self.join(into, id)
        })
    }

    /// Makes a request, and what is part of it, part of another one if they are neighbours.
    fn join(&mut self, into: u32, id: u32) -> bool {
        let (io, first) = (self.requests[id as usize].io, self.requests[into as usize].io);
        let Some(span) = io.span.zip(first.span).and_then(|(span, first)| first.with(span)) else { return false };
        let mut last = id;
        while let Some(next) = self.requests[last as usize].merged {
            last = next;
        }
        let first = &mut self.requests[into as usize];
        first.io.span = Some(span);
        first.io.service += io.joined;
        first.io.joined += io.joined;
        first.io.transfer += io.transfer;
        let others = first.merged.replace(id);
        self.requests[last as usize].merged = others;
        true
    }
}

impl State {
    /// A device, with the head of a disk at its beginning.
    pub(super) fn new_device(&mut self, is: Hardware) -> DeviceId {
        self.devices.devices.push(Device::new(Hardware { parallelism: is.parallelism.max(1), ..is }));
        (self.devices.devices.len() - 1) as DeviceId
    }

    /// Submits a request.
    pub(super) fn submit(&mut self, device: DeviceId, by: Submitter, io: Io, then: Then) {
        let request = self.new_request(device, by, io, then);
        self.send(request);
    }

    /// A request that is to be sent to a device. Its end does `then`.
    pub(super) fn new_request(&mut self, device: DeviceId, by: Submitter, io: Io, then: Then) -> u32 {
        match then {
            Then::Complete(lock) | Then::Unlock(lock, _) => completion::expect(self, lock),
            Then::Release(lock) => self.hand_to_device(lock),
            Then::Both(one, other) => [one, other].into_iter().for_each(|lock| completion::expect(self, lock)),
        }
        self.devices.add(Request { device, by, io, since: self.now, then, merged: None })
    }

    /// A request becomes part of its neighbour, which is not sent yet.
    pub(super) fn join(&mut self, into: u32, by: Submitter, io: Io, then: Then) {
        let device = self.devices.requests[into as usize].device;
        let request = self.new_request(device, by, io, then);
        let joined = self.devices.join(into, request);
        debug_assert!(joined, "neighbours only are joined");
    }

    /// A request is sent.
    pub(super) fn send(&mut self, id: u32) {
        let Request { device, by, .. } = self.devices.requests[id as usize];
        self.note_cpu("submit", by.cpu, Object::Device(device));
        if !self.devices.merge(id) {
            let Devices { devices, requests, .. } = &mut self.devices;
            devices[device as usize].wait(id, requests);
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
        loop {
            let Devices { devices, requests, .. } = &mut self.devices;
            let Some((id, end)) = devices[device as usize].take(requests, self.now) else { return };
            self.push(end, Happening::DeviceDone, id, 0);
        }
    }

    /// A device has done something for a request.
    pub(super) fn device_done(&mut self, id: u32) {
        let Devices { devices, requests, unused } = &mut self.devices;
        let Request { device, io, .. } = requests[id as usize];
        let d = &mut devices[device as usize];
        match &mut d.cache {
            Some(cache) if io.op == Op::Write && d.arm == Some(id) => {
                cache.is_out(&io);
                d.arm = None;
                unused.push(id);
                let flushes = cache.take_flushes();
                self.serve(device);
                flushes.into_iter().for_each(|flush| self.request_done(flush));
            }
            Some(cache) if io.op == Op::Flush && !cache.is_empty() => cache.flushes.push(id),
            _ => self.request_done(id),
        }
    }

    /// The completion interrupt of a request: steals its time and that of its wake-ups from whatever runs on its CPU.
    fn request_done(&mut self, id: u32) {
        let Request { device, by, io, since, .. } = self.devices.requests[id as usize];
        self.note_cpu("device done", by.cpu, Object::Device(device));
        record(&mut self.requests, io.op.name(), self.now - since.max(self.window_start));
        let d = &mut self.devices.devices[device as usize];
        d.give_back(id);
        let cache = d.cache.as_mut().filter(|_| io.op == Op::Write);
        let cached = cache.map(|cache| cache.waiting.push_back(id)).is_some();
        let interrupt = d.is.interrupt;
        self.serve(device);
        self.interrupt(by.cpu, interrupt);
        let mut next = Some(id);
        while let Some(one) = next {
            let Request { then, merged, .. } = self.devices.requests[one as usize];
            if !(cached && one == id) {
                self.devices.unused.push(one);
            }
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
            Then::Both(one, other) => {
                completion::complete_from_interrupt(self, one);
                completion::complete_from_interrupt(self, other);
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

#[cfg(test)]
mod tests {
    use super::{Device, Request, Submitter};
    use crate::waist::{Hardware, Io, Op, Then};

    fn request(op: Op) -> Request {
        let io = Io { op, ..Io::taking(1) };
        Request { device: 0, by: Submitter { task: 0, cpu: 0 }, io, since: 0, then: Then::Complete(0), merged: None }
    }

    fn took(device: &mut Device, requests: &[Request]) -> Option<u32> {
        device.take(requests, 0).map(|(id, _)| id)
    }

    fn serving(parallelism: u32, depth: u32) -> Device {
        Device::new(Hardware { depth, flush_alone: true, ..Hardware::serving(parallelism, 0) })
    }

    #[test]
    fn what_a_device_does_alone_comes_after_all_that_it_has_and_before_all_that_it_has_not() {
        let requests = [Op::Write, Op::Write, Op::Read, Op::Flush, Op::Write].map(request);
        let mut device = serving(1, 2);
        (0..3).for_each(|id| device.wait(id, &requests)); // two are queued in it, one waits before it
        assert_eq!(took(&mut device, &requests), Some(0));
        device.wait(3, &requests);
        device.wait(4, &requests);
        for (done, next) in [(0, 1), (1, 3), (3, 2), (2, 4)] {
            assert_eq!(took(&mut device, &requests), None); // one is under way
            device.give_back(done);
            assert_eq!(took(&mut device, &requests), Some(next));
        }
    }

    #[test]
    fn nothing_is_under_way_beside_what_a_device_does_alone() {
        let requests = [Op::Read, Op::Write, Op::Flush, Op::Write].map(request);
        let mut device = serving(4, 32);
        (0..4).for_each(|id| device.wait(id, &requests));
        let took = |device: &mut Device| took(device, &requests);
        assert_eq!([took(&mut device), took(&mut device), took(&mut device)], [Some(0), Some(1), None]);
        device.give_back(0);
        assert_eq!(took(&mut device), None);
        device.give_back(1);
        assert_eq!([took(&mut device), took(&mut device)], [Some(2), None]);
        device.give_back(2);
        assert_eq!(took(&mut device), Some(3));
    }
}
