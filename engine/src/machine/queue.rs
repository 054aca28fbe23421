//! The event queue: a radix heap on integer time whose lowest bucket is kept sorted.
//!
//! The sorted part covers one aligned stretch of time, `base..base + 2^width`; later events lie in the bucket of the
//! highest bit in which their time differs from `base`. When the sorted part is empty, the lowest bucket is moved
//! into it, with the next ones while few events are pending; when it grows too long, the stretch is narrowed. Cost: with a
//! few dozen pending events all are sorted and a push moves a few words; with many, an event is moved down two or three
//! buckets in its life.

use crate::waist::time::Time;

/// What happens at one instant. The order is the specified tie order: by time, then by what happens (the order of
/// [`Happening`]), then by the number of the CPU, task or device it happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// An event as one number in its order: time, kind, subject (28 bits), generation.
pub type Key = u128;

const SUBJECT_BITS: u32 = 28;

impl Event {
    /// As a number.
    #[inline]
    pub fn key(self) -> Key {
        debug_assert!(self.subject >> SUBJECT_BITS == 0, "more than 2^28 tasks");
        let who = rank(self.what, self.subject) | u64::from(self.generation);
        Key::from(self.time) << 64 | Key::from(who)
    }

    /// Of a number.
    #[inline(always)]
    pub fn of(key: Key) -> Self {
        let who = key as u64;
        let what = Happening::of(who >> (SUBJECT_BITS + 32));
        let subject = (who >> 32) as u32 & ((1 << SUBJECT_BITS) - 1);
        Self { time: time_of(key), what, subject, generation: who as u32 }
    }
}

/// The place of an event among all of its instant; the generation in it is 0.
#[inline(always)]
pub fn rank(what: Happening, subject: u32) -> u64 {
    (what as u64) << (SUBJECT_BITS + 32) | u64::from(subject) << 32
}

/// When the event of a number happens.
pub fn time_of(key: Key) -> Time {
    (key >> 64) as Time
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
    /// The timers of a tick have rung, and its interrupt ends (subject: CPU).
    TickDone,
    /// The softirqs after a tick are done (subject: CPU).
    SoftirqDone,
    /// A CPU has served an interrupt that wants it for another task (subject: CPU).
    Rescheduled,
}

impl Happening {
    /// By number.
    #[inline(always)]
    fn of(number: u64) -> Self {
        match number {
            0 => Self::DeviceDone,
            1 => Self::Timer,
            2 => Self::IdleExit,
            3 => Self::SwitchDone,
            4 => Self::SegmentEnd,
            5 => Self::SpinCheck,
            6 => Self::Tick,
            7 => Self::TickDone,
            8 => Self::SoftirqDone,
            _ => Self::Rescheduled,
        }
    }
}

/// The sorted part is narrowed when it grows beyond this.
const LONG: usize = 64;
/// The bucket of the highest bit stays as it is: a stretch has less than 2^64 ps.
const WIDEST: u32 = 63;

/// Pending events, popped in [`Event`] order.
pub struct EventQueue {
    /// Time of the last popped event: no other can come before it.
    now: Time,
    base: Time,
    width: u32,
    sorted: Vec<Key>, // descending: the first event is the last entry
    buckets: Vec<Vec<Key>>,
    occupied: u64,
}

impl EventQueue {
    /// An empty queue at time 0.
    pub fn new() -> Self {
        let buckets = (0..64).map(|_| Vec::new()).collect();
        Self { now: 0, base: 0, width: 0, sorted: Vec::new(), buckets, occupied: 0 }
    }

    /// Adds an event; its time must not lie before the last popped one.
    #[inline]
    pub fn push(&mut self, event: Event) {
        debug_assert!(event.time >= self.base, "an event in the past: {event:?}, base {}", self.base);
        self.add(event.key());
    }

    /// No event comes before this moment.
    #[inline]
    pub fn quiet_until(&self) -> Time {
        match self.sorted.last() {
            Some(&first) => time_of(first),
            None if self.occupied == 0 => Time::MAX,
            None => 0, // not known
        }
    }

    /// An event at `time` that was not in the queue counts as popped.
    #[inline]
    pub fn pass(&mut self, time: Time) {
        debug_assert!(time < self.quiet_until());
        self.now = time;
    }

