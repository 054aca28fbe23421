//! What is kept of files by the slot of their inode, and made when it is first wanted.

use std::cell::RefCell;

/// One value for each slot that has one.
pub struct BySlot<T>(RefCell<Vec<Option<T>>>);

impl<T> Default for BySlot<T> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<T: Clone> BySlot<T> {
    /// That of a slot, if it has one.
    pub fn get(&self, slot: u32) -> Option<T> {
        self.0.borrow().get(slot as usize).cloned().flatten()
    }

    /// That of a slot, made if it has none.
    pub fn get_or_make(&self, slot: u32, make: impl FnOnce() -> T) -> T {
        let (mut values, slot) = (self.0.borrow_mut(), slot as usize);
        if values.len() <= slot {
            values.resize(slot + 1, None);
        }
        values[slot].get_or_insert_with(make).clone()
    }

    /// A slot has this one from now on.
    pub fn put(&self, slot: u32, value: T) {
        let (mut values, slot) = (self.0.borrow_mut(), slot as usize);
        if values.len() <= slot {
            values.resize(slot + 1, None);
        }
        values[slot] = Some(value);
    }
}
