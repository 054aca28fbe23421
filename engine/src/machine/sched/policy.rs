//! Who competes in which run queue, and which of a CPU's tasks runs. What differs between EEVDF and CFS, the scheduler before 6.6,
//! is asked of `eevdf` and `cfs`, run queue by run queue.

use super::cfs::Cfs;
use super::eevdf::eevdf_update;
use super::entity::{weight_of, Member};
use super::run_queue::{EntityInQueue, Level};
use crate::kernel::sched::Groups;
use crate::machine::state::State;
use crate::waist::{CpuId, TaskId};

/// How a member comes into a run queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entering {
    /// For the first time.
    New,
    /// From sleep.
    Woken,
    /// From another CPU's queue.
    Moved,
}

/// Why a task leaves its run queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It sleeps.
    Sleeping,
    /// It has ended.
    Ended,
    /// For another CPU's queue.
    Moved,
}

impl State {
    fn cfs(&self) -> Option<Cfs> {
        self.kernel.cfs
    }

    /// Brings the virtual run times of the current task and its group up to date (`update_curr`). A used-up slice sets
    /// `need_resched`; who calls it sees to that.
    #[inline]
    pub(super) fn update_current(&mut self, cpu: CpuId) {
        let now = self.now;
        let c = &mut self.cpus[cpu as usize];
        let Some(id) = c.executing_task() else { return };
        let ran = (now - c.exec_start) as i64;
        c.exec_start = now;
        if ran == 0 {
            return;
        }
        for &level in self.levels_of(id) {
            let member = self.member_at(level, id);
            let fair_clock = self.cfs().is_some();
            let (slice, preempt_short) = (self.kernel.base_slice as i64, self.kernel.rules.preempt_short);
            let EntityInQueue { entity, queue, .. } = self.entity_in_queue(cpu, level, member);
            entity.vruntime += entity.virtual_time(ran);
            entity.ran += ran;
            if fair_clock {
                self.cfs_update(cpu, level);
            } else if eevdf_update(entity, queue, slice, preempt_short) {
                let c = &mut self.cpus[cpu as usize];
                c.need_resched = true;
                c.group_is_next &= member != Member::Group;
            }
        }
    }

    // ---- entering and leaving ---------------------------------------------------------------------------------

    /// `id` comes into the run queues of `cpu`; `task.cpu` is still where it was (`enqueue_task_fair`).
    pub(super) fn enqueue_task(&mut self, cpu: CpuId, id: TaskId, entering: Entering) {
        if entering != Entering::New && self.would_be_alone(cpu, id) {
            return self.enter_alone(cpu, id);
        }
        self.update_current(cpu);
        let level = self.tasks[id as usize].level;
        self.update_load(cpu, level, Member::Task(id));
        self.enqueue_entity(cpu, level, Member::Task(id), entering);
        self.tasks[id as usize].cpu = cpu;
        self.add_to_queue(cpu, id);
        self.overloaded |= self.in_queues(cpu) > 1;
        if level == Level::Group {
            self.group_has_more(cpu);
        }
        self.run_queue_mut(cpu, Level::Root).runnable += 1;
    }

    #[inline]
    fn group_has_more(&mut self, cpu: CpuId) {
        if self.cpus[cpu as usize].group.delayed {
            self.requeue(cpu, Level::Root, Member::Group);
        }
        self.update_load(cpu, Level::Root, Member::Group);
        self.update_group_weight(cpu);
        if !self.cpus[cpu as usize].group.queued {
            self.enqueue_entity(cpu, Level::Root, Member::Group, Entering::Woken);
        }
    }

    /// `member`, whose averages are up to date, comes into a run queue.
    #[inline(always)]
    fn enqueue_entity(&mut self, cpu: CpuId, level: Level, member: Member, entering: Entering) {
        match self.cfs() {
            None => self.eevdf_enter(cpu, level, member, entering),
            Some(cfs) => self.cfs_enter(cfs, cpu, level, member, entering),
        }
        self.entity_in_queue(cpu, level, member).join();
    }

