//! Which file or directory an operation is on: any, or one where the operation before was.

use super::super::draw::{chance, uniform};
use super::Actor;
use crate::filesystems::{DirId, Filesystem};
use crate::waist::Machine;

impl<M: Machine, F: Filesystem<M>> Actor<M, F> {
    pub(super) fn any_place(&mut self) -> usize {
        if let Some(place) = self.stay().and_then(|dir| self.place_in(dir)) {
            return place;
        }
        let files = self.files() as u64;
        let place = self.choice.pick(&mut self.random, files) as usize;
        self.dir = Some(self.pool.borrow().files[place].dir);
        place
    }

    /// The first that is left in the directory of the one before, else the first of all. It becomes the last of the set, from where it can be
    /// taken while the others keep their order.
    pub(super) fn next_place(&mut self) -> usize {
        let mut pool = self.pool.borrow_mut();
        let here = pool.files.iter().position(|held| Some(held.dir) == self.dir).unwrap_or(0);
        if let Some(held) = pool.files.remove(here) {
            self.dir = Some(held.dir);
            pool.files.push_back(held);
        }
        pool.files.len() - 1
    }

    pub(super) fn any_dir(&mut self) -> DirId {
        if let Some(dir) = self.stay() {
            return dir;
        }
        let dirs = self.dirs.clone();
        let dir = match dirs.len() {
            1 => dirs[0],
            many => dirs[(uniform(&mut self.random) * many as f64) as usize],
        };
        self.dir = Some(dir);
        dir
    }

    /// The directory that a draw stays in, if it does.
    fn stay(&mut self) -> Option<DirId> {
        let dir = self.dir.filter(|_| self.stays > 0.0)?;
        chance(&mut self.random, self.stays).then_some(dir)
    }

    /// Any file of a directory.
    fn place_in(&mut self, dir: DirId) -> Option<usize> {
        let pool = self.pool.borrow();
        let count = pool.files.iter().filter(|held| held.dir == dir).count();
        let drawn = (uniform(&mut self.random) * count as f64) as usize;
        let mut here = pool.files.iter().enumerate().filter(|(_, held)| held.dir == dir);
        here.nth(drawn).map(|(place, _)| place)
    }
}
