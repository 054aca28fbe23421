//! `open` and `close` of what is cached, on every filesystem: the file's dentry, who writes to it, who watches its directory.

use super::Calls;
use crate::filesystems::{DirId, File};
use crate::waist::Machine;
use crate::waist::{Access, Account, TaskId, Time};

impl Calls {
    /// What an `open` of a name that exists and is cached takes: its walk, and the rest.
    pub fn open_times(&self) -> (Time, Time) {
        (self.costs.open_walk, self.costs.open_rest)
    }

    /// `open` of a name that exists and is cached, which takes `walk` and then `rest`. The walk takes a reference
    /// (`complete_walk`), the open file another (`do_dentry_open`), and the walk's is given back (`terminate_walk`), or it keeps that one.
    pub async fn open<M: Machine>(&self, m: &M, dir: DirId, file: &File, (walk, rest): (Time, Time)) {
        self.walk_to_open(m, file, walk).await;
        self.dentries.get(m, file).await;
        self.opened(m, dir, file, rest).await;
    }

    /// The walk of an `open`, or all of it but for the name.
    pub async fn walk_to_open<M: Machine>(&self, m: &M, file: &File, time: Time) {
        m.at("open");
        self.label.file_alloc(m).await;
        self.rename_lock.path_init(m).await;
        self.files.found(m, file.inode);
        self.dentries.walk(m, file);
        m.run(Account::System, time).await;
    }

    /// Its name is looked up under the directory's lock (`d_lookup`).
    pub async fn look_up_locked<M: Machine>(&self, m: &M, file: &File) {
        self.rename_lock.d_lookup(m).await;
        m.run(Account::System, self.costs.lookup).await;
        self.dentries.get(m, file).await;
    }

    /// The rest of an `open` whose dentry is known (`do_open`).
    pub async fn opened<M: Machine>(&self, m: &M, dir: DirId, file: &File, rest: Time) {
        if !self.open_consumes_path {
            self.dentries.get(m, file).await;
        }
        if file.writable {
            self.get_write_access(m, file);
        }
        self.label.file_open(m).await;
        self.look_for_locks(m, file); // break_lease
        self.ask_directory(m, dir).await;
        m.run(Account::System, rest).await;
        if !self.open_consumes_path {
            self.dentries.put(m, file).await;
        }
        self.notify_parent(m).await; // fsnotify_open
    }

    /// Somebody watches the directory of this task's files.
    pub fn watch(&self, task: TaskId, dir: DirId) {
        self.watched.put(task, (dir, false));
    }

    /// The files of this task have no name any more.
    pub fn lose_names(&self, task: TaskId) {
        self.nameless.put(task, ());
    }

    /// Whether the task's files have none.
    pub fn are_nameless(&self, task: TaskId) -> bool {
        self.nameless.get(task).is_some()
    }

    /// `__fsnotify_parent` of a file whose directory is watched (`DCACHE_FSNOTIFY_PARENT_WATCHED`): it takes a reference of the directory
    /// to look whether it is this that somebody waits for (`dget_parent`), and gives it back. A task begins with the file that it makes,
    /// whose name is added under the directory's `d_lock`: all who come meanwhile queue for that, and those who find them there.
    pub async fn notify_parent<M: Machine>(&self, m: &M) {
        let Some((dir, known)) = self.watched.get(m.task()) else { return };
        let directory = File { inode: dir, written: false, writable: false };
        if !known {
            self.watched.put(m.task(), (dir, true));
            self.directories.change_children(m, &directory, 1, || ()).await;
        }
        self.directories.get(m, &directory).await;
        self.directories.put(m, &directory).await;
    }

    /// `get_write_access`: an addition to `i_writecount` by compare-and-exchange.
    fn get_write_access<M: Machine>(&self, m: &M, file: &File) {
        let line = self.writers.get_or_make(file.inode, || m.new_line("vfs.i_writecount", 1));
        m.touch(line, Access::Read);
        m.touch(line, Access::Atomic);
    }

    /// `put_write_access`.
    fn put_write_access<M: Machine>(&self, m: &M, file: &File) {
        if let Some(line) = self.writers.get(file.inode) {
            m.touch(line, Access::Atomic);
        }
    }

    /// An `open` and a `close` look for locks of the file (`i_flctx`), in the line of `i_writecount`.
    pub fn look_for_locks<M: Machine>(&self, m: &M, file: &File) {
        if let Some(line) = self.writers.get(file.inode) {
            m.touch(line, Access::Read);
        }
    }

    /// The open file's reference is given back, as the last of a `close` (`__fput`).
    pub async fn put<M: Machine>(&self, m: &M, file: &File) {
        self.notify_parent(m).await; // fsnotify_close
        if file.writable {
            self.put_write_access(m, file);
        }
        self.dentries.put(m, file).await;
        self.label.file_free(m).await;
        if self.files.enters_list(file.inode) {
            self.dcache.unused_of(m, file.inode).await;
        }
    }
}
