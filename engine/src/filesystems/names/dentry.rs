//! What users of one file meet in its `struct dentry`: the reference that a path walk takes where it ends, and that `dput` gives
//! back.
//!
//! A walk reads names without a lock (`__d_lookup_rcu`). Offsets in `struct dentry` of x86-64: until Linux 6.10 the count of
//! references, `d_lockref` (88), was in the line of a file's name from its ninth byte on (64), so that each walk fetched what
//! others' references had just written; since 6.11 it is in a line of its own (128), with what walks do not read.

use crate::filesystems::costs::Costs;
use crate::filesystems::names::lockref::{Exchange, Lockref};
use crate::filesystems::File;
use crate::kernel::vfs::DentryLine;
use crate::waist::Machine;
use crate::waist::{Access, ClassId};
use std::cell::RefCell;
use std::rc::Rc;

/// The dentries of a mount's files.
pub struct Dentries {
    d_lock: ClassId,
    exchange: Exchange,
    line: DentryLine,
    /// By file, made when first used.
    files: RefCell<Vec<Option<Rc<Lockref>>>>,
}

impl Dentries {
    /// None has been used.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Self {
        let rules = costs.rules();
        Self {
            d_lock: m.class("vfs.d_lock", "vfs.d_lock"),
            exchange: Exchange::new(m, rules.dentry_ref, costs.pause()),
            line: rules.dentry_line,
            files: RefCell::default(),
        }
    }

    fn of<M: Machine>(&self, m: &M, file: &File) -> Rc<Lockref> {
        let (mut files, slot) = (self.files.borrow_mut(), file.inode as usize);
        if files.len() <= slot {
            files.resize_with(slot + 1, || None);
        }
        files[slot].get_or_insert_with(|| Rc::new(Lockref::new(m.new_seldom_lock(self.d_lock)))).clone()
    }

    /// A walk compares the file's name.
    pub fn walk<M: Machine>(&self, m: &M, file: &File) {
        if self.line == DentryLine::WithName {
            self.of(m, file).touch(m, Access::Read);
        }
    }

    /// An access to what lies in the line of the count.
    pub fn touch<M: Machine>(&self, m: &M, file: &File, access: Access) {
        self.of(m, file).touch(m, access);
    }

    /// A change under `d_lock`: of the list of a directory's children, who have so many more references of it then.
    pub async fn change_children<M: Machine>(&self, m: &M, dir: &File, more: i64, change: impl FnOnce()) {
        self.of(m, dir).under_lock(m, &self.exchange, more, change).await;
    }

    /// Who lists a directory takes a reference of the dentry that is next among its children.
    pub async fn next_child<M: Machine>(&self, m: &M, dir: &File, (of, child): (&Self, &File)) {
        self.of(m, dir).get_child(m, &self.exchange, &of.of(m, child)).await;
    }

    /// A reference is taken.
    pub async fn get<M: Machine>(&self, m: &M, file: &File) {
        self.of(m, file).change(m, &self.exchange, 1).await;
    }

    /// A reference is given back.
    pub async fn put<M: Machine>(&self, m: &M, file: &File) {
        self.of(m, file).change(m, &self.exchange, -1).await;
    }
}
