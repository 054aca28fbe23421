//! fio's jobs: each task reads and writes blocks of a file, at random places or one after the other, in a file of all or one each.

use super::draw::{chance, Choice, Places};
use crate::filesystems::{File, Filesystem, Io, LaidOut, Written};
use crate::spec::WorkloadSpec;
use crate::waist::time::from_ns;
use crate::waist::{Account, Machine, Time};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::rc::Rc;

/// What all jobs do.
#[derive(Clone, Copy, Debug)]
pub struct Jobs {
    /// What a file is like.
    pub file: LaidOut,
    /// Share of a file that was written before; its task goes on behind that.
    pub written: f64,
    /// Bytes of a request.
    pub block: u32,
    /// Requests bypass the page cache.
    pub direct: bool,
    /// A file each.
    pub own_file: bool,
    /// Share of requests that read.
    pub reads: f64,
    /// The first so many tasks only read and all others only write, in place of the share.
    pub readers: Option<u32>,
    /// Each task syncs its file after so many writes; 0 is never.
    pub fsync: u32,
    /// The same by `fdatasync`.
    pub fdatasync: u32,
    /// The file is open with `O_SYNC`: a write ends with an fsync of its range (`generic_write_sync`).
    pub sync: bool,
    /// Somebody watches the directory of the files.
    pub watched: bool,
    /// Requests that a task has under way before it waits for one; 1 waits within the call.
    pub iodepth: u32,
    /// Which blocks a task takes.
    pub places: Places,
    /// Which of all where they are random.
    pub choice: Choice,
    /// User CPU time a request.
    pub user: Time,
}

impl Jobs {
    /// From a workload's parameters; `speed` multiplies CPU times. The error names the parameter.
    pub fn of(w: &WorkloadSpec, speed: f64) -> Result<Self, String> {
        let jobs = Self {
            file: LaidOut {
                bytes: w.number("size") as u64,
                extents: w.number("extents") as u64,
                cached: w.number("cached") > 0.0,
                read: w.number("cached") > 0.0 && w.number("read_before") > 0.0,
                unwritten: w.given("unwritten").is_some_and(|unwritten| unwritten > 0.0),
                in_order: w.word("places") == "sequential",
                block: w.number("block_size") as u32,
                written: None,
            },
            written: w.given("written").unwrap_or(0.0),
            block: w.number("block_size") as u32,
            direct: w.number("direct") > 0.0,
            own_file: w.word("files") == "per-task",
            reads: w.number("reads"),
            readers: w.given("readers").map(|n| n as u32),
            fsync: w.number("fsync") as u32,
            fdatasync: w.number("fdatasync") as u32,
            sync: w.number("sync") > 0.0,
            watched: w.number("watched") > 0.0,
            iodepth: w.number("iodepth") as u32,
            places: Places::named(w.word("places")).map_err(|e| format!("workload.params.places: {e}"))?,
            choice: Choice::of(w)?,
            user: from_ns(w.number("user_ns") * speed),
        };
        if jobs.block == 0 || jobs.file.bytes < u64::from(jobs.block) {
            return Err("workload.params.size: must hold a block of workload.params.block_size".into());
        }
        if jobs.sync && jobs.iodepth > 1 {
            return Err("workload.params.sync: needs an iodepth of 1".into());
        }
        if jobs.iodepth == 0 || (jobs.iodepth > 1 && !jobs.direct) {
            return Err("workload.params.iodepth: must be 1, or more with direct I/O".into());
        }
        Ok(jobs)
    }

    /// Share of a task's requests that read.
    fn reads_of(&self, task: u32) -> f64 {
        match self.readers {
            Some(readers) => f64::from(u8::from(task < readers)),
            None => self.reads,
        }
    }

    /// The same, with so many files, each of them begun.
    pub fn of_files(mut self, files: u32) -> Self {
        if self.written > 0.0 {
            let blocks = (self.blocks() as f64 * self.written) as u64;
            self.file.written = Some(Written { bytes: blocks * u64::from(self.block), files, block: self.block });
        }
        self
    }

    fn blocks(&self) -> u64 {
        self.file.bytes / u64::from(self.block)
    }

    /// The block of a task's next request, of which there were so many before.
    fn next_block(&self, random: &mut Xoshiro256PlusPlus, task: u32, requests: u64) -> u64 {
        let blocks = self.blocks();
        match self.places {
            Places::Random => spread(self.choice, self.choice.pick(random, blocks), blocks),
            Places::OwnBlock => u64::from(task) % blocks,
            Places::Sequential => (self.file.written.map_or(0, |w| w.bytes / u64::from(w.block)) + requests) % blocks,
        }
    }
}

/// Reads and writes for ever.
pub async fn run<M: Machine, F: Filesystem<M>>(m: M, fs: Rc<F>, file: File, jobs: Jobs, task: u32) {
    let mut random = m.stream(&format!("task {task}"));
    let reads = jobs.reads_of(task);
    let done = (jobs.iodepth > 1).then(|| m.new_completion());
    let (mut under_way, mut writes, mut requests) = (0, 0, 0);
    loop {
        let offset = jobs.next_block(&mut random, task, requests) * u64::from(jobs.block);
        requests += 1;
        let io = Io { offset, bytes: jobs.block, direct: jobs.direct, done, others: under_way };
        let is_read = reads >= 1.0 || chance(&mut random, reads);
        m.run(Account::User, jobs.user).await;
        m.begin();
        if is_read {
            fs.read_at(&m, &file, io).await;
        } else {
            fs.write_at(&m, &file, io).await;
            if jobs.sync {
                fs.write_sync(&m, &file, (offset, jobs.block)).await;
            }
        }
        if let Some(done) = done {
            under_way += 1;
            if under_way == jobs.iodepth {
                m.wait_for(done).await;
                under_way -= 1;
            }
        }
        m.end(if is_read { "read" } else { "write" }, true);
        if !is_read {
            writes += 1;
            for (call, every) in [("fsync", jobs.fsync), ("fdatasync", jobs.fdatasync)] {
                if every > 0 && writes % every == 0 {
                    m.begin();
                    fs.fsync(&m, &file, call == "fdatasync").await;
                    m.end(call, false);
                }
            }
        }
    }
}

/// The block that stands for what was chosen: with Zipf's law the popular ones are spread over the file, as fio does with a hash.
fn spread(choice: Choice, chosen: u64, blocks: u64) -> u64 {
    match choice {
        Choice::Random => chosen,
        Choice::Zipf(_) => chosen.wrapping_mul(0x61c8_8646_80b5_83eb) % blocks, // GOLDEN_RATIO_64
    }
}
