//! Single operations on a task's own set of files: what op mixes and dbench are made of.

mod directories;
mod draws;
mod links;
mod names;
mod open;
mod picks;
mod words;

use super::draw::{Choice, Places};
use super::format::{Name, NameFormat};
use crate::filesystems::{Attribute, DirId, File, Filesystem, Renaming};
use crate::waist::{LockId, Machine};
use directories::MadeDir;
use links::Links;
use names::Names;
pub use picks::Picks;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
pub use words::{Act, Which, ACTS};

/// A file that a task knows of.
#[derive(Clone, Copy, Debug)]
struct Held {
    dir: DirId,
    name: Name,
    file: File,
    /// It has been written to since it was last closed.
    dirty: bool,
    /// It has been written to since it was last synced, if it ever was.
    unsynced: bool,
    /// How many bytes it has.
    size: u64,
    /// In how many rounds through the set it was taken.
    taken: u32,
}

/// Files that one task uses, or all of them.
pub type Pool = Rc<RefCell<FileSet>>;

/// Files, found by place, and the directories that were made beside them.
#[derive(Debug, Default)]
pub struct FileSet {
    files: VecDeque<Held>,
    directories: VecDeque<MadeDir>,
    links: Links,
    names: Names,
    /// Rounds through the set that have ended.
    rounds: u32,
}

/// There was no space for an operation; the run has been given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A task that does operations.
pub struct Actor<M, F> {
    m: M,
    fs: Rc<F>,
    dirs: Rc<[DirId]>,
    pool: Pool,
    random: Xoshiro256PlusPlus,
    choice: Choice,
    task: u32,
    format: Rc<NameFormat>,
    serial: u32,
    /// Names that a walk finds in a directory before it goes on to the next, and how many are behind it.
    names: u32,
    walked: u32,
    /// The files that were made, written to, synced and read last.
    made: Option<Name>,
    written: Option<Name>,
    synced: Option<Name>,
    read: Option<Name>,
    /// The directory in which a name was removed or made by a rename last.
    changed: Option<DirId>,
    /// The directory of the file that was used last, and the share of draws that stay there.
    dir: Option<DirId>,
    stays: f64,
    /// How many pieces of the file were read before this one.
    pub piece: u32,
    /// Which blocks of a file it reads and writes over.
    pub places: Places,
    /// What was written last: the first byte, and how many.
    place: (u64, u32),
    /// It chooses files under a mutex.
    picks: Option<(Picks, LockId)>,
}

impl<M: Machine, F: Filesystem<M>> Actor<M, F> {
    /// The number of who makes files before the tasks start; names show it.
    pub const NOBODY: u32 = 9999;

    /// Task number `task` on the files of `pool`; new ones go into any of `dirs`, with names of this format.
    pub fn new(m: M, fs: Rc<F>, dirs: Rc<[DirId]>, pool: Pool, (task, format): (u32, Rc<NameFormat>)) -> Self {
        let random = m.stream(&format!("actor {task}"));
        let choice = Choice::Random;
        let (made, written, synced, read, dir) = (None, None, None, None, None);
        Self {
            m,
            fs,
            dirs,
            pool,
            random,
            choice,
            task,
            format,
            serial: 0,
            names: 1,
            walked: 0,
            made,
            written,
            synced,
            read,
            changed: None,
            dir,
            stays: 0.0,
            piece: 0,
            places: Places::Sequential,
            place: (0, 0),
            picks: None,
        }
    }

    /// The same one, which chooses files in this way.
    pub fn choosing(self, choice: Choice) -> Self {
        Self { choice, ..self }
    }

    /// The same one, which has so many names in its directories together, if told, and takes the one that is free for the longest.
    pub fn reusing(self, names: Option<u32>) -> Self {
        let each = names.map(|names| (names as usize).div_ceil(self.dirs.len()));
        self.pool.borrow_mut().names.limit(each);
        self
    }

    /// The same one, of whose draws of any file or directory this share stays in the directory of the one before.
    pub fn staying(self, stays: f64) -> Self {
        Self { stays, ..self }
    }

    /// The same one on the task of `m`.
    pub fn on_task(self, m: M) -> Self {
        Self { m, ..self }
    }

    /// The same one, of whose walk through its directories, of so many names each, this share is over.
    pub fn walking(self, names: u32, share: f64) -> Self {
        let names = names.max(1);
        let walked = (share * f64::from(names) * self.dirs.len() as f64) as u32;
        self.fs.has_walked(self.dirs[(walked / names) as usize % self.dirs.len()], walked % names);
        Self { names, walked, ..self }
    }

    /// The task's own stream.
    pub fn random(&mut self) -> &mut Xoshiro256PlusPlus {
        &mut self.random
    }

    /// How many directories the task has.
    pub fn directories(&self) -> usize {
        self.dirs.len()
    }

