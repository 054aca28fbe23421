//! Locks that hardly anybody takes, as most use what lies beside them in their line: a file's dentry has one. Such a lock has a number
//! and a line, and the rest is made when it is first taken.

use super::{Lock, LockKind};
use crate::machine::caches::line::Line;
use crate::machine::state::State;
use crate::waist::{Access, ClassId, LockId, SeldomId, TaskId};

/// One of them.
#[derive(Debug)]
pub struct Untaken {
    class: ClassId,
    number: u32,
    /// Its line, until it is made.
    line: Line,
    made: Option<LockId>,
}

impl State {
    /// Makes one. Only spinlocks can be made later as they would have been at once, and only where no counterfactual changes them.
    pub(in crate::machine) fn new_seldom_lock(&mut self, class: ClassId) -> SeldomId {
        let later = self.whatif.is_none() && matches!(self.classes[class as usize].kind, LockKind::Spin(_));
        let (number, made) = if later { (self.next_number(class), None) } else { (0, Some(self.new_lock(class))) };
        self.untaken.push(Untaken { class, number, line: Line::new(1), made });
        (self.untaken.len() - 1) as SeldomId
    }

    /// The lock, which is made if it never was.
    pub(in crate::machine) fn seldom_lock(&mut self, lock: SeldomId) -> LockId {
        self.untaken[lock as usize].made.unwrap_or_else(|| self.make_untaken(lock))
    }

    #[cold]
    fn make_untaken(&mut self, seldom: SeldomId) -> LockId {
        let Untaken { class, number, line, .. } = &mut self.untaken[seldom as usize];
        let (class, number, line) = (*class, *number, std::mem::replace(line, Line::new(1)));
        let made = self.push_lock(Lock { number, ..Lock::new(self.classes[class as usize].kind, class) });
        self.lock_lines[made as usize] = line;
        self.untaken[seldom as usize].made = Some(made);
        made
    }

    /// The running `task` accesses the line of one that was never made. Whether it did; else the lock is this.
    pub(in crate::machine) fn touch_untaken(
        &mut self,
        task: TaskId,
        lock: SeldomId,
        access: Access,
    ) -> Result<(), LockId> {
        let untaken = &mut self.untaken[lock as usize];
        if let Some(made) = untaken.made {
            return Err(made);
        }
        self.tasks[task as usize].access(&self.topology, &mut untaken.line, self.now, access);
        Ok(())
    }

    /// What is counted of their lines begins anew.
    pub(in crate::machine) fn reset_untaken(&mut self) {
        self.untaken.iter_mut().for_each(|untaken| untaken.line.start_window());
    }

    /// Lines of those that were never made, and their classes.
    pub(in crate::machine) fn untaken_lines(&self) -> impl Iterator<Item = (ClassId, &Line)> + '_ {
        self.untaken.iter().map(|untaken| (untaken.class, &untaken.line))
    }
}
