//! What the operations of a run add up to: the names that are in each directory, kept apart from the filesystem. At the end of
//! the run its structures are compared with that, as `btrfs check` and `xfs_repair -n` would.

use super::{initial_files, DirId, File, InitialNames};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// Files that were there when the run began.
struct Initial {
    dirs: Vec<DirId>,
    files: u64,
    names: InitialNames,
}

/// Names by directory. Nothing is entered unless somebody will ask.
#[derive(Default)]
pub struct Ledger {
    keeps: Cell<bool>,
    /// The parent and the name of each.
    directories: RefCell<BTreeMap<DirId, (DirId, Vec<u8>)>>,
    files: RefCell<BTreeMap<(DirId, Vec<u8>), File>>,
    initial: RefCell<Vec<Initial>>,
    problem: RefCell<Option<String>>,
}

impl Ledger {
    /// Directories below the root: number, parent, name.
    pub fn directories(&self) -> Vec<(DirId, DirId, Vec<u8>)> {
        self.directories.borrow().iter().map(|(dir, (parent, name))| (*dir, *parent, name.clone())).collect()
    }

    /// Links that each directory should have: its name, its `.`, and the `..` of each directory in it.
    pub fn links(&self) -> BTreeMap<DirId, u32> {
        let mut links = BTreeMap::from([(0, 2)]);
        for (dir, (parent, _)) in self.directories.borrow().iter() {
            *links.entry(*dir).or_insert(0) += 2;
            *links.entry(*parent).or_insert(0) += 1;
        }
        links
    }

    /// Files that operations have made: directory, name, slot.
    pub fn files(&self) -> Vec<(DirId, Vec<u8>, u32)> {
        self.files.borrow().iter().map(|((dir, name), file)| (*dir, name.clone(), file.inode)).collect()
    }

    /// How many names each file has that operations have made, by slot.
    pub fn inodes(&self) -> BTreeMap<u32, u32> {
        let mut inodes = BTreeMap::new();
        self.files.borrow().values().for_each(|file| *inodes.entry(file.inode).or_default() += 1);
        inodes
    }

    /// Files that were there before, which no operation touches: directory and name.
    pub fn initial(&self) -> Vec<(DirId, Vec<u8>)> {
        self.initial.borrow().iter().flat_map(|i| initial_files(&i.dirs, 0..i.files, i.names)).collect()
    }

    /// All names by directory, the root's too.
    pub fn names(&self) -> BTreeMap<DirId, Vec<Vec<u8>>> {
        let mut names: BTreeMap<DirId, Vec<Vec<u8>>> = BTreeMap::from([(0, Vec::new())]);
        for (dir, parent, name) in self.directories() {
            names.entry(dir).or_default();
            names.entry(parent).or_default().push(name);
        }
        let files = self.files().into_iter().map(|(dir, name, _)| (dir, name));
        files.chain(self.initial()).for_each(|(dir, name)| names.entry(dir).or_default().push(name));
        names
    }

    /// Compares the links of all directories with what should be there.
    pub fn compare_links(&self, links: impl Fn(DirId) -> u32) -> Result<(), String> {
        for (dir, should) in self.links() {
            let has = links(dir);
            if has != should {
                return Err(format!("directory {dir} has {has} links, {should} should be there"));
            }
        }
        Ok(())
    }

    /// Compares how many names and links directories count, and how many files have memory, with what should be there. What was
    /// there before the run has none.
    pub fn compare_counts(
        &self,
        counted: impl Fn(DirId) -> (u32, u32),
        slots: usize,
        free: &[u32],
    ) -> Result<(), String> {
        for (dir, names) in self.names() {
            let count = counted(dir).0;
            if count as usize != names.len() {
                return Err(format!("directory {dir} counts {count} names, {} should be there", names.len()));
            }
        }
        self.compare_links(|dir| counted(dir).1)?;
        let (used, files) = (slots - free.len(), self.inodes().len());
        if used != files {
            return Err(format!("{used} inodes are in use, {files} files are there"));
        }
        let free: BTreeSet<u32> = free.iter().copied().collect();
        match self.files().into_iter().find(|(_, _, slot)| free.contains(slot)) {
            Some((_, _, slot)) => Err(format!("inode {slot} has a name and is free")),
            None => Ok(()),
        }
    }

    /// A directory was made.
    pub fn enter_directory(&self, dir: DirId, parent: DirId, name: &[u8]) {
        self.directories.borrow_mut().insert(dir, (parent, name.to_vec()));
    }

    /// It goes.
    pub fn strike_directory(&self, dir: DirId) {
        self.directories.borrow_mut().remove(&dir);
    }

    /// Files are there before the run begins.
    pub fn fill(&self, dirs: &[DirId], files: u64, names: InitialNames) {
        self.initial.borrow_mut().push(Initial { dirs: dirs.to_vec(), files, names });
    }

    /// Somebody will ask: what is done is entered from now on.
    pub fn keep(&self) {
        self.keeps.set(true);
    }

    /// What went wrong while it was written, if anything.
    pub fn problem(&self) -> Result<(), String> {
        self.problem.borrow().clone().map_or(Ok(()), Err)
    }

    /// A file has this name from now on.
    pub fn enter(&self, dir: DirId, name: &[u8], file: File) {
        if self.keeps.get() && self.files.borrow_mut().insert((dir, name.to_vec()), file).is_some() {
            self.note(name, "was made twice");
        }
    }

    /// A name goes; the file that had it.
    pub fn strike(&self, dir: DirId, name: &[u8]) -> Option<File> {
        let file = self.files.borrow_mut().remove(&(dir, name.to_vec()));
        if self.keeps.get() && file.is_none() {
            self.note(name, "was removed and was not there");
        }
        file
    }

    fn note(&self, name: &[u8], what: &str) {
        let problem = format!("the workload's {} {what}", String::from_utf8_lossy(name));
        self.problem.borrow_mut().get_or_insert(problem);
    }
}
