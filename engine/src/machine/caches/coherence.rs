//! Cache lines under tasks: what an access costs, and when those who poll a line see what was stored in it.

use super::line::Line;
use crate::machine::lock::Body;
use crate::machine::queue::Happening;
use crate::machine::state::State;
use crate::machine::task::Status;
use crate::waist::time::Time;
use crate::waist::{Access, LineId, LockId, TaskId};
use rand_core::RngCore;

impl State {
    /// Makes `task`, if it spins, look again at time `at`.
    #[inline(always)]
    pub(in crate::machine) fn spin_check(&mut self, task: TaskId, at: Time) {
        let t = &mut self.tasks[task as usize];
        let (paid, generation) = (t.started + t.segment.irq + t.segment.debt, t.generation);
        if t.spinning {
            t.look_due = true;
            self.push(at.max(self.now).max(paid), Happening::SpinCheck, task, generation);
        }
    }

    /// `poller` sees what `writer` has just written to `lock`'s line when it looks and its refetch is served.
    pub(in crate::machine) fn show(&mut self, writer: TaskId, lock: LockId, poller: TaskId) {
        self.show_nth(writer, lock, poller, 0, 1);
    }

    /// The same for the `nth` of `all` pollers, in the order in which they look.
    fn show_nth(&mut self, writer: TaskId, lock: LockId, poller: TaskId, nth: usize, all: usize) {
        if self.tasks[poller as usize].status != Status::Running {
            return; // the host has taken its CPU
        }
        let by = &self.tasks[writer as usize];
        let written = (self.now + by.segment.debt).max(by.stores_until); // stores are seen in order
        let at = match self.kernel.rules.turns {
            true => self.next_turn(writer, lock, poller, written),
            false => written + self.next_look(nth, all),
        };
        let seen = self.refetch(at, lock, poller);
        self.spin_check(poller, seen);
    }

    /// Who polls `lock` fetches its line back from `writer`, who has written to it nothing that they look for. Where CPUs take turns there
    /// are no caches.
    #[inline]
    pub(in crate::machine) fn fetch_back(&mut self, writer: TaskId, lock: LockId) {
        let l = &self.locks[lock as usize];
        if l.pollers.is_empty() || self.kernel.rules.turns {
            return;
        }
        let written = self.now + self.tasks[writer as usize].segment.debt;
        let line = &mut self.lock_lines[l.lies_in as usize];
        for &poller in &l.pollers {
            let poller = &self.tasks[poller as usize];
            if poller.status == Status::Running {
                line.refetch(&self.topology, poller.cpu, written);
            }
        }
    }

    /// CPUs take turns in the order of their numbers, one after the other in each round (`cpu_relax`). A hold that began in the turn in
    /// which it ends was met by nobody. After another, who has had its turn before the writer's looks in the next round.
    fn next_turn(&self, writer: TaskId, lock: LockId, poller: TaskId, written: Time) -> Time {
        let round = self.costs.cpu_relax.max(1);
        let begins = written - written % round;
        let was_met = self.locks[lock as usize].held_since < begins;
        let had_its_turn = self.tasks[poller as usize].cpu < self.tasks[writer as usize].cpu;
        if was_met && had_its_turn {
            begins + round
        } else {
            written
        }
    }

    /// When `poller` has the line of `lock` again, which it asks for at `at`.
    pub(in crate::machine) fn refetch(&mut self, at: Time, lock: LockId, poller: TaskId) -> Time {
        let cpu = self.tasks[poller as usize].cpu;
        let line = self.locks[lock as usize].lies_in;
        self.lock_lines[line as usize].refetch(&self.topology, cpu, at)
    }

    /// Who polls `lock` sees what `writer` has just written, in the order of coming.
    #[inline]
    pub(in crate::machine) fn show_pollers(&mut self, writer: TaskId, lock: LockId) {
        if !self.locks[lock as usize].pollers.is_empty() {
            self.show_all(writer, lock);
        }
    }

    fn show_all(&mut self, writer: TaskId, lock: LockId) {
        let pollers = std::mem::take(&mut self.locks[lock as usize].pollers);
        for &poller in &pollers {
            self.show(writer, lock, poller);
        }
        self.locks[lock as usize].pollers = pollers; // each leaves the list when it looks
    }

