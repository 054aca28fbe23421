//! The callbacks of RCU that a CPU has queued, by the grace period that they wait for (`kernel/rcu/rcu_segcblist.c`).

use crate::waist::time::Time;

/// Some callbacks, and how long all of them take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// How many.
    pub count: u64,
    /// CPU time of all.
    pub time: Time,
    /// How many of them are stacks of processes.
    pub stacks: u64,
}

impl Batch {
    fn add(&mut self, more: Self) {
        self.count += more.count;
        self.time += more.time;
        self.stacks += more.stacks;
    }

    /// Takes so many of them away, all alike.
    fn take(&mut self, count: u64) -> Self {
        let part = |of: u64| (u128::from(of) * u128::from(count) / u128::from(self.count.max(1))) as u64;
        let taken = Self { count, time: part(self.time), stacks: part(self.stacks) };
        self.count -= count;
        self.time -= taken.time;
        self.stacks -= taken.stacks;
        taken
    }
}

/// Those of a CPU (`struct rcu_segcblist`). Grace periods are known by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Callbacks {
    /// Whose grace period is over.
    done: Batch,
    /// Those that wait for the end of this grace period.
    wait: (Batch, u64),
    /// Those that wait for a later one.
    next_ready: (Batch, u64),
    /// Those that have come since.
    next: Batch,
}

impl Callbacks {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.done.count + self.waiting()
    }

    /// How many wait for a grace period.
    pub fn waiting(&self) -> u64 {
        self.wait.0.count + self.next_ready.0.count + self.next.count
    }

    /// How many may be invoked.
    pub fn ready(&self) -> u64 {
        self.done.count
    }

    /// Whether some have no grace period yet.
    pub fn any_new(&self) -> bool {
        self.next.count > 0
    }

    /// `rcu_segcblist_enqueue`.
    pub fn enqueue(&mut self, more: Batch) {
        self.next.add(more);
    }

    /// So many grace periods are over (`rcu_segcblist_advance`).
    pub fn advance(&mut self, completed: u64) {
        if self.wait.1 > completed {
            return;
        }
        self.done.add(std::mem::take(&mut self.wait.0));
        let (batch, number) = std::mem::take(&mut self.next_ready);
        if number <= completed {
            self.done.add(batch);
        } else {
            self.wait = (batch, number);
        }
    }

    /// Those that have come since wait for this grace period, and all that wait for a later one (`rcu_segcblist_accelerate`). Returns
    /// whether somebody waits for it now.
    pub fn accelerate(&mut self, number: u64) -> bool {
        let earlier = |(batch, other): (Batch, u64)| batch.count > 0 && other < number;
        if earlier(self.next_ready) {
            return false; // there is no room for a third
        }
        let keep_wait = earlier(self.wait);
        let mut rest = std::mem::take(&mut self.next);
        rest.add(std::mem::take(&mut self.next_ready.0));
        if !keep_wait {
            rest.add(std::mem::take(&mut self.wait.0));
            self.wait.1 = number;
        }
        self.next_ready.1 = number;
        let into = if keep_wait { &mut self.next_ready.0 } else { &mut self.wait.0 };
        *into = rest;
        rest.count > 0
    }

    /// Invokes so many of those that may be, which are told.
    pub fn invoke(&mut self, count: u64) -> Batch {
        self.done.take(count)
    }

    /// How long those take that may be invoked.
    pub fn ready_time(&self) -> Time {
        self.done.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(count: u64) -> Batch {
        Batch { count, time: 10 * count, stacks: 0 }
    }

    #[test]
    fn callbacks_wait_for_their_grace_period_and_no_longer() {
        let mut callbacks = Callbacks::default();
        callbacks.enqueue(some(3));
        callbacks.advance(9);
        assert_eq!((callbacks.ready(), callbacks.waiting()), (0, 3), "they have none yet");
        assert!(callbacks.accelerate(1));
        callbacks.enqueue(some(2));
        assert!(callbacks.accelerate(2));
        callbacks.enqueue(some(1));
        assert!(!callbacks.accelerate(3), "two grace periods are waited for at most");
        callbacks.advance(1);
        assert_eq!((callbacks.ready(), callbacks.waiting()), (3, 3));
        assert!(callbacks.accelerate(3));
        callbacks.advance(3);
        assert_eq!((callbacks.ready(), callbacks.waiting()), (6, 0));
    }

    #[test]
    fn no_time_of_a_batch_is_lost_however_it_is_cut() {
        let mut callbacks = Callbacks::default();
        callbacks.enqueue(Batch { count: 7, time: 100, stacks: 3 });
        callbacks.accelerate(1);
        callbacks.advance(1);
        let mut all = Batch::default();
        for count in [1, 2, 3, 1] {
            all.add(callbacks.invoke(count));
        }
        assert_eq!((all, callbacks.count(), callbacks.ready_time()), (Batch { count: 7, time: 100, stacks: 3 }, 0, 0));
    }
}
