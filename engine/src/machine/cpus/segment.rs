//! Segments: stretches of CPU time of a task, and their exact booking.

use crate::machine::queue::{Event, Happening};
use crate::machine::state::State;
use crate::machine::task::{Resume, Segment};
use crate::machine::trace::Object;
use crate::spec::Preemption;
use crate::waist::time::Time;
use crate::waist::{Account, CpuId, TaskId};

impl State {
    /// Starts a stretch of `own` CPU time for the running task `id`, after what it owes. Returns whether it is over already:
    /// nothing else happens before its end.
    pub(in crate::machine) fn start_segment(&mut self, id: TaskId, account: Account, own: Time) -> bool {
        if account == Account::System && own > 0 {
            self.fetch_code(id, own);
        }
        let own = if own == 0 { 0 } else { self.paces.taken(id, account, own) };
        self.start(id, account, own, false)
    }

    #[inline(always)]
    pub(in crate::machine) fn start(&mut self, id: TaskId, account: Account, own: Time, in_turns: bool) -> bool {
        let quiet_until = self.quiet_until();
        let task = &mut self.tasks[id as usize];
        let cpu = &mut self.cpus[task.cpu as usize];
        task.account = account;
        task.in_turns = in_turns;
        task.beside = 0;
        task.segment.own = if task.scaled_holds == 0 { own } else { (own as f64 * self.hold_scale).round() as Time };
        if cpu.need_resched || in_turns {
            return self.start_among_others(id);
        }
        if cpu.beside > 0 {
            task.beside = cpu.beside;
            task.segment.own = (task.segment.own as f64 * self.topology.stretch(0, cpu.beside)) as Time;
        }
        task.generation = task.generation.wrapping_add(1);
        let end = self.now + task.segment.total();
        if end >= quiet_until {
            task.resume = Resume::Segment;
            task.started = self.now;
            let generation = task.generation;
            self.push(end, Happening::SegmentEnd, id, generation);
            return false;
        }
        task.started = end;
        task.resume = Resume::Program;
        let Segment { irq, debt, own } = std::mem::take(&mut task.segment);
        cpu.book(end, irq, debt, account, own);
        self.go_on_to(end);
        self.note("segment end", id, Object::Nothing);
        true
    }

    /// The segment of `id` that was just made begins where its CPU is wanted, or it may be looked at before its end. Returns whether
    /// it is over already.
    fn start_among_others(&mut self, id: TaskId) -> bool {
        let task = &mut self.tasks[id as usize];
        task.resume = Resume::Segment;
        task.started = self.now;
        if self.cpus[task.cpu as usize].need_resched {
            self.continue_segment(id);
            return false;
        }
        let end = self.segment_end(id);
        let over = end.time < self.quiet_until();
        if over {
            self.go_on_to(end.time);
            self.end_segment(id);
        } else {
            self.events.push(end);
        }
        over
    }

    /// The running task `id` pays what it owes. Returns whether that is done already.
    #[inline]
    pub(in crate::machine) fn pay(&mut self, id: TaskId) -> bool {
        self.tasks[id as usize].segment.total() == 0 || self.start_debt(id)
    }

    /// Whether the running task `id` has queued for a line, and the time at which it has it is not here yet.
    #[inline]
    pub(in crate::machine) fn has_queued(&self, id: TaskId) -> bool {
        self.tasks[id as usize].queued_until > self.now
    }

    /// What it has queued for so far is for something else.
    #[inline]
    pub(in crate::machine) fn forget_queues(&mut self, id: TaskId) {
        self.tasks[id as usize].queued_until = 0;
    }

    /// If so it pays what it owes, so that those who come meanwhile are behind it in the queue, and before what it does next.
    /// Returns whether that is done already.
    #[inline]
    pub(in crate::machine) fn settle(&mut self, id: TaskId) -> bool {
        !self.has_queued(id) || self.pay(id)
    }

    /// What the running task `id` owes is all that it does now. Returns whether that is over already.
    fn start_debt(&mut self, id: TaskId) -> bool {
        self.start(id, Account::System, 0, false)
    }

    /// The running task `id` goes on with its segment, unless the scheduler wants its CPU for another one.
    pub(in crate::machine) fn continue_segment(&mut self, id: TaskId) {
        let cpu = self.tasks[id as usize].cpu;
        self.tasks[id as usize].resume = Resume::Segment;
        self.tasks[id as usize].started = self.now;
        if self.cpus[cpu as usize].need_resched && self.preemptible(id) {
            if let Some(next) = self.replacement(cpu) {
                return self.preempt(cpu, next);
            }
        }
        self.run_segment(id);
    }

    /// From now on what is left of the segment of `id` is used up.
    pub(in crate::machine) fn run_segment(&mut self, id: TaskId) {
        let end = self.segment_end(id);
        self.events.push(end);
    }

    /// The end of the segment of `id`, if what is left of it is used up from now on.
    #[inline(always)]
    fn segment_end(&mut self, id: TaskId) -> Event {
        self.stretch(id);
        let task = &mut self.tasks[id as usize];
        task.generation = task.generation.wrapping_add(1);
        let (generation, mut left) = (task.generation, task.segment.total());
        if task.in_turns {
            left = self.until_look(id, left);
        }
        Event { time: self.now + left, what: Happening::SegmentEnd, subject: id, generation }
    }

