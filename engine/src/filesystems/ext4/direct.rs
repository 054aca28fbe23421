//! Direct reads and writes: what they hold of `i_rwsem`, and what becomes of blocks that were allocated and not written
//! (`ext4_dio_write_iter`, `ext4_dio_write_checks`; before 5.5 `ext4_file_write_iter`, `ext4_direct_IO_write`).
//!
//! Part of a block: asynchronous ones have the file for themselves until 5.5, all of them from 5.6 to 6.4, because the rest of a block
//! may have to be zeroed; since 6.5 only over blocks that were not written. They wait until nothing of the file is under way
//! (`inode_dio_wait`), and for their own end. What is under way is the task's own here.
//!
//! Unwritten blocks: the extent is split in a handle before the write, and made a written one in another handle after it, by who waits
//! for the write, else by a worker. Until 6.2 such a write has the file for itself.

use super::file_io::OpenFile;
use super::fsync::UNRESERVED;
use super::journal::credits;
use super::Ext4;
use crate::devices::{End, Request};
use crate::filesystems::{Io, BLOCK};
use crate::kernel::ext4::{DioReads, DioSplit, DioUnaligned, DioUnwritten, DioWrites};
use crate::waist::Machine;
use crate::waist::{Access, Account, CpuId, LockId, Side};
use std::cell::Cell;
use std::rc::Rc;

/// Beside the slot of a file whose extent is to be converted when its write has ended.
const UNWRITTEN: u32 = 1 << 31;

/// Which blocks of a file have not been written since they were allocated (`fallocate`).
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    written: Vec<Cell<bool>>,
    /// Runs of written blocks.
    runs: Cell<u32>,
}

impl Unwritten {
    /// None of a file of this size.
    pub fn all(bytes: u64) -> Self {
        Self { written: vec![Cell::new(false); bytes.div_ceil(u64::from(BLOCK)) as usize], runs: Cell::new(0) }
    }

    /// Whether a request is in such blocks.
    pub fn has(&self, io: Io) -> bool {
        self.blocks(io).any(|block| self.is_unwritten(block))
    }

    /// Those of a request are written from now on.
    pub fn write(&self, io: Io) {
        for block in self.blocks(io).filter(|&block| self.is_unwritten(block)) {
            let written =
                |block: Option<usize>| block.is_some_and(|block| self.written.get(block).is_some_and(Cell::get));
            let beside = u32::from(written(block.checked_sub(1))) + u32::from(written(Some(block + 1)));
            self.written[block].set(true);
            self.runs.set(self.runs.get() + 1 - beside);
        }
    }

    /// The extents, of which those between written ones are unwritten, do not fit into the inode.
    pub fn has_leaf(&self) -> bool {
        self.runs.get() > 2
    }

    fn is_unwritten(&self, block: usize) -> bool {
        self.written.get(block).is_some_and(|written| !written.get())
    }

    fn blocks(&self, io: Io) -> impl Iterator<Item = usize> {
        let block = u64::from(BLOCK);
        (io.offset / block) as usize..(io.offset + u64::from(io.bytes)).div_ceil(block) as usize
    }
}

/// How a write goes on once it has its lock.
#[derive(Clone, Copy)]
struct Going {
    side: Side,
    unwritten: bool,
    /// The call returns when the data are on the device (`IOMAP_DIO_FORCE_WAIT`).
    waits: bool,
}

impl Ext4 {
    /// `ext4_dio_read_iter`; until 4.8 `do_blockdev_direct_IO`, which gives the lock back when all is submitted.
    pub(super) async fn dio_read<M: Machine>(&self, m: &M, open: &OpenFile, slot: u32, io: Io) {
        let c = &self.io.costs;
        let (side, keeps) = match self.io.rules.dio_reads {
            DioReads::Exclusive => (Some(Side::Write), false),
            DioReads::Unlocked => (None, false),
            DioReads::Shared => (Some(Side::Read), true),
        };
        if let Some(side) = side {
            m.lock(open.i_rwsem, side).await;
        }
        m.touch(open.dio_count, Access::Write);
        self.look_up_blocks(m, slot, c.map).await;
        self.set_iomap(m, true).await;
        let request = Request::Read { bytes: io.bytes, at: Some(io.offset) };
        if io.done.is_some() {
            open.submits(m.task());
        }
        if keeps && io.done.is_none() {
            self.storage.io(m, request).await;
        } else {
            let done = io.done.unwrap_or_else(|| m.new_completion());
            self.storage.submit(m, request, End::Complete(done)).await;
            if let Some(side) = side.filter(|_| !keeps) {
                m.unlock(open.i_rwsem, side).await;
            }
            if io.done.is_none() {
                m.wchan("dio_await_one");
                m.wait_for_io(done).await;
                m.drop_completion(done);
            }
        }
        if io.done.is_none() {
            m.touch(open.dio_count, Access::Write);
        }
        m.run(Account::System, c.read_end).await;
        if let Some(side) = side.filter(|_| keeps) {
            m.unlock(open.i_rwsem, side).await;
        }
    }

