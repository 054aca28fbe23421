//! The augmented red-black interval tree (`lib/rbtree.c`, `include/linux/interval_tree_generic.h`): intervals in the order
//! of their start, each with the greatest end at or below it.
//!
//! Nodes are slots that the caller chooses, as the kernel's are embedded in the caller's structures.

use super::{NodeId, Touch};
use crate::waist::Access;

const NIL: NodeId = NodeId::MAX;
const LEFT: usize = 0;
const RIGHT: usize = 1;

#[derive(Clone, Copy, Debug)]
struct Node {
    start: u64,
    last: u64,
    subtree_last: u64,
    parent: NodeId,
    child: [NodeId; 2],
    red: bool,
}

const UNUSED: Node = Node { start: 0, last: 0, subtree_last: 0, parent: NIL, child: [NIL; 2], red: false };

/// A set of intervals `start..=last`; equal ones may be in it.
#[derive(Clone, Debug)]
pub struct IntervalTree {
    root: NodeId,
    leftmost: NodeId,
    nodes: Vec<Node>,
}

impl Default for IntervalTree {
    fn default() -> Self {
        Self { root: NIL, leftmost: NIL, nodes: Vec::new() }
    }
}

impl IntervalTree {
    /// Whether there is no interval.
    pub fn is_empty(&self) -> bool {
        self.root == NIL
    }

    /// The interval in a slot.
    pub fn interval(&self, id: NodeId) -> (u64, u64) {
        (self.nodes[id as usize].start, self.nodes[id as usize].last)
    }

    /// The first interval, by start, that meets `start..=last` (`interval_tree_iter_first`). The root and the leftmost
    /// node alone often say that there is none.
    pub fn first_overlap(&self, start: u64, last: u64, touch: &mut impl Touch) -> Option<NodeId> {
        if !self.reaches(self.root, start, touch) || self.read(self.leftmost, touch).start > last {
            return None;
        }
        self.search_below(self.root, start, last, touch)
    }

    /// The next one after `node` (`interval_tree_iter_next`).
    pub fn next_overlap(&self, node: NodeId, start: u64, last: u64, touch: &mut impl Touch) -> Option<NodeId> {
        let mut node = node;
        loop {
            let right = self.nodes[node as usize].child[RIGHT];
            if self.reaches(right, start, touch) {
                return self.search_below(right, start, last, touch);
            }
            node = self.first_ancestor_on_the_right(node, touch)?;
            let here = &self.nodes[node as usize];
            if last < here.start {
                return None;
            }
            if start <= here.last {
                return Some(node);
            }
        }
    }

    /// Adds an interval in slot `id`, which is not in the tree.
    pub fn insert(&mut self, id: NodeId, start: u64, last: u64, touch: &mut impl Touch) {
        if self.nodes.len() <= id as usize {
            self.nodes.resize(id as usize + 1, UNUSED);
        }
        let (mut parent, mut at, mut side, mut leftmost) = (NIL, self.root, LEFT, true);
        while at != NIL {
            parent = at;
            if self.read(at, touch).subtree_last < last {
                self.change(at, touch).subtree_last = last;
            }
            side = usize::from(start >= self.nodes[at as usize].start);
            leftmost &= side == LEFT;
            at = self.nodes[at as usize].child[side];
        }
        *self.change(id, touch) = Node { start, last, subtree_last: last, parent, child: [NIL; 2], red: true };
        if leftmost {
            self.leftmost = id;
        }
        match parent {
            NIL => self.root = id,
            _ => self.change(parent, touch).child[side] = id,
        }
        self.rebalance_after_insert(id, touch);
    }

    /// Removes the interval in slot `id` (`rb_erase_augmented_cached`).
    pub fn erase(&mut self, id: NodeId, touch: &mut impl Touch) {
        let Node { parent, child: [left, right], red, .. } = *self.read(id, touch);
        if self.leftmost == id {
            self.leftmost = if right == NIL { parent } else { right }; // below the leftmost node there is at most one leaf
        }
        let (hole, side, lost_black) = if left == NIL || right == NIL {
            let heir = if left == NIL { right } else { left };
            let side = self.replace(id, parent, heir, touch);
            self.update_ends(parent, NIL, touch);
            (parent, side, !self.blacken(heir, touch) && !red)
        } else {
            self.put_successor_in_place_of(id, touch)
        };
        if lost_black && hole != NIL {
            self.rebalance_after_erase(hole, side, touch);
        }
    }

    /// Checks order, links, greatest ends and colours, and returns the number of intervals.
    pub fn check(&self) -> Result<usize, String> {
        if self.is_red(self.root) {
            return Err("the root is red".into());
        }
        let mut in_order = Vec::new();
        self.check_below(self.root, NIL, &mut in_order)?;
        if in_order.windows(2).any(|pair| self.interval(pair[0]).0 > self.interval(pair[1]).0) {
            return Err("starts are out of order".into());
        }
        if self.root != NIL && in_order[0] != self.leftmost {
            return Err(format!("{} is leftmost, not {}", in_order[0], self.leftmost));
        }
        Ok(in_order.len())
    }

