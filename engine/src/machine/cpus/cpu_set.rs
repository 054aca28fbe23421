//! Sets of CPUs.

use super::topology::MAX_CPUS;
use crate::waist::CpuId;

const WORDS: usize = MAX_CPUS as usize / 64;
/// Words of a set that need no room elsewhere: machines of more than 256 CPUs are rare.
const NEAR: usize = 4;

/// A set of CPUs. Those above the first 256 get room when the first of them comes, once.
#[derive(Clone, Debug, Default)]
pub struct CpuSet {
    near: [u64; NEAR],
    far: Option<Box<[u64; WORDS - NEAR]>>,
}

impl CpuSet {
    /// Removes all CPUs, and keeps the room.
    #[inline]
    pub fn clear(&mut self) {
        self.near = [0; NEAR];
        if let Some(far) = &mut self.far {
            **far = [0; WORDS - NEAR];
        }
    }

    /// Makes it the set of two CPUs, if these and those that were in it are among the first. Whether they are.
    #[inline(always)]
    pub fn become_near_pair(&mut self, a: CpuId, b: CpuId) -> bool {
        let near = self.far.is_none() && a.max(b) < NEAR as u32 * 64;
        if near {
            self.near = [0; NEAR];
            self.near[a as usize / 64] |= 1 << (a % 64);
            self.near[b as usize / 64] |= 1 << (b % 64);
        }
        near
    }

    /// Makes it the set of one CPU.
    pub fn become_only(&mut self, cpu: CpuId) {
        self.clear();
        self.insert(cpu);
    }

    #[inline]
    fn word(&self, at: usize) -> u64 {
        match &self.far {
            _ if at < NEAR => self.near[at],
            Some(far) => far[at - NEAR],
            None => 0,
        }
    }

    #[inline]
    fn word_mut(&mut self, at: usize) -> &mut u64 {
        if at < NEAR {
            &mut self.near[at]
        } else {
            &mut self.far.get_or_insert_default()[at - NEAR]
        }
    }

    /// How many words may have members.
    #[inline]
    fn words(&self) -> usize {
        if self.far.is_none() {
            NEAR
        } else {
            WORDS
        }
    }

    /// Adds a CPU. Whether it was not there.
    #[inline]
    pub fn insert(&mut self, cpu: CpuId) -> bool {
        let (word, bit) = (self.word_mut(cpu as usize / 64), 1 << (cpu % 64));
        let before = std::mem::replace(word, *word | bit);
        before & bit == 0
    }

    /// Removes a CPU. Whether it was there.
    #[inline]
    pub fn remove(&mut self, cpu: CpuId) -> bool {
        let (word, bit) = (self.word_mut(cpu as usize / 64), 1 << (cpu % 64));
        let before = std::mem::replace(word, *word & !bit);
        before & bit != 0
    }

    /// Whether the CPU is in the set.
    #[inline]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.word(cpu as usize / 64) >> (cpu % 64) & 1 == 1
    }

    /// Whether somebody other than the CPU is in the set.
    #[inline]
    pub fn has_other(&self, cpu: CpuId) -> bool {
        let (own, bit) = (cpu as usize / 64, 1 << (cpu % 64));
        (0..self.words()).any(|at| self.word(at) & if at == own { !bit } else { u64::MAX } != 0)
    }

    /// Tells each member, in ascending order.
    #[inline(always)]
    pub fn each(&self, mut tell: impl FnMut(CpuId)) {
        let mut tell_word = |at: usize, mut rest: u64| {
            while rest != 0 {
                tell(at as u32 * 64 + rest.trailing_zeros());
                rest &= rest - 1;
            }
        };
        self.near.iter().enumerate().for_each(|(at, &word)| tell_word(at, word));
        if let Some(far) = &self.far {
            far.iter().enumerate().for_each(|(at, &word)| tell_word(NEAR + at, word));
        }
    }

    /// Whether a member is as asked.
    #[inline(always)]
    pub fn any(&self, mut asked: impl FnMut(CpuId) -> bool) -> bool {
        let mut any = false;
        self.each(|cpu| any = any || asked(cpu));
        any
    }

    /// The members in ascending order.
    #[inline]
    pub fn iter(&self) -> Members<'_> {
        Members { set: self, word: 0, rest: self.near[0] }
    }

    /// The nearest member below `cpu` or above it: the one with less `distance`, then the one with the nearer number.
    fn nearest_to(&self, cpu: CpuId, distance: impl Fn(CpuId) -> u64) -> Option<CpuId> {
        match (self.last_below(cpu), self.first_from(cpu)) {
            (Some(below), Some(above)) => {
                let to = |other: CpuId| (distance(other), other.abs_diff(cpu));
                Some(if to(below) <= to(above) { below } else { above })
            }
            (below, above) => below.or(above),
        }
    }

    fn last_below(&self, cpu: CpuId) -> Option<CpuId> {
        let (word, bit) = (cpu as usize / 64, cpu % 64);
        let mut rest = self.word(word) & ((1 << bit) - 1);
        for i in (0..=word).rev() {
            if rest != 0 {
                return Some(i as u32 * 64 + 63 - rest.leading_zeros());
            }
            rest = if i > 0 { self.word(i - 1) } else { 0 };
        }
        None
    }

    fn first_from(&self, cpu: CpuId) -> Option<CpuId> {
        let (word, bit) = (cpu as usize / 64, cpu % 64);
        let mut rest = self.word(word) & (u64::MAX << bit);
        for i in word..self.words() {
            if rest != 0 {
                return Some(i as u32 * 64 + rest.trailing_zeros());
            }
            rest = if i + 1 < self.words() { self.word(i + 1) } else { 0 };
        }
        None
    }

    /// `cpu` itself if it is a member, else the nearest member by `distance`, which is less within the blocks of neighbouring numbers
    /// that share something than between them.
    pub fn nearest(&self, cpu: CpuId, distance: impl Fn(CpuId) -> u64) -> Option<CpuId> {
        if self.contains(cpu) {
            Some(cpu)
        } else {
            self.nearest_to(cpu, distance)
        }
    }
}