    /// The segment of `id` is used up: its program goes on.
    #[inline(always)]
    pub(in crate::machine) fn end_segment(&mut self, id: TaskId) {
        let now = self.now;
        let task = &mut self.tasks[id as usize];
        let Segment { irq, debt, own } = std::mem::take(&mut task.segment);
        debug_assert_eq!(now - task.started, irq + debt + own, "task {id}");
        task.started = now;
        task.resume = Resume::Program;
        let (cpu, account) = (&mut self.cpus[task.cpu as usize], task.account);
        cpu.book(now, irq, debt, account, own);
        if task.in_turns {
            self.book_turns(id, own);
        }
        self.note("segment end", id, Object::Nothing);
    }

    /// Books the running segment of `id` up to now; its remainder stays.
    #[inline]
    pub(in crate::machine) fn book_segment(&mut self, id: TaskId) {
        let now = self.now;
        let task = &mut self.tasks[id as usize];
        let elapsed = now - task.started;
        task.started = now;
        let (irq, debt, own) = task.segment.consume(elapsed);
        let (cpu, account) = (&mut self.cpus[task.cpu as usize], task.account);
        cpu.book(now, irq, debt, account, own);
        if task.in_turns {
            self.book_turns(id, own);
        }
    }

    /// The running task `id` stays on its CPU until it is made to look ([`State::spin_check`]).
    #[inline(always)]
    pub(in crate::machine) fn begin_spin(&mut self, id: TaskId, until_resched: bool) {
        let task = &mut self.tasks[id as usize];
        task.generation = task.generation.wrapping_add(1);
        task.resume = Resume::Program;
        task.spinning = true;
        task.started = self.now;
        task.spins_until_resched = until_resched;
        task.look_due = false;
        let cpu = task.cpu;
        self.set_executing(cpu, false);
        self.chain_of_task_changes(id);
    }

    /// Books the spin of `id` up to now: first the interrupts that came and what it owed.
    #[inline(always)]
    pub(in crate::machine) fn book_spin(&mut self, id: TaskId) {
        let task = &mut self.tasks[id as usize];
        let (irq, debt, _) = task.segment.consume(self.now - task.started);
        task.started = self.now;
        let cpu = &mut self.cpus[task.cpu as usize];
        cpu.accounts[Account::Irq as usize] += irq;
        cpu.accounts[Account::System as usize] += debt;
        cpu.accounted += irq + debt;
        cpu.account(self.now, Account::Spin);
    }

    /// An interrupt that wakes somebody comes to `cpu` and takes its time from whatever runs there: on an idle CPU from who
    /// runs there next, whose own wake-up is the end of its idling.
    pub(in crate::machine) fn interrupt(&mut self, cpu: CpuId, handler: Time) {
        let wakeup = if self.cpus[cpu as usize].current.is_some() { self.costs.wakeup } else { 0 };
        self.steal(cpu, handler + wakeup);
    }

    /// Interrupts take so much time from whatever runs on `cpu`, or from who runs there next.
    pub(in crate::machine) fn steal(&mut self, cpu: CpuId, time: Time) {
        let Some(id) = self.cpus[cpu as usize].current else {
            self.cpus[cpu as usize].owed_irq += time;
            return;
        };
        if self.tasks[id as usize].resume == Resume::Segment {
            self.book_segment(id);
            self.tasks[id as usize].segment.irq += time;
            self.run_segment(id);
        } else {
            if self.tasks[id as usize].spinning {
                self.book_spin(id); // the handler runs while the task waits
            }
            self.tasks[id as usize].segment.irq += time;
        }
    }

    /// Whether `id` may be preempted in its current segment.
    pub(in crate::machine) fn preemptible(&self, id: TaskId) -> bool {
        let task = &self.tasks[id as usize];
        match self.kernel.preemption {
            Preemption::Host => true,
            Preemption::Full => task.preempt_off == 0,
            _ => task.preempt_off == 0 && self.in_user_mode(id),
        }
    }

    /// Whether the segment of `id` is in user mode now.
    pub(in crate::machine) fn in_user_mode(&self, id: TaskId) -> bool {
        let task = &self.tasks[id as usize];
        task.account == Account::User && !(task.in_turns && self.left_of_kernel(id) > 0)
    }

    /// A preempt-disabled section of `id` ends.
    pub(in crate::machine) fn preempt_enable(&mut self, id: TaskId) {
        self.tasks[id as usize].preempt_off -= 1;
    }

    /// The task that should have the CPU that `id` runs on, if the scheduler wants it to look.
    pub(in crate::machine) fn wanted_by(&mut self, id: TaskId) -> Option<TaskId> {
        let cpu = self.tasks[id as usize].cpu;
        if self.need_resched(id) {
            self.replacement(cpu)
        } else {
            None
        }
    }

    /// Whether the scheduler wants the CPU that `id` runs on to look for another task.
    pub(in crate::machine) fn need_resched(&self, id: TaskId) -> bool {
        self.cpus[self.tasks[id as usize].cpu as usize].need_resched
    }
}
