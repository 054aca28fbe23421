//! New tasks: where they start, and what they inherit.

use super::address_space::Mm;
use super::entity::weight_of;
use super::run_queue::Level;
use crate::kernel::sched::Groups;
use crate::machine::context::{Context, Program, Shared};
use crate::machine::state::State;
use crate::machine::task::{Status, Task, TaskKind};
use crate::waist::{CpuId, Placement, SpawnKind, TaskId};
use std::future::Future;
use std::rc::Rc;

/// Makes a task and wakes it. `parent` is the running task that spawns it and its CPU.
pub(in crate::machine) fn spawn<P, F>(
    shared: &Rc<Shared>,
    parent: Option<(TaskId, CpuId)>,
    placement: Placement,
    spawn_kind: SpawnKind,
    program: P,
) -> TaskId
where
    P: FnOnce(Context) -> F,
    F: Future<Output = ()> + 'static,
{
    let context = numbered(shared, parent, placement, spawn_kind);
    let id = context.id;
    start(shared, parent, spawn_kind, id, Box::pin(program(context)));
    id
}

/// The handle of a new task. This and [`start`] are what all programs have in common.
fn numbered(
    shared: &Rc<Shared>,
    parent: Option<(TaskId, CpuId)>,
    placement: Placement,
    spawn_kind: SpawnKind,
) -> Context {
    let mut s = shared.state.borrow_mut();
    let task = s.new_task(parent, placement, spawn_kind);
    Context { shared: shared.clone(), id: s.number(task) }
}

fn start(shared: &Shared, parent: Option<(TaskId, CpuId)>, spawn_kind: SpawnKind, id: TaskId, program: Program) {
    shared.spawned.borrow_mut().push((id, program));
    let mut s = shared.state.borrow_mut();
    if spawn_kind == SpawnKind::Setup {
        s.setting_up = Some(id);
    }
    debug_assert_eq!(s.tasks[id as usize].status, Status::Sleeping);
    s.start_task(id, parent.map(|p| p.0));
}

impl State {
    fn new_task(&mut self, parent: Option<(TaskId, CpuId)>, placement: Placement, spawn_kind: SpawnKind) -> Task {
        self.note_idle_cpus();
        let near = parent.map_or(0, |p| p.1);
        let (cpu, pinned) = match placement {
            Placement::Pinned(cpu) => (cpu, Some(cpu)),
            Placement::Anywhere if spawn_kind == SpawnKind::Foreground || parent.is_none() => {
                (self.choose_cpu_at_start(near), None)
            }
            Placement::Anywhere => (self.choose_cpu_for_new(near), None),
        };
        let kind = match (spawn_kind, pinned) {
            (SpawnKind::Foreground | SpawnKind::Helper | SpawnKind::Setup, _) => TaskKind::Load,
            (SpawnKind::Background, Some(_)) => TaskKind::Bound,
            (SpawnKind::Background, None) => TaskKind::Kernel,
        };
        let mut task = Task::new(cpu, pinned, kind, self.now);
        task.background = spawn_kind != SpawnKind::Foreground;
        task.label = self.labels.give(spawn_kind);
        task.mm = match spawn_kind {
            SpawnKind::Background => Mm::KERNEL,
            SpawnKind::Foreground if self.load_is_threads => Mm::LOAD,
            _ => self.last_mm.next(),
        };
        if let Some((parent, near)) = parent {
            if spawn_kind == SpawnKind::Helper {
                self.take_stack(near);
            }
            let parent = &self.tasks[parent as usize];
            (task.level, task.entity.weight) = (parent.level, parent.entity.weight);
        }
        if spawn_kind == SpawnKind::Foreground {
            task.entity.weight = weight_of(self.load_nice);
            task.level = if self.kernel.rules.groups == Groups::None { Level::Root } else { Level::Group };
        }
        task
    }

    /// The number of a new task: that of one that has ended, if there is one.
    fn number(&mut self, mut task: Task) -> TaskId {
        match self.free_tasks.pop_front() {
            Some(id) => {
                let before = &mut self.tasks[id as usize];
                task.inherit(before);
                self.tasks[id as usize] = task;
                id
            }
            None => {
                self.tasks.push(task);
                let id = (self.tasks.len() - 1) as TaskId;
                self.paces.meet(id);
                id
            }
        }
    }
}
