//! What each CPU keeps of the CIL's context (`struct xlog_cil_pcp`, since 6.0): the space it has used and reserved, busy extents and items,
//! in a line of its own.

use crate::waist::{Access, ContentsId, Machine};
use std::cell::RefCell;

/// The parts of one CIL.
pub(super) struct Parts {
    lines: ContentsId,
    /// In which context each CPU has committed last.
    written: RefCell<Vec<u32>>,
}

impl Parts {
    pub(super) fn new<M: Machine>(m: &M) -> Self {
        Self { lines: m.new_contents(), written: RefCell::new(vec![0; m.cpus() as usize]) }
    }

    /// A commit to a context on this CPU (`xlog_cil_insert_items`). Whether it is the first there (`cil_pcpmask`).
    pub(super) fn write<M: Machine>(&self, m: &M, sequence: u32) -> bool {
        let cpu = m.cpu();
        m.touch_contents(self.lines, cpu..cpu + 1, Access::Write);
        std::mem::replace(&mut self.written.borrow_mut()[cpu as usize], sequence) != sequence
    }

    /// Whoever pushes the context reads and clears all of them.
    pub(super) fn gather<M: Machine>(&self, m: &M) {
        m.touch_contents(self.lines, 0..m.cpus(), Access::Write);
    }
}
