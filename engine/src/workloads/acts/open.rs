//! Opens and closes, and what they leave in the set of files.

use super::{Actor, Full, Held, Name};
use crate::filesystems::{DirId, Filesystem};
use crate::waist::Machine;

impl<M: Machine, F: Filesystem<M>> Actor<M, F> {
    pub(super) async fn create(&mut self, bytes: u32) -> Result<(), Full> {
        let place = self.create_open(bytes).await?;
        self.close(place, true).await;
        Ok(())
    }

    /// `open(O_CREAT|O_EXCL)`, and a write if there are `bytes`; the file's place.
    pub async fn create_open(&mut self, bytes: u32) -> Result<usize, Full> {
        let (m, fs, dir) = (self.m.clone(), self.fs.clone(), self.any_dir());
        let name = self.next_name(dir);
        let Ok(mut file) = fs.create(&m, dir, &name).await else { return Err(self.full()) };
        if bytes > 0 {
            fs.write(&m, &mut file, bytes).await;
        }
        let mut pool = self.pool.borrow_mut();
        pool.files.push_back(Held { dir, name, file, dirty: bytes > 0, unsynced: bytes > 0, size: u64::from(bytes) });
        self.made = Some(name);
        Ok(pool.files.len() - 1)
    }

    /// `open` of any file, which stays open.
    pub async fn open_any(&mut self) -> Result<(), Full> {
        if self.files() == 0 {
            self.create(0).await?;
        }
        let place = self.any_place();
        let held = self.pool.borrow().files[place];
        self.fs.clone().open(&self.m, held.dir, &held.file).await;
        Ok(())
    }

    /// `close` of any file, which was open for writing.
    pub async fn close_any(&mut self) {
        if self.files() > 0 {
            let place = self.any_place();
            self.close(place, true).await;
        }
    }

    /// A close, by who may have written to it, with what it does for a file that was written to.
    pub(super) async fn close(&mut self, place: usize, writable: bool) {
        let mut held = self.pool.borrow().files[place];
        self.pool.borrow_mut().files[place].dirty = false;
        (held.file.written, held.file.writable) = (held.dirty, writable || held.dirty);
        self.fs.clone().close(&self.m, &held.file).await;
    }

    pub(super) fn next_name(&mut self, dir: DirId) -> Name {
        if let Some(name) = self.pool.borrow_mut().names.again(dir) {
            return name;
        }
        let name = self.format.name(self.task, self.serial);
        self.serial += 1;
        name
    }
}
