//! System calls on names (`fs/namei.c`): the VFS takes the locks and calls what a filesystem does under them.

use crate::filesystems::inodes::listed::{self, Entry};
use crate::filesystems::inodes::times::Timed;
use crate::filesystems::names::lookup::bring_in;
use crate::filesystems::names::removal::{dput_removed, kill_replaced, shrink_children};
use crate::filesystems::vfs::SuperBlock;
use crate::filesystems::{DirId, File, Mounted, NoSpace, Renaming};
use crate::waist::Machine;
use crate::waist::{Account, LockId, Side, Time};
use std::future::Future;
use std::pin::{pin, Pin};

/// `struct inode_operations` of directories, and the eviction of inodes. A directory's or a file's `i_rwsem` is held exclusive
/// where its operation runs.
pub trait InodeOperations<M: Machine>: Mounted {
    /// `i_rwsem` of a directory.
    fn directory_lock(&self, dir: DirId) -> LockId;
    /// `i_rwsem` of a file.
    fn file_lock(&self, file: &File) -> LockId;
    /// Times before and after the locks of an `open` of a new name.
    fn create_times(&self) -> (Time, Time);
    /// The same of `unlink`.
    fn unlink_times(&self) -> (Time, Time);
    /// The slot of a directory's inode, where directories have inodes in core as files have.
    fn slot_of(&self, _dir: DirId) -> Option<u32> {
        None
    }

    /// `lookup` and `create` of a name that is free; the slot of the new file.
    async fn create(&self, m: &M, dir: DirId, name: &[u8]) -> Result<u32, NoSpace>;
    /// `lookup` and `mkdir` of a name that is free.
    async fn mkdir(&self, m: &M, parent: DirId, name: &[u8]) -> Result<DirId, NoSpace>;
    /// `lookup` of a name that is there, whose file is not in memory: finds the name and reads the inode, which enters the caches. The
    /// directory is locked.
    async fn look_up_inode(&self, m: &M, dir: DirId, name: &[u8], file: &File);
    /// `lookup` of a name that is to be removed.
    async fn look_up(&self, m: &M, dir: DirId);
    /// `lookup` of a name that is free; how much of `time` is left.
    async fn look_up_free(&self, m: &M, dir: DirId, name: &[u8], time: Time) -> Time;
    /// `link` of a name that was looked up; what is left of what is the same on all filesystems takes `time`.
    async fn link(&self, m: &M, dir: DirId, name: &[u8], file: &File, time: Time) -> Result<(), NoSpace>;
    /// `unlink`; whether it is the file's last name.
    async fn unlink(&self, m: &M, dir: DirId, name: &[u8], file: &File, last: bool);
    /// `rmdir`.
    async fn rmdir(&self, m: &M, parent: DirId, name: &[u8], dir: DirId);
    /// Before a directory that lost a name is unlocked.
    async fn removed(&self, _m: &M) {}
    /// `rename`; what is the same on all filesystems takes `time`.
    async fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File, time: Time) -> Result<(), NoSpace>;
    /// `evict_inode` of a file that nobody has open.
    async fn evict_file(&self, m: &M, dir: DirId, file: File);
    /// The same of a directory.
    async fn evict_directory(&self, m: &M, parent: DirId, dir: DirId);
}

/// `open(O_CREAT|O_EXCL)`: `path_openat` of a new name.
pub async fn create<M: Machine, F: InodeOperations<M>>(
    fs: &F,
    m: &M,
    dir: DirId,
    name: &[u8],
) -> Result<File, NoSpace> {
    m.at("create");
    let (sb, (before, after)) = (fs.super_block(), fs.create_times());
    let times = (before, sb.rest_of_open(m, after));
    sb.calls.label.file_alloc(m).await;
    sb.calls.get_root(m).await;
    let inode =
        with_parent(fs, m, (dir, name), times, |slot| listed::file(*slot), pin!(fs.create(m, dir, name))).await?;
    sb.calls.label.file_open(m).await;
    sb.calls.ask_directory(m, dir).await;
    sb.calls.put_root(m).await;
    sb.times.made(m, Timed::File(inode));
    Ok(File { inode, written: false, writable: true })
}

