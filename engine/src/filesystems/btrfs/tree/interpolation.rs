//! Search among sorted keys that lie evenly, as hashes of names do: in large trees each step of a binary search is a line of
//! memory that no cache has; a guess is a few places off.

use super::key::Key;
use std::ops::Range;

/// How far from a guess the search first looks.
const FIRST_STEP: usize = 8;

/// Keys of one object and kind: all that is searched is from the first on, and below the second.
pub type Between = (Key, Key);

/// How many of the entries, sorted by key, are no larger than a key. The keys they lie between make it quick and decide nothing.
pub fn count_up_to<T>(entries: &[T], key: Key, between: Option<Between>, key_of: impl Fn(&T) -> Key) -> usize {
    let among = match between {
        Some(between) => near(entries, key, between, &key_of),
        None => 0..entries.len(),
    };
    among.start + entries[among].partition_point(|entry| key_of(entry) <= key)
}

/// Two keys to search between, if there may be evenly many between them.
pub fn between(from: Key, to: Option<Key>) -> Option<Between> {
    to.filter(|to| from.is_like(*to) && from < *to).map(|to| (from, to))
}

/// Entries of which all before are no larger than the key, and all behind are larger.
fn near<T>(entries: &[T], key: Key, between: Between, key_of: &impl Fn(&T) -> Key) -> Range<usize> {
    let guess = guess(entries.len(), key, between);
    let (mut low, mut high, mut step) = (guess, guess, FIRST_STEP);
    while high < entries.len() && key_of(&entries[high]) <= key {
        (low, high, step) = (high, high + step, 2 * step);
    }
    if high > guess {
        return low..high.min(entries.len());
    }
    while low > 0 && key_of(&entries[low]) > key {
        (high, low, step) = (low, low.saturating_sub(step), 2 * step);
    }
    low..high
}

/// Where among so many entries a key is, if they lie evenly.
pub fn guess(len: usize, key: Key, (from, to): Between) -> usize {
    let part = key.offset().saturating_sub(from.offset()) as f64 / (to.offset() - from.offset()) as f64;
    ((part * len as f64) as usize).min(len.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::super::key::ItemKind;
    use super::*;

    fn key(offset: u64) -> Key {
        Key::new(256, ItemKind::DirItem, offset)
    }

    #[test]
    fn a_count_does_not_depend_on_where_the_keys_are_said_to_lie() {
        let even = |i: u64| i * 1000;
        let crowded = |i: u64| i * i * i;
        for len in [0, 1, 2, 7, 8, 9, 60, 493] {
            for offset in [even, crowded] {
                let keys: Vec<Key> = (0..len).map(|i| key(offset(i))).collect();
                let ends = [between(key(0), Some(key(offset(len) + 1))), between(key(0), Some(key(1))), None];
                for wanted in (0..len + 2).flat_map(|i| [offset(i).saturating_sub(1), offset(i), offset(i) + 1]) {
                    let plain = keys.partition_point(|entry| *entry <= key(wanted));
                    for ends in ends {
                        assert_eq!(count_up_to(&keys, key(wanted), ends, |entry| *entry), plain, "{len} {wanted}");
                    }
                }
            }
        }
    }

    #[test]
    fn few_of_evenly_lying_keys_are_looked_at() {
        let looks = std::cell::Cell::new(0);
        let keys: Vec<Key> = (0..400).map(|i| key(i * 1000 + i * 7919 % 900)).collect();
        assert!(keys.is_sorted());
        count_up_to(&keys, key(200_000), between(key(0), Some(key(400_000))), |entry| {
            looks.set(looks.get() + 1);
            *entry
        });
        assert!(looks.get() <= 7, "{} of the 9 of a binary search", looks.get());
    }

    #[test]
    fn nothing_lies_evenly_between_keys_of_two_kinds_or_behind_the_last() {
        let other = Key::new(257, ItemKind::DirItem, 5);
        assert_eq!(between(key(1), Some(other)), None);
        assert_eq!(between(key(1), Some(key(1))), None);
        assert_eq!(between(key(1), None), None);
        assert!(between(key(1), Some(key(2))).is_some());
    }
}
