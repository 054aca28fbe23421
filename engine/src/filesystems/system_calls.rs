//! The system calls of every filesystem: those on names, on open files, and those that need little of the filesystem. Each is entered
//! into a ledger, and can be kept from beginning.

use super::inodes::times::Timed;
use super::ledger::Ledger;
use super::names::lookup::look_up_cold;
use super::names::namei;
use super::open_files::file_locks::Request;
use super::open_files::files_struct::Position;
use super::open_files::read_write::{self, FileOperations};
use super::sync::syncfs;
use super::vfs::{SuperBlock, SuperOperations};
use super::{Attribute, Audit, DirId, File, Filesystem, InitialNames, Io, LaidOut, Mounted, NoSpace, Renaming};
use crate::waist::{Account, Machine, Side, Witness};
use std::cell::Cell;
use std::future::Future;
use std::pin::{pin, Pin};
use std::rc::Rc;

/// What a filesystem gives to the VFS.
pub trait Operations<M: Machine>: SuperOperations<M> + FileOperations<M> + 'static {}

impl<M: Machine, F: SuperOperations<M> + FileOperations<M> + 'static> Operations<M> for F {}

/// What a call does, where its caller has it. What is common to calls is compiled for each answer, not for each call.
type Call<'a, T> = Pin<&'a mut (dyn Future<Output = T> + 'a)>;

/// A mounted filesystem whose operations are entered into a ledger, and can be kept from beginning.
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
        self.ledger.keep();
    }

    /// An operation that opens a file.
    async fn opening<M: Machine, T>(&self, m: &M, site: &'static str, opening: Call<'_, T>) -> T
    where
        F: Mounted,
    {
        match self.fs.super_block().thread_groups.get(m.task()) {
            None => self.operation(m, opening).await,
            Some(group) => self.operation(m, pin!(group.open(m, site, opening))).await,
        }
    }

    /// An operation on an open file, or a directory. Where the table has several users, the call takes a reference of the file (`fdget`),
    /// which they share or not, and locks its position to move it (`fdget_pos`), which nobody else uses.
    async fn by_descriptor<M: Machine, T>(
        &self,
        m: &M,
        (file, position): (Option<u32>, Position),
        call: Call<'_, T>,
    ) -> T
    where
        F: Mounted,
    {
        let sb = self.fs.super_block();
        let Some(group) = sb.thread_groups.get(m.task()) else { return self.operation(m, call).await };
        let looking_up = async move {
            if let Some(file) = file {
                sb.calls.open_files.get(m, file).await;
                sb.calls.open_files.look_at_operations(m, file).await;
            }
            let answer = call.await;
            group.files.fdget(m, position).await;
            if let Some(file) = file {
                sb.calls.open_files.put(m, file).await;
            }
            answer
        };
        self.operation(m, pin!(looking_up)).await
    }

    /// A call by the descriptor of an open file that leaves its position alone.
    fn on_file<'a, M: Machine, T: 'a>(
        &'a self,
        m: &'a M,
        file: &File,
        call: Call<'a, T>,
    ) -> impl Future<Output = T> + 'a
    where
        F: Mounted,
    {
        self.by_descriptor(m, (Some(file.inode), Position::Kept), call)
    }

    /// The same of a call that reads or changes the file: who watches its directory is told afterwards (`fsnotify_access`,
    /// `fsnotify_modify`, `fsnotify_change`).
    async fn told<M: Machine, T>(&self, m: &M, file: (u32, Position), call: Call<'_, T>) -> T
    where
        F: Mounted,
    {
        let sb = self.fs.super_block();
        let telling = async {
            let answer = call.await;
            sb.calls.notify_parent(m).await;
            answer
        };
        self.by_descriptor(m, (Some(file.0), file.1), pin!(telling)).await
    }

    /// `fcntl_setlk` of a range that nobody else asks for, or of the whole file.
    async fn set_lock<M: Machine>(&self, m: &M, file: &File, set: bool, whole: bool)
    where
        F: Mounted,
    {
        let sb = self.fs.super_block();
        let group = sb.thread_groups.get(m.task());
        let owner = group.as_ref().map_or(m.task(), |group| group.leader);
        let looking = group.filter(|_| set);
        let apart = looking.as_ref().map_or(0, |group| group.files.looks_up());
        sb.calls.lock_range(m, file, Request { owner, set, whole }, apart).await;
        if let Some(group) = &looking {
            group.files.look_up_locked(m).await;
        }
    }

    /// An operation, unless none may begin any more. At its end the task goes back to user mode. It stays where its caller has it: a
    /// future that is handed on is copied, and an operation with all that it may come to is large.
    async fn operation<M: Machine, T>(&self, m: &M, operation: Call<'_, T>) -> T {
        while self.closed.get() {
            m.park().await;
        }
        self.under_way.set(self.under_way.get() + 1);
        let answer = operation.await;
        self.under_way.set(self.under_way.get() - 1);
        m.exit_to_user_mode().await;
        answer
    }
}

