//! Splitting full nodes and joining those that are less than half full.

use super::super::{NodeId, Touch};
use super::node::Node;
use super::{Key, Path, RangeBTree, Record, CHILDREN, MAX_LEVELS, NIL, RECORDS};

/// What becomes of a node that has lost an entry.
pub(super) enum Fate {
    Stays,
    IsEmpty,
    JoinsLeft(NodeId),
    TakesRight(NodeId),
}

impl RangeBTree {
    // Growing

    pub(super) fn put_record(
        &mut self,
        (leaf, index): (NodeId, usize),
        record: Record,
        touch: &mut impl Touch,
    ) -> Option<(Key, NodeId)> {
        if self.nodes[leaf as usize].len < RECORDS {
            self.change(leaf, touch).insert_record(index, record);
            return None;
        }
        let keep = if index == RECORDS { RECORDS } else { RECORDS / 2 };
        let right = self.split(leaf, keep, touch);
        let (home, index) = if index < keep { (leaf, index) } else { (right, index - keep) };
        self.nodes[home as usize].insert_record(index, record);
        Some((self.nodes[right as usize].records[0].key, right))
    }

    pub(super) fn put_child(
        &mut self,
        (node, index): (NodeId, usize),
        key: Key,
        child: NodeId,
        touch: &mut impl Touch,
    ) -> Option<(Key, NodeId)> {
        if self.nodes[node as usize].len < CHILDREN {
            self.change(node, touch).insert_child(index, key, child);
            return None;
        }
        let keep = if index == CHILDREN { CHILDREN } else { CHILDREN / 2 };
        let right = self.split(node, keep, touch);
        let (home, index) = if index < keep { (node, index) } else { (right, index - keep) };
        self.nodes[home as usize].insert_child(index, key, child);
        Some((self.nodes[right as usize].keys[0], right))
    }

    /// Moves the entries of `left` from `keep` on to a new node on its right.
    pub(super) fn split(&mut self, left: NodeId, keep: usize, touch: &mut impl Touch) -> NodeId {
        let old = self.nodes[left as usize];
        let right = self.new_node(old.leaf, touch);
        self.nodes[right as usize].take_from(&old, keep);
        self.change(left, touch).len = keep;
        if old.leaf {
            (self.nodes[right as usize].prev, self.nodes[right as usize].next) = (left, old.next);
            self.nodes[left as usize].next = right;
            if old.next != NIL {
                self.change(old.next, touch).prev = right;
            }
        }
        right
    }

    pub(super) fn grow(&mut self, key: Key, right: NodeId, touch: &mut impl Touch) {
        assert!(self.levels < MAX_LEVELS, "a tree of {MAX_LEVELS} levels has room for a billion ranges");
        let (left, first) = (self.root, self.nodes[self.root as usize].first_key());
        self.root = self.new_node(false, touch);
        let root = &mut self.nodes[self.root as usize];
        root.insert_child(0, first, left);
        root.insert_child(1, key, right);
        self.levels += 1;
    }

    // Shrinking

    pub(super) fn fate(&self, path: &Path, level: usize, len: usize, touch: &mut impl Touch) -> Fate {
        let max = if level == 0 { RECORDS } else { CHILDREN };
        if level + 1 == self.levels || len >= max / 2 {
            return Fate::Stays;
        }
        if len == 0 {
            return Fate::IsEmpty;
        }
        let (parent, index) = path.0[level + 1];
        let parent = &self.nodes[parent as usize];
        if index > 0 && self.read(parent.children[index - 1], touch).len + len <= max {
            return Fate::JoinsLeft(parent.children[index - 1]);
        }
        if index + 1 < parent.len && self.read(parent.children[index + 1], touch).len + len <= max {
            return Fate::TakesRight(parent.children[index + 1]);
        }
        Fate::Stays
    }

    /// Moves all of `right`, child `index` of `parent`, into its left sibling.
    pub(super) fn join(
        &mut self,
        (parent, index): (NodeId, usize),
        left: NodeId,
        right: NodeId,
        touch: &mut impl Touch,
    ) {
        let moved = self.nodes[right as usize];
        self.change(left, touch).take_from(&moved, 0);
        self.drop_child((parent, index), touch);
    }

    /// Unlinks child `index` of `parent` and gives its node back.
    pub(super) fn drop_child(&mut self, (parent, index): (NodeId, usize), touch: &mut impl Touch) {
        let id = self.nodes[parent as usize].children[index];
        self.change(parent, touch).remove(index);
        let Node { prev, next, .. } = self.nodes[id as usize];
        if prev != NIL {
            self.change(prev, touch).next = next;
        }
        if next != NIL {
            self.change(next, touch).prev = prev;
        }
        self.spare.push(id);
    }
}