    pub(super) async fn dio_write<M: Machine>(&self, m: &M, open: &OpenFile, slot: u32, io: Io) {
        let c = &self.io.costs;
        m.run(Account::System, c.write_start).await;
        let going = self.lock_for_dio(m, open, slot, io).await;
        m.run(Account::System, c.write_checks).await;
        self.update_times(m, slot).await;
        m.touch(open.dio_count, Access::Write);
        let relocks = self.relocks(io, going.unwritten);
        if relocks {
            m.unlock(open.i_rwsem, going.side).await;
        }
        match going.unwritten {
            true => self.map_unwritten(m, open, slot, io).await,
            false => self.map_for_write(m, slot).await,
        }
        let done = io.done.filter(|_| !going.waits);
        self.submit_dio(m, open, (slot, io), going.unwritten, done).await;
        if relocks {
            m.lock(open.i_rwsem, going.side).await;
        }
        if done.is_none() {
            m.run(Account::System, c.write_end).await;
        }
        m.unlock(open.i_rwsem, going.side).await;
        if let Some(done) = io.done.filter(|_| going.waits) {
            for _ in 0..=io.others {
                m.complete(done).await; // what the caller has yet to see
            }
        }
        m.run(Account::System, c.write_exit).await;
    }

    /// Submits a write and waits for it, unless its end completes `done`.
    async fn submit_dio<M: Machine>(
        &self,
        m: &M,
        open: &OpenFile,
        (slot, io): (u32, Io),
        unwritten: bool,
        done: Option<LockId>,
    ) {
        // What is left of unwritten blocks is zeroed (`iomap_dio_zero`).
        let bytes = if unwritten { io.pages() as u32 * BLOCK } else { io.bytes };
        let request = Request::write(bytes, Some(io.offset));
        if let Some(done) = done {
            open.submits(m.task());
            self.storage.submit(m, request, self.end_of_write(slot, unwritten, done)).await;
            return;
        }
        self.storage.io(m, request).await;
        if unwritten {
            self.convert_written(m, slot).await;
        }
        m.touch(open.dio_count, Access::Write);
    }

    /// Takes `i_rwsem` as a write needs it, and waits for what must not be under way.
    async fn lock_for_dio<M: Machine>(&self, m: &M, open: &OpenFile, slot: u32, io: Io) -> Going {
        let (rules, part) = (&self.io.rules, io.is_unaligned());
        let alone = part
            && match rules.ext4_dio_unaligned {
                DioUnaligned::Exclusive => true,
                DioUnaligned::AsyncWaits => io.done.is_some(),
                DioUnaligned::AsyncKeeps | DioUnaligned::Shared => false,
            };
        let mut side = if rules.dio_writes == DioWrites::Shared && !alone { Side::Read } else { Side::Write };
        m.lock(open.i_rwsem, side).await;
        self.look_for_overwrite(m, slot).await;
        let mut unwritten = open.unwritten.has(io);
        if side == Side::Read && unwritten && (part || rules.dio_unwritten == DioUnwritten::Exclusive) {
            m.unlock(open.i_rwsem, side).await;
            side = Side::Write;
            m.lock(open.i_rwsem, side).await;
            self.look_for_overwrite(m, slot).await;
            unwritten = open.unwritten.has(io);
        }
        let waits = alone || (part && unwritten && rules.ext4_dio_unaligned == DioUnaligned::Shared);
        if let Some(done) = io.done.filter(|_| waits) {
            if open.has_others(m.task()) {
                m.give_up("several tasks with an iodepth, of which direct writes of less than a block and others go to one file, need Linux 6.5 here");
            }
            m.wchan("inode_dio_wait");
            for _ in 0..io.others {
                m.wait_for(done).await;
            }
        }
        Going { side, unwritten, waits }
    }

    /// `ext4_overwrite_io`, where the answer changes what is locked.
    async fn look_for_overwrite<M: Machine>(&self, m: &M, slot: u32) {
        if self.io.rules.dio_writes != DioWrites::Exclusive {
            self.look_up_blocks(m, slot, 0).await;
        }
    }