/// `do_mkdirat`.
pub async fn mkdir<M: Machine, F: InodeOperations<M>>(
    fs: &F,
    m: &M,
    parent: DirId,
    name: &[u8],
) -> Result<DirId, NoSpace> {
    m.at("mkdir");
    let sb = fs.super_block();
    let (times, make) = (sb.calls.mkdir(), pin!(fs.mkdir(m, parent, name)));
    let dir = with_parent(fs, m, (parent, name), times, |dir| listed::directory(*dir), make).await?;
    sb.times.made(m, Timed::Directory(dir));
    Ok(dir)
}

/// `do_mkdirat` of a directory that exists: `filename_create` finds its dentry, under the parent's `i_rwsem`, and answers `EEXIST`.
pub async fn mkdir_existing<M: Machine, F: InodeOperations<M>>(fs: &F, m: &M, parent: DirId, dir: DirId) {
    m.at("mkdir");
    let (sb, i_rwsem) = (fs.super_block(), fs.directory_lock(parent));
    let (before, under, after) = sb.calls.mkdir_exists();
    sb.calls.rename_lock.path_init(m).await;
    m.run(Account::System, before).await;
    sb.line.permission(m).await;
    sb.calls.get_directory(m, parent).await;
    sb.start_write(m).await;
    m.lock(i_rwsem, Side::Write).await;
    sb.calls.rename_lock.d_lookup(m).await;
    sb.calls.get_directory(m, dir).await;
    m.run(Account::System, under).await;
    sb.calls.put_directory(m, dir).await;
    m.unlock(i_rwsem, Side::Write).await;
    sb.end_write(m).await;
    m.run(Account::System, after).await;
    sb.calls.put_directory(m, parent).await;
}

/// Makes a name, of what `named` tells, with its directory locked. The times are those before and after the locks.
async fn with_parent<M: Machine, F: InodeOperations<M>, T>(
    fs: &F,
    m: &M,
    (dir, name): (DirId, &[u8]),
    (before, after): (Time, Time),
    named: impl Fn(&T) -> Entry,
    make: Pin<&mut impl Future<Output = Result<T, NoSpace>>>,
) -> Result<T, NoSpace> {
    let (sb, parent) = (fs.super_block(), fs.directory_lock(dir));
    sb.calls.rename_lock.path_init(m).await;
    m.run(Account::System, before).await;
    sb.line.permission(m).await;
    new_dentry(sb, m, parent, (dir, name)).await;
    sb.line.new_inode(m).await;
    let made = make.await;
    if let Ok(made) = &made {
        sb.instantiate(m, named(made)).await;
        sb.calls.is_named(m, (dir, name), named(made));
    }
    sb.times.changed(m, Timed::Directory(dir));
    m.unlock(parent, Side::Write).await;
    sb.end_write(m).await;
    m.run(Account::System, after).await;
    sb.calls.put_directory(m, dir).await;
    made
}

/// A new name has a dentry in its directory `parent`, which stays locked (`lookup_open`, `filename_create`). Whether that was there.
async fn new_dentry<M: Machine>(sb: &SuperBlock, m: &M, parent: LockId, (dir, name): (DirId, &[u8])) -> bool {
    sb.calls.get_directory(m, dir).await;
    sb.start_write(m).await;
    m.lock(parent, Side::Write).await;
    sb.calls.rename_lock.d_lookup(m).await;
    let found = find_or_alloc(sb, m, (dir, name)).await;
    sb.line.permission(m).await;
    found
}

/// `d_lookup` of a name that is to be made: whether its dentry says that it is missing. Else one is made (`d_alloc`).
async fn find_or_alloc<M: Machine>(sb: &SuperBlock, m: &M, (dir, name): (DirId, &[u8])) -> bool {
    if let Some(dentry) = sb.calls.dcache.missing(dir, name) {
        sb.calls.files.found_missing(m, dentry.memory);
        return true;
    }
    sb.calls.files.not_found(m, dir, name);
    sb.line.d_alloc(m).await;
    sb.calls.d_alloc(m, dir).await;
    false
}

/// `stat` of a name that does not exist. A negative dentry says so, to a walk without references and locks. tmpfs keeps none
/// (`simple_lookup`: "Retaining negative dentries for an in-memory filesystem just wastes memory and lookup time"): each walk looks
/// the name up once more (`lookup_slow`), unless it meets the dentry of another that is just doing so.
pub async fn stat_missing<M: Machine, F: InodeOperations<M>>(fs: &F, m: &M, dir: DirId) {
    m.at("stat");
    let calls = &fs.super_block().calls;
    let (walk, rest) = calls.stat_missing();
    calls.rename_lock.path_init(m).await;
    m.run(Account::System, walk).await;
    if !calls.dcache.keeps_none() {
        m.run(Account::System, rest).await;
    } else if !calls.dcache.is_negative(dir) {
        look_up_in_vain(fs, m, dir, rest).await;
    }
}