impl<F: Audit + Mounted> Witness for Recorded<F> {
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
        self.ledger.problem()?;
        self.fs.super_block().links.audit(&self.ledger.inodes())?;
        self.fs.audit(&self.ledger)
    }
}

impl<F: Mounted> Mounted for Recorded<F> {
    fn super_block(&self) -> &SuperBlock {
        self.fs.super_block()
    }
}

impl<M: Machine, F: Operations<M>> Filesystem<M> for Recorded<F> {
    async fn mkdir(&self, m: &M, parent: DirId, name: &[u8]) -> Result<DirId, NoSpace> {
        let making = async {
            let dir = namei::mkdir(&*self.fs, m, parent, name).await?;
            self.ledger.enter_directory(dir, parent, name);
            Ok(dir)
        };
        self.operation(m, pin!(making)).await
    }

    async fn mkdir_existing(&self, m: &M, parent: DirId, dir: DirId) {
        self.operation(m, pin!(namei::mkdir_existing(&*self.fs, m, parent, dir))).await;
    }

    async fn rmdir(&self, m: &M, parent: DirId, name: &[u8], dir: DirId) {
        let removal = async {
            self.ledger.strike_directory(dir); // its number may be another's before this returns
            namei::rmdir(&*self.fs, m, parent, name, dir).await;
        };
        self.operation(m, pin!(removal)).await;
    }

    fn fill(&self, dirs: &[DirId], files: u64, names: InitialNames) -> Result<(), NoSpace> {
        self.fs.fill(dirs, files, names)?;
        self.ledger.fill(dirs, files, names);
        Ok(())
    }

    fn fill_up(&self, free: u64) -> Result<(), NoSpace> {
        self.fs.fill_up(free)
    }

    async fn create(&self, m: &M, dir: DirId, name: &[u8]) -> Result<File, NoSpace> {
        let creating = async {
            let file = namei::create(&*self.fs, m, dir, name).await?;
            self.ledger.enter(dir, name, file);
            Ok(file)
        };
        self.opening(m, "create", pin!(creating)).await
    }

    async fn look_up(&self, m: &M, name: (DirId, &[u8]), file: &File, creating: bool) {
        if self.fs.super_block().cold.has(file.inode) {
            let side = if creating { Side::Write } else { Side::Read };
            self.operation(m, pin!(look_up_cold(&*self.fs, m, name, file, side))).await;
        }
    }

    async fn drop_caches(&self, m: &M, files: &[File]) {
        self.operation(m, pin!(self.fs.settle(m))).await;
        files.iter().for_each(|file| self.fs.leaves_memory(file));
    }

    async fn open(&self, m: &M, dir: DirId, file: &File) {
        self.opening(m, "open", pin!(read_write::open(&*self.fs, m, dir, file))).await;
    }

    async fn open_creating(&self, m: &M, dir: DirId, file: &File) {
        self.opening(m, "open", pin!(read_write::open_creating(&*self.fs, m, dir, file))).await;
    }

    async fn open_truncating(&self, m: &M, dir: DirId, file: &File) {
        self.opening(m, "open", pin!(read_write::open(&*self.fs, m, dir, file))).await;
        self.fs.opened_truncating(file);
    }

