//! What all who change names of one directory meet in its dentry, whatever else they lock.
//!
//! A walk that ends at a directory leaves the mode without references there (`complete_walk` of `path_parentat`; `open_last_lookups`
//! with `O_CREAT`): it takes a reference, which the call gives back at its end (`path_put`, `terminate_walk`). So each call on names
//! changes the directory's `d_lockref` twice before and after the directory's lock. Under that lock a new dentry is put
//! among the directory's children (`d_alloc`), and one that goes is taken out (`__dentry_kill`, then `dput` of the parent), with
//! `d_lock` in the same word. fs/namei.c and fs/dcache.c of 6.10; before 2.6.38 walks took references all along, which is not modelled.

use super::calls::Calls;
use super::{DirId, File};
use crate::waist::Machine;

fn dentry(dir: DirId) -> File {
    File { inode: dir, written: false, writable: false }
}

impl Calls {
    /// A reference of a directory is taken, or given back.
    pub async fn count_directory<M: Machine>(&self, m: &M, dir: DirId) {
        self.directories.count(m, &dentry(dir)).await;
    }

    /// `d_alloc` of a new name.
    pub async fn d_alloc<M: Machine>(&self, m: &M, dir: DirId) {
        self.directories.change_children(m, &dentry(dir)).await;
    }

    /// `dput` of a name that has gone, by its last user.
    pub async fn dput_gone<M: Machine>(&self, m: &M, dir: DirId) {
        if self.dcache.keeps_none() {
            self.dentry_kill(m, dir).await;
        }
    }

    /// A file's dentry goes from one directory to another (`__d_move`), and that of its new name, which is now the old one's, is killed.
    pub async fn move_dentry<M: Machine>(&self, m: &M, from: DirId, to: DirId) {
        self.directories.change_children(m, &dentry(from)).await;
        if to != from {
            self.directories.change_children(m, &dentry(to)).await;
        }
    }

    /// `__dentry_kill`, and the reference that a child has of its parent.
    pub async fn dentry_kill<M: Machine>(&self, m: &M, dir: DirId) {
        self.directories.change_children(m, &dentry(dir)).await;
        self.directories.count(m, &dentry(dir)).await;
    }
}
