//! Names that are used again: who has used as many in a directory as it has takes the one that is free for the longest.

use super::super::format::Name;
use crate::filesystems::DirId;
use std::collections::{BTreeMap, VecDeque};

/// The names of a task's files, by directory.
#[derive(Debug, Default)]
pub(super) struct Names {
    limit: Option<usize>,
    used: BTreeMap<DirId, usize>,
    free: BTreeMap<DirId, VecDeque<Name>>,
}

impl Names {
    /// So many in each directory; without that each name is used once.
    pub(super) fn limit(&mut self, names: Option<usize>) {
        self.limit = names;
    }

    /// A file has lost its name.
    pub(super) fn free(&mut self, dir: DirId, name: Name) {
        if self.limit.is_some() {
            self.free.entry(dir).or_default().push_back(name);
        }
    }

    /// A name to be used again; none if the next one is to be new.
    pub(super) fn again(&mut self, dir: DirId) -> Option<Name> {
        let used = self.used.entry(dir).or_default();
        let again = self.limit.is_some_and(|limit| *used >= limit);
        let name = if again { self.free.entry(dir).or_default().pop_front() } else { None };
        *used += usize::from(name.is_none());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::format::NameFormat;

    #[test]
    fn the_name_that_is_free_for_the_longest_is_used_again_when_all_are_used() {
        let format = NameFormat::new("{serial}").unwrap();
        let (mut names, name) = (Names::default(), |letter: u8| format.name(0, letter.into()));
        names.limit(Some(2));
        assert_eq!(names.again(1), None);
        names.free(1, name(b'a'));
        assert_eq!(names.again(1), None, "one of two has been used");
        names.free(1, name(b'b'));
        assert_eq!((names.again(2), names.again(1), names.again(1)), (None, Some(name(b'a')), Some(name(b'b'))));
        assert_eq!(names.again(1), None, "none is free");
    }
}
