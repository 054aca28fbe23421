//! System calls on open files (`fs/open.c`, `fs/read_write.c`, `fs/readdir.c`, `mm/filemap.c`): the VFS takes the locks and calls
//! what a filesystem does under them.

use crate::filesystems::inodes::times::Timed;
use crate::filesystems::names::namei::InodeOperations;
use crate::filesystems::{Attribute, DirId, File, Io, NoSpace};
use crate::waist::Machine;
use crate::waist::{Account, LockId, Side, Time};
use std::future::Future;
use std::pin::{pin, Pin};

/// `struct file_operations` and `struct address_space_operations`, and what `struct inode_operations` has of open files.
pub trait FileOperations<M: Machine>: InodeOperations<M> {
    /// An empty file was opened with `O_TRUNC`.
    fn opened_truncating(&self, _file: &File) {}
    /// `release`, when a file is closed.
    async fn release(&self, m: &M, file: &File);

    /// Times of a buffered write at the end of a file before and after `i_rwsem`, where the traced steps tell them apart.
    fn append_times(&self, _file: &File, _bytes: u32) -> Option<(Time, Time)> {
        None
    }
    /// The time of the first new page of such a write.
    fn new_page_time(&self) -> Time;
    /// Before a buffered write copies (`write_begin`, `iomap_begin`), at the end of the file where it grows; returns the file's size.
    /// `i_rwsem` is held.
    async fn write_begin(&self, m: &M, file: &File, bytes: u32, grows: bool) -> u64;
    /// After it has copied (`write_end`, `balance_dirty_pages_ratelimited`).
    async fn write_end(&self, _m: &M, _file: &File, _offset: u64, _bytes: u32) {}
    /// A buffered `read` of what is cached.
    async fn read(&self, m: &M, file: &File, place: (u64, u32)) {
        read_cached(self, m, file, place).await;
    }
    /// `pread` of a file that was laid out; a filesystem that knows no places reads from its cache.
    async fn read_at(&self, m: &M, file: &File, io: Io) {
        read_cached(self, m, file, (io.offset, io.bytes)).await;
    }
    /// `atime_needs_update` looks at the times of an inode, where they share a line with what others write.
    fn look_at_times(&self, _m: &M, _inode: Timed) {}
    /// `update_time` of an inode that was read. Who has it in memory only sets a field.
    async fn update_atime(&self, _m: &M, _inode: Timed) {}
    /// `pwrite` of a file that was laid out, of which no block is new.
    async fn write_at(&self, m: &M, file: &File, io: Io);
    /// `fsync`. Or `fdatasync`, which may leave what is not needed to read the data (times, for one) where it is.
    async fn fsync(&self, m: &M, file: &File, data_only: bool);
    /// `fsync` of a directory: names that it got or lost are on disk afterwards. Or `fdatasync`, for which that may be more than asked.
    async fn fsync_directory(&self, m: &M, dir: DirId, data_only: bool);
    /// `fsync` of a range: its first byte, and how many. On btrfs the first one of a new file takes all of it (`needs_full_sync`), and
    /// others an ordered extent up to where what is dirty ends: so it is that of the file.
    async fn fsync_range(&self, m: &M, file: &File, _place: (u64, u32)) {
        self.fsync(m, file, false).await;
    }

    /// `setattr` of a size: to nothing, or to so many bytes less. `i_rwsem` is held.
    async fn set_size(&self, m: &M, file: &File, less: Option<u32>);
    /// `setattr` of anything else, which takes `time` on all filesystems. `i_rwsem` is held.
    async fn setattr(&self, m: &M, file: &File, attribute: Attribute, time: Time);
    /// `fallocate` of so many bytes behind the last block. `i_rwsem` is held.
    async fn fallocate(&self, m: &M, file: &File, bytes: u32) -> Result<(), NoSpace>;
    /// `remap_file_range` of a whole file to one without data. Takes the locks of both.
    async fn clone_range(&self, m: &M, _from: &File, _to: &File) {
        m.give_up("this filesystem has no reflinks here");
    }
    /// `fiemap` of a whole file. `i_rwsem` is held shared.
    async fn fiemap(&self, m: &M, file: &File);

