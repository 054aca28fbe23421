//! Writes that are ordered with the device's cache (`block/blk-flush.c`): one with `REQ_PREFLUSH` and `REQ_FUA` becomes up to
//! three requests, a flush, the data, and where the device has no FUA another flush.
//!
//! One flush at a time is under way, for all who wait for one when it starts; none starts while data of such a sequence
//! are written, so that those that began together share their second flush, too. So it is in each queue of the device, of which
//! an NVMe drive has one for each CPU: what two CPUs have written shares nothing (`blk_get_flush_queue`, since 3.18).

use super::{End, Request};
use std::collections::VecDeque;

/// A request of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The flush.
    Flush,
    /// The data of a sequence.
    Data(u32),
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum Next {
    /// Issue a request.
    Issue(Step),
    /// A sequence is over.
    End(End),
}

/// What a sequence consists of.
#[derive(Debug)]
pub(super) struct Sequence {
    pub preflush: bool,
    /// The write of its data; None for a flush alone.
    pub data: Option<Request>,
    pub postflush: bool,
    pub end: End,
}

#[derive(Debug)]
struct Begun {
    sequence: Sequence,
    written: bool,
}

/// `struct blk_flush_queue`.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    sequences: Vec<Option<Begun>>,
    unused: Vec<u32>,
    /// Who waits for the next flush, and for the one under way.
    pending: Vec<u32>,
    running: Vec<u32>,
    flushing: bool,
    /// Sequences whose data are under way.
    writing: u32,
    next: VecDeque<Next>,
}

impl Flushes {
    /// A sequence begins. After this and the two below, all of [`Flushes::next`] has to be done.
    pub fn begin(&mut self, sequence: Sequence) {
        let preflush = sequence.preflush;
        let begun = Some(Begun { sequence, written: false });
        let id = match self.unused.pop() {
            Some(id) => {
                self.sequences[id as usize] = begun;
                id
            }
            None => {
                self.sequences.push(begun);
                (self.sequences.len() - 1) as u32
            }
        };
        if preflush {
            self.pending.push(id);
        } else {
            self.write(id);
        }
        self.kick();
    }

    /// The flush is done (`flush_end_io`).
    pub fn flushed(&mut self) {
        self.flushing = false;
        let mut running = std::mem::take(&mut self.running);
        for id in running.drain(..) {
            let begun = self.begun(id);
            if begun.sequence.data.is_some() && !begun.written {
                self.write(id);
            } else {
                self.end(id);
            }
        }
        self.running = running;
        self.kick();
    }

    /// The data of a sequence are written (`mq_flush_data_end_io`).
    pub fn written(&mut self, id: u32) {
        self.writing -= 1;
        let begun = self.begun(id);
        begun.written = true;
        if begun.sequence.postflush {
            self.pending.push(id);
        } else {
            self.end(id);
        }
        self.kick();
    }

    /// What is to be done next.
    pub fn next(&mut self) -> Option<Next> {
        self.next.pop_front()
    }

    /// The write of a sequence's data.
    pub fn data(&self, id: u32) -> Request {
        self.sequences[id as usize].as_ref().and_then(|begun| begun.sequence.data).expect("its data are to be written")
    }

    fn begun(&mut self, id: u32) -> &mut Begun {
        self.sequences[id as usize].as_mut().expect("it is under way")
    }

    fn write(&mut self, id: u32) {
        self.writing += 1;
        self.next.push_back(Next::Issue(Step::Data(id)));
    }

    fn end(&mut self, id: u32) {
        let begun = self.sequences[id as usize].take().expect("it is under way");
        self.unused.push(id);
        self.next.push_back(Next::End(begun.sequence.end));
    }

    /// `blk_kick_flush`.
    fn kick(&mut self) {
        if self.flushing || self.writing > 0 || self.pending.is_empty() {
            return;
        }
        self.flushing = true;
        std::mem::swap(&mut self.pending, &mut self.running);
        self.next.push_back(Next::Issue(Step::Flush));
    }
}

#[cfg(test)]
mod tests {
    use super::{End, Flushes, Next, Request, Sequence, Step};

    fn log_write(done: u32, postflush: bool) -> Sequence {
        Sequence { preflush: true, data: Some(Request::write(4096, None)), postflush, end: End::Complete(done) }
    }

    /// What is to be done now: requests, and completions as numbers.
    fn next(flushes: &mut Flushes) -> (Vec<Step>, Vec<u32>) {
        let (mut steps, mut ends) = (Vec::new(), Vec::new());
        while let Some(next) = flushes.next() {
            match next {
                Next::Issue(step) => steps.push(step),
                Next::End(End::Complete(done)) => ends.push(done),
                Next::End(end) => panic!("nobody asked for {end:?}"),
            }
        }
        (steps, ends)
    }

    #[test]
    fn a_log_write_is_a_flush_then_its_data_then_a_flush_where_there_is_no_fua() {
        for (postflush, last) in [(true, (vec![Step::Flush], vec![])), (false, (vec![], vec![7]))] {
            let mut flushes = Flushes::default();
            flushes.begin(log_write(7, postflush));
            assert_eq!(next(&mut flushes), (vec![Step::Flush], vec![]));
            flushes.flushed();
            assert_eq!(next(&mut flushes), (vec![Step::Data(0)], vec![]));
            flushes.written(0);
            assert_eq!(next(&mut flushes), last);
        }
    }

    #[test]
    fn those_that_wait_when_a_flush_starts_share_it_and_their_second_one() {
        let mut flushes = Flushes::default();
        flushes.begin(log_write(1, true)); // its flush starts at once
        flushes.begin(log_write(2, true));
        flushes.begin(log_write(3, true));
        next(&mut flushes);
        flushes.flushed();
        assert_eq!(next(&mut flushes), (vec![Step::Data(0)], vec![])); // no flush beside data
        flushes.written(0);
        assert_eq!(next(&mut flushes), (vec![Step::Flush], vec![])); // the second of 1 is the first of 2 and 3
        flushes.flushed();
        assert_eq!(next(&mut flushes), (vec![Step::Data(1), Step::Data(2)], vec![1]));
        flushes.written(1);
        assert_eq!(next(&mut flushes), (vec![], vec![]));
        flushes.written(2);
        assert_eq!(next(&mut flushes), (vec![Step::Flush], vec![]));
        flushes.flushed();
        assert_eq!(next(&mut flushes), (vec![], vec![2, 3]));
    }
}