    async fn write(&self, m: &M, file: &mut File, bytes: u32) {
        let inode = file.inode;
        self.told(m, (inode, Position::Moved), pin!(read_write::append(&*self.fs, m, file, bytes))).await;
    }

    async fn write_nothing(&self, m: &M) {
        self.operation(m, pin!(self.fs.super_block().calls.write_nothing(m))).await;
    }

    async fn overwrite(&self, m: &M, file: &File, place: (u64, u32)) {
        self.told(m, (file.inode, Position::Kept), pin!(read_write::overwrite(&*self.fs, m, file, place))).await;
    }

    async fn read(&self, m: &M, file: &File, place: (u64, u32)) {
        self.told(m, (file.inode, Position::Kept), pin!(self.fs.read(m, file, place))).await;
    }

    async fn close(&self, m: &M, file: &File) {
        self.operation(m, pin!(read_write::close(&*self.fs, m, file))).await;
    }

    async fn fsync(&self, m: &M, file: &File, data_only: bool) {
        self.on_file(m, file, pin!(self.fs.fsync(m, file, data_only))).await;
    }

    async fn fsync_directory(&self, m: &M, dir: DirId, data_only: bool) {
        self.operation(m, pin!(self.fs.fsync_directory(m, dir, data_only))).await;
    }

    async fn write_sync(&self, m: &M, file: &File, place: (u64, u32)) {
        self.on_file(m, file, pin!(self.fs.fsync_range(m, file, place))).await;
    }

    async fn lay_out(&self, m: &M, dir: DirId, name: &[u8], laid: LaidOut) -> Result<File, NoSpace> {
        let making = async {
            let file = namei::create(&*self.fs, m, dir, name).await?;
            self.fs.super_block().calls.laid_out(&file, &laid);
            self.fs.lay_out(m, &file, laid).await;
            self.ledger.enter(dir, name, file);
            Ok(file)
        };
        self.operation(m, pin!(making)).await
    }

    async fn read_at(&self, m: &M, file: &File, io: Io) {
        self.told(m, (file.inode, Position::Kept), pin!(self.fs.read_at(m, file, io))).await;
    }

    async fn write_at(&self, m: &M, file: &File, io: Io) {
        self.told(m, (file.inode, Position::Kept), pin!(read_write::write_at(&*self.fs, m, file, io))).await;
    }

    async fn fallocate(&self, m: &M, file: &File, bytes: u32) -> Result<(), NoSpace> {
        self.told(m, (file.inode, Position::Kept), pin!(read_write::fallocate(&*self.fs, m, file, bytes))).await
    }

    async fn reflink(&self, m: &M, from: &File, to: &File) {
        self.on_file(m, from, pin!(read_write::reflink(&*self.fs, m, from, to))).await;
    }

    async fn truncate(&self, m: &M, file: &File) {
        self.told(m, (file.inode, Position::Kept), pin!(read_write::truncate(&*self.fs, m, file, None))).await;
    }

    async fn shorten(&self, m: &M, file: &File, bytes: u32) {
        self.told(m, (file.inode, Position::Kept), pin!(read_write::truncate(&*self.fs, m, file, Some(bytes)))).await;
    }

    async fn unlink(&self, m: &M, dir: DirId, name: &[u8], file: File) {
        let removal = async {
            namei::unlink(&*self.fs, m, dir, name, file).await;
            self.ledger.strike(dir, name);
        };
        self.operation(m, pin!(removal)).await;
    }

    async fn link(&self, m: &M, dir: DirId, name: &[u8], file: &File) -> Result<(), NoSpace> {
        let linking = async {
            namei::link(&*self.fs, m, dir, name, file).await?;
            self.ledger.enter(dir, name, *file);
            Ok(())
        };
        self.operation(m, pin!(linking)).await
    }

