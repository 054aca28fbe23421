//! A directory data block (`xfs_dir2_data.c`), byte for byte: entries, unused space and the three largest free runs.

use crate::filesystems::xfs::structures::touch::{chunks, Chunks, Scanned};

/// Bytes of the header of a data block; the first entry follows.
pub const DATA_HEADER: usize = 64;
const FREE_TAG: u16 = 0xffff;

/// Bytes of an entry: inode number, length, name, file type and tag, rounded up to 8 (`xfs_dir2_data_entsize`).
pub fn entry_size(name_len: usize) -> usize {
    (8 + 1 + name_len + 1 + 2).next_multiple_of(8)
}

/// A run of unused bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeRun {
    /// First byte in the block.
    pub offset: u16,
    /// Bytes.
    pub len: u16,
}

impl FreeRun {
    fn end(&self) -> usize {
        usize::from(self.offset) + usize::from(self.len)
    }
}

/// One block of directory entries.
#[derive(Clone, Debug)]
pub struct DataBlock {
    /// Its filesystem block number.
    pub fsblock: u64,
    bytes: Box<[u8]>,
    best: [FreeRun; 3],
    /// Where entries must end: the block's end, or the hash index of a block-form directory.
    end: usize,
    scanned: Scanned,
}

impl DataBlock {
    /// An empty block of so many bytes whose entries end at `end`.
    pub fn new(fsblock: u64, bytes: usize, end: usize) -> Self {
        let bytes = vec![0; bytes].into_boxed_slice();
        let mut block = Self { fsblock, bytes, best: Default::default(), end, scanned: Scanned::default() };
        block.write_free(DATA_HEADER, end - DATA_HEADER);
        block.scan_free();
        block.scanned = Scanned::default();
        block
    }

    /// The largest free runs, largest first; empty where there are fewer than three.
    pub fn best(&self) -> &[FreeRun; 3] {
        &self.best
    }

    /// Bytes of the largest free run.
    pub fn longest(&self) -> u16 {
        self.best[0].len
    }

    /// Whether no entry is left in a block that has no hash index.
    pub fn is_empty(&self) -> bool {
        usize::from(self.longest()) == self.bytes.len() - DATA_HEADER
    }

    /// Where entries must end.
    pub fn end(&self) -> usize {
        self.end
    }

    /// The free run just before the end, if the last thing there is one.
    pub fn tail(&self) -> Option<FreeRun> {
        self.free_before(self.end)
    }

    /// The name and inode number of the entry at `offset`.
    pub fn entry(&self, offset: usize) -> (&[u8], u64) {
        let len = usize::from(self.bytes[offset + 8]);
        let ino = u64::from_be_bytes(self.bytes[offset..offset + 8].try_into().expect("eight bytes"));
        (&self.bytes[offset + 9..offset + 9 + len], ino)
    }