    /// Which lock `lseek(SEEK_HOLE)` holds while it looks, and on which side, if any.
    fn seek_lock(&self, file: &File) -> (LockId, Side);

    /// Names of a directory.
    fn names(&self, dir: DirId) -> u32;
    /// Before a directory is listed.
    async fn open_directory(&self, _m: &M, _dir: DirId) {}
    /// `iterate_shared`: a buffer full of so many names, which takes `time`. The directory's `i_rwsem` is held shared.
    async fn iterate(&self, m: &M, dir: DirId, names: u32, time: Time);
}

/// `open` of a name that exists and is cached.
pub async fn open<M: Machine, F: FileOperations<M>>(fs: &F, m: &M, dir: DirId, file: &File) {
    let sb = fs.super_block();
    let (walk, rest) = sb.calls.open_times();
    sb.line.permission(m).await;
    sb.calls.open(m, dir, file, (walk, sb.rest_of_open(m, rest))).await;
}

/// `open(O_CREAT)` of a name that exists and is cached. Kernels that do not look first hold the directory's lock exclusively for that
/// (`open_last_lookups`).
pub async fn open_creating<M: Machine, F: FileOperations<M>>(fs: &F, m: &M, dir: DirId, file: &File) {
    let sb = fs.super_block();
    let Some(lookup) = sb.calls.locked_lookup() else { return open(fs, m, dir, file).await };
    let ((walk, rest), parent) = (sb.calls.open_times(), fs.directory_lock(dir));
    sb.line.permission(m).await;
    sb.calls.walk_to_open(m, file, walk.saturating_sub(lookup)).await;
    sb.calls.get_directory(m, dir).await;
    sb.calls.get_root(m).await;
    sb.start_write(m).await;
    m.lock(parent, Side::Write).await;
    sb.calls.look_up_locked(m, file).await;
    m.unlock(parent, Side::Write).await;
    sb.end_write(m).await;
    sb.calls.opened(m, dir, file, sb.rest_of_open(m, rest)).await;
    sb.calls.put_root(m).await;
    sb.calls.put_directory(m, dir).await;
}

/// `close`, and `__fput` of a file that nobody else has open.
pub async fn close<M: Machine, F: FileOperations<M>>(fs: &F, m: &M, file: &File) {
    let sb = fs.super_block();
    m.at("close");
    if let Some(group) = sb.thread_groups.get(m.task()) {
        group.close(m).await;
    }
    sb.calls.files.closed(m, file.inode);
    sb.calls.look_for_locks(m, file); // locks_remove_posix
    fs.release(m, file).await;
    sb.calls.put(m, file).await;
    sb.free_file(m);
}

/// `filemap_read` of what is cached.
pub async fn read_cached<M: Machine, F: FileOperations<M> + ?Sized>(fs: &F, m: &M, file: &File, place: (u64, u32)) {
    fs.super_block().calls.read(m, file, place).await;
    touch_atime(fs, m, Timed::File(file.inode)).await;
}

/// `touch_atime`, `file_accessed`: who reads what was changed since it was last read has the inode written.
pub async fn touch_atime<M: Machine, F: FileOperations<M> + ?Sized>(fs: &F, m: &M, inode: Timed) {
    let sb = fs.super_block();
    fs.look_at_times(m, inode);
    if sb.times.read(m, inode) {
        sb.start_write(m).await;
        fs.update_atime(m, inode).await;
        sb.end_write(m).await;
    }
}

