//! What all who change names of one directory meet in its dentry, whatever else they lock.
//!
//! A walk that ends at a directory leaves the mode without references there (`complete_walk` of `path_parentat`; `open_last_lookups`
//! with `O_CREAT`): it takes a reference, which the call gives back at its end (`path_put`, `terminate_walk`). So each call on names
//! changes the directory's `d_lockref` twice before and after the directory's lock. Under that lock a new dentry is put
//! among the directory's children (`d_alloc`), and one that goes is taken out (`__dentry_kill`; before 6.8 then `dput` of the parent), with
//! `d_lock` in the same word. fs/namei.c and fs/dcache.c of 6.10; before 2.6.38 walks took references all along, which is not modelled.
//!
//! An `open` with `O_CREAT` leaves that mode by `try_to_unlazy` since 5.7 and no longer by `complete_walk`, which forgets where the walk
//! began: it takes a reference of `/` as well, and `terminate_walk` gives it back. All who create files meet there, in whatever directories.
//!
//! The children are a list: who puts one in front stores to the dentry that was first, who takes one out to both neighbours. In
//! `struct dentry` of x86-64 the pointers (`d_sib`, before 6.8 `d_child`) are at 144, the list's head (`d_children`, `d_subdirs`) at 160: in one
//! line, which is that of `d_lockref` since 6.11 (128). A name that goes stays in the list, but on tmpfs, until its inode is used again.

use crate::filesystems::calls::Calls;
use crate::filesystems::inodes::listed::{self, neighbour, Entry, Lists, Pointers};
use crate::filesystems::{DirId, File};
use crate::kernel::vfs::{CountsListed, DentryLine};
use crate::kernel::Rules;
use crate::waist::{Access, Machine};

fn dentry(inode: u32) -> File {
    File { inode, written: false, writable: false }
}

/// The lists of directories' children.
pub struct Children {
    lists: Lists,
    /// Where pointers and heads have a line apart from the count.
    apart: Option<Pointers>,
    /// Who takes a dentry out of the list gives its reference of the parent back with it, and does not come again for that.
    kill_counts_parent: bool,
    neighbour: Access,
}

impl Children {
    /// None is known.
    pub fn new(rules: Rules) -> Self {
        let apart = (rules.dentry_line == DentryLine::WithName).then(Pointers::default);
        let kill_counts_parent = rules.kill_counts_parent;
        // The same series made an hlist of it (6.8).
        let neighbour = neighbour(rules.debug_list && !kill_counts_parent);
        Self { lists: Lists::default(), apart, kill_counts_parent, neighbour }
    }
}

/// Whose dentry.
fn whose(entry: Entry) -> (bool, File) {
    let is_file = entry.is_multiple_of(2);
    (is_file, dentry(((entry - 1) / 2) as u32))
}

impl Calls {
    /// A reference of a directory is taken.
    pub async fn get_directory<M: Machine>(&self, m: &M, dir: DirId) {
        self.directories.get(m, &dentry(dir)).await;
    }

    /// It is given back.
    pub async fn put_directory<M: Machine>(&self, m: &M, dir: DirId) {
        self.directories.put(m, &dentry(dir)).await;
    }

    /// A reference of `/` is taken, by an `open` with `O_CREAT` of an absolute path (`legitimize_root`).
    pub async fn get_root<M: Machine>(&self, m: &M) {
        if let Some(root) = &self.root {
            root.get(m, &dentry(0)).await;
        }
    }

    /// It is given back (`terminate_walk`).
    pub async fn put_root<M: Machine>(&self, m: &M) {
        if let Some(root) = &self.root {
            root.put(m, &dentry(0)).await;
        }
    }

    /// `fscrypt_file_open` of a file of ext4: a reference of its directory, to look whether it is encrypted (`dget_parent`, `dput`).
    pub async fn ask_directory<M: Machine>(&self, m: &M, dir: DirId) {
        if self.asks_directory {
            self.get_directory(m, dir).await;
            self.put_directory(m, dir).await;
        }
    }

    /// `d_alloc` of a new name, which is a child from [`Calls::is_child`] on.
    pub async fn d_alloc<M: Machine>(&self, m: &M, dir: DirId) {
        let first = || {
            self.touch_children(m, dir);
            self.children
                .lists
                .first(dir)
                .into_iter()
                .for_each(|first| self.touch_sibling(m, first, self.children.neighbour));
        };
        self.directories.change_children(m, &dentry(dir), 1, first).await;
    }

