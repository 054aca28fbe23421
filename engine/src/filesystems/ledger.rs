//! What the operations of a run add up to: the names that are in each directory, kept apart from the filesystem. At the end of
//! the run its structures are compared with that, as `btrfs check` and `xfs_repair -n` would.

use super::vfs::SuperBlock;
use super::{
    initial_files, Attribute, Audit, DirId, File, Filesystem, Io, LaidOut, Mounted, NoSpace, PlainCall, Renaming,
};
use crate::waist::{Machine, Witness};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

/// Files that were there when the run began.
struct Initial {
    dirs: Vec<DirId>,
    files: u64,
    name_length: usize,
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

    /// Links that a directory should have: its name, its `.`, and the `..` of each directory in it.
    pub fn links(&self, dir: DirId) -> u32 {
        2 + self.directories.borrow().values().filter(|(parent, _)| *parent == dir).count() as u32
    }

    /// Files that operations have made: directory, name, slot.
    pub fn files(&self) -> Vec<(DirId, Vec<u8>, u32)> {
        self.files.borrow().iter().map(|((dir, name), file)| (*dir, name.clone(), file.inode)).collect()
    }

    /// Files that were there before, which no operation touches: directory and name.
    pub fn initial(&self) -> Vec<(DirId, Vec<u8>)> {
        self.initial.borrow().iter().flat_map(|i| initial_files(&i.dirs, 0..i.files, i.name_length)).collect()
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
        for dir in self.names().into_keys() {
            let (has, should) = (links(dir), self.links(dir));
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
        let (used, files) = (slots - free.len(), self.files.borrow().len());
        if used != files {
            return Err(format!("{used} inodes are in use, {files} files are there"));
        }
        match self.files().into_iter().find(|(_, _, slot)| free.contains(slot)) {
            Some((_, _, slot)) => Err(format!("inode {slot} has a name and is free")),
            None => Ok(()),
        }
    }

    fn enter(&self, dir: DirId, name: &[u8], file: File) {
        if self.keeps.get() && self.files.borrow_mut().insert((dir, name.to_vec()), file).is_some() {
            self.note(name, "was made twice");
        }
    }

    fn strike(&self, dir: DirId, name: &[u8]) -> Option<File> {
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

/// A filesystem whose operations are entered into a ledger, and can be kept from beginning.
pub struct Recorded<F> {
    fs: Rc<F>,
    ledger: Ledger,
    closed: Cell<bool>,
    under_way: Cell<u32>,
}

impl<F> Recorded<F> {
    /// A filesystem on which nobody has done anything.
    pub fn new(fs: Rc<F>) -> Self {
        Self { fs, ledger: Ledger::default(), closed: Cell::new(false), under_way: Cell::new(0) }
    }

    /// Somebody will ask: what is done is entered from now on.
    pub fn keep(&self) {
        self.ledger.keeps.set(true);
    }

    /// An operation, unless none may begin any more.
    async fn operation<M: Machine, T>(&self, m: &M, operation: impl Future<Output = T>) -> T {
        while self.closed.get() {
            m.park().await;
        }
        self.under_way.set(self.under_way.get() + 1);
        let answer = operation.await;
        self.under_way.set(self.under_way.get() - 1);
        answer
    }
}

impl<F: Audit> Witness for Recorded<F> {
    fn close(&self) {
        self.closed.set(true);
    }

    fn under_way(&self) -> Option<String> {
        match self.under_way.get() {
            0 => self.fs.under_way().map(str::to_owned),
            operations => Some(format!("{operations} operations")),
        }
    }

    fn verdict(&self) -> Result<(), String> {
        self.ledger.problem.borrow().clone().map_or(Ok(()), Err)?;
        self.fs.audit(&self.ledger)
    }
}

impl<F: Mounted> Mounted for Recorded<F> {
    fn super_block(&self) -> &SuperBlock {
        self.fs.super_block()
    }
}

impl<M: Machine, F: Filesystem<M>> Filesystem<M> for Recorded<F> {
    async fn mkdir(&self, m: &M, parent: DirId, name: &[u8]) -> Result<DirId, NoSpace> {
        let dir = self.operation(m, self.fs.mkdir(m, parent, name)).await?;
        self.ledger.directories.borrow_mut().insert(dir, (parent, name.to_vec()));
        Ok(dir)
    }

    async fn rmdir(&self, m: &M, parent: DirId, name: &[u8], dir: DirId) {
        let removal = async {
            self.ledger.directories.borrow_mut().remove(&dir); // its number may be another's before this returns
            self.fs.rmdir(m, parent, name, dir).await;
        };
        self.operation(m, removal).await;
    }

    fn fill(&self, dirs: &[DirId], files: u64, name_length: usize) -> Result<(), NoSpace> {
        self.fs.fill(dirs, files, name_length)?;
        self.ledger.initial.borrow_mut().push(Initial { dirs: dirs.to_vec(), files, name_length });
        Ok(())
    }

    async fn create(&self, m: &M, dir: DirId, name: &[u8]) -> Result<File, NoSpace> {
        let file = self.operation(m, self.fs.create(m, dir, name)).await?;
        self.ledger.enter(dir, name, file);
        Ok(file)
    }

    async fn open(&self, m: &M, dir: DirId, file: &File) {
        self.operation(m, self.fs.open(m, dir, file)).await;
    }

    async fn open_truncating(&self, m: &M, dir: DirId, file: &File) {
        self.operation(m, self.fs.open_truncating(m, dir, file)).await;
    }

    async fn write(&self, m: &M, file: &mut File, bytes: u32) {
        self.operation(m, self.fs.write(m, file, bytes)).await;
    }

    async fn overwrite(&self, m: &M, file: &File, bytes: u32) {
        self.operation(m, self.fs.overwrite(m, file, bytes)).await;
    }

    async fn read(&self, m: &M, file: &File, bytes: u32) {
        self.operation(m, self.fs.read(m, file, bytes)).await;
    }

    async fn close(&self, m: &M, file: &File) {
        self.operation(m, self.fs.close(m, file)).await;
    }

    async fn fsync(&self, m: &M, file: &File) {
        self.operation(m, self.fs.fsync(m, file)).await;
    }

    async fn lay_out(&self, m: &M, dir: DirId, name: &[u8], laid: LaidOut) -> Result<File, NoSpace> {
        let file = self.operation(m, self.fs.lay_out(m, dir, name, laid)).await?;
        self.ledger.enter(dir, name, file);
        Ok(file)
    }

    async fn read_at(&self, m: &M, file: &File, io: Io) {
        self.operation(m, self.fs.read_at(m, file, io)).await;
    }

    async fn write_at(&self, m: &M, file: &File, io: Io) {
        self.operation(m, self.fs.write_at(m, file, io)).await;
    }

    async fn fallocate(&self, m: &M, file: &File, bytes: u32) -> Result<(), NoSpace> {
        self.operation(m, self.fs.fallocate(m, file, bytes)).await
    }

    async fn truncate(&self, m: &M, file: &File) {
        self.operation(m, self.fs.truncate(m, file)).await;
    }

    async fn shorten(&self, m: &M, file: &File, bytes: u32) {
        self.operation(m, self.fs.shorten(m, file, bytes)).await;
    }

    async fn unlink(&self, m: &M, dir: DirId, name: &[u8], file: File) {
        self.operation(m, self.fs.unlink(m, dir, name, file)).await;
        self.ledger.strike(dir, name);
    }

    async fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File) -> Result<(), NoSpace> {
        self.operation(m, self.fs.rename(m, dir, names, file)).await?;
        if let Some(file) = self.ledger.strike(dir, names.from) {
            self.ledger.enter(names.into, names.to, file);
        }
        Ok(())
    }

    async fn stat(&self, m: &M, file: &File) {
        self.operation(m, self.fs.stat(m, file)).await;
    }

    async fn stat_directory(&self, m: &M, dir: DirId) {
        self.operation(m, self.fs.stat_directory(m, dir)).await;
    }

    async fn fstat(&self, m: &M, file: &File) {
        self.operation(m, self.fs.fstat(m, file)).await;
    }

    async fn set_attribute(&self, m: &M, file: &File, attribute: Attribute) {
        self.operation(m, self.fs.set_attribute(m, file, attribute)).await;
    }

    async fn sync_all(&self, m: &M) {
        self.operation(m, self.fs.sync_all(m)).await;
    }

    async fn fiemap(&self, m: &M, file: &File) {
        self.operation(m, self.fs.fiemap(m, file)).await;
    }

    async fn readdir(&self, m: &M, dir: DirId) {
        self.operation(m, self.fs.readdir(m, dir)).await;
    }

    async fn walk(&self, m: &M, dir: DirId, nth: u32) {
        self.operation(m, self.fs.walk(m, dir, nth)).await;
    }

    async fn plain(&self, m: &M, call: PlainCall) {
        self.operation(m, self.fs.plain(m, call)).await;
    }
}
