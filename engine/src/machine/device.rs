//! Devices: requests wait for one of a device's slots, take their service time, and complete by an interrupt on the CPU
//! that submitted them. The interrupt may release a lock that a task took long ago: a buffer that hardware was writing.

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
    then: Then,
}

/// A device: how many requests it serves at once, and those that wait.
#[derive(Debug)]
pub(super) struct Device {
    free_slots: u32,
    /// CPU time of a completion interrupt, besides the wake-up in it.
    interrupt: Time,
    waiting: VecDeque<u32>,
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
        let device = Device { free_slots: parallelism.max(1), interrupt, waiting: VecDeque::new() };
        self.devices.devices.push(device);
        (self.devices.devices.len() - 1) as DeviceId
    }

    /// Submits a request from `cpu`.
    pub(super) fn submit(&mut self, device: DeviceId, cpu: CpuId, service: Time, then: Then) {
        self.note_cpu("submit", cpu, Object::Device(device));
        let request = Request { device, cpu, service, then };
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

    fn serve(&mut self, device: DeviceId) {
        let d = &mut self.devices.devices[device as usize];
        if d.free_slots == 0 {
            return;
        }
        let Some(id) = d.waiting.pop_front() else { return };
        d.free_slots -= 1;
        let end = self.now + self.devices.requests[id as usize].service;
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
