//! New tasks: where they start, and what they inherit.

use super::entity::weight_of;
use super::run_queue::Level;
use crate::kernel::sched::Groups;
use crate::machine::context::{Context, Shared};
use crate::machine::state::State;
use crate::machine::task::{Status, Task, TaskKind};
use crate::waist::{CpuId, Life, Placement, TaskId};
use std::future::Future;
use std::rc::Rc;

/// Makes a task and wakes it. `parent` is the running task that spawns it and its CPU.
pub(in crate::machine) fn spawn<P, F>(
    shared: &Rc<Shared>,
    parent: Option<(TaskId, CpuId)>,
    placement: Placement,
    life: Life,
    program: P,
) -> TaskId
where
    P: FnOnce(Context) -> F,
    F: Future<Output = ()> + 'static,
{
    let id = {
        let mut s = shared.state.borrow_mut();
        let task = s.new_task(parent, placement, life);
        s.number(task)
    };
    let context = Context { shared: shared.clone(), id };
    shared.spawned.borrow_mut().push((id, Box::pin(program(context))));
    let mut s = shared.state.borrow_mut();
    if life == Life::Setup {
        s.setting_up = Some(id);
    }
    debug_assert_eq!(s.tasks[id as usize].status, Status::Sleeping);
    s.start_task(id, parent.map(|p| p.0));
    id
}

impl State {
    fn new_task(&mut self, parent: Option<(TaskId, CpuId)>, placement: Placement, life: Life) -> Task {
        self.note_idle_cpus();
        let near = parent.map_or(0, |p| p.1);
        let (cpu, pinned) = match placement {
            Placement::Pinned(cpu) => (cpu, Some(cpu)),
            Placement::Anywhere if life == Life::Foreground || parent.is_none() => {
                (self.choose_cpu_at_start(near), None)
            }
            Placement::Anywhere => (self.choose_cpu_for_new(near), None),
        };
        let kind = match (life, pinned) {
            (Life::Foreground | Life::Helper | Life::Setup, _) => TaskKind::Load,
            (Life::Background, Some(_)) => TaskKind::Bound,
            (Life::Background, None) => TaskKind::Kernel,
        };
        let mut task = Task::new(cpu, pinned, kind, self.now);
        task.background = life != Life::Foreground;
        if let Some((parent, near)) = parent {
            if life == Life::Helper {
                self.take_stack(near);
            }
            let parent = &self.tasks[parent as usize];
            (task.level, task.entity.weight) = (parent.level, parent.entity.weight);
        }
        if life == Life::Foreground {
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
