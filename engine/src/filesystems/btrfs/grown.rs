//! Files that are there before a run begins. Their items are inserted one by one, as a single task would, so the tree is exact; that
//! takes a microsecond or two of real time a file, so the process keeps what it has grown: the next run begins there, or grows it
//! further.

use super::subvolume::{Dir, Subvolume};
use super::tree::key::Item;
use crate::filesystems::{initial_files, DirId, InitialNames};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many grown subvolumes a process keeps.
const KEPT: usize = 12;
/// How many files they may have together, unless one alone has more: a million takes 150 MB, or 40 MB where the blocks of inodes and
/// indices are those of a smaller one.
const KEPT_FILES: u64 = 32_000_000;

/// Files whose leaves are loaded together.
const LOADED: usize = 32;

/// What decides how files enter a subvolume.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Begin {
    leaves: Vec<Vec<Item>>,
    transid: u64,
    all_dirs: Vec<Dir>,
    next_ino: u64,
    dirs: Vec<DirId>,
    names: InitialNames,
}

struct Grown {
    begin: Begin,
    files: u64,
    subvolume: Subvolume,
}

/// What is kept, most recently used last.
static GROWN: Mutex<Vec<Grown>> = Mutex::new(Vec::new());

/// Where those wait for each other who grow from the same beginning.
type Turn = Arc<(Begin, Mutex<()>)>;

/// The beginnings from which something is being grown.
static GROWING: Mutex<Vec<Turn>> = Mutex::new(Vec::new());

/// In place of a directory of another subvolume.
pub const ELSEWHERE: DirId = DirId::MAX;

/// The subvolume with its part of so many more files, round robin in `dirs`.
pub fn grown(mut subvolume: Subvolume, dirs: &[DirId], files: u64, names: InitialNames) -> Subvolume {
    let begin = Begin::of(&subvolume, dirs, names);
    let same = growing(begin.clone());
    let _turn = locked(&same.1);
    let mut have = 0;
    if let Some((nearest, known)) = nearest(&begin, files) {
        (have, subvolume) = (nearest, known);
    }
    if have < files {
        grow(&mut subvolume, dirs, have..files, names);
        keep(Grown { begin, files, subvolume: subvolume.clone() });
    }
    subvolume
}

/// The turn of this beginning.
fn growing(begin: Begin) -> Turn {
    let mut all = locked(&GROWING);
    all.retain(|one| Arc::strong_count(one) > 1);
    let known = all.iter().find(|one| one.0 == begin).cloned();
    known.unwrap_or_else(|| {
        all.push(Arc::new((begin, Mutex::new(()))));
        all[all.len() - 1].clone()
    })
}

/// The largest that is kept with no more than so many files, and how many it has.
fn nearest(begin: &Begin, files: u64) -> Option<(u64, Subvolume)> {
    let mut kept = locked(&GROWN);
    let fits = |i: &usize| kept[*i].begin == *begin && kept[*i].files <= files;
    let at = (0..kept.len()).filter(fits).max_by_key(|&i| kept[i].files)?;
    if kept[at].files == files {
        kept[at..].rotate_left(1); // used just now
        return kept.last().map(|exact| (files, exact.subvolume.clone()));
    }
    Some((kept[at].files, kept[at].subvolume.clone()))
}

fn keep(grown: Grown) {
    let mut kept = locked(&GROWN);
    make_room(&mut kept, &grown);
    kept.push(grown);
}

/// Those of the same beginning go first: the new one has been grown from them, and other runs still want the others.
fn make_room(kept: &mut Vec<Grown>, new: &Grown) {
    kept.sort_by_key(|one| one.begin != new.begin);
    let files: Vec<u64> = kept.iter().map(|one| one.files).collect();
    kept.drain(..go(&files, new.files));
}

/// How many of those that are kept, oldest first, have to go before one with so many files comes.
fn go(kept: &[u64], more: u64) -> usize {
    let stay = |from: usize| kept.len() - from < KEPT && kept[from..].iter().sum::<u64>() + more <= KEPT_FILES;
    (0..kept.len()).find(|&from| stay(from)).unwrap_or(kept.len())
}

