//! All allocation groups together: blocks from the group that is wanted, else from the next that has room.

use super::ag::AllocGroup;
use super::free_space::{Extent, Request};
use super::geometry::Geometry;
use super::touch::Touches;

/// There is no space left, or no inode (`ENOSPC`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSpace;

impl std::fmt::Display for NoSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no space left in the filesystem")
    }
}

impl std::error::Error for NoSpace {}

/// The allocation groups of a filesystem.
#[derive(Clone, Debug)]
pub struct Groups {
    /// Sizes and positions.
    pub geometry: Geometry,
    /// The groups, by number.
    pub groups: Vec<AllocGroup>,
}

impl Groups {
    /// The groups of a fresh, mounted filesystem.
    pub fn new(geometry: &Geometry) -> Self {
        let groups = (0..geometry.agcount).map(|agno| AllocGroup::new(geometry, agno)).collect();
        Self { geometry: geometry.clone(), groups }
    }

    /// So many blocks in one run near filesystem block `near` (`xfs_alloc_vextent_start_ag`): in its group the nearest, in the
    /// following groups the best fit. A transaction never goes back below `highest`, the group that it took its last
    /// block from (`t_highest_agno`), so that two of them cannot wait for each other's AGF.
    pub fn alloc_run(
        &mut self,
        (near, len): (u64, u32),
        minleft: u32,
        total: u32,
        highest: &mut u32,
        touches: &mut Touches,
    ) -> Option<u64> {
        let (agno, target) = self.geometry.split_fsblock(near);
        let start = agno.max(*highest);
        let request = Request { minleft, total, ..Request::of(len) };
        let mut agnos = (start..self.geometry.agcount).chain(*highest..start);
        let (agno, agbno) = agnos.find_map(|agno| {
            let space = &mut self.groups[agno as usize].space;
            let agbno = if agno == start && target > 0 {
                space.alloc_near(target, &request, touches)
            } else {
                space.alloc_by_size(&request, touches)
            }?;
            Some((agno, agbno))
        })?;
        *highest = agno.max(*highest);
        Some(self.geometry.fsblock(agno, agbno))
    }

    /// Gives a run of blocks back.
    pub fn free_run(&mut self, fsblock: u64, len: u32, touches: &mut Touches) {
        let (agno, start) = self.geometry.split_fsblock(fsblock);
        self.groups[agno as usize].space.free(Extent { start, len }, touches);
    }
}
