//! Names that are known to be missing. The dentry of a name that was removed stays (`d_delete`, `dentry_unlink_inode`): hashed, without
//! an inode, among its directory's children, on the list of unused ones. Who makes the name again finds it (`d_lookup` of
//! `lookup_open`, `lookup_dcache`) and asks the filesystem for nothing (fs/namei.c and fs/dcache.c of 6.12).

use crate::filesystems::names::dcache::hash;
use crate::filesystems::DirId;
use crate::fx::FxMap;
use crate::waist::CachedId;
use std::cell::RefCell;

/// Such a dentry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negative {
    /// Its memory.
    pub memory: CachedId,
    /// The list of unused dentries that it is on.
    pub list: Option<u32>,
}

/// Those of a mount, by directory and the hash of their name.
#[derive(Default)]
pub struct Negatives(RefCell<FxMap<DirId, FxMap<u64, Negative>>>);

impl Negatives {
    /// That of a name.
    pub fn get(&self, dir: DirId, name: &[u8]) -> Option<Negative> {
        self.0.borrow().get(&dir)?.get(&hash(dir, name)).copied()
    }

    /// A name is missing from now on.
    pub fn put(&self, dir: DirId, name: &[u8], dentry: Negative) {
        self.0.borrow_mut().entry(dir).or_default().insert(hash(dir, name), dentry);
    }

    /// A name is there again.
    pub fn take(&self, dir: DirId, name: &[u8]) -> Option<Negative> {
        self.0.borrow_mut().get_mut(&dir)?.remove(&hash(dir, name))
    }

    /// A directory goes: how many there were.
    pub fn forget(&self, dir: DirId) -> u64 {
        self.0.borrow_mut().remove(&dir).map_or(0, |names| names.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_missing_in_its_directory_until_it_is_made_again() {
        let (negatives, dentry) = (Negatives::default(), Negative { memory: 7, list: Some(1) });
        negatives.put(1, b"a", dentry);
        negatives.put(1, b"b", dentry);
        assert_eq!((negatives.get(1, b"a"), negatives.get(2, b"a")), (Some(dentry), None));
        assert_eq!(negatives.take(1, b"a"), Some(dentry));
        assert_eq!(negatives.get(1, b"a"), None);
        assert_eq!((negatives.forget(1), negatives.forget(1)), (1, 0));
    }
}