    /// Whether the lock is given back while the device works: not by an asynchronous write of part of a block, nor where blocks change.
    fn relocks(&self, io: Io, unwritten: bool) -> bool {
        self.io.rules.dio_writes == DioWrites::Relocked && !unwritten && !(io.is_unaligned() && io.done.is_some())
    }

    /// `ext4_iomap_begin`: in 5.5 in a journal handle.
    async fn map_for_write<M: Machine>(&self, m: &M, slot: u32) {
        let c = &self.io.costs;
        if !self.io.rules.dio_handles || !self.journal.on {
            self.look_up_blocks(m, slot, c.write_map).await;
            return self.set_iomap(m, true).await;
        }
        let handle = self.journal.start(m, credits::EXTENT).await;
        m.run(Account::System, c.empty_handle).await;
        self.look_up_blocks(m, slot, c.write_map).await;
        self.journal.stop(m, handle, &[]).await;
        self.set_iomap(m, true).await;
    }

    /// `ext4_iomap_alloc` (before 5.5 `ext4_dio_get_block_unwritten_sync` and `_async`) over an unwritten extent.
    async fn map_unwritten<M: Machine>(&self, m: &M, open: &OpenFile, slot: u32, io: Io) {
        let c = &self.io.costs;
        open.unwritten.write(io);
        if self.io.rules.dio_split == DioSplit::AfterOnly {
            return self.look_up_blocks(m, slot, c.write_map).await;
        }
        let handle = self.journal.start(m, credits::EXTENT).await;
        if self.io.rules.dio_split == DioSplit::Before {
            self.change_extent(m, slot, (c.split, c.split_rest)).await;
            return self.stop(m, handle, slot, self.extent_leaf(slot).as_slice()).await;
        }
        m.run(Account::System, c.empty_handle).await;
        self.look_up_blocks(m, slot, c.write_map).await;
        self.journal.stop(m, handle, &[]).await;
    }

    /// `ext4_dio_write_end_io` of what was unwritten.
    async fn convert_written<M: Machine>(&self, m: &M, slot: u32) {
        let c = &self.io.costs;
        let handle = self.journal.start(m, credits::EXTENT).await;
        let splits = self.io.rules.dio_split != DioSplit::Before;
        // Both are done on one way through the tree (`ext4_convert_unwritten_extents_endio`).
        let split = if splits { c.split.saturating_sub(self.map.find()) } else { 0 };
        self.convert_unwritten(m, slot, handle, (split + c.convert, c.convert_rest)).await;
    }

    /// Where a write that nobody waits for ends: on iomap in a worker of its CPU (`iomap_dio_bio_end_io`, 5.5 and later, here with
    /// the shared lock), before in its interrupt (`dio_bio_end_aio` of a file without cached pages), or, if extents are to be converted,
    /// in the worker of `ext4-rsv-conversion` (`ext4_put_io_end_defer`).
    fn end_of_write(&self, slot: u32, unwritten: bool, done: LockId) -> End {
        match self.io.rules.dio_writes {
            DioWrites::Shared => {
                let slot = if unwritten { slot | UNWRITTEN } else { slot };
                End::Queue(self.io.ended.clone(), (slot, done))
            }
            DioWrites::Exclusive | DioWrites::Relocked if unwritten => {
                End::Queue(self.fsync.unwritten.clone(), (slot | UNRESERVED, done))
            }
            DioWrites::Exclusive | DioWrites::Relocked => End::Complete(done),
        }
    }

    /// The program of a CPU's `dio` worker (`iomap_dio_complete_work`).
    pub async fn dio_worker<M: Machine>(m: M, fs: Rc<Self>, cpu: CpuId) {
        m.at("dio worker");
        loop {
            let (slot, done) = fs.io.ended.next(&m, cpu).await;
            if slot & UNWRITTEN > 0 {
                fs.convert_written(&m, slot & !UNWRITTEN).await;
            }
            let open = fs.io.file(slot & !UNWRITTEN);
            m.touch(open.dio_count, Access::Write);
            m.run(Account::System, fs.io.costs.write_end).await;
            m.complete(done).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(block: u64) -> Io {
        Io { offset: block * u64::from(BLOCK), bytes: 512, direct: true, done: None, others: 0 }
    }

    #[test]
    fn runs_of_written_blocks_grow_together() {
        let file = Unwritten::all(10 * u64::from(BLOCK));
        for (block, runs) in [(0, 1), (2, 2), (1, 1), (9, 2), (5, 3), (5, 3)] {
            file.write(io(block));
            assert_eq!((file.runs.get(), file.has_leaf()), (runs, runs > 2));
        }
        assert_eq!([5, 6, 12].map(|block| file.has(io(block))), [false, true, false]);
    }
}
