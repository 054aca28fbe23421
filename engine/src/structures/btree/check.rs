//! The tree's invariants.

use super::{BTree, Record, NIL};

impl<R: Record> BTree<R> {
    /// Checks order, fill, keys and sibling links of every block.
    pub fn check(&self) -> Result<(), String> {
        let mut expected = vec![self.root];
        for level in (0..self.levels).rev() {
            let mut below = Vec::new();
            for (i, &slot) in expected.iter().enumerate() {
                let left = if i == 0 { NIL } else { expected[i - 1] };
                let right = expected.get(i + 1).copied().unwrap_or(NIL);
                self.check_node(slot, level, left, right, expected.len() == 1)?;
                below.extend_from_slice(&self.nodes[slot as usize].children);
            }
            if level > 0 {
                expected = below;
            }
        }
        let records: Vec<R> = self.iter().copied().collect();
        if records.len() != self.len {
            return Err(format!("{} records in the leaves, {} counted", records.len(), self.len));
        }
        match records.windows(2).find(|pair| pair[0].key() >= pair[1].key()) {
            Some(pair) => Err(format!("record {:?} is followed by {:?}", pair[0].key(), pair[1].key())),
            None => Ok(()),
        }
    }

    fn check_node(&self, slot: u32, level: usize, left: u32, right: u32, alone: bool) -> Result<(), String> {
        let node = &self.nodes[slot as usize];
        let place = format!("level {level} block {}", node.id);
        if (node.left, node.right) != (left, right) {
            return Err(format!("{place}: wrong sibling links"));
        }
        if (level == 0) != node.children.is_empty() || node.keys.len() != node.children.len() {
            return Err(format!("{place}: entries do not fit the level"));
        }
        let min = if alone { 0 } else { self.limits.min(level) };
        if node.len() > self.max(level) || node.len() < min {
            return Err(format!("{place}: {} entries, allowed {min}..={}", node.len(), self.max(level)));
        }
        for (key, &child) in node.keys.iter().zip(&node.children) {
            let first = self.nodes[child as usize].first_key();
            if *key != first {
                return Err(format!("{place}: key {key:?} for a child that starts at {first:?}"));
            }
        }
        Ok(())
    }

    // Reading
}
