//! Who waits in a run queue, by place, with the sums that averages are made of.

use super::entity::Member;
use std::collections::VecDeque;
use std::num::NonZeroU64;

/// Where a waiting member stands: first by deadline (EEVDF) or virtual run time (CFS), of equals tasks in the order of arrival,
/// then the group, then sleepers that have not left.
pub type Place = (i64, NonZeroU64);

/// A member that waits in a run queue, as it stands as long as it does.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Its place.
    pub place: Place,
    /// Who it is.
    pub member: Member,
    /// Its virtual run time.
    pub vruntime: i64,
    /// Its weight where weights are summed.
    pub share: i64,
}

/// All of them. The first stands apart: mostly it is the only one.
#[derive(Clone, Debug, Default)]
pub struct Waiters {
    first: Option<Waiting>,
    others: VecDeque<Waiting>,
    /// Sums over the others, see [`Waiters::sums`].
    sum: i128,
    shares: i64,
}

impl Waiters {
    /// Whose place is first.
    #[inline]
    pub fn first(&self) -> Option<&Waiting> {
        self.first.as_ref()
    }

    /// All of them, by place.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.first.iter().chain(&self.others)
    }

    /// The sum of their virtual run times times their shares (`avg_vruntime`), and that of their shares (`avg_load`).
    pub fn sums(&self) -> (i128, i64) {
        let (sum, share) = self.first.map_or((0, 0), |first| (first.service(), first.share));
        (self.sum + sum, self.shares + share)
    }

    /// One more waits.
    #[inline]
    pub fn add(&mut self, waiting: Waiting) {
        match &mut self.first {
            None => self.first = Some(waiting),
            Some(first) if waiting.place < first.place => {
                let second = std::mem::replace(first, waiting);
                self.add_to_others(second);
            }
            Some(_) => self.add_to_others(waiting),
        }
    }

    fn add_to_others(&mut self, waiting: Waiting) {
        self.sum += waiting.service();
        self.shares += waiting.share;
        if self.others.back().is_none_or(|last| last.place < waiting.place) {
            self.others.push_back(waiting);
        } else {
            let at = self.others.partition_point(|other| other.place < waiting.place);
            self.others.insert(at, waiting);
        }
    }

    /// Who stands at this place waits no longer.
    #[inline]
    pub fn remove(&mut self, place: Place) -> Option<Waiting> {
        if self.first.is_some_and(|first| first.place == place) {
            let second = if self.others.is_empty() { None } else { self.remove_other(0) };
            std::mem::replace(&mut self.first, second)
        } else {
            self.remove_other(self.others.partition_point(|other| other.place < place))
        }
    }

    fn remove_other(&mut self, at: usize) -> Option<Waiting> {
        let removed = self.others.remove(at);
        if let Some(removed) = &removed {
            self.sum -= removed.service();
            self.shares -= removed.share;
        }
        removed
    }
}

impl Waiting {
    fn service(&self) -> i128 {
        i128::from(self.vruntime) * i128::from(self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn they_stand_by_place_and_their_sums_are_theirs() {
        let (mut waiters, mut model, mut draw) = (Waiters::default(), BTreeMap::new(), 1u64);
        for arrival in 1..4_000 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (draw >> 40) as i64 % 100;
            if draw >> 33 & 15 < 7 || arrival > 3_900 {
                let at = (number as usize / 3).min(model.len().saturating_sub(1));
                if let Some(&place) = model.keys().nth(at) {
                    assert_eq!(waiters.remove(place).map(|w| w.vruntime), model.remove(&place).map(|(v, _)| v));
                }
            } else {
                let place = (number / 10, NonZeroU64::MIN.saturating_add(arrival));
                let waiting = Waiting { place, member: Member::Group, vruntime: number - 50, share: number + 2 };
                waiters.add(waiting);
                model.insert(place, (waiting.vruntime, waiting.share));
            }
            assert!(waiters.iter().map(|w| w.place).eq(model.keys().copied()));
            assert_eq!(waiters.first().map(|w| w.place), model.keys().next().copied());
            let sum = model.values().map(|&(vruntime, share)| i128::from(vruntime * share)).sum();
            assert_eq!(waiters.sums(), (sum, model.values().map(|&(_, share)| share).sum()));
        }
    }
}