/// The new dentry is killed when it is given back (`always_delete_dentry`). All of `time` is taken to be before others can find it.
async fn look_up_in_vain<M: Machine, F: InodeOperations<M>>(fs: &F, m: &M, dir: DirId, time: Time) {
    let (sb, parent) = (fs.super_block(), fs.directory_lock(dir));
    let calls = &sb.calls;
    calls.get_root(m).await; // try_to_unlazy, legitimize_root
    calls.get_directory(m, dir).await;
    m.lock(parent, Side::Read).await;
    calls.d_alloc(m, dir).await;
    calls.rename_lock.d_lookup(m).await;
    let lookup = calls.dcache.look_up(m, dir, b"missing");
    m.run(Account::System, time).await;
    calls.dcache.looked_up(m, lookup);
    calls.dcache.add_negative(dir, 1);
    m.unlock(parent, Side::Read).await;
    calls.dcache.add_negative(dir, -1); // __d_drop
    calls.dentry_kill(m, dir).await;
    sb.free_dentry(m);
    calls.put_directory(m, dir).await; // terminate_walk
    calls.put_root(m).await;
}

/// `do_linkat` and `vfs_link`: another name of a file. Nobody uses its dentry, which `done_path_create` gives back.
pub async fn link<M: Machine, F: InodeOperations<M>>(
    fs: &F,
    m: &M,
    dir: DirId,
    name: &[u8],
    file: &File,
) -> Result<(), NoSpace> {
    let sb = fs.super_block();
    let (before, under, after) = sb.calls.link();
    let (parent, inode) = (fs.directory_lock(dir), fs.file_lock(file));
    m.at("link");
    sb.calls.rename_lock.path_init(m).await;
    m.run(Account::System, before).await;
    sb.calls.rename_lock.path_init(m).await;
    sb.calls.files.found(m, file.inode);
    let found = new_dentry(sb, m, parent, (dir, name)).await;
    let rest = fs.look_up_free(m, dir, name, under).await;
    m.lock(inode, Side::Write).await;
    let linked = fs.link(m, dir, name, file, rest).await;
    if linked.is_ok() {
        sb.links.inc(file.inode);
        sb.calls.is_linked(m, (dir, name), file.inode);
    }
    sb.times.changed(m, Timed::Directory(dir));
    sb.times.changed(m, Timed::File(file.inode));
    m.unlock(inode, Side::Write).await;
    if !found {
        sb.calls.dcache.unused(m).await;
    }
    m.unlock(parent, Side::Write).await;
    sb.end_write(m).await;
    m.run(Account::System, after).await;
    sb.calls.put_directory(m, dir).await;
    linked
}

/// `do_unlinkat`: the inode goes with its last name and its last reference, when the directory is unlocked.
pub async fn unlink<M: Machine, F: InodeOperations<M>>(fs: &F, m: &M, dir: DirId, name: &[u8], file: File) {
    let (sb, (before, after)) = (fs.super_block(), fs.unlink_times());
    let (parent, victim, slot) = (fs.directory_lock(dir), fs.file_lock(&file), file.inode);
    m.at("unlink");
    sb.calls.rename_lock.path_init(m).await;
    m.run(Account::System, before).await;
    sb.line.permission(m).await;
    sb.calls.get_directory(m, dir).await;
    sb.start_write(m).await;
    m.lock(parent, Side::Write).await;
    sb.calls.rename_lock.d_lookup(m).await;
    bring_in(fs, m, (dir, name), &file).await;
    fs.look_up(m, dir).await;
    sb.calls.files.found(m, file.inode);
    m.lock(victim, Side::Write).await;
    let last = sb.links.drop(file.inode);
    sb.line.permission(m).await; // may_delete
    fs.unlink(m, dir, name, &file, last).await;
    if last {
        sb.line.nameless(m).await;
    }
    sb.times.changed(m, Timed::Directory(dir));
    sb.times.changed(m, Timed::File(file.inode));
    m.unlock(victim, Side::Write).await;
    fs.removed(m).await;
    m.might_sleep().await; // `dput`
    dput_removed(
        sb,
        m,
        (dir, name),
        if last { (listed::file(file.inode), Some(file.inode)) } else { (listed::OTHERS, None) },
    )
    .await;
    m.unlock(parent, Side::Write).await;
    if last {
        sb.calls.drop_pages(m, &file).await;
        fs.evict_file(m, dir, file).await;
        sb.destroy_inode(m, listed::file(slot)).await;
    }
    sb.end_write(m).await;
    let goes_back = sb.calls.link().2; // who evicts nothing
    m.run(Account::System, if last { after } else { after.min(goes_back) }).await;
    sb.calls.put_directory(m, dir).await;
}

