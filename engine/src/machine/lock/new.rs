//! Lock classes and locks are made, with the locks inside them.

use super::{Body, Lock, LockKind};
use crate::machine::caches::line::Line;
use crate::machine::state::State;
use crate::machine::statistics::ClassStats;
use crate::waist::{ClassId, LockId};

impl State {
    /// Makes a lock class, or finds it by name.
    pub(in crate::machine) fn class(&mut self, name: &str, role: &str, kind: LockKind) -> ClassId {
        if let Some(known) = self.known_class(name) {
            return known;
        }
        self.classes.push(ClassStats::new(name, role, kind).recording_holds(self.chains.on()));
        (self.classes.len() - 1) as ClassId
    }

    /// The lock class of a name, if it was made.
    pub(in crate::machine) fn known_class(&self, name: &str) -> Option<ClassId> {
        self.classes.iter().position(|class| class.name == name).map(|at| at as ClassId)
    }

    /// Makes a lock of a class, with the locks inside it.
    pub(in crate::machine) fn new_lock(&mut self, class: ClassId) -> LockId {
        let lock = self.new_whole_lock(class);
        self.apply_what_if(class, lock);
        lock
    }

    /// The same whatever is asked by a counterfactual.
    pub(super) fn new_whole_lock(&mut self, class: ClassId) -> LockId {
        let kind = self.classes[class as usize].kind;
        let mut lock = Lock::new(kind, class);
        lock.wait_lock = self.new_wait_lock(class, kind);
        for queue in lock.body.wait_queues() {
            queue.lock = Some(self.new_inner_lock(class, "wait_queue", |_| LockKind::QSPINLOCK));
        }
        if let Body::Semaphore(body) = &mut lock.body {
            body.allow(self.kernel.semaphore_count);
        }
        lock.number = self.next_number(class);
        self.push_lock(lock)
    }

    /// That of one more lock of `class`.
    pub(super) fn next_number(&mut self, class: ClassId) -> u32 {
        self.classes[class as usize].instances += 1;
        self.lock_numbers += 1;
        self.lock_numbers - 1
    }

    pub(super) fn push_lock(&mut self, lock: Lock) -> LockId {
        let id = self.locks.len() as LockId;
        self.locks.push(Lock { lies_in: id, ..lock });
        self.lock_lines.push(Line::new(1));
        id
    }

    /// The kind of the lock inside one of kind `outer`: what the kernel has in its role, else the usual one.
    pub(super) fn kind_of_inner(&mut self, outer: LockKind, usual: LockKind) -> LockKind {
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
    fn new_inner_lock(
        &mut self,
        outer: ClassId,
        name: &'static str,
        kind: impl FnOnce(&mut Self) -> LockKind,
    ) -> LockId {
        let class = self.inner_class(outer, name, kind);
        self.new_lock(class)
    }

    /// The class of locks that are part of one of class `outer`: a file or a block that is made has some, so they are known.
    pub(super) fn inner_class(
        &mut self,
        outer: ClassId,
        name: &'static str,
        kind: impl FnOnce(&mut Self) -> LockKind,
    ) -> ClassId {
        let known = self.classes[outer as usize].inside.iter().find(|(known, _)| *known == name);
        let class = known.map(|&(_, class)| class);
        class.unwrap_or_else(|| self.new_inner_class(outer, name, kind))
    }

    #[cold]
    fn new_inner_class(
        &mut self,
        outer: ClassId,
        name: &'static str,
        kind: impl FnOnce(&mut Self) -> LockKind,
    ) -> ClassId {
        let kind = kind(self);
        let whole = format!("{}.{name}", self.classes[outer as usize].name);
        let class = self.class(&whole, "wait_lock", kind);
        self.classes[outer as usize].inside.push((name, class));
        class
    }
}