/// A panic of another run leaves nothing half done behind a lock.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn grow(subvolume: &mut Subvolume, dirs: &[DirId], numbers: std::ops::Range<u64>, names: InitialNames) {
    let mut files = initial_files(dirs, numbers, names).filter(|(dir, _)| *dir != ELSEWHERE);
    loop {
        let next: Vec<_> = files.by_ref().take(LOADED).collect();
        if next.is_empty() {
            return;
        }
        subvolume.load_for(&next);
        next.iter().for_each(|(dir, name)| {
            subvolume.create(*dir, name);
        });
    }
}

impl Begin {
    fn of(subvolume: &Subvolume, dirs: &[DirId], names: InitialNames) -> Self {
        let tree = subvolume.tree();
        let leaves = tree.blocks().filter(|&block| tree.level(block) == 0);
        Self {
            leaves: leaves.map(|leaf| tree.items(leaf).to_vec()).collect(),
            transid: tree.transid,
            all_dirs: subvolume.dirs.clone(),
            next_ino: subvolume.next_ino,
            dirs: dirs.to_vec(),
            names,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_directories() -> Subvolume {
        let mut subvolume = Subvolume::new();
        for name in ["d000", "d001", "d002"] {
            subvolume.mkdir(name.as_bytes());
        }
        subvolume.commit();
        subvolume
    }

    fn leaves(subvolume: Subvolume) -> Vec<Vec<Item>> {
        Begin::of(&Subvolume::of(subvolume.into_tree(), Vec::new(), 0), &[], InitialNames::counted(0)).leaves
    }

    #[test]
    fn a_tree_that_is_grown_step_by_step_is_the_one_that_is_grown_at_once() {
        let dirs = [1, 2, 3];
        let mut at_once = with_directories();
        grow(&mut at_once, &dirs, 0..30_000, InitialNames::counted(40));
        let at_once = leaves(at_once);
        assert!(at_once.len() > 500);
        for files in [100, 9_999, 20_000, 9_999, 30_000] {
            grown(with_directories(), &dirs, files, InitialNames::counted(40));
        }
        assert_eq!(leaves(grown(with_directories(), &dirs, 30_000, InitialNames::counted(40))), at_once);
        assert_ne!(
            leaves(grown(with_directories(), &dirs, 30_000, InitialNames::counted(11))),
            at_once,
            "shorter names are another tree"
        );
    }

    #[test]
    fn the_oldest_go_when_there_are_many_or_large_ones() {
        let million = 1_000_000;
        assert_eq!(go(&[100; KEPT - 1], 100), 0);
        assert_eq!(go(&[100; KEPT], 100), 1);
        assert_eq!(go(&[8 * million, 9 * million, 10 * million], 5 * million), 0);
        assert_eq!(go(&[8 * million, 9 * million, 10 * million], 11 * million), 1);
        assert_eq!(go(&[100, 16 * million], 100 * million), 2, "one alone may have more");
    }

    #[test]
    fn a_tree_takes_the_place_of_those_that_it_was_grown_from() {
        let (mine, others) = (with_directories(), Subvolume::new());
        let of = |subvolume: &Subvolume, millions: u64| Grown {
            begin: Begin::of(subvolume, &[], InitialNames::counted(0)),
            files: millions * 1_000_000,
            subvolume: subvolume.clone(),
        };
        let mut kept = vec![of(&mine, 9), of(&others, 16), of(&mine, 8)];
        make_room(&mut kept, &of(&mine, 11));
        assert_eq!(kept.iter().map(|one| one.files).collect::<Vec<_>>(), [16_000_000]);
    }

    #[test]
    fn a_run_does_not_change_what_is_kept() {
        let first = grown(with_directories(), &[1], 2_000, InitialNames::counted(12));
        let mut changed = first.clone();
        grow(&mut changed, &[1], 2_000..4_000, InitialNames::counted(12));
        assert_ne!(leaves(changed), leaves(first.clone()));
        assert_eq!(leaves(grown(with_directories(), &[1], 2_000, InitialNames::counted(12))), leaves(first));
    }
}
