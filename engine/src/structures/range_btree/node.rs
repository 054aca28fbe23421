//! A node, and the moving of its entries.

use super::super::NodeId;
use super::{Key, Record, CHILDREN, NIL, RECORDS};

#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) leaf: bool,
    pub(super) len: usize,
    pub(super) prev: NodeId,
    pub(super) next: NodeId,
    pub(super) records: [Record; RECORDS],
    pub(super) keys: [Key; CHILDREN],
    pub(super) children: [NodeId; CHILDREN],
}

impl Node {
    pub(super) fn new(leaf: bool) -> Self {
        let (records, keys) = ([Record::default(); RECORDS], [Key::default(); CHILDREN]);
        Self { leaf, len: 0, prev: NIL, next: NIL, records, keys, children: [NIL; CHILDREN] }
    }

    pub(super) fn max(&self) -> usize {
        if self.leaf {
            RECORDS
        } else {
            CHILDREN
        }
    }

    pub(super) fn first_key(&self) -> Key {
        if self.leaf {
            self.records[0].key
        } else {
            self.keys[0]
        }
    }

    pub(super) fn records(&self) -> &[Record] {
        &self.records[..self.len]
    }

    pub(super) fn child_index(&self, key: Key) -> usize {
        self.keys[1..self.len].partition_point(|&k| k <= key)
    }

    pub(super) fn insert_record(&mut self, index: usize, record: Record) {
        self.records.copy_within(index..self.len, index + 1);
        self.records[index] = record;
        self.len += 1;
    }

    pub(super) fn insert_child(&mut self, index: usize, key: Key, child: NodeId) {
        self.keys.copy_within(index..self.len, index + 1);
        self.children.copy_within(index..self.len, index + 1);
        (self.keys[index], self.children[index]) = (key, child);
        self.len += 1;
    }

    pub(super) fn remove(&mut self, index: usize) {
        if self.leaf {
            self.records.copy_within(index + 1..self.len, index);
        } else {
            self.keys.copy_within(index + 1..self.len, index);
            self.children.copy_within(index + 1..self.len, index);
        }
        self.len -= 1;
    }

    /// Appends the entries of `other` from `from` on.
    pub(super) fn take_from(&mut self, other: &Self, from: usize) {
        let (at, count) = (self.len, other.len - from);
        if self.leaf {
            self.records[at..at + count].copy_from_slice(&other.records[from..other.len]);
        } else {
            self.keys[at..at + count].copy_from_slice(&other.keys[from..other.len]);
            self.children[at..at + count].copy_from_slice(&other.children[from..other.len]);
        }
        self.len += count;
    }
}