    /// `id`, which runs or waits on `cpu`, leaves its run queues (`dequeue_task_fair`).
    pub(super) fn dequeue_task(&mut self, cpu: CpuId, id: TaskId, leaving: Leaving) {
        if self.runs_alone(cpu, id) {
            self.leave_alone(cpu, id);
        } else {
            self.leave_queues(cpu, id, leaving);
        }
        if leaving == Leaving::Moved && self.kernel.rules.place_rel_deadline {
            let entity = &mut self.tasks[id as usize].entity;
            entity.left_of_slice = Some(entity.deadline - entity.vruntime);
        }
    }

    fn leave_queues(&mut self, cpu: CpuId, id: TaskId, leaving: Leaving) {
        self.update_current(cpu);
        let level = self.tasks[id as usize].level;
        if leaving == Leaving::Sleeping && self.stays_delayed(cpu, level, Member::Task(id)) {
            self.cpus[cpu as usize].delayed += 1;
        } else {
            self.dequeue_entity(cpu, level, Member::Task(id));
            self.remove_from_queue(cpu, id);
            if level == Level::Group {
                self.group_has_less(cpu, leaving != Leaving::Moved);
            }
        }
        self.run_queue_mut(cpu, Level::Root).runnable -= 1;
    }

    /// Who goes to sleep ahead of the average competes on until it is not (`DELAY_DEQUEUE`).
    #[inline(always)]
    fn stays_delayed(&mut self, cpu: CpuId, level: Level, member: Member) -> bool {
        let competes = self.kernel.rules.delay_dequeue && self.cfs().is_none();
        let alone = self.run_queue(cpu, level).members == 1;
        let stays = competes && !alone && !self.is_eligible(cpu, level, member);
        if stays {
            let mut sleeper = self.entity_in_queue(cpu, level, member);
            sleeper.update_load();
            sleeper.entity.delayed = true;
            if sleeper.is_current() {
                sleeper.queue.current = None;
                sleeper.start_waiting();
            }
        }
        stays
    }

    #[inline]
    fn group_has_less(&mut self, cpu: CpuId, asleep: bool) {
        if self.run_queue(cpu, Level::Group).members > 0 {
            self.update_load(cpu, Level::Root, Member::Group);
            self.update_group_weight(cpu);
            self.cpus[cpu as usize].group_is_next |= asleep; // `set_next_buddy`: its others rather than somebody else
            return;
        }
        self.cpus[cpu as usize].group_is_next = false;
        if !self.stays_delayed(cpu, Level::Root, Member::Group) {
            self.dequeue_entity(cpu, Level::Root, Member::Group);
        }
    }

    #[inline(always)]
    fn dequeue_entity(&mut self, cpu: CpuId, level: Level, member: Member) {
        let by_vruntime = self.cfs().is_some();
        if !by_vruntime {
            self.store_lag(cpu, level, member);
        }
        let mut leaving = self.entity_in_queue(cpu, level, member);
        leaving.update_load();
        leaving.leave();
        if by_vruntime {
            self.cfs_update(cpu, level);
        }
    }

    /// Somebody who only competes for the end of its delay has been picked: it leaves, without lag (`DELAY_ZERO`).
    #[cold]
    fn finish_delay(&mut self, cpu: CpuId, level: Level, member: Member) {
        self.dequeue_entity(cpu, level, member);
        let entity = self.entity_mut(cpu, member);
        entity.delayed = false;
        entity.lag = entity.lag.min(0);
        if matches!(member, Member::Task(_)) {
            self.cpus[cpu as usize].delayed -= 1;
        }
        if level == Level::Group {
            self.group_has_less(cpu, true);
        }
    }

