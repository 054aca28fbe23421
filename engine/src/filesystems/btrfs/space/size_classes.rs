//! Data of three sizes lie in block groups of their own since 6.3 (`btrfs_bg_size_class`, `find_free_extent_check_size_class`). The first extent
//! in a group says which of them it has; only where there is no room for another group do they share one.
//!
//! Left out: that a group which becomes empty may have any again (6.18).

use super::{Purpose, Space};

/// Sizes of data (`btrfs_calc_block_group_size_class`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SizeClass {
    Small,
    Medium,
    Large,
}

const MOST_SMALL: u64 = 128 << 10;
const MOST_MEDIUM: u64 = 8 << 20;

impl SizeClass {
    pub(super) const ALL: usize = 3;

    fn of(bytes: u64) -> Self {
        if bytes <= MOST_SMALL {
            Self::Small
        } else if bytes <= MOST_MEDIUM {
            Self::Medium
        } else {
            Self::Large
        }
    }
}

impl Space {
    /// The same with data by size, or not.
    pub fn with_size_classes(self, apart: bool) -> Self {
        Self { cursors: apart.then_some([0; SizeClass::ALL]), ..self }
    }

    /// A place in a group that may have it, if there is any.
    pub(super) fn take(&mut self, purpose: Purpose, bytes: u64) -> Option<u64> {
        match self.cursors {
            Some(cursors) if purpose == Purpose::Data => self.take_of_class(cursors, bytes),
            _ => self.free(purpose).take(bytes),
        }
    }

    fn take_of_class(&mut self, mut cursors: [u64; SizeClass::ALL], bytes: u64) -> Option<u64> {
        let class = SizeClass::of(bytes);
        let cursor = cursors[class as usize];
        let alike = self.fit_in(Some(class), cursor, bytes).or_else(|| self.fit_in(Some(class), 0, bytes));
        let place = alike.or_else(|| self.fit_in(None, 0, bytes));
        let any = || self.data.first_fit(0..u64::MAX, bytes).filter(|_| self.room < bytes);
        let place = place.or_else(any)?;
        self.data.cut(place, bytes);
        self.group_of(place).class.get_or_insert(class);
        cursors[class as usize] = place + bytes;
        self.cursors = Some(cursors);
        Some(place)
    }

    /// In groups of a class, from a place on.
    fn fit_in(&self, class: Option<SizeClass>, from: u64, bytes: u64) -> Option<u64> {
        let groups = self.groups.iter().filter(|group| group.purpose == Purpose::Data && group.class == class);
        groups.filter(|group| group.end() > from).find_map(|g| self.data.first_fit(g.start.max(from)..g.end(), bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_each_size_lie_one_behind_the_other_in_a_group_of_their_own() {
        let mut space = Space::new(8 << 30).with_size_classes(true);
        let small: Vec<u64> = [4 << 10, 128 << 10, 8 << 10].map(|bytes| space.allocate_data(bytes)).into();
        let medium: Vec<u64> = [256 << 10, 1 << 20].map(|bytes| space.allocate_data(bytes)).into();
        assert_eq!(small[1..], [small[0] + (4 << 10), small[0] + (132 << 10)]);
        assert_eq!(medium[1], medium[0] + (256 << 10));
        assert_ne!(space.group(small[0]), space.group(medium[0]));
        assert_eq!(space.allocate_data(4096), small[2] + (8 << 10), "small ones go on where they were");
    }

    #[test]
    fn where_there_is_no_room_for_another_group_they_share_one() {
        let mut space = Space::new(1 << 30).with_size_classes(true);
        assert!(space.leave_room(1 << 20, 4 << 20));
        let (small, medium) = (space.allocate_data(4096), space.allocate_data(1 << 20));
        assert_eq!(space.group(small).start, space.group(medium).start);
    }

    #[test]
    fn without_classes_all_lie_together() {
        let mut space = Space::new(8 << 30);
        let (small, medium) = (space.allocate_data(4096), space.allocate_data(1 << 20));
        assert_eq!(medium, small + 4096);
    }
}
