//! What is kept of files by the slot of their inode, and made when it is first wanted.

use crate::waist::CpuId;
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

    /// A slot has none any more.
    pub fn forget(&self, slot: u32) {
        self.0.borrow_mut().get_mut(slot as usize).map(Option::take);
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

/// Slots whose memory was freed. A CPU uses again what was freed on it, whose lines it has (a slab's list of free objects), then what others freed.
#[derive(Default)]
pub struct FreeSlots(Vec<Vec<u32>>);

impl FreeSlots {
    /// Was freed on this CPU.
    pub fn push(&mut self, cpu: CpuId, slot: u32) {
        let cpu = cpu as usize;
        if self.0.len() <= cpu {
            self.0.resize(cpu + 1, Vec::new());
        }
        self.0[cpu].push(slot);
    }

    /// One for this CPU.
    pub fn pop(&mut self, cpu: CpuId) -> Option<u32> {
        self.pop_own(cpu).or_else(|| self.0.iter_mut().find_map(Vec::pop))
    }

    /// One that was freed on this CPU.
    pub fn pop_own(&mut self, cpu: CpuId) -> Option<u32> {
        self.0.get_mut(cpu as usize).and_then(Vec::pop)
    }

    /// All of them.
    pub fn all(&self) -> Vec<u32> {
        self.0.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::FreeSlots;

    #[test]
    fn a_cpu_takes_what_was_freed_there_before_what_others_freed() {
        let mut free = FreeSlots::default();
        for (cpu, slot) in [(1, 10), (1, 11), (3, 30)] {
            free.push(cpu, slot);
        }
        assert_eq!(free.all(), [10, 11, 30]);
        assert_eq!([3, 3, 0, 1].map(|cpu| free.pop(cpu)), [Some(30), Some(11), Some(10), None]);
    }
}
