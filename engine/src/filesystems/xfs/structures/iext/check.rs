//! Whether an extent map is whole.

use super::{BlockNo, Extent, ExtentMap, NONE};

impl<E: Extent> ExtentMap<E> {
    /// Checks order, keys, links and levels.
    pub fn check(&self) -> Result<(), String> {
        let mut leaves = Vec::new();
        if self.height > 0 {
            self.check_below(self.root, self.height, &mut leaves)?;
        }
        let mut prev = NONE;
        for (at, &no) in leaves.iter().enumerate() {
            let leaf = self.leaf(no);
            if leaf.prev != prev || leaf.next != leaves.get(at + 1).copied().unwrap_or(NONE) {
                return Err(format!("leaf {no} has the wrong neighbours"));
            }
            prev = no;
        }
        let extents: Vec<&E> = self.iter().collect();
        if extents.len() != self.count || extents.windows(2).any(|pair| pair[0].end() > pair[1].offset()) {
            return Err("extents are lost or overlap".into());
        }
        Ok(())
    }

    /// Checks a block, and returns the first offset in it.
    fn check_below(&self, no: BlockNo, level: usize, leaves: &mut Vec<BlockNo>) -> Result<u64, String> {
        if level == 1 {
            leaves.push(no);
            return self.leaf(no).records.first().map(Extent::offset).ok_or_else(|| format!("leaf {no} is empty"));
        }
        let node = self.node(no);
        if node.keys.len() != node.children.len() || node.keys.is_empty() || (no == self.root && node.keys.len() == 1) {
            return Err(format!("node {no} has {} keys for {} children", node.keys.len(), node.children.len()));
        }
        for (&key, &child) in node.keys.iter().zip(&node.children) {
            let first = self.check_below(child, level - 1, leaves)?;
            if key != first {
                return Err(format!("a key of node {no} is {key}, and {first} is first below it"));
            }
        }
        Ok(node.keys[0])
    }
}
