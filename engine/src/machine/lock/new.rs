//! Lock classes and locks are made, with the locks inside them.

use super::{Body, Lock, LockKind};
use crate::machine::caches::line::Line;
use crate::machine::state::State;
use crate::machine::statistics::ClassStats;
use crate::waist::{ClassId, LockId};

impl State {
    /// Makes a lock class, or finds it by name.
    pub(in crate::machine) fn class(&mut self, name: &str, role: &str, kind: LockKind) -> ClassId {
        if let Some(at) = self.classes.iter().position(|c| c.name == name) {
            return at as ClassId;
        }
        self.classes.push(ClassStats::new(name, role, kind).recording_holds(self.chains.on()));
        (self.classes.len() - 1) as ClassId
    }

    /// Makes a lock of a class, with the locks inside it.
    pub(in crate::machine) fn new_lock(&mut self, class: ClassId) -> LockId {
        let lock = self.new_whole_lock(class);
        self.apply_what_if(class, lock);
        lock
    }

    /// The same whatever is asked by a counterfactual.
    pub(super) fn new_whole_lock(&mut self, class: ClassId) -> LockId {
        self.classes[class as usize].instances += 1;
        let kind = self.classes[class as usize].kind;
        let wait_lock = kind.inner().map(|(name, usual)| {
            let inner = self.kind_of_inner(kind, usual);
            self.new_inner_lock(class, name, inner)
        });
        let mut lock = Lock::new(kind, class, wait_lock);
        for queue in lock.body.wait_queues() {
            queue.lock = Some(self.new_inner_lock(class, "wait_queue", LockKind::QSPINLOCK));
        }
        if let Body::Semaphore(body) = &mut lock.body {
            body.allow(self.kernel.semaphore_count);
        }
        let number = self.locks.len() as LockId;
        lock.lies_in = number;
        self.locks.push(lock);
        self.lock_lines.push(Line::new(1));
        if let Some(inner) = wait_lock.filter(|_| kind.shares_line()) {
            self.locks[inner as usize].lies_in = number;
        }
        number
    }

    /// The kind of the lock inside one of kind `outer`: what the kernel has in its role, else the usual one.
    fn kind_of_inner(&mut self, outer: LockKind, usual: LockKind) -> LockKind {
        let told = outer.inner_role().and_then(|role| self.kernel.locks.get(role)).cloned();
        match told.map(|name| LockKind::parse(&name)) {
            None => usual,
            Some(Ok(spinlock @ LockKind::Spin(_))) => spinlock,
            Some(problem) => {
                self.give_up(|| problem.err().unwrap_or_else(|| "a lock inside another is a spinlock".into()));
                usual
            }
        }
    }

    /// Makes a lock that is part of one of class `outer`.
    fn new_inner_lock(&mut self, outer: ClassId, name: &str, kind: LockKind) -> LockId {
        let name = format!("{}.{name}", self.classes[outer as usize].name);
        let class = self.class(&name, "wait_lock", kind);
        self.new_lock(class)
    }

    /// The raw spinlock inside a sleeping lock.
    pub(in crate::machine) fn inner(&self, lock: LockId) -> LockId {
        self.locks[lock as usize].wait_lock.expect("sleeping locks have an inner spinlock")
    }

    pub(in crate::machine) fn inner_is_held(&self, lock: LockId) -> bool {
        self.locks[self.inner(lock) as usize].holder.is_some()
    }
}
