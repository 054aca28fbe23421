//! Splitting and joining the blocks of the index (`xfs_da_btree.c`).

use super::{DaBlock, NodeIndex, Path, NIL};
use crate::filesystems::xfs::structures::bmap::Change;
use crate::filesystems::xfs::structures::directory::hash::HashEntry;
use crate::filesystems::xfs::structures::directory::storage::{first_hole, put, Storage, LEAF_OFFSET};
use crate::filesystems::xfs::structures::groups::NoSpace;
use crate::filesystems::xfs::structures::touch::Touches;

impl NodeIndex {
    fn grow(&mut self, level: usize, storage: &mut Storage, change: &mut Change<'_>) -> Result<u32, NoSpace> {
        let slot = first_hole(&self.tree);
        let fsblock = storage.grow(LEAF_OFFSET, slot, change)?;
        let block = DaBlock::new(fsblock, level);
        block.touch(change.touches);
        put(&mut self.tree, slot, block);
        Ok(slot as u32)
    }

    /// `xfs_da3_split`: splits the leaf and as many nodes above as are full.
    pub(super) fn split(
        &mut self,
        path: &mut Path,
        entry: HashEntry,
        storage: &mut Storage,
        change: &mut Change<'_>,
    ) -> Result<(), NoSpace> {
        let mut added = self.split_leaf(path.leaf(), entry, storage, change)?;
        self.fix_hash_path(path, path.active, change.touches);
        for depth in (0..path.active - 1).rev() {
            let next = self.add_child(&mut path.at[depth], added, storage, change)?;
            self.fix_hash_path(path, depth + 1, change.touches);
            match next {
                Some(slot) => added = slot,
                None => return Ok(()),
            }
        }
        self.split_root(added, storage, change)
    }

    /// `xfs_dir2_leafn_split` and `xfs_dir2_leafn_rebalance`: half of the entries go to a new leaf.
    fn split_leaf(
        &mut self,
        (old, index): (u32, usize),
        entry: HashEntry,
        storage: &mut Storage,
        change: &mut Change<'_>,
    ) -> Result<u32, NoSpace> {
        let new = self.grow(0, storage, change)?;
        let leaf = &mut self.da_mut(old).leaf;
        let keep = leaf.len() / 2;
        let moved = leaf.split_off(keep);
        self.da_mut(new).leaf = moved;
        self.link_after(old, new);
        let (slot, index) = if index <= keep { (old, index) } else { (new, index - keep) };
        self.leaf_insert(slot, index, entry, change.touches);
        for slot in [old, new] {
            self.da(slot).log_all(change.touches);
        }
        Ok(new)
    }

    /// `xfs_da3_node_split`: puts a child behind the cursor; the new right half if the node was full.
    fn add_child(
        &mut self,
        at: &mut (u32, usize),
        child: u32,
        storage: &mut Storage,
        change: &mut Change<'_>,
    ) -> Result<Option<u32>, NoSpace> {
        let mut new = None;
        if self.da(at.0).node.len() == self.sizes.entries() {
            let right = self.grow(self.da(at.0).level, storage, change)?;
            let keep = self.sizes.entries() - self.sizes.entries() / 2;
            let moved = self.da_mut(at.0).node.split_off(keep);
            self.da_mut(right).node = moved;
            self.link_after(at.0, right);
            new = Some(right);
        }
        at.1 += 1;
        let hash = self.da(child).last_hash();
        let keep = self.da(at.0).node.len();
        match new {
            Some(right) if at.1 > keep => self.da_mut(right).node.insert(at.1 - keep, (hash, child)),
            _ => self.da_mut(at.0).node.insert(at.1, (hash, child)),
        }
        self.da(at.0).log(at.1.min(self.da(at.0).node.len())..self.da(at.0).node.len(), change.touches);
        new.into_iter().for_each(|right| self.da(right).log_all(change.touches));
        Ok(new)
    }

    /// `xfs_da3_root_split`: the root moves to a new block and becomes a node over it and its new right half.
    fn split_root(&mut self, right: u32, storage: &mut Storage, change: &mut Change<'_>) -> Result<(), NoSpace> {
        let level = self.da(0).level;
        let left = self.grow(level, storage, change)?;
        let fsblock = self.da(0).fsblock;
        let root = std::mem::replace(self.da_mut(0), DaBlock::new(fsblock, level + 1));
        let fsblock = self.da(left).fsblock;
        *self.da_mut(left) = DaBlock { fsblock, ..root };
        self.da_mut(right).back = left;
        self.da_mut(0).node = [left, right].map(|slot| (self.da(slot).last_hash(), slot)).to_vec();
        for slot in [0, left] {
            self.da(slot).log_all(change.touches);
        }
        Ok(())
    }