    /// The delayed `member` is awake again: what it has gained while it was asleep is forfeit (`requeue_delayed_entity`).
    pub(super) fn requeue(&mut self, cpu: CpuId, level: Level, member: Member) {
        self.store_lag(cpu, level, member);
        self.stop_waiting(cpu, level, member);
        let entity = self.entity_mut(cpu, member);
        entity.delayed = false;
        if entity.lag > 0 {
            entity.lag = 0;
            entity.queued = false; // it is placed beside the others
            self.eevdf_enter(cpu, level, member, Entering::Woken);
            self.entity_mut(cpu, member).queued = true;
        }
        self.start_waiting(cpu, level, member);
        self.update_load(cpu, level, member);
        if let Member::Task(id) = member {
            self.cpus[cpu as usize].delayed -= 1;
            self.run_queue_mut(cpu, Level::Root).runnable += 1;
            self.add_to_queue(cpu, id);
        }
    }

    #[inline(always)]
    pub(super) fn add_to_queue(&mut self, cpu: CpuId, id: TaskId) {
        self.cpus[cpu as usize].queue.push(id);
        self.queued.insert(cpu);
    }

    #[inline(always)]
    pub(super) fn remove_from_queue(&mut self, cpu: CpuId, id: TaskId) {
        let queue = &mut self.cpus[cpu as usize].queue;
        if matches!(queue[..], [only] if only == id) {
            queue.clear();
            self.queued.remove(cpu);
        } else if let Some(at) = queue.iter().position(|&other| other == id) {
            queue.remove(at);
            if queue.is_empty() {
                self.queued.remove(cpu);
            }
        }
    }

    // ---- choosing ---------------------------------------------------------------------------------------------

    /// The task that `cpu` should run, from the root down (`pick_task_fair`), after those who only compete for the end of their delay
    /// have left.
    #[inline(always)]
    pub(in crate::machine) fn pick(&mut self, cpu: CpuId) -> Option<TaskId> {
        self.only_choice(cpu).unwrap_or_else(|| self.pick_of_several(cpu))
    }

    #[inline(never)]
    pub(super) fn pick_of_several(&mut self, cpu: CpuId) -> Option<TaskId> {
        let mut level = Level::Root;
        loop {
            let member = self.pick_at(cpu, level)?;
            if self.entity(cpu, member).delayed {
                self.finish_delay(cpu, level, member);
                level = Level::Root;
                continue;
            }
            match member {
                Member::Task(id) => return Some(id),
                Member::Group => level = Level::Group,
            }
        }
    }

    #[inline(always)]
    fn pick_at(&self, cpu: CpuId, level: Level) -> Option<Member> {
        match self.cfs() {
            None if self.kernel.rules.pick_buddy && self.group_goes_next(cpu, level) => Some(Member::Group),
            None => self.eevdf_pick(cpu, level),
            Some(cfs) => self.cfs_pick(cfs, cpu, level),
        }
    }

    /// Whether the group, whose task has just gone to sleep, is picked again because it has other tasks (`PICK_BUDDY`).
    fn group_goes_next(&self, cpu: CpuId, level: Level) -> bool {
        level == Level::Root && self.cpus[cpu as usize].group_is_next && self.is_eligible(cpu, level, Member::Group)
    }

    /// `next`, which has been picked, has `cpu` from now on, instead of who has it now (`put_prev_entity`, `set_next_entity`). Where both
    /// are of the group, only its own run queue changes.
    #[inline(always)]
    pub(in crate::machine) fn set_next(&mut self, cpu: CpuId, next: Option<TaskId>) {
        let level = next.map(|id| self.tasks[id as usize].level);
        match next {
            None if self.nobody_runs(cpu) => {}
            Some(id) if level == Some(Level::Group) && self.nobody_runs(cpu) => self.come_to_run(cpu, id),
            _ => self.set_next_of_levels(cpu, next),
        }
    }

    #[inline(never)]
    fn set_next_of_levels(&mut self, cpu: CpuId, next: Option<TaskId>) {
        let (in_group, in_root) = match next.map(|id| (self.tasks[id as usize].level, id)) {
            None => (None, None),
            Some((Level::Group, id)) => (Some(Member::Task(id)), Some(Member::Group)),
            Some((Level::Root, id)) => (None, Some(Member::Task(id))),
        };
        self.set_next_at(cpu, Level::Group, in_group);
        self.set_next_at(cpu, Level::Root, in_root);
    }