    fn add(&mut self, key: Key) {
        if self.is_beyond(time_of(key)) {
            return self.put_away(key);
        }
        if self.sorted.len() == self.sorted.capacity() || self.sorted.len() >= LONG && self.width > 0 {
            return self.add_to_many(key);
        }
        self.insert(key);
    }

    /// The same where that needs room, or makes the sorted part too long.
    #[cold]
    fn add_to_many(&mut self, key: Key) {
        self.sorted.reserve(1);
        self.insert(key);
        if self.sorted.len() > LONG && self.width > 0 {
            self.narrow();
        }
    }

    #[inline(always)]
    fn insert(&mut self, key: Key) {
        self.sorted.push(key);
        let mut upto = &mut self.sorted[..];
        while let [rest @ .., last] = upto {
            match rest.last() {
                Some(&before) if before < key => *last = before,
                _ => {
                    *last = key;
                    break;
                }
            }
            upto = rest;
        }
    }

    /// Takes the first event if it comes before `end`; see [`Event::of`].
    #[inline(always)]
    pub fn pop_before(&mut self, end: Time) -> Option<Key> {
        if self.sorted.is_empty() {
            self.refill();
        }
        let key = self.sorted.pop_if(|first| time_of(*first) < end)?;
        self.now = time_of(key);
        Some(key)
    }

    /// Whether no event of another kind is pending.
    pub fn has_only(&self, what: Happening) -> bool {
        let mut pending = self.sorted.iter().chain(self.buckets.iter().flatten());
        pending.all(|&key| Event::of(key).what == what)
    }

    /// Takes the first event if it happens at `time`, the time of the last popped one.
    pub fn pop_tie(&mut self, time: Time) -> Option<Event> {
        let &key = self.sorted.last()?; // events of one instant are never split between the parts
        (time_of(key) == time).then(|| {
            self.sorted.pop();
            Event::of(key)
        })
    }

    /// Whether `time` lies behind the sorted stretch.
    #[inline]
    fn is_beyond(&self, time: Time) -> bool {
        (time ^ self.base) >> self.width != 0
    }

    /// Puts an event behind the sorted stretch.
    #[cold]
    fn put_away(&mut self, key: Key) {
        let bucket = 63 - (time_of(key) ^ self.base).leading_zeros() as usize;
        self.occupied |= 1 << bucket;
        self.buckets[bucket].push(key);
    }

    /// Sorts the lowest occupied bucket, or the beginning of it.
    #[cold]
    fn refill(&mut self) {
        if self.occupied == 0 {
            return;
        }
        let bucket = self.occupied.trailing_zeros();
        self.occupied &= !(1 << bucket);
        let mut moving = std::mem::take(&mut self.buckets[bucket as usize]);
        self.width = bucket;
        self.base = (self.base >> bucket | 1) << bucket;
        if moving.len() > LONG {
            let first = moving.iter().map(|&key| time_of(key)).min().unwrap_or(self.base);
            self.narrow_to(first, &moving);
            for &key in &moving {
                if self.is_beyond(time_of(key)) {
                    self.put_away(key);
                } else {
                    self.sorted.push(key);
                }
            }
            moving.clear();
            self.buckets[bucket as usize] = moving; // keeps the capacity: no allocation in the steady state
        } else {
            self.sorted.append(&mut moving);
            self.buckets[bucket as usize] = moving;
            self.widen();
        }
        self.sorted.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Takes the next buckets as well while few events are in the sorted part: where few are pending, all are sorted.
    fn widen(&mut self) {
        while self.occupied != 0 && self.occupied.trailing_zeros() < WIDEST {
            let bucket = self.occupied.trailing_zeros();
            let more = &mut self.buckets[bucket as usize];
            if self.sorted.len() + more.len() > LONG / 2 {
                return;
            }
            self.sorted.append(more);
            self.occupied &= !(1 << bucket);
            self.width = bucket + 1;
            self.base = self.base >> self.width << self.width;
        }
    }

    /// Halves the stretch around `start` until it holds few of `keys` or is one instant.
    fn narrow_to(&mut self, start: Time, keys: &[Key]) {
        while self.width > 0 {
            self.width -= 1;
            self.base = start >> self.width << self.width;
            let inside = |key: &&Key| !self.is_beyond(time_of(**key));
            if keys.iter().filter(inside).count() <= LONG / 2 {
                return;
            }
        }
    }

    /// Narrows the stretch around the present: the first event may be far, and another come before it.
    fn narrow(&mut self) {
        let keys = std::mem::take(&mut self.sorted);
        self.narrow_to(self.now, &keys);
        let later = keys.partition_point(|&key| self.is_beyond(time_of(key)));
        for &key in &keys[..later] {
            self.put_away(key);
        }
        self.sorted = keys;
        self.sorted.drain(..later);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::hash::{DefaultHasher, Hash, Hasher};

    fn event(time: Time, what: Happening, subject: u32) -> Event {
        Event { time, what, subject, generation: 0 }
    }

    /// Draws that differ by seed.
    struct Draws(u64);

    impl Draws {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) % n
        }

        /// How far ahead an event is: ties, near ones, far ones, and outliers of days.
        fn ahead(&mut self) -> Time {
            match self.below(10) {
                0 | 1 => 0,
                2 => 1 << 50,
                3 => self.below(1 << 40),
                4 | 5 => self.below(1 << 20),
                _ => self.below(16),
            }
        }
    }

