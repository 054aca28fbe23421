//! Pointers of nodes: to new blocks, to none, and the lowest keys that they tell.

use super::key::Key;
use super::path::Path;
use super::{BlockId, Content, Pointer, Tree, MAX_LEVEL};

impl Tree {
    /// The child of a root with one pointer becomes the root.
    pub fn promote(&mut self, child: BlockId) {
        self.root = child;
    }

    /// Makes an empty node the root, with one pointer to the former root; it enters the path.
    pub fn insert_new_root(&mut self, path: &mut Path, level: usize, root: BlockId) {
        let lower = self.root;
        debug_assert_eq!(path.nodes[level - 1], Some(lower));
        let key = self.first_key(lower);
        self.pointers_mut(root).push(Pointer { key, child: lower });
        self.root = root;
        path.nodes[level] = Some(root);
        path.slots[level] = 0;
    }

    /// `insert_ptr`: a pointer to a new block into the path's node at `level`.
    pub fn insert_pointer(&mut self, path: &Path, key: Key, child: BlockId, slot: usize, level: usize) {
        let node = path.node(level);
        self.pointers_mut(node).insert(slot, Pointer { key, child });
    }

    /// `btrfs_del_ptr`: drops a pointer of the path's node at `level`.
    pub fn delete_pointer(&mut self, path: &Path, level: usize, slot: usize) {
        let node = path.node(level);
        self.pointers_mut(node).remove(slot);
        if self.is_empty(node) {
            debug_assert_eq!(node, self.root, "only a root may lose its last pointer");
            let leaf = self.change(node);
            leaf.level = 0;
            leaf.content = Content::Leaf { items: Vec::new(), used: 0 };
        } else if slot == 0 {
            self.fixup_low_keys(path, self.first_key(node), level + 1);
        }
    }

    /// `fixup_low_keys`: a block's lowest key has changed; so have those of the nodes above, as long as it is their first.
    pub fn fixup_low_keys(&mut self, path: &Path, key: Key, level: usize) {
        for level in level..MAX_LEVEL {
            let Some(node) = path.nodes[level] else { break };
            let slot = path.slots[level];
            self.pointers_mut(node)[slot].key = key;
            if slot != 0 {
                break;
            }
        }
    }

    /// Sets the key of one pointer.
    pub fn set_key(&mut self, node: BlockId, slot: usize, key: Key) {
        self.pointers_mut(node)[slot].key = key;
    }

    fn pointers_mut(&mut self, node: BlockId) -> &mut Vec<Pointer> {
        match &mut self.change(node).content {
            Content::Node(pointers) => pointers,
            Content::Leaf { .. } => unreachable!("block {node} is a leaf"),
        }
    }
}
