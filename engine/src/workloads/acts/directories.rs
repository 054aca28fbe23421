//! Directories that tasks make and remove; nobody puts anything into them.

use super::{Actor, Full, Name, Which};
use crate::filesystems::{DirId, Filesystem};
use crate::waist::Machine;

/// A directory that a task has made.
#[derive(Clone, Copy, Debug)]
pub(super) struct MadeDir {
    parent: DirId,
    name: Name,
    dir: DirId,
}

impl<M: Machine, F: Filesystem<M>> Actor<M, F> {
    /// `mkdir` in any of the task's directories.
    pub(super) async fn mkdir(&mut self) -> Result<(), Full> {
        let (parent, name) = (self.any_dir(), self.next_name());
        let Ok(dir) = self.fs.clone().mkdir(&self.m, parent, &name).await else { return Err(self.full()) };
        self.pool.borrow_mut().directories.push(MadeDir { parent, name, dir });
        Ok(())
    }

    /// `rmdir` of the directory that was made first or last, or of any; where there is none, one is made first.
    pub(super) async fn rmdir(&mut self, which: Which) -> Result<(), Full> {
        if self.pool.borrow().directories.is_empty() {
            self.mkdir().await?;
        }
        let count = self.pool.borrow().directories.len();
        let MadeDir { parent, name, dir } = match which {
            Which::First => self.pool.borrow_mut().directories.remove(0),
            Which::Made => self.pool.borrow_mut().directories.remove(count - 1),
            _ => {
                let place = self.choice.pick(&mut self.random, count as u64) as usize;
                self.pool.borrow_mut().directories.swap_remove(place)
            }
        };
        self.fs.clone().rmdir(&self.m, parent, &name, dir).await;
        Ok(())
    }
}
