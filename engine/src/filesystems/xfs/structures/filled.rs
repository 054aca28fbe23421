//! Other files that have most of a filesystem's blocks, where a scenario says how much is free.

use super::groups::NoSpace;
use super::layout::Layout;
use super::touch::Touches;

/// The number under which their blocks are kept: no inode has it.
const OTHERS: u64 = 0;

impl Layout {
    /// Other files take all blocks but for so many that a transaction may take, of each group in proportion.
    pub fn fill_up(&mut self, free: u64) -> Result<(), NoSpace> {
        let excess = self.free_blocks().checked_sub(free).ok_or(NoSpace)?;
        let unreserved: Vec<u64> =
            self.groups().groups.iter().map(|group| u64::from(group.space.unreserved())).collect();
        let all: u64 = unreserved.iter().sum();
        let shares = unreserved.iter().map(|blocks| excess * blocks / all.max(1));
        let shares: Vec<u64> = shares.collect();
        shares.into_iter().enumerate().for_each(|(agno, blocks)| self.take_for_others(agno as u32, blocks));
        for agno in 0..self.geometry().agcount {
            self.take_for_others(agno, self.free_blocks().saturating_sub(free));
            // what rounding has left
        }
        Ok(())
    }

    fn take_for_others(&mut self, agno: u32, mut blocks: u64) {
        let mut touches = Touches::default();
        while blocks > 0 {
            let most = u32::try_from(blocks).unwrap_or(u32::MAX);
            let Some(taken) = self.alloc_for_file(OTHERS, agno, most, &mut touches) else { return };
            blocks -= u64::from(taken);
        }
    }

    /// Below 5 % free (`XFS_LOWSP_5_PCNT`), where nobody leaves inodes for later.
    pub fn is_nearly_full(&self) -> bool {
        self.free_blocks() < self.geometry().dblocks / 20
    }

    /// Room for a create, or for a name (`XFS_CREATE_SPACE_RES`).
    pub fn has_room(&self) -> bool {
        self.reserve().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::geometry::Geometry;
    use super::super::layout::ROOT;
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn all_but_what_is_to_be_free_is_others_and_sound() {
        let mut layout = Layout::new(&Geometry::new(1 << 30, Some(4)).expect("a geometry"));
        assert!(!layout.is_nearly_full() && layout.has_room());
        layout.fill_up(1000).expect("it has as much");
        assert!((1000..1020).contains(&layout.free_blocks()), "{}", layout.free_blocks());
        assert!(layout.is_nearly_full() && layout.has_room());
        assert_eq!(layout.audit(&BTreeMap::from([(ROOT, Vec::new())])).err(), None);
        assert!(layout.fill_up(2000).is_err());
        layout.fill_up(0).expect("it has as much");
        assert!(!layout.has_room());
        assert_eq!(layout.create(ROOT, b"f").err(), Some(NoSpace));
    }
}
