//! The cache lines of an index's nodes.
use crate::structures::NodeId;
use crate::waist::{Access, LineId, Machine};
use std::cell::RefCell;

/// Each node's lines, `span` neighbouring ones that are used together. A node that is used again keeps its lines, and so
/// whoever had them last.
pub struct Lines {
    span: u32,
    of: RefCell<Vec<LineId>>,
}

impl Lines {
    /// No node has lines yet.
    pub fn new(span: u32) -> Self {
        Self { span, of: RefCell::default() }
    }

    /// Accesses a node's lines.
    pub fn touch<M: Machine>(&self, m: &M, node: NodeId, access: Access) {
        let line = {
            let mut of = self.of.borrow_mut();
            while of.len() <= node as usize {
                of.push(m.new_line("range_lock.nodes", self.span));
            }
            of[node as usize]
        };
        m.touch(line, access);
    }
}