/// `do_rmdir`: the inode goes under the parent's lock (`d_delete`).
pub async fn rmdir<M: Machine, F: InodeOperations<M>>(fs: &F, m: &M, parent: DirId, name: &[u8], dir: DirId) {
    let sb = fs.super_block();
    let ((before, after), locks) = (sb.calls.rmdir(), (fs.directory_lock(parent), fs.directory_lock(dir)));
    m.at("rmdir");
    sb.calls.rename_lock.path_init(m).await;
    m.run(Account::System, before).await;
    sb.line.permission(m).await;
    sb.calls.get_directory(m, parent).await;
    sb.start_write(m).await;
    m.lock(locks.0, Side::Write).await;
    sb.calls.rename_lock.d_lookup(m).await;
    fs.look_up(m, parent).await;
    if let Some(slot) = fs.slot_of(dir) {
        sb.calls.files.found(m, slot);
    }
    m.lock(locks.1, Side::Write).await;
    sb.line.permission(m).await; // may_delete
    fs.rmdir(m, parent, name, dir).await;
    sb.line.nameless(m).await;
    shrink_children(sb, m, dir).await;
    sb.times.changed(m, Timed::Directory(parent));
    m.unlock(locks.1, Side::Write).await;
    fs.evict_directory(m, parent, dir).await;
    sb.destroy_inode(m, listed::directory(dir)).await;
    fs.removed(m).await;
    m.might_sleep().await; // `dput`: inodegc's worker, which the eviction may have woken, runs before the parent is unlocked
    dput_removed(sb, m, (parent, name), (listed::directory(dir), None)).await;
    m.unlock(locks.0, Side::Write).await;
    sb.end_write(m).await;
    m.run(Account::System, after).await;
    sb.calls.put_directory(m, parent).await;
}

/// `do_renameat2` and `vfs_rename` of a file in `dir`, to a name that is free.
pub async fn rename<M: Machine, F: InodeOperations<M>>(
    fs: &F,
    m: &M,
    dir: DirId,
    names: Renaming<'_>,
    file: &File,
) -> Result<(), NoSpace> {
    let sb = fs.super_block();
    let (before, under, after) = sb.rename();
    let (old, new, inode) = (fs.directory_lock(dir), fs.directory_lock(names.into), fs.file_lock(file));
    m.at("rename");
    sb.calls.rename_lock.path_init(m).await;
    m.run(Account::System, before).await;
    sb.calls.rename_lock.path_init(m).await;
    sb.line.permission(m).await;
    sb.calls.get_directory(m, dir).await;
    sb.calls.get_directory(m, names.into).await;
    sb.start_write(m).await;
    let cold = sb.cold.has(file.inode);
    if !cold {
        sb.calls.files.found(m, file.inode);
    }
    sb.lock_rename(m, new, old).await;
    sb.calls.rename_lock.d_lookup(m).await;
    bring_in(fs, m, (dir, names.from), file).await;
    sb.line.permission(m).await; // may_delete, may_create
    sb.calls.rename_lock.d_lookup(m).await;
    find_or_alloc(sb, m, (names.into, names.to)).await;
    m.lock(inode, Side::Write).await;
    let renamed = fs.rename(m, dir, names, file, under).await;
    for changed in [Timed::Directory(dir), Timed::Directory(names.into), Timed::File(file.inode)] {
        sb.times.changed(m, changed);
    }
    sb.d_move(m, dir, names.into, file.inode).await;
    kill_replaced(sb, m, (names.into, names.to)).await;
    m.unlock(inode, Side::Write).await;
    m.might_sleep().await; // `dput`
    sb.unlock_rename(m, new, old).await;
    sb.end_write(m).await;
    m.run(Account::System, after).await;
    sb.calls.put_directory(m, names.into).await;
    sb.calls.put_directory(m, dir).await;
    renamed
}
