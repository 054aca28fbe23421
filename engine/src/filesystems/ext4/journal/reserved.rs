//! Credits that are promised to handles which end writes (`jbd2_journal_start_reserved`, since 3.11): at most half of a transaction's, as
//! each has to have room in whatever transaction runs then. Who finds none sleeps in one queue, of which all are woken whenever a
//! credit is given back (`sub_reserved_credits`).

use super::{wake_all, Journal};
use crate::waist::{Access, Machine, TaskId};
use std::cell::{Cell, RefCell};

/// What is promised.
#[derive(Debug, Default)]
pub(super) struct Reserved {
    /// `j_reserved_credits`.
    credits: Cell<u32>,
    /// Who waits for some (`j_wait_reserved`), the newest last.
    waiting: RefCell<Vec<TaskId>>,
}

impl Reserved {
    /// What every transaction begins with.
    pub fn credits(&self) -> u32 {
        self.credits.get()
    }

    /// So many more, if no more than this are promised then.
    pub fn take(&self, credits: u32, most: u32) -> bool {
        let fits = self.credits.get() + credits <= most;
        if fits {
            self.credits.set(self.credits.get() + credits);
        }
        fits
    }
}

impl Journal {
    /// `sub_reserved_credits`.
    pub(super) async fn give_back<M: Machine>(&self, m: &M, credits: u32) {
        m.touch_beside(self.list_lock, Access::Atomic); // j_reserved_credits
        m.settle().await;
        self.reserved.credits.set(self.reserved.credits.get().saturating_sub(credits));
        wake_all(m, &self.reserved.waiting).await;
    }

    /// Waits until so many credits beside those that are promised are no more than this.
    pub(super) async fn wait_reserved<M: Machine>(&self, m: &M, credits: u32, most: u32) {
        while self.reserved.credits.get() + credits > most {
            self.reserved.waiting.borrow_mut().push(m.task());
            m.wchan("add_transaction_credits");
            m.park().await;
        }
    }
}