    /// How many files there are.
    pub fn files(&self) -> usize {
        self.pool.borrow().files.len()
    }

    /// Does one operation, on one of these files if it needs one; reads and writes are of `bytes`. Where a file is needed and there is none, one is created first.
    pub async fn act(&mut self, which: Which, act: Act, bytes: u32) -> Result<(), Full> {
        self.pick(act).await;
        self.do_act(which, act, bytes).await?;
        self.give_back(act).await;
        Ok(())
    }

    async fn do_act(&mut self, which: Which, act: Act, bytes: u32) -> Result<(), Full> {
        let (m, fs) = (self.m.clone(), self.fs.clone());
        match act {
            Act::Create => return self.create(bytes).await,
            Act::StatMissing => {
                fs.stat_missing(&m, self.any_dir()).await;
            }
            Act::Statfs => fs.statfs(&m).await,
            Act::Sync => {
                fs.syncfs(&m).await;
                self.pool.borrow_mut().files.iter_mut().for_each(|held| held.unsynced = false);
            }
            Act::Bulkstat => fs.bulkstat(&m, self.task).await,
            Act::Walk => {
                let dir = self.dirs[(self.walked / self.names) as usize % self.dirs.len()];
                fs.walk(&m, dir, self.walked % self.names).await;
                self.walked += 1;
            }
            Act::Mkdir => return self.mkdir().await,
            Act::Rmdir => return self.rmdir(which).await,
            Act::StatDir => return self.stat_dir(which).await,
            Act::Readdir => {
                let dir = self.any_dir();
                fs.readdir(&m, dir).await;
            }
            _ => return self.on(which, act, bytes).await,
        }
        Ok(())
    }

    /// Lists one of the task's directories, by its place.
    pub async fn list(&self, place: usize) {
        self.fs.readdir(&self.m, self.dirs[place]).await;
    }

    /// Does an operation that needs a file on one of these; on any where there is none such.
    pub async fn on(&mut self, which: Which, act: Act, bytes: u32) -> Result<(), Full> {
        if self.files() == 0 {
            self.create(0).await?;
        }
        let place = match which {
            Which::Next => self.next_place(),
            _ => self.place(which).unwrap_or_else(|| self.any_place()),
        };
        self.at(place, act, bytes).await
    }

    async fn at(&mut self, place: usize, act: Act, bytes: u32) -> Result<(), Full> {
        let (m, fs) = (self.m.clone(), self.fs.clone());
        self.find(place, act).await;
        let mut held = self.pool.borrow().files[place];
        match act {
            Act::Open | Act::OpenRdwr => {
                held.file.writable = act == Act::OpenRdwr;
                fs.open(&m, held.dir, &held.file).await;
                self.close(self.now_at(place, held.name), held.file.writable).await;
            }
            Act::OpenCreat => {
                held.file.writable = true;
                fs.open_creating(&m, held.dir, &held.file).await;
                self.close(self.now_at(place, held.name), true).await;
            }
            Act::Read => {
                let next = u64::from(self.piece) * u64::from(bytes);
                let offset = self.block_of(held.size, bytes).unwrap_or(next);
                fs.read(&m, &held.file, (offset, bytes)).await;
                self.read = Some(held.name);
            }
            Act::Overwrite if held.file.written => {
                self.place = (self.block_of(held.size, bytes).unwrap_or(0), bytes);
                fs.overwrite(&m, &held.file, self.place).await;
                self.note_write(place, held);
            }
            Act::Append | Act::Overwrite => {
                self.place = (held.size, bytes);
                self.pool.borrow_mut().files[place].size += u64::from(bytes);
                fs.write(&m, &mut held.file, bytes).await;
                self.note_write(place, held);
            }
            Act::Fallocate => fs.fallocate(&m, &held.file, bytes).await.map_err(|_| self.full())?,
            Act::Truncate | Act::Shorten => self.cut(place, act, bytes).await,
            Act::Fsync | Act::Fdatasync => {
                fs.fsync(&m, &held.file, act == Act::Fdatasync).await;
                self.note_sync(place, held.name);
            }
            Act::FsyncDir => fs.fsync_directory(&m, held.dir, false).await,
            Act::Unlink => self.unlink(place).await,
            Act::Link => self.link(place).await?,
            Act::Reflink => self.reflink(place).await?,
            Act::Rename => self.rename(place, held.dir).await?,
            Act::Move => self.rename(place, self.other_dir(held.dir)).await?,
            _ => self.at_inode(&held.file, act).await,
        }
        Ok(())
    }

    /// The walk to a file that is not in memory; who has it open has been there. What removes a name looks it up for itself.
    async fn find(&self, place: usize, act: Act) {
        let held = self.pool.borrow().files[place];
        if !matches!(act, Act::Unlink | Act::Rename | Act::Move) {
            self.fs.look_up(&self.m, (held.dir, &held.name), &held.file, act == Act::OpenCreat).await;
        }
    }

