//! Whether a tree is whole.

use super::key::LEAF_DATA;
use super::Tree;

impl Tree {
    /// Checks order, levels, lowest keys, and the count of bytes.
    pub fn check(&self) -> Result<(), String> {
        let mut last = None;
        for block in self.blocks() {
            if self.level(block) > 0 {
                for pointer in self.pointers(block) {
                    let child = pointer.child;
                    if self.level(child) + 1 != self.level(block) {
                        return Err(format!("block {child} is not one level below its parent {block}"));
                    }
                    if self.is_empty(child) || self.first_key(child) != pointer.key {
                        return Err(format!("the pointer of block {block} to {child} has a wrong key"));
                    }
                }
                continue;
            }
            if LEAF_DATA - self.free_space(block) != self.used_from(block, 0) {
                return Err(format!("leaf {block} has lost count of its bytes"));
            }
            for item in self.items(block) {
                if last.is_some_and(|last| last >= item.key) {
                    return Err(format!("leaf {block}: {:?} is out of order", item.key));
                }
                last = Some(item.key);
            }
        }
        Ok(())
    }
}
