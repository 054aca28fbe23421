//! Doubly linked lists through structures that different CPUs have made (`list_add`, `list_del`, `hlist_add_head`, `hlist_del`).
//!
//! Who puts an entry in front stores to the one that was first; who takes one out stores to both neighbours. So the line with an entry's
//! pointers is with who made it, or with who has changed its neighbourhood since.

use crate::fx::FxMap;
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

/// That of a directory.
pub fn directory(dir: u32) -> Entry {
    u64::from(dir) * 2 + 1
}

#[derive(Clone, Copy)]
struct Links {
    list: u32,
    before: Option<Entry>,
    next: Option<Entry>,
}

/// Lists by number, whose entries are in one of them at most.
#[derive(Default)]
pub struct Lists {
    firsts: RefCell<FxMap<u32, Entry>>,
    links: RefCell<FxMap<Entry, Links>>,
}

impl Lists {
    /// The first of a list.
    pub fn first(&self, list: u32) -> Option<Entry> {
        self.firsts.borrow().get(&list).copied()
    }

    /// The list that an entry is in.
    pub fn list_of(&self, entry: Entry) -> Option<u32> {
        self.links.borrow().get(&entry).map(|links| links.list)
    }

    /// An entry comes to the front; the one that was first before.
    pub fn add(&self, list: u32, entry: Entry) -> Option<Entry> {
        self.remove(entry);
        let old = self.firsts.borrow_mut().insert(list, entry);
        let mut links = self.links.borrow_mut();
        links.insert(entry, Links { list, before: None, next: old });
        if let Some(old) = old {
            links.get_mut(&old).expect("it is listed").before = Some(entry);
        }
        old
    }

    /// An entry goes; those before and behind it, if it was there.
    pub fn remove(&self, entry: Entry) -> [Option<Entry>; 2] {
        let mut links = self.links.borrow_mut();
        let Some(Links { list, before, next }) = links.remove(&entry) else { return [None; 2] };
        if let Some(next) = next {
            links.get_mut(&next).expect("it is listed").before = before;
        }
        match (before, next) {
            (Some(before), _) => links.get_mut(&before).expect("it is listed").next = next,
            (None, Some(next)) => {
                self.firsts.borrow_mut().insert(list, next);
            }
            (None, None) => {
                self.firsts.borrow_mut().remove(&list);
            }
        }
        [before, next]
    }
}

/// The lines of entries' pointers, or of whatever else has a number. Memory that is freed on a CPU is used again there (a slab's list of
/// free objects).
pub struct Pointers {
    span: u32,
    lines: RefCell<FxMap<Entry, LineId>>,
    free: RefCell<FxMap<u32, Vec<LineId>>>,
}

impl Default for Pointers {
    fn default() -> Self {
        Self::of_span(1)
    }
}

impl Pointers {
    /// So many lines each.
    pub fn of_span(span: u32) -> Self {
        Self { span, lines: RefCell::default(), free: RefCell::default() }
    }

    /// An entry is changed, or looked at.
    pub fn touch<M: Machine>(&self, m: &M, entry: Entry, access: Access) {
        let mut free = self.free.borrow_mut();
        let mut new = || free.get_mut(&m.cpu()).and_then(Vec::pop).unwrap_or_else(|| m.new_line(self.span));
        m.touch(*self.lines.borrow_mut().entry(entry).or_insert_with(&mut new), access);
    }

    /// An entry's memory is free.
    pub fn free<M: Machine>(&self, m: &M, entry: Entry) {
        if let Some(line) = self.lines.borrow_mut().remove(&entry) {
            self.free.borrow_mut().entry(m.cpu()).or_default().push(line);
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
