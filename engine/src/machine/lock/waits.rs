//! The waits of a task for locks, each inside the one before. Hardly ever are there more than one.

use crate::machine::task::Wait;
use crate::waist::LockId;
use arrayvec::ArrayVec;

/// See above.
#[derive(Debug, Default)]
pub struct Waits {
    last: Option<Wait>,
    /// Those before it.
    before: Option<Box<ArrayVec<Wait, 3>>>,
}

impl Waits {
    /// The one that began last.
    #[inline]
    pub fn last(&self) -> Option<&Wait> {
        self.last.as_ref()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Wait> {
        self.before.iter().flat_map(|before| before.iter()).chain(&self.last)
    }

    /// Whether one of them is for `lock`.
    #[inline]
    pub fn any_for(&self, lock: LockId) -> bool {
        let is_for = |wait: &Wait| wait.lock == lock;
        self.last.as_ref().is_some_and(is_for) || self.before.as_ref().is_some_and(|before| before.iter().any(is_for))
    }

    /// One more begins.
    #[inline]
    pub fn push(&mut self, wait: Wait) {
        if let Some(before) = self.last.replace(wait) {
            self.before.get_or_insert_default().push(before);
        }
    }

    /// The last one ends.
    #[inline]
    pub fn pop(&mut self) -> Option<Wait> {
        let before = self.before.as_mut().and_then(|before| before.pop());
        std::mem::replace(&mut self.last, before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waist::Side;

    #[test]
    fn the_last_wait_ends_first_and_the_one_before_goes_on() {
        let wait = |lock| Wait { lock, side: Side::Write, held: true, since: 0 };
        let mut waits = Waits::default();
        (0..4).for_each(|lock| waits.push(wait(lock)));
        assert!(waits.iter().map(|wait| wait.lock).eq(0..4));
        assert!((0..4).all(|lock| waits.any_for(lock)) && !waits.any_for(4));
        for lock in (0..4).rev() {
            assert_eq!(waits.last().map(|wait| wait.lock), Some(lock));
            assert_eq!(waits.pop().map(|wait| wait.lock), Some(lock));
        }
        assert!(waits.last().is_none() && waits.pop().is_none());
    }
}