/// A buffered `write` at the end of a file.
pub async fn append<M: Machine, F: FileOperations<M>>(fs: &F, m: &M, file: &mut File, bytes: u32) {
    let calls = &fs.super_block().calls;
    m.at("write");
    calls.files.held(m, file.inode);
    let (lock, around) = (fs.file_lock(file), fs.append_times(file, bytes));
    if let Some((before, _)) = around {
        m.run(Account::System, before).await;
    }
    fs.super_block().start_write(m).await; // file_start_write of vfs_write
    m.lock(lock, Side::Write).await;
    fs.super_block().times.changed(m, Timed::File(file.inode));
    let size = fs.write_begin(m, file, bytes, true).await;
    calls.append(m, file, fs.new_page_time(), size, bytes).await;
    fs.write_end(m, file, size, bytes).await;
    m.unlock(lock, Side::Write).await;
    if let Some((_, after)) = around {
        m.run(Account::System, after).await;
    }
    fs.super_block().end_write(m).await;
    file.written = true;
}

/// A buffered `write` over what is cached and has blocks.
pub async fn overwrite<M: Machine, F: FileOperations<M>>(fs: &F, m: &M, file: &File, place: (u64, u32)) {
    m.at("write");
    fs.super_block().start_write(m).await;
    overwrite_protected(fs, m, file, place).await;
    fs.super_block().end_write(m).await;
}

/// The same within the freeze protection of `vfs_write`.
pub async fn overwrite_protected<M: Machine, F: FileOperations<M>>(
    fs: &F,
    m: &M,
    file: &File,
    (offset, bytes): (u64, u32),
) {
    let lock = fs.file_lock(file);
    m.lock(lock, Side::Write).await;
    fs.super_block().times.changed(m, Timed::File(file.inode));
    fs.write_begin(m, file, bytes, false).await;
    fs.super_block().calls.overwrite(m, file, (offset, bytes)).await;
    fs.write_end(m, file, offset, bytes).await;
    m.unlock(lock, Side::Write).await;
}

/// `pwrite` of a file that was laid out. An asynchronous one keeps the freeze protection until its end, whichever CPU that is on
/// (`kiocb_start_write`): here until it is submitted.
pub async fn write_at<M: Machine, F: FileOperations<M>>(fs: &F, m: &M, file: &File, io: Io) {
    m.at("write");
    fs.super_block().start_write(m).await;
    fs.super_block().times.changed(m, Timed::File(file.inode));
    fs.write_at(m, file, io).await;
    fs.super_block().end_write(m).await;
}

/// `ftruncate` (`do_truncate`) to nothing, or to so many bytes less.
pub async fn truncate<M: Machine, F: FileOperations<M>>(fs: &F, m: &M, file: &File, less: Option<u32>) {
    with_blocks(fs, m, "truncate", file, pin!(fs.set_size(m, file, less))).await;
}

/// `vfs_fallocate`, whose lock is the filesystem's to take and the same on all.
pub async fn fallocate<M: Machine, F: FileOperations<M>>(
    fs: &F,
    m: &M,
    file: &File,
    bytes: u32,
) -> Result<(), NoSpace> {
    with_blocks(fs, m, "fallocate", file, pin!(fs.fallocate(m, file, bytes))).await
}

/// `ioctl_file_clone` of a whole file (`vfs_clone_file_range`).
pub async fn reflink<M: Machine, F: FileOperations<M>>(fs: &F, m: &M, from: &File, to: &File) {
    let sb = fs.super_block();
    m.at("reflink");
    sb.calls.files.held(m, from.inode);
    sb.calls.files.held(m, to.inode);
    m.run(Account::System, sb.calls.enter()).await;
    sb.start_write(m).await;
    sb.times.changed(m, Timed::File(to.inode));
    fs.clone_range(m, from, to).await;
    sb.end_write(m).await;
}

