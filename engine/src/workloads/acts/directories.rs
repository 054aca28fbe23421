//! Directories that tasks make and remove; nobody puts anything into them.

use super::super::format::Name;
use super::{Actor, Full, Which};
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
        let parent = self.any_dir();
        let name = self.next_name(parent);
        let Ok(dir) = self.fs.clone().mkdir(&self.m, parent, &name).await else { return Err(self.full()) };
        self.pool.borrow_mut().directories.push_back(MadeDir { parent, name, dir });
        Ok(())
    }

    /// `rmdir` of the directory that was made first or last, or of any; where there is none, one is made first.
    pub(super) async fn rmdir(&mut self, which: Which) -> Result<(), Full> {
        let place = self.made_place(which).await?;
        let MadeDir { parent, name, dir } = match which {
            Which::First => self.pool.borrow_mut().directories.pop_front(),
            _ => self.pool.borrow_mut().directories.swap_remove_back(place),
        }
        .expect("there is one");
        self.fs.clone().rmdir(&self.m, parent, &name, dir).await;
        Ok(())
    }

    /// `stat` of the directory that was made first or last, or of any.
    pub(super) async fn stat_dir(&mut self, which: Which) -> Result<(), Full> {
        let place = self.made_place(which).await?;
        let dir = self.pool.borrow().directories[place].dir;
        self.fs.clone().stat_directory(&self.m, dir).await;
        Ok(())
    }

    /// Where a directory is that was made; where there is none, one is made first.
    async fn made_place(&mut self, which: Which) -> Result<usize, Full> {
        if self.pool.borrow().directories.is_empty() {
            self.mkdir().await?;
        }
        let count = self.pool.borrow().directories.len();
        Ok(match which {
            Which::First => 0,
            Which::Made | Which::Last => count - 1,
            _ => self.choice.pick(&mut self.random, count as u64) as usize,
        })
    }
}