/// Goes through a [`CpuSet`].
#[derive(Clone)]
pub struct Members<'a> {
    set: &'a CpuSet,
    word: usize,
    /// What is left of that word.
    rest: u64,
}

impl Iterator for Members<'_> {
    type Item = CpuId;

    #[inline]
    fn next(&mut self) -> Option<CpuId> {
        while self.rest == 0 {
            self.word += 1;
            if self.word >= self.set.words() {
                return None;
            }
            self.rest = self.set.word(self.word);
        }
        let bit = self.rest.trailing_zeros();
        self.rest &= self.rest - 1;
        Some(self.word as u32 * 64 + bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Farther between blocks of 24 CPUs, as between sockets.
    fn distance(cpu: CpuId) -> impl Fn(CpuId) -> u64 {
        move |other| 47 + u64::from(other / 24 != cpu / 24) * 88
    }

    /// Nearest member by search: of two in as far blocks the one with the nearer number, then the smaller number.
    fn nearest(members: &BTreeSet<CpuId>, cpu: CpuId) -> Option<CpuId> {
        let own = members.get(&cpu).copied();
        own.or_else(|| members.iter().copied().min_by_key(|&other| (distance(cpu)(other), other.abs_diff(cpu), other)))
    }

    #[test]
    fn a_set_of_cpus_is_a_set_with_and_without_far_members() {
        let (mut set, mut model, mut draw) = (CpuSet::default(), BTreeSet::new(), 1u64);
        for turn in 0..4_000u32 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let cpu = (draw >> 33) as u32 % if turn < 1_000 { 256 } else { MAX_CPUS };
            match draw >> 20 & 7 {
                0 if turn % 64 == 0 => {
                    set.become_only(cpu);
                    model = BTreeSet::from([cpu]);
                }
                1 if turn % 64 == 0 => {
                    let other = (cpu + 70) % 256;
                    let near = set.become_near_pair(cpu, other);
                    assert_eq!(near, turn < 1_000);
                    if near {
                        model = BTreeSet::from([cpu, other]);
                    }
                }
                0..4 => {
                    assert_eq!(set.remove(cpu), model.remove(&cpu));
                }
                _ => {
                    assert_eq!(set.insert(cpu), model.insert(cpu));
                }
            }
            assert_eq!(set.contains(cpu), model.contains(&cpu));
            assert_eq!(set.has_other(cpu), model.iter().any(|&other| other != cpu));
            let asks = (cpu + 300) % MAX_CPUS;
            assert_eq!(set.nearest(asks, distance(asks)), nearest(&model, asks));
            assert!(set.iter().eq(model.iter().copied()));
            let mut told = Vec::new();
            set.each(|cpu| told.push(cpu));
            assert!(told.into_iter().eq(model.iter().copied()));
            assert_eq!(set.any(|other| other >= cpu), model.range(cpu..).next().is_some());
        }
    }
}