    /// The same in random order, of those whom `list` puts down.
    pub(in crate::machine) fn show_in_random_order(
        &mut self,
        writer: TaskId,
        lock: LockId,
        list: impl FnOnce(&mut Self, &mut Vec<TaskId>),
    ) {
        let mut order = std::mem::take(&mut self.refetches);
        order.clear();
        list(self, &mut order);
        for i in (1..order.len()).rev() {
            let j = self.random.next_u64() % (i as u64 + 1);
            order.swap(i, j as usize); // Fisher-Yates
        }
        for (nth, &poller) in order.iter().enumerate() {
            self.show_nth(writer, lock, poller, nth, order.len());
        }
        self.refetches = order;
    }

    /// `writer` stores to the queue node that `poller` polls: its copy goes, the store is done after those before it, and the
    /// line comes back when the poller looks.
    #[inline(always)]
    pub(in crate::machine) fn store_to_node(&mut self, writer: TaskId, poller: TaskId) {
        let to = self.tasks[poller as usize].cpu;
        let writer = &mut self.tasks[writer as usize];
        let transfer = self.topology.transfer(writer.cpu, to);
        writer.stores_until = writer.stores_until.max(self.now + writer.segment.debt + transfer);
        let stored = writer.stores_until + transfer;
        let looks = if self.kernel.rules.turns { 0 } else { self.next_look(0, 1) };
        self.spin_check(poller, stored + looks);
    }

    /// The running `task` reads the queue node of `other`.
    pub(in crate::machine) fn read_node(&mut self, task: TaskId, other: TaskId) {
        let time = self.topology.transfer(self.tasks[other as usize].cpu, self.tasks[task as usize].cpu);
        self.tasks[task as usize].segment.debt += time;
    }

    /// How long it takes `waker` to fetch the lines of `waiter` that it needs before it wakes it: its entry in the queue, the task's
    /// count of references and its `wake_q` (`wake_q_add`, under the wait lock). A wake-up as it was measured has them in it.
    pub(in crate::machine) fn lines_of_waiter(&self, waker: TaskId, waiter: TaskId) -> Time {
        3 * self.line_of_waiter(waker, waiter)
    }

    /// The same for one of them.
    pub(in crate::machine) fn line_of_waiter(&self, waker: TaskId, waiter: TaskId) -> Time {
        self.topology.transfer(self.tasks[waiter as usize].cpu, self.tasks[waker as usize].cpu)
    }

    /// Whether the running `task` has to fetch the line of `lock`, or of the lock inside it, to take it.
    #[inline]
    pub(in crate::machine) fn fetches(&self, task: TaskId, lock: LockId) -> bool {
        let cpu = self.tasks[task as usize].cpu;
        let l = &self.locks[lock as usize];
        let fetched = |line: LockId| self.lock_lines[line as usize].is_elsewhere(cpu);
        fetched(l.lies_in) || l.wait_lock.made().is_some_and(|inner| fetched(self.locks[inner as usize].lies_in))
    }

    /// The running `task` accesses the line of `lock`; the cost is added to what it owes.
    #[inline(always)]
    pub(in crate::machine) fn touch_lock(&mut self, task: TaskId, lock: LockId, access: Access) {
        self.at_lock(task, lock).touch(access);
    }

    /// The same of another line of `lock`, one of those that its kind has inside.
    pub(in crate::machine) fn touch_inside(
        &mut self,
        task: TaskId,
        lock: LockId,
        access: Access,
        line: impl FnOnce(&mut Body) -> &mut Line,
    ) {
        let line = line(&mut self.locks[lock as usize].body);
        self.tasks[task as usize].access_likely_own(&self.topology, line, self.now, access);
    }

    /// The running `task` accesses a data line.
    pub(in crate::machine) fn touch_line(&mut self, task: TaskId, line: LineId, access: Access) {
        let line = &mut self.lines[line as usize];
        self.tasks[task as usize].access_likely_own(&self.topology, line, self.now, access);
    }
}
