//! How much room there is: what block groups have, and what could be made of the rest of the device (`calc_available_free_space`,
//! `btrfs_chunk_alloc`). A scenario may say how much is left (`free`): other files have the rest.

use super::{Group, Purpose, Space, FIRST};

/// Where room is short, block groups are as large as what is left, in pieces of a stripe (`BTRFS_STRIPE_LEN`).
const STRIPE: u64 = 64 << 10;
/// `should_alloc_chunk`: four fifths of the block groups and 2 MiB.
const CHUNK_SPARE: u64 = 2 << 20;

impl Purpose {
    /// How often its bytes are on the device.
    pub(super) fn copies(self) -> u64 {
        match self {
            Self::Metadata => 2,
            Self::Data => 1,
        }
    }
}

impl Space {
    /// Bytes of metadata that reservations may be promised together: what is free, and a part of what block groups could be
    /// made of besides one more for data: an eighth, or half if the global reserve may be taken from in the end
    /// (`calc_available_free_space`; the one more since 6.7).
    pub fn promised(&self, steals: bool) -> u64 {
        let could_be = (self.room / 2).saturating_sub(self.group_bytes[Purpose::Data as usize]);
        could_be / if steals { 2 } else { 8 } + self.metadata_bytes().saturating_sub(self.used)
    }

    /// Bytes of data that there is room for.
    pub fn data_room(&self) -> u64 {
        self.room + self.free_bytes(Purpose::Data)
    }

    pub(super) fn free_bytes(&self, purpose: Purpose) -> u64 {
        let free = if purpose == Purpose::Metadata { &self.metadata } else { &self.data };
        free.extents.values().sum()
    }

    /// Another block group, in which so many bytes find room. If that is more than the device has, the transaction is to be aborted.
    pub(super) fn make_group(&mut self, purpose: Purpose, least: u64) {
        let usual = self.group_bytes[purpose as usize].max(least);
        let left = self.room / purpose.copies() / STRIPE * STRIPE;
        self.overdrawn |= purpose == Purpose::Metadata && left < least;
        let start = self.groups.last().map_or(FIRST, Group::end);
        self.add_group(start, if left < least { usual } else { usual.min(left) }, purpose);
    }

    /// `btrfs_chunk_alloc` of metadata: before it is needed only where most is in use. Whether there is one more.
    pub fn alloc_chunk(&mut self, force: bool) -> bool {
        let (used, all) = (self.used + self.pinned_bytes(), self.metadata_bytes());
        let wanted = force || used + CHUNK_SPARE >= all / 10 * 8;
        let fits = wanted && self.room / 2 >= STRIPE;
        if fits {
            self.make_group(Purpose::Metadata, STRIPE);
        }
        fits
    }

    /// A block was needed where none was left.
    pub fn is_overdrawn(&self) -> bool {
        self.overdrawn
    }

    /// The block groups of each kind have at least so many free bytes, and what is left of the device is others'; whether there was as
    /// much.
    pub fn leave_room(&mut self, metadata: u64, data: u64) -> bool {
        for (purpose, bytes) in [(Purpose::Metadata, metadata), (Purpose::Data, data)] {
            let more = bytes.saturating_sub(self.free_bytes(purpose)).next_multiple_of(STRIPE);
            if more * purpose.copies() > self.room {
                return false;
            }
            if more > 0 {
                let start = self.groups.last().map_or(FIRST, Group::end);
                self.add_group(start, more, purpose);
            }
        }
        self.room = 0;
        true
    }

    /// How many bytes of metadata are free besides so many.
    pub fn free_besides(&self, metadata: u64) -> u64 {
        self.free_bytes(Purpose::Metadata).saturating_sub(metadata)
    }

    /// A tree block for what is another file's.
    pub fn add_ballast(&mut self) -> u64 {
        let place = self.allocate_block();
        self.ballast.push(place);
        place
    }

    /// Tree blocks of other files.
    pub fn ballast(&self) -> &[u64] {
        &self.ballast
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystems::btrfs::tree::key::NODE_SIZE;

    const BLOCK: u64 = NODE_SIZE as u64;

    #[test]
    fn the_last_block_group_is_as_large_as_what_is_left_and_there_is_no_other() {
        let mut space = Space::new(256 << 20);
        while space.room >= 2 * STRIPE {
            space.make_group(Purpose::Metadata, BLOCK);
        }
        assert!(space.groups.iter().map(|group| group.bytes * group.purpose.copies()).sum::<u64>() <= 256 << 20);
        assert!(!space.is_overdrawn());
        let left = space.free_bytes(Purpose::Metadata) / BLOCK;
        (0..left).for_each(|_| _ = space.allocate_block());
        assert!(!space.is_overdrawn());
        space.allocate_block();
        assert!(space.is_overdrawn());
    }

    #[test]
    fn what_is_left_is_as_asked_and_nothing_is_promised_besides() {
        let mut space = Space::new(1 << 30);
        assert!(space.leave_room(3 << 20, 50 << 20));
        assert_eq!(space.free_bytes(Purpose::Data), 50 << 20);
        assert_eq!(space.promised(true), space.promised(false));
        assert!(!Space::new(1 << 30).leave_room(1 << 30, 0));
    }

    #[test]
    fn a_chunk_is_made_early_only_where_most_is_in_use() {
        let mut space = Space::new(8 << 30);
        assert!(!space.alloc_chunk(false));
        assert!(space.alloc_chunk(true));
        while space.used < space.metadata_bytes() / 10 * 8 {
            space.allocate_block();
        }
        assert!(space.alloc_chunk(false));
    }
}
