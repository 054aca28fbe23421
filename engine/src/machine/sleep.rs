//! A task sleeps for some time. Written by hand, as programs that sleep have room for it.

use super::chains::Reason;
use super::context::Context;
use super::queue::Happening;
use super::state::State;
use crate::waist::time::Time;
use crate::waist::TaskId;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as PollContext, Poll};

/// See above.
pub(super) struct Sleep<'a> {
    cx: &'a Context,
    time: Time,
    stage: Stage,
}

/// What the task does next.
#[derive(Clone, Copy)]
enum Stage {
    /// It pays what it owes.
    Pays,
    FallsAsleep,
    Wakes,
}

/// Sleeps for `time`.
pub(super) fn sleep(cx: &Context, time: Time) -> Sleep<'_> {
    Sleep { cx, time, stage: Stage::Pays }
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut PollContext<'_>) -> Poll<()> {
        let (me, mut s) = (self.cx.id, self.cx.state());
        match self.stage {
            Stage::Pays if !s.pay(me) => self.stage = Stage::FallsAsleep,
            Stage::Pays | Stage::FallsAsleep => {
                s.sleep_for(me, self.time);
                self.stage = Stage::Wakes;
            }
            Stage::Wakes => {
                s.tasks[me as usize].function = 0;
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

impl State {
    /// The running task `id` sleeps until a timer rings after so much time.
    fn sleep_for(&mut self, id: TaskId, time: Time) {
        self.sleep(id, Reason::Timer);
        let (at, task) = (self.now + time, &self.tasks[id as usize]);
        let (cpu, generation) = (task.cpu, task.generation);
        self.note_timer(cpu, at);
        self.push(at, Happening::Timer, id, generation);
    }
}
