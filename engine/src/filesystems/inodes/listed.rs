//! Doubly linked lists through structures that different CPUs have made (`list_add`, `list_del`, `hlist_add_head`, `hlist_del`).
//!
//! Who puts an entry in front stores to the one that was first; who takes one out stores to both neighbours. So the line with an entry's
//! pointers is with who made it, or with who has changed its neighbourhood since. With `CONFIG_DEBUG_LIST` it is loaded first, and the CPU
//! waits for it (`__list_add_valid`, `__list_del_entry_valid` of `lib/list_debug.c`, since 6.6 of `CONFIG_LIST_HARDENED`); hlists are not checked.

use crate::filesystems::by_slot::FreeSlots;
use crate::filesystems::paged::Paged;
use crate::waist::{Access, LineId, Machine};
use std::cell::RefCell;

/// An entry: what is listed, by a number of its own.
pub type Entry = u64;

/// Of what is not known by a number, and stays.
pub const OTHERS: Entry = 0;

/// That of a file, by slot.
pub fn file(slot: u32) -> Entry {
    u64::from(slot) * 2 + 2
}

/// The slot of a file.
pub fn file_of(entry: Entry) -> Option<u32> {
    (entry != OTHERS && entry.is_multiple_of(2)).then(|| (entry / 2 - 1) as u32)
}

/// That of a directory.
pub fn directory(dir: u32) -> Entry {
    u64::from(dir) * 2 + 1
}

/// That of an inode which comes and goes with a task that looks at many; behind those of directories.
pub fn passing(who: u32) -> Entry {
    directory(1 << 20 | who)
}

/// Where an entry is.
#[derive(Clone, Copy, Default)]
struct Links {
    list: Option<u32>,
    before: Option<Entry>,
    next: Option<Entry>,
}

/// Lists by number, whose entries are in one of them at most.
#[derive(Default)]
pub struct Lists {
    firsts: RefCell<Paged<Option<Entry>>>,
    links: RefCell<Paged<Links>>,
}

impl Lists {
    /// The first of a list.
    pub fn first(&self, list: u32) -> Option<Entry> {
        *self.firsts.borrow_mut().of(list.into())
    }

    /// All of a list, in its order.
    pub fn entries(&self, list: u32) -> Vec<Entry> {
        let mut links = self.links.borrow_mut();
        std::iter::successors(self.first(list), |&entry| links.of(entry).next).collect()
    }

    /// The list that an entry is in.
    pub fn list_of(&self, entry: Entry) -> Option<u32> {
        self.links.borrow_mut().of(entry).list
    }

    /// An entry comes to the front; the one that was first before.
    pub fn add(&self, list: u32, entry: Entry) -> Option<Entry> {
        self.remove(entry);
        let old = self.firsts.borrow_mut().of(list.into()).replace(entry);
        let mut links = self.links.borrow_mut();
        *links.of(entry) = Links { list: Some(list), before: None, next: old };
        if let Some(old) = old {
            links.of(old).before = Some(entry);
        }
        old
    }

    /// An entry goes; those before and behind it, if it was there.
    pub fn remove(&self, entry: Entry) -> [Option<Entry>; 2] {
        let mut links = self.links.borrow_mut();
        let Links { list: Some(list), before, next } = std::mem::take(links.of(entry)) else { return [None; 2] };
        if let Some(next) = next {
            links.of(next).before = before;
        }
        match before {
            Some(before) => links.of(before).next = next,
            None => *self.firsts.borrow_mut().of(list.into()) = next,
        }
        [before, next]
    }
}

/// How who changes a list comes to the pointers of a neighbour.
pub fn neighbour(debug_list: bool) -> Access {
    if debug_list {
        Access::Write
    } else {
        Access::Store
    }
}

/// The lines of entries' pointers, or of whatever else has a number. Memory that is freed on a CPU is used again there (a slab's list of
/// free objects).
pub struct Pointers {
    span: u32,
    neighbour: Access,
    lines: RefCell<Paged<Option<LineId>>>,
    free: RefCell<FreeSlots>,
}

impl Default for Pointers {
    fn default() -> Self {
        Self::of_span(1)
    }
}

impl Pointers {
    /// So many lines each.
    pub fn of_span(span: u32) -> Self {
        Self { span, neighbour: neighbour(false), lines: RefCell::default(), free: RefCell::default() }
    }

    /// Those of lists whose neighbours are checked, or not.
    pub fn of_list(debug_list: bool) -> Self {
        Self { neighbour: neighbour(debug_list), ..Self::default() }
    }

    /// Neighbours of who comes or goes are changed.
    pub fn relink<M: Machine>(&self, m: &M, neighbours: impl IntoIterator<Item = Entry>) {
        neighbours.into_iter().for_each(|entry| self.touch(m, entry, self.neighbour));
    }

    /// An entry is changed, or looked at.
    pub fn touch<M: Machine>(&self, m: &M, entry: Entry, access: Access) {
        let new =
            || self.free.borrow_mut().pop_own(m.cpu()).unwrap_or_else(|| m.new_line("vfs.list entries", self.span));
        let line = *self.lines.borrow_mut().of(entry).get_or_insert_with(new);
        m.touch(line, access);
    }

    /// An entry's memory is free.
    pub fn free<M: Machine>(&self, m: &M, entry: Entry) {
        if let Some(line) = self.lines.borrow_mut().of(entry).take() {
            self.free.borrow_mut().push(m.cpu(), line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lists;

    #[test]
    fn who_comes_has_the_old_first_as_neighbour_and_who_goes_has_two() {
        let lists = Lists::default();
        assert_eq!([1, 2, 3, 4].map(|entry| lists.add(7, entry)), [None, Some(1), Some(2), Some(3)]);
        assert_eq!(lists.remove(2), [Some(3), Some(1)]);
        assert_eq!(lists.remove(4), [None, Some(3)]);
        assert_eq!(lists.remove(1), [Some(3), None]);
        assert_eq!((lists.first(7), lists.list_of(3), lists.list_of(1)), (Some(3), Some(7), None));
        assert_eq!((lists.remove(3), lists.first(7)), ([None; 2], None));
        assert_eq!(lists.remove(3), [None; 2], "it has gone");
    }

    #[test]
    fn an_entry_that_comes_again_leaves_its_place() {
        let lists = Lists::default();
        for entry in [1, 2, 3] {
            lists.add(0, entry);
        }
        assert_eq!(lists.add(5, 2), None);
        assert_eq!(lists.remove(3), [None, Some(1)]);
        assert_eq!((lists.first(0), lists.first(5)), (Some(1), Some(2)));
    }
}