    /// The name that was put in front with the directory locked is this.
    pub fn is_child<M: Machine>(&self, m: &M, dir: DirId, entry: Entry) {
        self.touch_sibling(m, entry, Access::Write);
        self.children.lists.add(dir, entry);
    }

    /// A file and its dentry are not in memory when the run begins.
    pub fn leaves_memory(&self, slot: u32) {
        self.children.lists.remove(listed::file(slot));
        self.dcache.forget_list(slot);
        self.files.leaves_memory(slot);
        self.written.forget(slot);
    }

    /// A name that was among the children is this.
    pub fn stays_child(&self, dir: DirId, entry: Entry) {
        self.children.lists.add(dir, entry);
    }

    /// Another name of a file, which has one already, is a child.
    pub fn is_linked<M: Machine>(&self, m: &M, name: (DirId, &[u8]), slot: u32) {
        if self.children.lists.list_of(listed::file(slot)).is_none() {
            self.is_named(m, name, listed::file(slot));
        } else {
            self.dcache.found(name.0, name.1, None);
        }
    }

    /// `dput` of a name that has gone, by its last user.
    pub async fn dput_gone<M: Machine>(&self, m: &M, dir: DirId, entry: Entry) {
        if self.dcache.keeps_none() {
            self.kill(m, dir, || self.unlist(m, dir, entry)).await;
            self.children.apart.iter().for_each(|apart| apart.free(m, entry));
        }
    }

    /// A file's dentry goes from one directory to another (`__d_move`), and that of its new name, which is now the old one's, is killed.
    pub async fn move_dentry<M: Machine>(&self, m: &M, from: DirId, to: DirId, slot: u32) {
        let entry = listed::file(slot);
        let less = -i64::from(to != from);
        self.directories.change_children(m, &dentry(from), less, || self.unlist(m, from, entry)).await;
        if to != from {
            self.directories.change_children(m, &dentry(to), 1, || ()).await;
        }
        self.is_child(m, to, entry); // in front of its new name's, which this task has put there
    }

    /// The names of a directory in memory.
    pub fn children(&self, dir: DirId) -> Vec<Entry> {
        self.children.lists.entries(dir)
    }

    /// Who lists a directory by its dentries comes to this one, and gives it back at the next.
    pub async fn count_child<M: Machine>(&self, m: &M, dir: DirId, child: Entry, how: CountsListed) {
        let (is_file, child) = whose(child);
        let dentries = if is_file { &self.dentries } else { &self.directories };
        match how {
            CountsListed::None => return,
            CountsListed::UnderParent => self.directories.next_child(m, &dentry(dir), (dentries, &child)).await,
            CountsListed::Alone => dentries.change_children(m, &child, 1, || ()).await,
        }
        dentries.put(m, &child).await;
    }

    /// `__dentry_kill` of a dentry that nobody knew.
    pub async fn dentry_kill<M: Machine>(&self, m: &M, dir: DirId) {
        self.kill(m, dir, || ()).await;
    }

    /// `__dentry_kill`, and the reference that a child has of its parent.
    async fn kill<M: Machine>(&self, m: &M, dir: DirId, unlist: impl FnOnce()) {
        let counted = self.children.kill_counts_parent;
        self.directories.change_children(m, &dentry(dir), -i64::from(counted), unlist).await;
        if !counted {
            self.put_directory(m, dir).await;
        }
    }

    fn unlist<M: Machine>(&self, m: &M, dir: DirId, entry: Entry) {
        if self.children.lists.list_of(entry).is_none() {
            return;
        }
        self.touch_sibling(m, entry, Access::Write);
        let [before, next] = self.children.lists.remove(entry);
        if before.is_none() {
            self.touch_children(m, dir);
        }
        [before, next].into_iter().flatten().for_each(|other| self.touch_sibling(m, other, self.children.neighbour));
    }

    /// The head of the list.
    fn touch_children<M: Machine>(&self, m: &M, dir: DirId) {
        if let Some(apart) = &self.children.apart {
            apart.touch(m, listed::directory(dir), Access::Write);
        }
    }

    fn touch_sibling<M: Machine>(&self, m: &M, entry: Entry, access: Access) {
        match (&self.children.apart, whose(entry)) {
            (Some(apart), _) => apart.touch(m, entry, access),
            (None, (true, file)) => self.dentries.touch(m, &file, access),
            (None, (false, dir)) => self.directories.touch(m, &dir, access),
        }
    }
}
