//! A pipe that requests go through one after the other: a device's bandwidth, or the rate of writes that its flash can take
//! for ever. A leaky bucket (ITU-T I.371, virtual scheduling).

use crate::waist::time::Time;

/// A pipe, and when it has taken all that came.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pipe {
    free: Time,
    slack: Time,
}

impl Pipe {
    /// An empty pipe that lets requests pass while it is behind by no more than `slack`.
    pub fn new(slack: Time) -> Self {
        Self { free: 0, slack }
    }

    /// Puts a request into the pipe, which it keeps for `cost`. Returns how long it waits first.
    pub fn take(&mut self, now: Time, cost: Time) -> Time {
        if cost == 0 {
            return 0;
        }
        let begins = self.free.max(now);
        self.free = begins + cost;
        begins.saturating_sub(now + self.slack)
    }
}

#[cfg(test)]
mod tests {
    use super::Pipe;

    #[test]
    fn a_pipe_takes_one_after_the_other_and_forgets_that_it_was_idle() {
        let mut pipe = Pipe::default();
        assert_eq!([pipe.take(5, 10), pipe.take(5, 10), pipe.take(7, 0), pipe.take(100, 10)], [0, 10, 0, 0]);
    }

    #[test]
    fn a_pipe_with_slack_takes_a_burst_at_once_and_then_its_rate() {
        let mut pipe = Pipe::new(20);
        let waits: Vec<_> = (0..5).map(|_| pipe.take(0, 10)).collect();
        assert_eq!(waits, [0, 0, 0, 10, 20]);
    }
}