    /// Pops in the order of a plain sorted set: every event, and so the hash over all of them.
    fn same_order_as_a_sorted_set(seed: u64, pending: u64) {
        let mut draws = Draws(seed);
        let kinds = [Happening::Timer, Happening::SegmentEnd, Happening::Tick];
        let (mut queue, mut sorted, mut now) = (EventQueue::new(), BTreeSet::new(), 0);
        let (mut ours, mut theirs) = (DefaultHasher::new(), DefaultHasher::new());
        for number in 0..20_000u32 {
            if (sorted.len() as u64) < draws.below(2 * pending) {
                let (ahead, kind, subject) = (draws.ahead(), draws.below(3), draws.below(4) as u32);
                let e = Event { generation: number, ..event(now + ahead, kinds[kind as usize], subject) };
                queue.push(e);
                sorted.insert(e.key());
            } else {
                let (got, expected) = (queue.pop_before(Time::MAX), sorted.pop_first());
                got.hash(&mut ours);
                expected.hash(&mut theirs);
                assert_eq!(got.map(Event::of), expected.map(Event::of), "seed {seed}, {pending} pending");
                now = expected.map_or(now, time_of);
            }
        }
        assert_eq!(ours.finish(), theirs.finish());
    }

    #[test]
    fn pops_in_the_order_of_a_sorted_set_with_ties_and_far_outliers() {
        for pending in [1, 4, 24, 100, 3000] {
            for seed in 0..20 {
                same_order_as_a_sorted_set(seed, pending);
            }
        }
    }

    #[test]
    fn an_event_may_come_before_the_first_of_many_that_were_pending() {
        let (mut queue, now) = (EventQueue::new(), 1 << 20);
        queue.push(event(now, Happening::Timer, 0));
        assert_eq!(queue.pop_before(Time::MAX).map(time_of), Some(now)); // the sorted stretch lasts until 2 << 20
        for number in 0..2 * LONG as u32 {
            queue.push(event(now + 500_000 + Time::from(number), Happening::Timer, number));
        }
        queue.push(event(now + 1, Happening::Timer, 0));
        let times: Vec<_> = std::iter::from_fn(|| queue.pop_before(Time::MAX)).map(time_of).collect();
        assert!(times.is_sorted() && times[0] == now + 1 && times.len() == 2 * LONG + 1, "{times:?}");
    }

    #[test]
    fn takes_all_ties_of_an_instant_and_nothing_else() {
        let mut queue = EventQueue::new();
        for (time, subject) in [(5, 3), (5, 1), (7, 0), (5, 2)] {
            queue.push(event(time, Happening::Timer, subject));
        }
        let first = queue.pop_before(Time::MAX).map(|key| Event::of(key).subject);
        let ties: Vec<_> = std::iter::from_fn(|| queue.pop_tie(5)).map(|e| e.subject).collect();
        assert_eq!((first, ties), (Some(1), vec![2, 3]));
        assert_eq!(queue.pop_before(Time::MAX).map(time_of), Some(7));
    }
}