    #[inline(always)]
    fn set_next_at(&mut self, cpu: CpuId, level: Level, next: Option<Member>) {
        let old = self.run_queue(cpu, level).current;
        if old != next {
            self.change_current(cpu, level, old, next);
        }
    }

    fn change_current(&mut self, cpu: CpuId, level: Level, old: Option<Member>, next: Option<Member>) {
        if let Some(old) = old {
            let mut previous = self.entity_in_queue(cpu, level, old);
            previous.update_load();
            previous.start_waiting();
        }
        let Some(new) = next else {
            self.run_queue_mut(cpu, level).current = None;
            return;
        };
        self.entity_in_queue(cpu, level, new).come_to_run();
        self.cpus[cpu as usize].group_is_next &= new != Member::Group;
    }

    /// Whether `woken`, which has just been queued, should run at once: it is compared with the current task where both, or their
    /// groups, are in one run queue (`check_preempt_wakeup_fair`, `find_matching_se`).
    pub(in crate::machine) fn preempts(&self, woken: TaskId, cpu: CpuId) -> bool {
        let Some(current) = self.cpus[cpu as usize].current else { return false };
        let both_inside = [current, woken].iter().all(|&id| self.tasks[id as usize].level == Level::Group);
        let level = if both_inside { Level::Group } else { Level::Root };
        let (current, woken) = (self.member_at(level, current), self.member_at(level, woken));
        match self.cfs() {
            None => self.eevdf_pick(cpu, level) == Some(woken),
            Some(cfs) => self.cfs_preempts(cfs, cpu, current, woken),
        }
    }

    /// The tick of the current task and its group (`task_tick_fair`): their averages, the group's weight, the end of a slice of CFS.
    pub(super) fn tick_current(&mut self, cpu: CpuId, id: TaskId) {
        self.update_current(cpu);
        for &level in self.levels_of(id) {
            let member = self.member_at(level, id);
            self.update_load(cpu, level, member);
            if member == Member::Group {
                self.update_group_weight(cpu);
            }
            if let Some(cfs) = self.cfs().filter(|_| self.run_queue(cpu, level).members > 1) {
                self.cpus[cpu as usize].need_resched |= self.cfs_slice_ends(cfs, cpu, level, member);
            }
        }
    }

    /// The running task `id` ends: it competes as one of the root's from now on, no longer as part of its session
    /// (`sched_autogroup_exit_task`, `sched_move_task`).
    pub(in crate::machine) fn leave_autogroup(&mut self, id: TaskId) {
        let rules = &self.kernel.rules;
        let leaves = rules.exit_leaves_autogroup && rules.groups == Groups::Autogroup;
        if !leaves || self.tasks[id as usize].level == Level::Root {
            return;
        }
        let cpu = self.tasks[id as usize].cpu;
        self.dequeue_task(cpu, id, Leaving::Moved);
        self.detach_load(id, cpu);
        let ahead = self.run_queue(cpu, Level::Root).base - self.run_queue(cpu, Level::Group).base;
        let task = &mut self.tasks[id as usize];
        task.level = Level::Root;
        task.entity.vruntime += ahead;
        self.attach_load(id, cpu);
        self.enqueue_task(cpu, id, Entering::Moved);
        self.set_next(cpu, Some(id));
        self.remove_from_queue(cpu, id);
        let c = &mut self.cpus[cpu as usize];
        c.need_resched |= !c.queue.is_empty();
    }

    /// Gives a running task another nice level (`set_user_nice`); it may not be the one that should run (`prio_changed_fair`).
    pub(in crate::machine) fn set_nice(&mut self, id: TaskId, nice: i32) {
        let task = &self.tasks[id as usize];
        let (cpu, level) = (task.cpu, task.level);
        self.reweigh(cpu, level, Member::Task(id), weight_of(nice));
        if level == Level::Group {
            self.update_load(cpu, Level::Root, Member::Group);
            self.update_group_weight(cpu);
        }
        let c = &mut self.cpus[cpu as usize];
        c.need_resched |= !c.queue.is_empty();
    }
}
