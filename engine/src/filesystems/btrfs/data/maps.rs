//! Maps of extents in memory, which pages that are reclaimed take with them (`fs/btrfs/extent_map.c`, `extent_io.c`).

use super::{FileData, Placed};
use crate::filesystems::BLOCK;

/// Maps of extents go with pages of files larger than this (`SZ_16M`).
const RELEASED_FROM: u64 = 16 << 20;

impl FileData {
    /// `try_release_extent_mapping` of pages that were reclaimed: maps of extents whose first page is among them are gone. Extents that
    /// are neighbours on disk as well have one map (`try_merge_map`).
    pub fn release_maps(&mut self) {
        let Some(pages) = self.pages.as_ref().filter(|_| self.size > RELEASED_FROM) else { return };
        let begins = |(first, end): (u64, u64)| {
            let page = u64::from(BLOCK);
            let slot = self.extents.partition_point(|extent| extent.offset < first * page);
            let behind = self.extents.partition_point(|extent| extent.offset < end * page);
            (slot..behind).any(|slot| slot == 0 || self.begins_map(&self.extents[slot - 1], &self.extents[slot]))
        };
        self.lacks_maps |= pages.take_released().into_iter().any(begins);
    }

    /// Whether the map of an extent is another than that of the one before it.
    fn begins_map(&self, before: &Placed, extent: &Placed) -> bool {
        (self.in_turns && extent.generation == 0) || !before.goes_on_in(extent)
    }

    /// It was written in turns with other files before the run.
    pub fn written_in_turns(self) -> Self {
        Self { in_turns: true, ..self }
    }
}
