//! The event queue: a radix heap on integer time, with a small ordered heap for the events of the current instant.
//!
//! Cost: push is O(1); every event is moved down at most 64 buckets in its life, in practice two or three times, and
//! the queue holds no comparison tree, so 100,000 pending events cost little more than 24.

use super::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens at one instant. The derived order is the specified tie order: by time, then by what happens
/// (the order of [`Happening`]), then by the number of the CPU, task or device it happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// When.
    pub time: Time,
    /// What.
    pub what: Happening,
    /// To which CPU, task or device.
    pub subject: u32,
    /// The subject's generation when the event was made: an event of an older generation is stale and ignored.
    pub generation: u32,
}

/// The kinds of events, in the order in which they are processed at one instant: hardware first, then running tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happening {
    /// A device finished a request (subject: request).
    DeviceDone,
    /// A timer fires (subject: task to wake).
    Timer,
    /// A CPU has left its idle state (subject: CPU).
    IdleExit,
    /// A context switch is complete (subject: CPU).
    SwitchDone,
    /// A running task has used up its segment (subject: task).
    SegmentEnd,
    /// A spinning task sees a changed line, a lost owner or its deadline (subject: task).
    SpinCheck,
    /// The scheduler tick (subject: CPU).
    Tick,
}

/// Pending events, popped in [`Event`] order.
#[derive(Default)]
pub struct EventQueue {
    last: Time,
    now: BinaryHeap<Reverse<Event>>,
    buckets: Vec<Vec<Event>>,
    occupied: u64,
}

impl EventQueue {
    /// An empty queue at time 0.
    pub fn new() -> Self {
        Self { buckets: (0..64).map(|_| Vec::new()).collect(), ..Self::default() }
    }

    /// Adds an event; its time must not lie before the last popped one.
    pub fn push(&mut self, event: Event) {
        debug_assert!(event.time >= self.last, "an event in the past: {event:?}, last {}", self.last);
        self.place(event);
    }

    /// Takes the first event.
    pub fn pop(&mut self) -> Option<Event> {
        if self.now.is_empty() {
            self.refill();
        }
        self.now.pop().map(|Reverse(event)| event)
    }

    fn place(&mut self, event: Event) {
        let differing = event.time ^ self.last;
        if differing == 0 {
            self.now.push(Reverse(event));
        } else {
            let bucket = 63 - differing.leading_zeros() as usize;
            self.occupied |= 1 << bucket;
            self.buckets[bucket].push(event);
        }
    }

    /// Moves the lowest occupied bucket down: its first instant becomes the current one.
    fn refill(&mut self) {
        if self.occupied == 0 {
            return;
        }
        let bucket = self.occupied.trailing_zeros() as usize;
        self.occupied &= !(1 << bucket);
        let mut moving = std::mem::take(&mut self.buckets[bucket]);
        self.last = moving.iter().map(|e| e.time).min().expect("an occupied bucket holds an event");
        for event in moving.drain(..) {
            self.place(event);
        }
        self.buckets[bucket] = moving; // keeps the capacity: no allocation in the steady state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: Time, what: Happening, subject: u32) -> Event {
        Event { time, what, subject, generation: 0 }
    }

    /// Pop order equals that of a plain sorted list, with ties, far outliers and events pushed for the current instant.
    #[test]
    fn pops_like_a_sorted_list() {
        let mut seed = 1u64;
        let mut draw = move |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        let kinds = [Happening::Timer, Happening::SegmentEnd, Happening::Tick];
        let (mut queue, mut list, mut now) = (EventQueue::new(), Vec::new(), 0);
        for _ in 0..20_000 {
            if draw(3) < 2 {
                let ahead = match draw(10) {
                    0 => 0,
                    1 => 1 << 50,
                    2 => draw(1 << 30),
                    _ => draw(16),
                };
                let e = event(now + ahead, kinds[draw(3) as usize], draw(4) as u32);
                queue.push(e);
                list.push(e);
            } else {
                list.sort();
                let expected = if list.is_empty() { None } else { Some(list.remove(0)) };
                assert_eq!(queue.pop(), expected);
                now = expected.map_or(now, |e| e.time);
            }
        }
    }
}