/// Changes the blocks of an open file.
async fn with_blocks<M: Machine, F: FileOperations<M>, T>(
    fs: &F,
    m: &M,
    site: &'static str,
    file: &File,
    change: Pin<&mut impl Future<Output = T>>,
) -> T {
    let (sb, lock) = (fs.super_block(), fs.file_lock(file));
    m.at(site);
    sb.calls.files.held(m, file.inode);
    m.run(Account::System, sb.calls.enter()).await;
    sb.start_write(m).await;
    m.lock(lock, Side::Write).await;
    sb.times.changed(m, Timed::File(file.inode));
    let changed = change.await;
    m.unlock(lock, Side::Write).await;
    sb.end_write(m).await;
    changed
}

/// `utimes`, `chmod` and `chown` (`vfs_utimes`, `chmod_common`, `chown_common`): `notify_change` under the file's `i_rwsem`.
pub async fn set_attribute<M: Machine, F: FileOperations<M>>(fs: &F, m: &M, file: &File, attribute: Attribute) {
    let (sb, lock) = (fs.super_block(), fs.file_lock(file));
    m.at(attribute.site());
    sb.calls.files.found(m, file.inode);
    let (before, under) = sb.calls.setattr();
    sb.calls.rename_lock.path_init(m).await;
    m.run(Account::System, before).await;
    sb.start_write(m).await;
    m.lock(lock, Side::Write).await;
    match attribute {
        Attribute::Times => sb.times.set(m, Timed::File(file.inode)),
        Attribute::Mode | Attribute::Owner => sb.times.changed(m, Timed::File(file.inode)),
    }
    let more = if attribute == Attribute::Owner { sb.calls.chown() } else { 0 };
    fs.setattr(m, file, attribute, under + more).await;
    m.unlock(lock, Side::Write).await;
    sb.end_write(m).await;
}

/// `generic_file_llseek`, which takes no lock of the inode.
pub async fn lseek<M: Machine, F: FileOperations<M>>(fs: &F, m: &M, file: &File) {
    let calls = &fs.super_block().calls;
    m.at("lseek");
    calls.files.held(m, file.inode);
    m.run(Account::System, calls.lseek()).await;
}

/// `lseek(SEEK_HOLE)`.
pub async fn seek_hole<M: Machine, F: FileOperations<M>>(fs: &F, m: &M, file: &File) {
    let (calls, (lock, side)) = (&fs.super_block().calls, fs.seek_lock(file));
    m.at("seek_hole");
    calls.files.held(m, file.inode);
    let (before, under) = calls.seek_hole();
    m.run(Account::System, before).await;
    m.lock(lock, side).await;
    m.run(Account::System, under).await;
    m.unlock(lock, side).await;
}

/// `ioctl_fiemap` of a whole file.
pub async fn fiemap<M: Machine, F: FileOperations<M>>(fs: &F, m: &M, file: &File) {
    let (calls, lock) = (&fs.super_block().calls, fs.file_lock(file));
    m.at("fiemap");
    calls.files.held(m, file.inode);
    m.run(Account::System, calls.enter()).await;
    m.lock(lock, Side::Read).await;
    fs.fiemap(m, file).await;
    m.unlock(lock, Side::Read).await;
}

/// `opendir`, `readdir` to the end (`iterate_dir`), `closedir`.
pub async fn readdir<M: Machine, F: FileOperations<M>>(fs: &F, m: &M, dir: DirId) {
    let lock = fs.directory_lock(dir);
    m.at("readdir");
    let label = &fs.super_block().calls.label;
    label.file_alloc(m).await;
    fs.super_block().calls.rename_lock.path_init(m).await;
    fs.super_block().times.asked(Timed::Directory(dir)); // opendir of the C library asks for the size of a block
    label.file_open(m).await;
    fs.open_directory(m, dir).await;
    for (names, time) in fs.super_block().calls.readdir(fs.names(dir)) {
        m.lock(lock, Side::Read).await;
        fs.iterate(m, dir, names, time).await;
        touch_atime(fs, m, Timed::Directory(dir)).await;
        m.unlock(lock, Side::Read).await;
    }
    label.file_free(m).await;
    fs.super_block().free_file(m);
}
