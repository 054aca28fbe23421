//! Further names of files.

use super::super::format::Name;
use super::{Actor, Full, Held};
use crate::filesystems::{DirId, Filesystem};
use crate::waist::Machine;
use std::collections::BTreeMap;

/// Those of each file, by the slot of its inode, in the order in which they were given.
pub(super) type Links = BTreeMap<u32, Vec<(DirId, Name)>>;

impl<M: Machine, F: Filesystem<M>> Actor<M, F> {
    /// Gives a file a name more, which is free, in its directory.
    pub(super) async fn link(&mut self, place: usize) -> Result<(), Full> {
        let held = self.pool.borrow().files[place];
        let name = self.next_name(held.dir);
        if self.fs.clone().link(&self.m, held.dir, &name, &held.file).await.is_err() {
            return Err(self.full());
        }
        let mut pool = self.pool.borrow_mut();
        pool.links.entry(held.file.inode).or_default().push((held.dir, name));
        pool.files[place].unsynced = true;
        Ok(())
    }

    /// Makes a file with the data of another, in any of the directories.
    pub(super) async fn reflink(&mut self, place: usize) -> Result<(), Full> {
        let (m, fs, dir) = (self.m.clone(), self.fs.clone(), self.any_dir());
        let Held { file: from, size, .. } = self.pool.borrow().files[place];
        let name = self.next_name(dir);
        let Ok(mut file) = fs.create(&m, dir, &name).await else { return Err(self.full()) };
        fs.reflink(&m, &from, &file).await;
        file.written = from.written;
        self.made = Some(name);
        {
            let mut pool = self.pool.borrow_mut();
            let taken = pool.rounds;
            pool.files.push_back(Held { dir, name, file, dirty: false, unsynced: true, size, taken });
        }
        let last = self.files() - 1;
        self.close(last, true).await;
        Ok(())
    }

    /// Takes the last of a file's further names; whether there was one.
    pub(super) async fn unlink_link(&self, place: usize) -> bool {
        let file = self.pool.borrow().files[place].file;
        let Some((dir, name)) = self.pool.borrow_mut().links.get_mut(&file.inode).and_then(Vec::pop) else {
            return false;
        };
        self.fs.unlink(&self.m, dir, &name, file).await;
        self.pool.borrow_mut().names.free(dir, name);
        true
    }
}