    /// `xfs_da3_blk_link`.
    fn link_after(&mut self, old: u32, new: u32) {
        let forw = std::mem::replace(&mut self.da_mut(old).forw, new);
        (self.da_mut(new).back, self.da_mut(new).forw) = (old, forw);
        if forw != NIL {
            self.da_mut(forw).back = new;
        }
    }

    /// `xfs_da3_join`: joins the leaf, and nodes above it, with a sibling where both are small enough.
    pub(super) fn join(&mut self, path: &mut Path, storage: &mut Storage, change: &mut Change<'_>) {
        while path.active > 1 {
            let depth = path.active - 1;
            if self.da(path.at[depth].0).level > 0 {
                self.remove_child(path, depth, change.touches);
            }
            let Some(keep) = self.to_join(path, change.touches) else { return };
            let (drop, save) = (path.at[depth].0, keep.at[depth].0);
            let dropped = self.unlink(drop);
            let block = self.da_mut(save);
            if block.level == 0 {
                let mut leaf = dropped.leaf;
                leaf.compact();
                block.leaf.compact();
                block.leaf.absorb(leaf);
            } else {
                let mut node = dropped.node;
                if node.first().zip(block.node.first()).is_some_and(|(a, b)| a.0 < b.0) {
                    std::mem::swap(&mut node, &mut block.node);
                }
                block.node.append(&mut node);
            }
            self.da(save).log_all(change.touches);
            self.fix_hash_path(&keep, path.active, change.touches);
            self.shrink(drop, storage, change);
            path.active -= 1;
        }
        self.remove_child(path, 0, change.touches);
        self.join_root(storage, change);
    }

    fn remove_child(&mut self, path: &mut Path, depth: usize, touches: &mut Touches) {
        let (slot, index) = path.at[depth];
        let node = &mut self.da_mut(slot).node;
        node.remove(index);
        if index > 0 && index == node.len() {
            path.at[depth].1 -= 1;
        }
        let block = self.da(slot);
        block.log(index..block.node.len().max(index), touches);
        if !block.node.is_empty() {
            self.fix_hash_path(path, depth + 1, touches);
        }
    }

    /// `xfs_dir2_leafn_toosmall`, `xfs_da3_node_toosmall`: the path to the block to keep; `path` is then that to the
    /// block to drop.
    fn to_join(&self, path: &mut Path, touches: &mut Touches) -> Option<Path> {
        let slot = path.at[path.active - 1].0;
        let block = self.da(slot);
        let (count, most, sum) = match block.level {
            0 => {
                let (half, both) = self.sizes.joined_entries();
                (block.leaf.live(), half, both)
            }
            _ => (block.node.len(), self.sizes.entries() / 2, self.sizes.entries() - self.sizes.entries() / 4),
        };
        if count > most {
            return None;
        }
        let mut keep = *path;
        if count == 0 {
            return self.shift(&mut keep, block.forw != NIL).then_some(keep);
        }
        let rank = |sibling: u32| sibling.wrapping_add(1);
        let forward = rank(block.forw) < rank(block.back);
        for forward in [forward, !forward] {
            let sibling = if forward { block.forw } else { block.back };
            if sibling == NIL {
                continue;
            }
            let other = self.da(sibling);
            other.touch(touches);
            if count + other.leaf.live() + other.node.len() <= sum {
                let moved = if sibling < slot { &mut keep } else { &mut *path };
                return self.shift(moved, forward).then_some(keep);
            }
        }
        None
    }

    /// `xfs_da3_blk_unlink`.
    fn unlink(&mut self, slot: u32) -> DaBlock {
        let fsblock = self.da(slot).fsblock;
        let block = std::mem::replace(self.da_mut(slot), DaBlock::new(fsblock, 0));
        if block.back != NIL {
            self.da_mut(block.back).forw = block.forw;
        }
        if block.forw != NIL {
            self.da_mut(block.forw).back = block.back;
        }
        block
    }

    /// `xfs_da3_root_join`: an only child becomes the root.
    fn join_root(&mut self, storage: &mut Storage, change: &mut Change<'_>) {
        let &[(_, child)] = self.da(0).node.as_slice() else { return };
        let fsblock = self.da(0).fsblock;
        let only = self.unlink(child);
        *self.da_mut(0) = DaBlock { fsblock, ..only };
        self.da(0).log_all(change.touches);
        self.shrink(child, storage, change);
    }

    fn shrink(&mut self, slot: u32, storage: &mut Storage, change: &mut Change<'_>) {
        storage.shrink(LEAF_OFFSET, slot as usize, change);
        self.tree[slot as usize] = None;
        while self.tree.last().is_some_and(Option::is_none) {
            self.tree.pop();
        }
    }
}
