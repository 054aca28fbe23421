//! Which file or directory an operation is on: any, or one where the operation before was.

use super::super::draw::{chance, uniform, Places};
use super::{Act, Actor, Full, Held, Name, Which};
use crate::filesystems::{DirId, Filesystem, ROOT};
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

    /// The first that is left in the directory of the one before, else the first of all, each once in a round through the set. It becomes the
    /// last of the set, from where it can be taken while the others keep their order.
    pub(super) fn next_place(&mut self) -> usize {
        let mut pool = self.pool.borrow_mut();
        if pool.files.iter().all(|held| held.taken > pool.rounds) {
            pool.rounds += 1;
        }
        let left = |held: &Held| held.taken <= pool.rounds;
        let here = pool.files.iter().position(|held| Some(held.dir) == self.dir && left(held));
        let here = here.or_else(|| pool.files.iter().position(left)).unwrap_or(0);
        if let Some(held) = pool.files.remove(here) {
            self.dir = Some(held.dir);
            let taken = pool.rounds + 1;
            pool.files.push_back(Held { taken, ..held });
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

    /// Where a file is that was at a place; others may have taken files of the set away since.
    pub(super) fn now_at(&self, place: usize, name: Name) -> usize {
        let files = &self.pool.borrow().files;
        if files.get(place).is_some_and(|held| held.name == name) {
            return place;
        }
        files.iter().position(|held| held.name == name).unwrap_or(place)
    }

    /// Where a file is, if there still is one.
    pub(super) fn place(&self, which: Which) -> Option<usize> {
        let name = match which {
            Which::Any | Which::Next => None,
            Which::First => return (self.files() > 0).then_some(0),
            Which::Last => return self.files().checked_sub(1),
            Which::Made => self.made,
            Which::Written => self.written,
            Which::Synced => self.synced,
            Which::Read => self.read,
        }?;
        self.pool.borrow().files.iter().position(|held| held.name == name)
    }

    /// The directory of the file that was written to last, by its place among the task's, if that has not been synced since.
    pub fn unsynced(&self) -> Option<usize> {
        let held = self.pool.borrow().files[self.place(Which::Written)?];
        held.unsynced.then(|| self.written_in()).flatten()
    }

    /// The directory of the file that was written to last, by its place among the task's.
    pub fn written_in(&self) -> Option<usize> {
        let held = self.pool.borrow().files[self.place(Which::Written)?];
        self.dirs.iter().position(|&dir| dir == held.dir)
    }

    /// Does an operation on any file of one of `dirs` (the task's directories by place) that was not synced since it was written to;
    /// on any where there is none such.
    pub async fn on_unsynced(&mut self, dirs: std::ops::Range<usize>, act: Act) -> Result<(), Full> {
        let wanted = |held: &Held| held.unsynced && self.dirs[dirs.clone()].contains(&held.dir);
        let count = self.pool.borrow().files.iter().filter(|held| wanted(held)).count();
        let drawn = (uniform(&mut self.random) * count as f64) as usize;
        let place = self
            .pool
            .borrow()
            .files
            .iter()
            .enumerate()
            .filter(|(_, held)| wanted(held))
            .nth(drawn)
            .map(|(place, _)| place);
        match place {
            Some(place) => self.at(place, act, 0).await,
            None => self.on(Which::Any, act, 0).await,
        }
    }

    /// Where the block begins that is drawn of a file, or is the task's own; none where blocks are taken in turn.
    pub(super) fn block_of(&mut self, size: u64, bytes: u32) -> Option<u64> {
        let blocks = size / u64::from(bytes.max(1));
        let block = match self.places {
            _ if blocks == 0 => None,
            Places::Random => Some((uniform(&mut self.random) * blocks as f64) as u64),
            Places::OwnBlock => Some(u64::from(self.task) % blocks),
            Places::Sequential => None,
        };
        block.map(|block| block * u64::from(bytes))
    }

    /// Another of the task's directories; who has one has that and the root.
    pub(super) fn other_dir(&self, dir: DirId) -> DirId {
        let place = self.dirs.iter().position(|&own| own == dir);
        match place.map(|place| self.dirs[(place + 1) % self.dirs.len()]) {
            Some(next) if next != dir => next,
            Some(_) => ROOT,
            None => self.dirs[0],
        }
    }
}
