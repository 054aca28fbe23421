//! What `CONFIG_XFS_DEBUG` has an operation go through in a directory (`__xfs_dir3_data_check`, 6.12).

use super::data::DataBlock;
use super::forms::find_in;
use super::hash::name_hash;
use super::{Body, Directory};
use crate::filesystems::xfs::structures::touch::Touches;

/// What an operation does with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Looks for it.
    LookUp,
    /// Has just added it.
    Add,
    /// Is about to remove it.
    Remove,
}

/// Blocks with names that are checked, and what they contain; twice if they are checked twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Blocks.
    pub blocks: u32,
    /// Names in them.
    pub names: u32,
    /// Names that are hashed and looked for in a hash index in the same block, entry by entry.
    pub hashed: u32,
    /// Entries of such an index that are passed by.
    pub passed: u32,
}

impl Directory {
    /// What is checked for an act on this name.
    pub fn checked(&self, name: &[u8], act: Act) -> Checked {
        self.check_of(name, act).map_or_else(Checked::default, |(times, db)| self.checked_block(times, db))
    }

    /// What is checked where all names of a block are listed (`xfs_dir2_block_getdents`, `xfs_dir2_leaf_readbuf`).
    pub fn checked_in(&self, fsblock: u64) -> Checked {
        let at = |block: &Option<DataBlock>| block.as_ref().is_some_and(|block| block.fsblock == fsblock);
        self.storage.data.iter().position(at).map_or_else(Checked::default, |db| self.checked_block(1, db))
    }

    fn checked_block(&self, times: u32, db: usize) -> Checked {
        let names = self.storage.data[db].as_ref().map_or(0, |block| block.entries().count() as u32);
        let (hashed, passed) = match &self.body {
            Body::Block(index) => {
                let live = index.all().iter().zip(1..).filter(|(entry, _)| entry.place().is_some());
                (names, live.map(|(_, nth)| nth).sum())
            }
            _ => (0, 0),
        };
        Checked { blocks: times, names: times * names, hashed: times * hashed, passed: times * passed }
    }

    /// How often the block of a name is checked, and which it is.
    fn check_of(&self, name: &[u8], act: Act) -> Option<(u32, usize)> {
        match (&self.body, act) {
            (Body::Short(_), _) | (Body::Leaf { .. }, Act::LookUp) | (Body::Node(_), Act::Add) => None,
            // xfs_dir2_block_lookup_int, and where it finds the name xfs_dir2_block_lookup
            (Body::Block(_), Act::LookUp) => Some((1 + u32::from(self.lookup(name).0.is_some()), 0)),
            (Body::Block(_), Act::Add) => Some((1, 0)), // xfs_dir2_block_addname
            (Body::Block(_), Act::Remove) => Some((2, 0)), // xfs_dir2_block_lookup_int, xfs_dir2_block_removename
            (Body::Leaf { .. }, Act::Add) => self.data_block_of(name).map(|db| (1, db)), // xfs_dir2_leaf_addname
            (Body::Leaf { .. }, Act::Remove) => self.data_block_of(name).map(|db| (2, db)), // xfs_dir2_leaf_removename
            (Body::Node(_), Act::LookUp) => self.data_block_of(name).map(|db| (1, db)), // xfs_dir2_leafn_lookup_for_entry
            (Body::Node(_), Act::Remove) => self.data_block_of(name).map(|db| (2, db)), // and xfs_dir2_leafn_remove
        }
    }

    /// The block of a name, as the hash index tells it.
    fn data_block_of(&self, name: &[u8]) -> Option<usize> {
        let hash = name_hash(name);
        match &self.body {
            Body::Short(_) => None,
            Body::Block(index) | Body::Leaf { index, .. } => {
                find_in(index, &self.storage, name, hash).map(|(_, (db, _), _)| db)
            }
            Body::Node(node) => {
                node.lookup(name, hash, &self.storage, &mut Touches::default()).map(|found| found.place.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystems::xfs::structures::directory::DirForm;
    use crate::filesystems::xfs::structures::geometry::Geometry;
    use crate::filesystems::xfs::structures::layout::{Layout, ROOT};
    use crate::filesystems::xfs::structures::touch::Scanned;

    /// A directory with so many names, `0000` and on.
    fn with(names: u32) -> Layout {
        let mut layout = Layout::new(&Geometry::new(8 << 30, Some(4)).expect("a geometry"));
        for n in 0..names {
            layout.create(ROOT, name(n).as_bytes()).expect("there is space");
        }
        layout
    }

    fn name(n: u32) -> String {
        format!("name-{n:07}")
    }

    fn checked(layout: &Layout, n: u32) -> [Checked; 3] {
        [Act::LookUp, Act::Add, Act::Remove].map(|act| layout.dir(ROOT).checked(name(n).as_bytes(), act))
    }

    #[test]
    fn a_block_is_checked_once_for_a_new_name_and_twice_for_one_that_is_there() {
        let layout = with(60);
        let once = Checked { blocks: 1, names: 62, hashed: 62, passed: 62 * 63 / 2 };
        let twice = Checked { blocks: 2, names: 124, hashed: 124, passed: 62 * 63 };
        assert_eq!(layout.dir(ROOT).checked(b"absent", Act::LookUp), once);
        assert_eq!(
            checked(&layout, 7),
            [twice, once, twice],
            "as counted in the laboratory: four for a create and unlink"
        );
    }

    #[test]
    fn larger_forms_check_the_block_of_the_name_without_its_index() {
        let (leaf, node) = (with(200), with(2000));
        assert_eq!([&leaf, &node].map(|layout| layout.dir(ROOT).form()), [DirForm::Leaf, DirForm::Node]);
        assert_eq!(checked(&leaf, 7).map(|checked| checked.blocks), [0, 1, 2]);
        assert_eq!(checked(&node, 7).map(|checked| checked.blocks), [1, 0, 2]);
        let full = 4032 / 24;
        assert_eq!(checked(&node, 7)[2], Checked { blocks: 2, names: 2 * full, hashed: 0, passed: 0 });
        assert_eq!(checked(&with(5), 1), [Checked::default(); 3], "in the inode");
    }

    #[test]
    fn trees_of_inodes_are_gone_through_as_long_as_they_are_one_block() {
        let records = |names| with(names).groups().groups[0].checked_records();
        assert_eq!(records(200), [Some(4), Some(1)], "four chunks, of which one has a free inode");
        assert_eq!(records(64 * 260), [None, Some(1)], "a block has 252 records at most");
    }

    #[test]
    fn a_block_is_gone_through_where_two_of_its_largest_gaps_become_one_and_there_are_more() {
        let mut layout = with(60);
        let scanned = [5, 7, 20, 6].map(|n| {
            let (_, touch) = layout.remove_name(ROOT, name(n).as_bytes()).expect("it is there");
            let Scanned { names, runs } = touch.touches.scanned();
            (names, runs)
        });
        assert_eq!(scanned, [(0, 0), (0, 0), (0, 0), (58, 3)]);
    }
}
