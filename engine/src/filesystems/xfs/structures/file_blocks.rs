//! Blocks that files were given before they had data (`xfs_alloc_file_space`), and where they are.
//!
//! Left out: where the blocks of data that are written back lie.

use super::free_space::{Extent, Request};
use super::layout::Layout;
use super::touch::Touches;
use std::collections::BTreeMap;

/// An extent, and its group.
pub type Placed = (u32, Extent);

/// The extents of files, by inode number, in their order.
#[derive(Clone, Debug, Default)]
pub struct FileBlocks(BTreeMap<u64, Vec<Placed>>);

impl FileBlocks {
    /// All extents.
    pub fn all(&self) -> impl Iterator<Item = Placed> + '_ {
        self.0.values().flatten().copied()
    }

    /// Blocks of a file.
    pub fn extents(&self, ino: u64) -> &[Placed] {
        self.0.get(&ino).map_or(&[], Vec::as_slice)
    }

    fn append(&mut self, ino: u64, agno: u32, extent: Extent) {
        let extents = self.0.entry(ino).or_default();
        match extents.last_mut() {
            Some((group, last)) if *group == agno && last.end() == extent.start => last.len += extent.len,
            _ => extents.push((agno, extent)),
        }
    }
}

impl Layout {
    /// Groups to look for so many blocks in, in order (`xfs_bmap_btalloc_select_lengths`, `xfs_alloc_vextent_iterate_ags`): from that
    /// of the file's last block, or of its inode, on; first those that have them in one run.
    pub fn groups_for_file(&self, ino: u64, blocks: u32) -> Vec<u32> {
        let last = self.files.extents(ino).last().map(|(agno, _)| *agno);
        let (start, count) = (last.unwrap_or_else(|| self.geometry().split_ino(ino).0), self.geometry().agcount);
        let longest = |agno: &u32| self.groups().groups[*agno as usize].space.longest();
        let all = || (0..count).map(|nth| (start + nth) % count);
        all().filter(|agno| longest(agno) >= blocks).chain(all().filter(|agno| longest(agno) < blocks)).collect()
    }

    /// Blocks that a file was given.
    pub fn file_extents(&self, ino: u64) -> &[Placed] {
        self.files.extents(ino)
    }

    /// Allocates at most so many blocks in one run for a file: behind its last, else near its inode. None if the group has no room.
    pub fn alloc_for_file(&mut self, ino: u64, agno: u32, most: u32, touches: &mut Touches) -> Option<u32> {
        let target = match self.files.extents(ino).last() {
            Some((group, last)) if *group == agno => last.end(),
            _ => self.geometry().split_ino(ino).1 >> super::geometry::INOPBLOG,
        };
        let space = &mut self.groups.groups[agno as usize].space;
        let mut len = most.min(space.longest());
        while len > 0 {
            if let Some(start) = space.alloc_near(target, &Request::of(len), touches) {
                self.files.append(ino, agno, Extent { start, len });
                return Some(len);
            }
            len /= 2;
        }
        None
    }

    /// The file has no extents any more: they are the caller's to give back.
    pub fn take_file_blocks(&mut self, ino: u64) -> Vec<Placed> {
        self.files.0.remove(&ino).unwrap_or_default()
    }

    /// The file has so many blocks less at its end, the last first: they are the caller's to give back.
    pub fn take_file_tail(&mut self, ino: u64, mut blocks: u32) -> Vec<Placed> {
        let Some(extents) = self.files.0.get_mut(&ino) else { return Vec::new() };
        let mut taken = Vec::new();
        while let Some((agno, last)) = extents.last_mut().filter(|_| blocks > 0) {
            let len = blocks.min(last.len);
            (last.len, blocks) = (last.len - len, blocks - len);
            taken.push((*agno, Extent { start: last.end(), len }));
            if last.len == 0 {
                extents.pop();
            }
        }
        taken
    }

    /// Gives an extent back (`xfs_extent_free_finish_item`).
    pub fn free_file_extent(&mut self, (agno, extent): Placed, touches: &mut Touches) {
        self.groups.groups[agno as usize].space.free(extent, touches);
    }
}