    /// Offsets of all entries.
    pub fn entries(&self) -> impl Iterator<Item = usize> + '_ {
        let mut at = DATA_HEADER;
        std::iter::from_fn(move || {
            while at < self.end {
                let here = at;
                match self.free_at(here) {
                    Some(free) => at = free.end(),
                    None => {
                        at += entry_size(self.entry(here).0.len());
                        return Some(here);
                    }
                }
            }
            None
        })
    }

    /// Puts an entry at the start of the free run at `offset`. Logged are the entry, what is left of the run, its tag, and the table of the
    /// largest runs (`xfs_dir2_data_use_free`).
    pub fn add(&mut self, offset: usize, name: &[u8], ino: u64) -> Chunks {
        let size = entry_size(name.len());
        let run = self.free_at(offset).expect("a free run");
        let end = run.end();
        let logged = chunks(0..DATA_HEADER) | chunks(offset..end.min(offset + size + 4)) | chunks(end - 2..end);
        let rescan = self.use_free(run, offset, size);
        self.write_entry(offset, name, ino);
        if rescan {
            self.scan_free(); // only now: the old free run's tag is still there until the entry is written
        }
        logged
    }

    /// Puts an entry where it belongs in a block that is being built; `finish_building` follows.
    pub fn build(&mut self, hole: usize, offset: usize, name: &[u8], ino: u64) {
        if hole < offset {
            self.write_free(hole, offset - hole);
        }
        self.write_entry(offset, name, ino);
    }

    /// Makes the rest of a built block free.
    pub fn finish_building(&mut self, from: usize) {
        if from < self.end {
            self.write_free(from, self.end - from);
        }
        self.scan_free();
    }

    /// Removes the entry at `offset`. Logged are its beginning, its tag, and the table of the largest runs (`xfs_dir2_data_make_free`).
    pub fn remove(&mut self, offset: usize) -> Chunks {
        let len = entry_size(self.entry(offset).0.len());
        self.make_free(offset, len);
        chunks(0..DATA_HEADER) | chunks(offset..offset + 4) | chunks(offset + len - 2..offset + len)
    }

    /// Moves the end up, into bytes that become free, or down, out of the free run before it.
    pub fn move_end(&mut self, end: usize) {
        let old = self.end;
        self.end = end.max(old);
        if end > old {
            self.make_free(old, end - old);
        } else if end < old {
            let run = self.tail().expect("free space before the end");
            self.end = end; // first: a rescan must not read what lies beyond
            if self.use_free(run, end, old - end) {
                self.scan_free();
            }
        }
    }

    /// What the table of the largest runs was made anew from since it was last asked.
    pub fn take_scanned(&mut self) -> Scanned {
        std::mem::take(&mut self.scanned)
    }

    /// Checks tags, lengths and the table of the largest runs.
    pub fn check(&self) -> Result<(), String> {
        let mut at = DATA_HEADER;
        let mut runs = Vec::new();
        while at < self.end {
            let len = match self.free_at(at) {
                Some(run) => {
                    runs.push(run.len);
                    usize::from(run.len)
                }
                None => entry_size(self.entry(at).0.len()),
            };
            if usize::from(self.u16_at(at + len - 2)) != at {
                return Err(format!("data block {}: wrong tag for offset {at}", self.fsblock));
            }
            at += len;
        }
        runs.sort_unstable_by(|a, b| b.cmp(a));
        runs.resize(3.max(runs.len()), 0);
        if at != self.end || runs[..3] != self.best.map(|run| run.len) {
            return Err(format!("data block {}: bestfree {:?}, runs {runs:?}", self.fsblock, self.best));
        }
        Ok(())
    }

    fn u16_at(&self, offset: usize) -> u16 {
        u16::from_be_bytes([self.bytes[offset], self.bytes[offset + 1]])
    }

    fn put_u16(&mut self, offset: usize, value: u16) {
        self.bytes[offset..offset + 2].copy_from_slice(&value.to_be_bytes());
    }

    fn free_at(&self, offset: usize) -> Option<FreeRun> {
        (self.u16_at(offset) == FREE_TAG).then(|| FreeRun { offset: offset as u16, len: self.u16_at(offset + 2) })
    }

    fn free_before(&self, offset: usize) -> Option<FreeRun> {
        if offset > DATA_HEADER {
            self.free_at(usize::from(self.u16_at(offset - 2)))
        } else {
            None
        }
    }

    fn write_free(&mut self, offset: usize, len: usize) -> FreeRun {
        self.put_u16(offset, FREE_TAG);
        self.put_u16(offset + 2, len as u16);
        self.put_u16(offset + len - 2, offset as u16);
        FreeRun { offset: offset as u16, len: len as u16 }
    }

    fn write_entry(&mut self, offset: usize, name: &[u8], ino: u64) {
        self.bytes[offset..offset + 8].copy_from_slice(&ino.to_be_bytes());
        self.bytes[offset + 8] = name.len() as u8;
        self.bytes[offset + 9..offset + 9 + name.len()].copy_from_slice(name);
        self.put_u16(offset + entry_size(name.len()) - 2, offset as u16);
    }

    /// `xfs_dir2_data_use_free`. True if the table of the largest runs has to be made anew once the bytes are in use.
    #[must_use]
    fn use_free(&mut self, run: FreeRun, offset: usize, len: usize) -> bool {
        let before = offset - usize::from(run.offset);
        let after = run.end() - (offset + len);
        let left = (before > 0).then(|| self.write_free(run.offset.into(), before));
        let right = (after > 0).then(|| self.write_free(offset + len, after));
        let Some(slot) = self.find_best(run.offset) else { return false };
        let more_than_table = self.best[2].len != 0;
        match (left, right) {
            (None, None) | (Some(_), Some(_)) if more_than_table => true,
            _ => {
                self.drop_best(slot);
                let mut last = false;
                for run in [left, right].into_iter().flatten() {
                    last |= self.add_best(run).is_none_or(|slot| slot == 2);
                }
                last && more_than_table
            }
        }
    }

    /// `xfs_dir2_data_make_free`.
    fn make_free(&mut self, offset: usize, len: usize) {
        let prev = self.free_before(offset);
        let next = if offset + len < self.end { self.free_at(offset + len) } else { None };
        let start = prev.map_or(offset, |run| run.offset.into());
        let end = next.map_or(offset + len, |run| run.end());
        let run = self.write_free(start, end - start);
        let rescan = match (prev, next) {
            (Some(_), Some(_)) if self.best[2].len != 0 => true,
            (Some(prev), Some(next)) => {
                for gone in [prev, next] {
                    if let Some(slot) = self.find_best(gone.offset) {
                        self.drop_best(slot);
                    }
                }
                self.add_best(run);
                false
            }
            (Some(old), None) | (None, Some(old)) => match self.find_best(old.offset) {
                Some(slot) => {
                    self.drop_best(slot);
                    self.add_best(run);
                    false
                }
                None => run.len > self.best[2].len,
            },
            (None, None) => {
                self.add_best(run);
                false
            }
        };
        if rescan {
            self.scan_free();
        }
    }

    fn find_best(&self, offset: u16) -> Option<usize> {
        self.best.iter().position(|run| run.len != 0 && run.offset == offset)
    }

    /// `xfs_dir2_data_freeremove`.
    fn drop_best(&mut self, slot: usize) {
        self.best.copy_within(slot + 1.., slot);
        self.best[2] = FreeRun::default();
    }

    /// `xfs_dir2_data_freeinsert`: the place in the table, if the run got one.
    fn add_best(&mut self, run: FreeRun) -> Option<usize> {
        let slot = self.best.iter().position(|other| run.len > other.len)?;
        self.best.copy_within(slot..2, slot + 1);
        self.best[slot] = run;
        Some(slot)
    }

    /// `xfs_dir2_data_freescan`.
    fn scan_free(&mut self) {
        self.best = Default::default();
        let mut at = DATA_HEADER;
        while at < self.end {
            match self.free_at(at) {
                Some(run) => {
                    self.add_best(run);
                    self.scanned.runs += 1;
                    at = run.end();
                }
                None => {
                    self.scanned.names += 1;
                    at += entry_size(self.entry(at).0.len());
                }
            }
        }
    }
}