    /// The files of the set, which are closed, leave memory.
    pub fn cool(&self) -> Vec<File> {
        let mut pool = self.pool.borrow_mut();
        let cool = |held: &mut Held| {
            (held.file.written, held.file.writable, held.dirty, held.unsynced) = (false, false, false, false);
            held.file
        };
        pool.files.iter_mut().map(cool).collect()
    }

    /// The end of the last write, to a file that is open with `O_SYNC`.
    pub async fn write_sync(&mut self) {
        let Some(place) = self.place(Which::Written) else { return };
        let held = self.pool.borrow().files[place];
        self.fs.write_sync(&self.m, &held.file, self.place).await;
        self.note_sync(place, held.name);
    }

    fn note_sync(&mut self, place: usize, name: Name) {
        self.note(place, name, |held| held.unsynced = false);
        self.synced = Some(name);
    }

    /// `fdatasync` of the directory in which a name was removed, or came by a rename.
    pub async fn sync_changed_directory(&self) {
        if let Some(dir) = self.changed {
            self.fs.fsync_directory(&self.m, dir, true).await;
        }
    }

    /// A file loses all that is in it, or so many bytes at its end.
    async fn cut(&mut self, place: usize, act: Act, bytes: u32) {
        let mut held = self.pool.borrow().files[place];
        if act == Act::Truncate {
            self.fs.truncate(&self.m, &held.file).await;
            held.file.written = false;
            self.pool.borrow_mut().files[place] = Held { dirty: false, unsynced: true, size: 0, ..held };
        } else {
            self.fs.shorten(&self.m, &held.file, bytes).await;
            let size = held.size.saturating_sub(u64::from(bytes));
            self.note(place, held.name, |held| (held.unsynced, held.size) = (true, size));
        }
    }

    /// An operation that looks at an inode, changes its attributes or locks a range.
    async fn at_inode(&self, file: &File, act: Act) {
        let (m, fs) = (&self.m, &self.fs);
        match act {
            Act::Stat => fs.stat(m, file).await,
            Act::Fstat => fs.fstat(m, file).await,
            Act::Dup => fs.dup(m, file).await,
            Act::Lseek => fs.lseek(m, file).await,
            Act::SeekHole => fs.seek_hole(m, file).await,
            Act::Utimes => fs.set_attribute(m, file, Attribute::Times).await,
            Act::Chmod => fs.set_attribute(m, file, Attribute::Mode).await,
            Act::Chown => fs.set_attribute(m, file, Attribute::Owner).await,
            Act::Fiemap => fs.fiemap(m, file).await,
            Act::Lock | Act::Unlock => fs.lock_range(m, file, act == Act::Lock).await,
            Act::LockFile => fs.lock_file(m, file).await,
            _ => unreachable!("needs no file"),
        }
    }

    /// Takes the name that a file was given last, and with its only one the file.
    async fn unlink(&mut self, place: usize) {
        self.changed = Some(self.pool.borrow().files[place].dir);
        if self.unlink_link(place).await {
            return;
        }
        let Some(held) = self.pool.borrow_mut().files.swap_remove_back(place) else { return };
        self.fs.unlink(&self.m, held.dir, &held.name, held.file).await;
        self.pool.borrow_mut().names.free(held.dir, held.name);
    }

    /// Gives a file a name that is free in one of the directories.
    async fn rename(&mut self, place: usize, into: DirId) -> Result<(), Full> {
        let (m, fs, to) = (self.m.clone(), self.fs.clone(), self.next_name(into));
        let held = self.pool.borrow().files[place];
        self.changed = Some(into);
        let names = Renaming { from: &held.name, to: &to, into };
        if fs.rename(&m, held.dir, names, &held.file).await.is_err() {
            return Err(self.full());
        }
        let mut pool = self.pool.borrow_mut();
        pool.names.free(held.dir, held.name);
        let renamed = &mut pool.files[place];
        (renamed.name, renamed.dir) = (to, into);
        for last in [&mut self.made, &mut self.written, &mut self.read] {
            *last = last.map(|name| if name == held.name { to } else { name });
        }
        Ok(())
    }

    fn note_write(&mut self, place: usize, held: Held) {
        self.note(place, held.name, |noted| {
            (noted.file, noted.dirty, noted.unsynced) = (held.file, true, true);
        });
        self.written = Some(held.name);
    }

    /// Enters what has become of a file that was at a place, if it still is in the set.
    fn note(&self, place: usize, name: Name, change: impl FnOnce(&mut Held)) {
        let place = self.now_at(place, name);
        let mut pool = self.pool.borrow_mut();
        pool.files.get_mut(place).filter(|held| held.name == name).map(change);
    }

    fn full(&self) -> Full {
        self.m.give_up("no space left");
        Full
    }
}
