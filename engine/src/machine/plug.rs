//! A task's plug (`struct blk_plug`): what it has submitted and holds back, until it says so or sleeps (`sched_submit_work`, before 5.16
//! `blk_schedule_flush_plug`; `io_schedule_prepare`). What becomes one request there its owner says, who knows the kernel's rules.

use super::device::Submitter;
use super::locks::pool;
use super::state::State;
use crate::fx::FxMap;
use crate::waist::{Io, LockId, TaskId, Then};

/// What is held back.
#[derive(Debug)]
pub(super) enum Held {
    Request(u32),
    /// Who serves requests is to be woken.
    Wake(TaskId),
    /// Work is to be queued for a pool.
    Work(LockId),
}

/// That of a task.
#[derive(Debug, Default)]
struct Plug {
    held: Vec<Held>,
    flushed: u64,
}

/// Those of all tasks that have had one.
#[derive(Debug, Default)]
pub(super) struct Plugs(FxMap<TaskId, Plug>);

impl State {
    /// The plug of `id` holds something more.
    pub(super) fn hold_back(&mut self, id: TaskId, held: Held) {
        self.plugs.0.entry(id).or_default().held.push(held);
        self.tasks[id as usize].plugged = true;
    }

    /// A request becomes part of the one that is so many places before the last one in the plug of who submits it.
    pub(super) fn join_held(&mut self, before: usize, by: Submitter, io: Io, then: Then) {
        let held = self.plugs.0.get(&by.task).into_iter().flat_map(|plug| plug.held.iter().rev());
        let mut requests =
            held.filter_map(|held| if let Held::Request(request) = held { Some(*request) } else { None });
        let into = requests.nth(before).expect("the plug holds its neighbour");
        self.join(into, by, io, then);
    }

    /// How often the plug of `id` was flushed.
    pub(super) fn plug_flushed(&self, id: TaskId) -> u64 {
        self.plugs.0.get(&id).map_or(0, |plug| plug.flushed)
    }

    /// `id`, which is about to sleep, lets go of what its plug holds. Its CPU pays for wake-ups, before it switches.
    #[cold]
    pub(in crate::machine) fn flush_plug_asleep(&mut self, id: TaskId) {
        self.let_go(id, None);
    }

    /// `id`, which runs, lets go of what its plug holds.
    pub(super) fn flush_plug(&mut self, id: TaskId) {
        self.let_go(id, Some(id));
    }

    /// `by` wakes who serves what was held back; nobody does if the task is about to sleep.
    fn let_go(&mut self, id: TaskId, by: Option<TaskId>) {
        self.tasks[id as usize].plugged = false;
        let Some(plug) = self.plugs.0.get_mut(&id) else { return };
        plug.flushed += 1;
        for held in std::mem::take(&mut plug.held) {
            match held {
                Held::Request(request) => self.send(request),
                Held::Wake(worker) => {
                    if by.is_none() && self.tasks[worker as usize].parked {
                        self.pays_before_switch(id);
                    }
                    self.kick(worker, by);
                }
                Held::Work(work) => {
                    let Some(worker) = pool::insert_work(self, work) else { continue };
                    if by.is_none() {
                        self.pays_before_switch(id);
                    }
                    self.wake(worker, by);
                }
            }
        }
    }

    fn pays_before_switch(&mut self, id: TaskId) {
        let cpu = self.tasks[id as usize].cpu;
        self.cpus[cpu as usize].before_switch += self.costs.wakeup;
    }
}