    async fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File) -> Result<(), NoSpace> {
        let renaming = async {
            namei::rename(&*self.fs, m, dir, names, file).await?;
            if let Some(file) = self.ledger.strike(dir, names.from) {
                self.ledger.enter(names.into, names.to, file);
            }
            Ok(())
        };
        self.operation(m, pin!(renaming)).await
    }

    async fn stat(&self, m: &M, file: &File) {
        self.fs.super_block().times.asked(Timed::File(file.inode));
        self.operation(m, pin!(self.fs.super_block().calls.stat(m, file))).await;
    }

    async fn stat_directory(&self, m: &M, dir: DirId) {
        self.fs.super_block().times.asked(Timed::Directory(dir));
        self.operation(m, pin!(self.fs.super_block().calls.stat_directory(m, dir))).await;
    }

    async fn fstat(&self, m: &M, file: &File) {
        self.fs.super_block().times.asked(Timed::File(file.inode));
        self.on_file(m, file, pin!(self.fs.super_block().calls.fstat(m, file))).await;
    }

    async fn set_attribute(&self, m: &M, file: &File, attribute: Attribute) {
        let changing = async {
            read_write::set_attribute(&*self.fs, m, file, attribute).await;
            self.fs.super_block().calls.notify_parent(m).await;
        };
        self.operation(m, pin!(changing)).await;
    }

    async fn lseek(&self, m: &M, file: &File) {
        let seeking = read_write::lseek(&*self.fs, m, file);
        self.by_descriptor(m, (Some(file.inode), Position::Moved), pin!(seeking)).await;
    }

    async fn seek_hole(&self, m: &M, file: &File) {
        let seeking = read_write::seek_hole(&*self.fs, m, file);
        self.by_descriptor(m, (Some(file.inode), Position::Moved), pin!(seeking)).await;
    }

    async fn syncfs(&self, m: &M) {
        self.operation(m, pin!(syncfs(&*self.fs, m))).await;
    }

    async fn bulkstat(&self, m: &M, who: u32) {
        self.operation(m, pin!(self.fs.bulkstat(m, who))).await;
    }

    fn has_walked(&self, dir: DirId, nth: u32) {
        self.fs.has_walked(dir, nth);
    }

    async fn sync_all(&self, m: &M) {
        self.operation(m, pin!(self.fs.sync_fs(m))).await;
    }

    async fn fiemap(&self, m: &M, file: &File) {
        self.on_file(m, file, pin!(read_write::fiemap(&*self.fs, m, file))).await;
    }

    async fn readdir(&self, m: &M, dir: DirId) {
        self.by_descriptor(m, (None, Position::Moved), pin!(read_write::readdir(&*self.fs, m, dir))).await;
    }

    async fn walk(&self, m: &M, dir: DirId, nth: u32) {
        self.operation(m, pin!(self.fs.walk(m, dir, nth))).await;
    }

    async fn lock_range(&self, m: &M, file: &File, set: bool) {
        let locking = self.set_lock(m, file, set, false);
        self.on_file(m, file, pin!(locking)).await;
    }

    async fn lock_file(&self, m: &M, file: &File) {
        let locking = async {
            self.set_lock(m, file, true, true).await;
            self.set_lock(m, file, false, true).await;
        };
        self.on_file(m, file, pin!(locking)).await;
    }

    async fn dup(&self, m: &M, file: &File) {
        let (sb, inode) = (self.fs.super_block(), file.inode);
        let open_files = &sb.calls.open_files;
        let duplicating = async {
            m.at("dup");
            open_files.get(m, inode).await;
            match sb.thread_groups.get(m.task()) {
                Some(group) => {
                    let fd = group.files.get_unused_fd(m).await;
                    group.files.install(m, fd).await;
                    group.files.close_fd(m).await;
                }
                None => m.run(Account::System, open_files.dup()).await,
            }
            open_files.close(m, inode).await;
            open_files.put(m, inode).await;
        };
        self.operation(m, pin!(duplicating)).await;
    }

    async fn stat_missing(&self, m: &M, dir: DirId) {
        self.operation(m, pin!(namei::stat_missing(&*self.fs, m, dir))).await;
    }

    async fn statfs(&self, m: &M) {
        let adding = async {
            self.fs.super_block().calls.statfs(m).await;
            self.fs.statfs(m).await;
        };
        self.operation(m, pin!(adding)).await;
    }
}