    /// Returns the greatest end and the number of black nodes on every way down.
    fn check_below(&self, id: NodeId, parent: NodeId, in_order: &mut Vec<NodeId>) -> Result<(u64, usize), String> {
        if id == NIL {
            return Ok((0, 0));
        }
        let node = &self.nodes[id as usize];
        let (left_last, left_black) = self.check_below(node.child[LEFT], id, in_order)?;
        in_order.push(id);
        let (right_last, right_black) = self.check_below(node.child[RIGHT], id, in_order)?;
        let greatest = node.last.max(left_last).max(right_last);
        let broken = [
            (node.parent != parent, "wrong parent"),
            (node.subtree_last != greatest, "wrong greatest end"),
            (left_black != right_black, "black heights differ"),
            (node.red && node.child.iter().any(|&child| self.is_red(child)), "red below red"),
        ];
        match broken.iter().find(|(is, _)| *is) {
            Some((_, what)) => Err(format!("node {id}: {what}")),
            None => Ok((greatest, left_black + usize::from(!node.red))),
        }
    }

    // Nodes

    fn read(&self, id: NodeId, touch: &mut impl Touch) -> &Node {
        touch(id, Access::Read);
        &self.nodes[id as usize]
    }

    fn change(&mut self, id: NodeId, touch: &mut impl Touch) -> &mut Node {
        touch(id, Access::Write);
        &mut self.nodes[id as usize]
    }

    fn is_red(&self, id: NodeId) -> bool {
        id != NIL && self.nodes[id as usize].red
    }

    fn side_of(&self, parent: NodeId, child: NodeId) -> usize {
        usize::from(parent != NIL && self.nodes[parent as usize].child[RIGHT] == child)
    }

    // Search

    /// Whether some interval at or below `id` ends at `start` or later.
    fn reaches(&self, id: NodeId, start: u64, touch: &mut impl Touch) -> bool {
        id != NIL && start <= self.read(id, touch).subtree_last
    }

    /// `interval_tree_subtree_search`: something at or below `node` ends late enough.
    fn search_below(&self, node: NodeId, start: u64, last: u64, touch: &mut impl Touch) -> Option<NodeId> {
        let mut node = node;
        loop {
            let Node { child: [left, right], start: here, last: end, .. } = self.nodes[node as usize];
            if self.reaches(left, start, touch) {
                node = left; // the leftmost candidate lies there, or none starts early enough
            } else if here > last {
                return None;
            } else if start <= end {
                return Some(node);
            } else if self.reaches(right, start, touch) {
                node = right;
            } else {
                return None;
            }
        }
    }

    fn first_ancestor_on_the_right(&self, node: NodeId, touch: &mut impl Touch) -> Option<NodeId> {
        let (mut below, mut node) = (node, self.nodes[node as usize].parent);
        while node != NIL && self.read(node, touch).child[RIGHT] == below {
            (below, node) = (node, self.nodes[node as usize].parent);
        }
        (node != NIL).then_some(node)
    }

    // Links and greatest ends

    /// Hangs `heir` where `old` hung. Returns the side.
    fn replace(&mut self, old: NodeId, parent: NodeId, heir: NodeId, touch: &mut impl Touch) -> usize {
        let side = self.side_of(parent, old);
        match parent {
            NIL => self.root = heir,
            _ => self.change(parent, touch).child[side] = heir,
        }
        if heir != NIL {
            self.change(heir, touch).parent = parent;
        }
        side
    }

    fn hang(&mut self, parent: NodeId, side: usize, child: NodeId, touch: &mut impl Touch) {
        self.change(parent, touch).child[side] = child;
        if child != NIL {
            self.change(child, touch).parent = parent;
        }
    }

    fn greatest_end(&self, id: NodeId, touch: &mut impl Touch) -> u64 {
        let node = &self.nodes[id as usize];
        let below = node.child.into_iter().filter(|&child| child != NIL);
        below.fold(node.last, |last, child| last.max(self.read(child, touch).subtree_last))
    }

    /// `augment_propagate`: from `id` up to `stop`, as long as something changes.
    fn update_ends(&mut self, id: NodeId, stop: NodeId, touch: &mut impl Touch) {
        let mut id = id;
        while id != stop && id != NIL {
            let last = self.greatest_end(id, touch);
            if self.read(id, touch).subtree_last == last {
                break;
            }
            self.change(id, touch).subtree_last = last;
            id = self.nodes[id as usize].parent;
        }
    }

