//! How many names files have (`i_nlink`).

use std::cell::RefCell;
use std::collections::BTreeMap;

/// By slot, the names that a file has besides one.
#[derive(Default)]
pub struct Links(RefCell<BTreeMap<u32, u32>>);

impl Links {
    /// `inc_nlink`.
    pub fn inc(&self, slot: u32) {
        *self.0.borrow_mut().entry(slot).or_default() += 1;
    }

    /// `drop_nlink`: whether it was the last.
    pub fn drop(&self, slot: u32) -> bool {
        let mut others = self.0.borrow_mut();
        let Some(count) = others.get_mut(&slot) else { return true };
        *count -= 1;
        if *count == 0 {
            others.remove(&slot);
        }
        false
    }

    /// Compares them with how many names each slot should have.
    pub fn audit(&self, names: &BTreeMap<u32, u32>) -> Result<(), String> {
        let others = self.0.borrow();
        let slots = names.keys().chain(others.keys());
        match slots.into_iter().find(|slot| names.get(slot).copied().unwrap_or(0) != self.of(**slot)) {
            None => Ok(()),
            Some(slot) => Err(format!(
                "the file in slot {slot} counts {} links, {:?} should be there",
                self.of(*slot),
                names.get(slot)
            )),
        }
    }

    /// How many it has.
    pub fn of(&self, slot: u32) -> u32 {
        1 + self.0.borrow().get(&slot).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::Links;

    #[test]
    fn the_last_of_three_names_is_told() {
        let links = Links::default();
        links.inc(7);
        links.inc(7);
        assert_eq!((links.of(7), links.of(8)), (3, 1));
        assert_eq!([links.drop(7), links.drop(7), links.drop(7), links.drop(7)], [false, false, true, true]);
    }
}
