//! Opens and closes, and what they leave in the set of files.

use super::{Actor, Full, Held, Name};
use crate::filesystems::{DirId, Filesystem};
use crate::waist::Machine;
use std::rc::Rc;

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
        let (written, size, taken) = (bytes > 0, u64::from(bytes), pool.rounds);
        pool.files.push_back(Held { dir, name, file, dirty: written, unsynced: written, size, taken });
        self.made = Some(name);
        Ok(pool.files.len() - 1)
    }

    /// A file of the set that is there before the run begins; open, unless files are to leave memory.
    /// Those that leave memory are made one directory after the other, so much of the set being there.
    pub async fn create_for_set(&mut self, bytes: u32, leaves: Option<f64>) -> Result<(), Full> {
        let Some(share) = leaves else { return self.create_open(bytes).await.map(drop) };
        let (all, place) = (self.dirs.clone(), (share * self.dirs.len() as f64) as usize);
        self.dirs = Rc::from([all[place]]);
        let made = self.create_open(bytes).await;
        self.dirs = all;
        self.close(made?, true).await;
        Ok(())
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
