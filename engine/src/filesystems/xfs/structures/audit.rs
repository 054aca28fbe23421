//! What `xfs_repair -n` looks at: every block of every group has one user, inodes in use are those that directories name, and
//! nothing is on an unlinked list.

use super::ag::AllocGroup;
use super::geometry::Geometry;
use super::layout::{DirId, Layout};
use crate::gathered::gathered;
use std::collections::{BTreeMap, BTreeSet};

/// A run of blocks of a group and who uses it.
type Run = (u32, u32, &'static str);

/// Inodes that `mkfs` makes and no directory names: those of the realtime bitmap and summary, behind the root's.
const REALTIME: u64 = 2;

impl Layout {
    /// Compares everything with the names that should be in each directory. Returns the inode of each name.
    pub fn audit(&self, names: &BTreeMap<DirId, Vec<Vec<u8>>>) -> Result<BTreeMap<(DirId, Vec<u8>), u64>, String> {
        self.check()?;
        let named = self.audit_names(names)?;
        self.audit_inodes(gathered(named.values().copied()))?;
        self.audit_blocks()?;
        Ok(named)
    }

    fn audit_names(&self, names: &BTreeMap<DirId, Vec<Vec<u8>>>) -> Result<BTreeMap<(DirId, Vec<u8>), u64>, String> {
        let mut named = BTreeMap::new();
        for (&dir, expected) in names {
            let directory = self.dir(dir);
            let (has, should) = (directory.names() as usize, expected.len());
            if has != should {
                return Err(format!("directory {} has {has} names, {should} should be there", directory.ino));
            }
            for name in expected {
                let ino = directory.lookup(name).0;
                let ino =
                    ino.ok_or_else(|| format!("directory {} lacks {}", directory.ino, String::from_utf8_lossy(name)))?;
                named.insert((dir, name.clone()), ino);
            }
        }
        Ok(named)
    }

    fn audit_inodes(&self, named: Vec<u64>) -> Result<(), String> {
        let g = self.geometry();
        let mut expected: BTreeSet<u64> = gathered((0..=REALTIME).map(|nth| g.root_ino() + nth));
        expected.extend(named); // a file may have several names
        let used: BTreeSet<u64> = gathered(self.groups().groups.iter().flat_map(|group| inodes_in_use(g, group)));
        if let Some(ino) = used.difference(&expected).next() {
            return Err(format!("inode {ino} is in use and has no name"));
        }
        if let Some(ino) = expected.difference(&used).next() {
            return Err(format!("inode {ino} has a name and is free"));
        }
        match self.groups().groups.iter().find_map(AllocGroup::first_unlinked) {
            Some(agino) => Err(format!("inode {agino} of a group is still on an unlinked list")),
            None => Ok(()),
        }
    }

    fn audit_blocks(&self) -> Result<(), String> {
        let g = self.geometry();
        let mut runs: Vec<Vec<Run>> = self.groups().groups.iter().map(|group| group_runs(g, group)).collect();
        for dir in self.directories() {
            let extents = dir.map().mappings().map(|(_, start, len)| (start, len, "a directory"));
            let tree = dir.map().tree_block_numbers().map(|block| (block, 1, "a directory's map"));
            for (start, len, user) in extents.chain(tree) {
                let (agno, agbno) = g.split_fsblock(start);
                runs[agno as usize].push((agbno, len, user));
            }
        }
        for (agno, extent) in self.files.all() {
            runs[agno as usize].push((extent.start, extent.len, "a file"));
        }
        self.groups().groups.iter().zip(runs).try_for_each(|(group, runs)| {
            let fixed = g.first_unreserved(group.agno);
            tiles(runs, fixed, group.length).map_err(|e| format!("AG {}: {e}", group.agno))
        })
    }
}

fn inodes_in_use<'g>(g: &'g Geometry, group: &'g AllocGroup) -> impl Iterator<Item = u64> + 'g {
    group.chunks().flat_map(|chunk| {
        let (exist, free) = (chunk.existing(), chunk.free);
        (0..64).filter(move |bit| (exist & !free) >> bit & 1 == 1).map(|bit| g.ino(group.agno, chunk.startino + bit))
    })
}

/// What a group itself says of its blocks, but for those that are never free.
fn group_runs(g: &Geometry, group: &AllocGroup) -> Vec<Run> {
    let fixed = g.first_unreserved(group.agno);
    let free = group.space.extents().map(|extent| (extent.start, extent.len, "nobody"));
    let chunks = group.chunks().flat_map(|chunk| chunk.extents().map(|extent| (extent.start, extent.len, "inodes")));
    let trees = group.space.tree_block_numbers().map(|block| (block, 1, "a free space tree"));
    let inode_trees = group.inode_tree_blocks().map(|block| (block, 1, "an inode tree"));
    let list = group.space.agfl().map(|block| (block, 1, "the free list"));
    free.chain(chunks).chain(trees).chain(inode_trees).chain(list).filter(|run| run.0 >= fixed).collect()
}

/// Whether runs lie one behind the other without a hole.
fn tiles(mut runs: Vec<Run>, first: u32, end: u32) -> Result<(), String> {
    runs.sort_unstable();
    let mut next = (first, "what is fixed");
    for (start, len, user) in runs {
        if start < next.0 {
            return Err(format!("block {start} is used by {} and {user}", next.1));
        }
        if start > next.0 {
            return Err(format!("blocks {} to {} are neither used nor free", next.0, start - 1));
        }
        next = (start + len, user);
    }
    if next.0 == end {
        Ok(())
    } else {
        Err(format!("the group has {end} blocks, {} are used or free", next.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystems::xfs::structures::layout::ROOT;

    fn grown() -> (Layout, BTreeMap<DirId, Vec<Vec<u8>>>) {
        let g = Geometry::new(1 << 30, None).expect("a geometry");
        let mut layout = Layout::new(&g);
        let (dir, _) = layout.mkdir(ROOT, b"d000").expect("room");
        let names: Vec<Vec<u8>> = (0..3000).map(|i| format!("f{i:07}").into_bytes()).collect();
        for name in &names {
            layout.create(dir, name).expect("room");
        }
        (layout, BTreeMap::from([(ROOT, vec![b"d000".to_vec()]), (dir, names)]))
    }

    fn said(layout: &Layout, names: &BTreeMap<DirId, Vec<Vec<u8>>>) -> String {
        layout.audit(names).err().unwrap_or_default()
    }

    #[test]
    fn a_filesystem_that_was_used_rightly_is_sound() {
        let (mut layout, mut names) = grown();
        assert_eq!(said(&layout, &names), "");
        let dir = DirId(1);
        for name in names.get_mut(&dir).expect("it is there").drain(..2900) {
            let ino = layout.unlink(dir, &name).expect("it is there").ino;
            layout.iunlink_remove(ino);
            layout.ifree(ino);
        }
        assert_eq!(said(&layout, &names), "");
    }

    #[test]
    fn an_inode_that_is_never_freed_is_found() {
        let (mut layout, mut names) = grown();
        let name = names.get_mut(&DirId(1)).expect("it is there").pop().expect("a name");
        let ino = layout.unlink(DirId(1), &name).expect("it is there").ino;
        assert_eq!(said(&layout, &names), format!("inode {ino} is in use and has no name"));
        layout.ifree(ino);
        assert!(said(&layout, &names).ends_with("is still on an unlinked list"));
    }

    #[test]
    fn names_too_many_and_too_few_are_found() {
        let (mut layout, mut names) = grown();
        layout.add_name(DirId(1), b"again", layout.dir(DirId(1)).ino).expect("room");
        assert!(said(&layout, &names).contains("3001 names, 3000 should be there"));
        names.get_mut(&DirId(1)).expect("it is there").push(b"other".to_vec());
        assert!(said(&layout, &names).ends_with("lacks other"));
    }

    #[test]
    fn runs_that_overlap_or_leave_a_hole_are_found() {
        assert_eq!(tiles(vec![(4, 6, "b"), (2, 2, "a")], 2, 10), Ok(()));
        assert!(tiles(vec![(2, 3, "a"), (4, 6, "b")], 2, 10).is_err_and(|e| e == "block 4 is used by a and b"));
        assert!(tiles(vec![(3, 7, "a")], 2, 10).is_err_and(|e| e == "blocks 2 to 2 are neither used nor free"));
        assert!(tiles(vec![(2, 7, "a")], 2, 10).is_err());
    }
}