    /// Moves `id` down to `side`; its other child takes its place.
    fn rotate(&mut self, id: NodeId, side: usize, touch: &mut impl Touch) {
        let Node { parent, child, subtree_last, .. } = self.nodes[id as usize];
        let up = child[1 - side];
        let inner = self.nodes[up as usize].child[side];
        self.replace(id, parent, up, touch);
        self.hang(id, 1 - side, inner, touch);
        self.hang(up, side, id, touch);
        self.nodes[up as usize].subtree_last = subtree_last;
        self.nodes[id as usize].subtree_last = self.greatest_end(id, touch);
    }

    // Colours

    fn rebalance_after_insert(&mut self, id: NodeId, touch: &mut impl Touch) {
        let mut node = id;
        loop {
            let mut parent = self.nodes[node as usize].parent;
            if parent == NIL {
                self.change(node, touch).red = false;
                return;
            }
            if !self.read(parent, touch).red {
                return;
            }
            let grand = self.nodes[parent as usize].parent; // a red node is not the root
            let side = self.side_of(grand, parent);
            let uncle = self.read(grand, touch).child[1 - side];
            if uncle != NIL && self.read(uncle, touch).red {
                self.change(uncle, touch).red = false;
                self.change(parent, touch).red = false;
                self.change(grand, touch).red = true;
                node = grand;
                continue;
            }
            if self.side_of(parent, node) != side {
                self.rotate(parent, side, touch);
                parent = node;
            }
            self.change(parent, touch).red = false;
            self.change(grand, touch).red = true;
            self.rotate(grand, 1 - side, touch);
            return;
        }
    }

    /// Puts the successor of `id`, which has two children, in its place. Returns below which node and on which side one is
    /// missing now, and whether that was a black one.
    fn put_successor_in_place_of(&mut self, id: NodeId, touch: &mut impl Touch) -> (NodeId, usize, bool) {
        let Node { parent, child: [left, right], red, subtree_last, .. } = self.nodes[id as usize];
        let mut heir = right;
        while self.read(heir, touch).child[LEFT] != NIL {
            heir = self.nodes[heir as usize].child[LEFT];
        }
        let Node { parent: above, child: [_, below], red: heir_red, .. } = self.nodes[heir as usize];
        let (hole, side) = if above == id { (heir, RIGHT) } else { (above, LEFT) };
        if above != id {
            self.hang(above, LEFT, below, touch);
            self.hang(heir, RIGHT, right, touch);
        }
        self.hang(heir, LEFT, left, touch);
        self.replace(id, parent, heir, touch);
        let place = self.change(heir, touch);
        (place.red, place.subtree_last) = (red, subtree_last);
        self.update_ends(hole, heir, touch);
        self.update_ends(heir, NIL, touch);
        (hole, side, !self.blacken(below, touch) && !heir_red)
    }

    /// An only child is a red leaf: it takes the colour of the black node whose place it has. Returns whether there is one.
    fn blacken(&mut self, heir: NodeId, touch: &mut impl Touch) -> bool {
        if heir != NIL {
            self.change(heir, touch).red = false;
        }
        heir != NIL
    }

    /// On `side` of `parent` every way down has a black node too few.
    fn rebalance_after_erase(&mut self, parent: NodeId, side: usize, touch: &mut impl Touch) {
        let (mut parent, mut side) = (parent, side);
        loop {
            let mut sibling = self.nodes[parent as usize].child[1 - side];
            if self.read(sibling, touch).red {
                self.rotate(parent, side, touch);
                self.change(sibling, touch).red = false;
                self.change(parent, touch).red = true;
                sibling = self.nodes[parent as usize].child[1 - side];
            }
            let outer = self.read(sibling, touch).child[1 - side];
            let inner = self.nodes[sibling as usize].child[side];
            if self.is_red(outer) || self.is_red(inner) {
                return self.borrow_red(parent, side, sibling, touch);
            }
            self.change(sibling, touch).red = true;
            if self.read(parent, touch).red || self.nodes[parent as usize].parent == NIL {
                self.change(parent, touch).red = false;
                return;
            }
            let below = parent;
            parent = self.nodes[below as usize].parent;
            side = self.side_of(parent, below);
        }
    }

    /// A red child of the sibling makes up for the missing black node.
    fn borrow_red(&mut self, parent: NodeId, side: usize, sibling: NodeId, touch: &mut impl Touch) {
        let mut sibling = sibling;
        if !self.is_red(self.nodes[sibling as usize].child[1 - side]) {
            let inner = self.nodes[sibling as usize].child[side];
            self.rotate(sibling, 1 - side, touch);
            self.change(sibling, touch).red = true;
            sibling = inner;
        }
        let outer = self.nodes[sibling as usize].child[1 - side];
        let red = self.nodes[parent as usize].red;
        self.change(sibling, touch).red = red;
        self.change(parent, touch).red = false;
        self.change(outer, touch).red = false;
        self.rotate(parent, side, touch);
    }
}
