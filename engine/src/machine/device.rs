//! Devices: requests wait for one of a device's slots, take their service time, and complete by an interrupt on the CPU
//! that submitted them. The interrupt may release a lock that a task took long ago: a buffer that hardware was writing.

use super::disk::Disk;
use super::lock::{LockId, LockKind};
use super::locks::{completion, semaphore};
use super::queue::Happening;
use super::state::State;
use super::time::Time;
use super::topology::CpuId;
use super::trace::Object;
use std::collections::VecDeque;

/// A device's number.
pub type DeviceId = u32;

/// What the completion interrupt does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Completes a completion.
    Complete(LockId),
    /// Releases a semaphore that the submitting task has taken; until then the device holds it, not the task.
    Release(LockId),
}

#[derive(Clone, Copy, Debug)]
struct Request {
    device: DeviceId,
    cpu: CpuId,
    service: Time,
    /// Where on a disk; none for what needs no arm.
    place: Option<u64>,
    then: Then,
}

/// A device: how many requests it serves at once, and those that wait.
#[derive(Debug)]
pub(super) struct Device {
    free_slots: u32,
    /// CPU time of a completion interrupt, besides the wake-up in it.
    interrupt: Time,
    waiting: VecDeque<u32>,
    /// What it is like if it is a disk, and where its head is.
    disk: Option<(Disk, u64)>,
}

impl Device {
    /// Which of the waiting requests is served next, and how long the arm of a disk needs to be there.
    fn choose(&mut self, requests: &[Request], now: Time) -> (usize, Time) {
        let Some((disk, head)) = &mut self.disk else { return (0, 0) };
        let place = |id: u32| requests[id as usize].place;
        let reached = |id: u32| place(id).map_or(0, |place| disk.reaches(*head, place, now));
        let queued = self.waiting.iter().take(disk.depth as usize).enumerate();
        let (time, next) = queued.map(|(at, &id)| (reached(id), at)).min().expect("somebody waits");
        *head = place(self.waiting[next]).unwrap_or(*head);
        (next, time)
    }
}

/// All devices and their requests.
#[derive(Debug, Default)]
pub(super) struct Devices {
    devices: Vec<Device>,
    requests: Vec<Request>,
    unused: Vec<u32>,
}

impl State {
    /// A device that serves `parallelism` requests at once and interrupts for `interrupt`, besides the wake-up.
    pub(super) fn new_device(&mut self, parallelism: u32, interrupt: Time) -> DeviceId {
        let device = Device { free_slots: parallelism.max(1), interrupt, waiting: VecDeque::new(), disk: None };
        self.devices.devices.push(device);
        (self.devices.devices.len() - 1) as DeviceId
    }

    /// A device that is a disk, with its head at the beginning.
    pub(super) fn new_disk(&mut self, disk: Disk, interrupt: Time) -> DeviceId {
        let device = self.new_device(1, interrupt);
        self.devices.devices[device as usize].disk = Some((disk, 0));
        device
    }

    /// Submits a request from `cpu`.
    pub(super) fn submit(&mut self, device: DeviceId, cpu: CpuId, place: Option<u64>, service: Time, then: Then) {
        self.note_cpu("submit", cpu, Object::Device(device));
        let request = Request { device, cpu, service, place, then };
        let id = match self.devices.unused.pop() {
            Some(id) => {
                self.devices.requests[id as usize] = request;
                id
            }
            None => {
                self.devices.requests.push(request);
                (self.devices.requests.len() - 1) as u32
            }
        };
        if let Then::Release(lock) = then {
            self.hand_to_device(lock);
        }
        self.devices.devices[device as usize].waiting.push_back(id);
        self.serve(device);
    }

    /// A device has `lock` from now on, if that can be released by another than the task that took it.
    pub(super) fn lend(&mut self, lock: LockId) -> bool {
        let l = &self.locks[lock as usize];
        let lends = l.kind == LockKind::Semaphore && l.parts.is_empty();
        if lends {
            self.hand_to_device(lock);
        }
        lends
    }

    fn serve(&mut self, device: DeviceId) {
        let Devices { devices, requests, .. } = &mut self.devices;
        let d = &mut devices[device as usize];
        if d.free_slots == 0 || d.waiting.is_empty() {
            return;
        }
        let (next, reached) = d.choose(requests, self.now);
        let Some(id) = d.waiting.remove(next) else { return };
        d.free_slots -= 1;
        let end = self.now + reached + requests[id as usize].service;
        self.push(end, Happening::DeviceDone, id, 0);
    }

    /// The completion interrupt of a request: steals its time and that of a wake-up from whatever runs on its CPU.
    pub(super) fn device_done(&mut self, id: u32) {
        let request = self.devices.requests[id as usize];
        self.devices.unused.push(id);
        self.note_cpu("device done", request.cpu, Object::Device(request.device));
        let device = &mut self.devices.devices[request.device as usize];
        device.free_slots += 1;
        let interrupt = device.interrupt;
        self.serve(request.device);
        self.interrupt(request.cpu, interrupt);
        match request.then {
            Then::Complete(lock) => completion::complete_from_interrupt(self, lock),
            Then::Release(lock) if self.locks[lock as usize].kind == LockKind::Removed => {}
            Then::Release(lock) => semaphore::up_from_interrupt(self, lock),
        }
    }
}
