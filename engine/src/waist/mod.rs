//! The narrow waist between programs and machines.
//!
//! A program says only this much: run for a time, touch a line, lock, unlock, wait, wake, sleep, spawn, submit I/O, mark an
//! operation. It neither knows nor cares which machine runs it, so any machine that implements [`Machine`] can run the
//! very same programs.

pub mod time;
pub mod words;

use rand_xoshiro::Xoshiro256PlusPlus;
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;
pub use time::Time;
pub use words::*;

/// A machine before it runs: the place to make locks, lines and devices, and to start the first tasks.
pub trait Host {
    /// The handle that its programs get.
    type Handle: Machine;
    /// Makes locks, lines and the like before any task runs. The handle has no task: it can only make things.
    fn setup<T>(&self, build: impl FnOnce(&Self::Handle) -> T) -> T;
    /// Starts a task.
    fn spawn<P, F>(&mut self, placement: Placement, kind: SpawnKind, program: P) -> TaskId
    where
        P: FnOnce(Self::Handle) -> F,
        F: Future<Output = ()> + 'static;
    /// Offers somebody to ask at the end of the run whether what the programs built is right. Whether it will.
    fn watch(&mut self, _: impl FnOnce() -> Rc<dyn Witness>) -> bool {
        false
    }
}

/// Who can tell at the end of a run whether what the programs built is right.
pub trait Witness {
    /// From now on no operation begins.
    fn close(&self);
    /// What was begun and has not ended, also in the background, if anything.
    fn under_way(&self) -> Option<String>;
    /// What is wrong, if anything. Everything is at rest.
    fn verdict(&self) -> Result<(), String>;
}

/// What a program can ask of a machine. A value of an implementing type is the handle of one task.
pub trait Machine: Clone + 'static {
    /// This task's number.
    fn task(&self) -> TaskId;
    /// The CPU it runs on now.
    fn cpu(&self) -> CpuId;
    /// Number of CPUs.
    fn cpus(&self) -> CpuId;
    /// The clock.
    fn now(&self) -> Time;
    /// Uses CPU time.
    fn run(&self, account: Account, time: Time) -> impl Future<Output = ()>;
    /// Uses user time and then kernel time, `count` times over: a program whose page faults and calls are spread over it.
    fn run_turns(&self, count: u64, user: Time, kernel: Time) -> impl Future<Output = ()>;
    /// Accesses a line (or a group of lines) at once; what it costs is owed and paid with the next run.
    fn touch(&self, line: LineId, access: Access);
    /// The same of what lies in the cache line of a lock's word.
    fn touch_beside(&self, lock: LockId, access: Access);
    /// When all stores that it has made are done: until then others see what was there before. A machine without store buffers says now.
    fn stored(&self) -> Time {
        self.now()
    }
    /// Pays what it owes if it has queued for a line behind others: those behind it take the line away before it comes to it again.
    fn settle(&self) -> impl Future<Output = ()>;
    /// Pays all that it owes: the lines that it has touched are there before it goes on.
    fn pay(&self) -> impl Future<Output = ()> {
        self.run(Account::System, 0)
    }

    /// A lock class: `name` for the statistics, `role` finds the lock type in the kernel profile.
    fn class(&self, name: &str, role: &str) -> ClassId;
    /// A new free lock.
    fn new_lock(&self, class: ClassId) -> LockId;
    /// The same of one that hardly anybody takes, as most use what lies in its line. It is never given back.
    fn new_seldom_lock(&self, class: ClassId) -> SeldomId {
        self.new_lock(class)
    }
    /// Accesses what lies in its line, as [`Machine::touch_beside`] does.
    fn touch_seldom(&self, lock: SeldomId, access: Access) {
        self.touch_beside(lock, access);
    }
    /// The lock, for who takes it.
    fn seldom_lock(&self, lock: SeldomId) -> LockId {
        lock
    }
    /// Gives back a free lock for reuse.
    fn drop_lock(&self, lock: LockId);
    /// `span` neighbouring cache lines that are used together, for which results have this name.
    fn new_line(&self, name: &'static str, span: u32) -> LineId;
    /// A block of a structure with these lines, none of which is in another: made just now, or last used so many bytes ago.
    fn new_block(&self, lines: Range<LineId>, ago: Option<u64>) -> CachedId;
    /// Uses so many bytes of a block. If more other bytes than a cache holds were used there since its last use, its lines are in
    /// the last-level cache or in memory. Returns whether memory had it.
    fn use_block(&self, block: CachedId, bytes: u32) -> bool;
    /// Uses more of a block, without lines of its own: `chain` cache lines each of which says where the next one is, and `lines` in any
    /// order. They cost something if the core did not have them at the last [`Machine::use_block`].
    fn fetch_block(&self, block: CachedId, chain: u32, lines: u32);
    /// Copies so many bytes of a block from end to end. They cost something if memory had them at the last [`Machine::use_block`];
    /// from the last-level cache they come as fast as they are copied.
    fn stream_block(&self, block: CachedId, bytes: u32);
    /// What a block of at most 256 cache lines holds, which tasks go through under a lock.
    fn new_contents(&self) -> ContentsId;
    /// Goes through these lines of it, together: those that other CPUs have changed since this one was there are fetched.
    fn touch_contents(&self, contents: ContentsId, lines: Range<u32>, access: Access);
    /// A new completion (wait until somebody says so).
    fn new_completion(&self) -> LockId;
    /// A pool of workers, which wait in [`Machine::next_work`].
    fn new_pool(&self) -> LockId;
    /// A completion whose completing is a piece of work for a pool, of which so many are done at a time; or it `is_one` piece, which is
    /// queued again and again, and done by one worker at a time.
    fn new_work(&self, pool: LockId, most: u32, is_one: bool) -> LockId;
    /// For a worker of the pool, who has done what he did: what he does next.
    fn next_work(&self, pool: LockId) -> impl Future<Output = LockId>;
    /// Gives back a completion for reuse; nobody may wait for it.
    fn drop_completion(&self, completion: LockId);
    /// Acquires a lock; waits by the lock's own rules.
    fn lock(&self, lock: LockId, side: Side) -> impl Future<Output = ()>;
    /// Acquires a lock if that needs no waiting.
    fn try_lock(&self, lock: LockId, side: Side) -> bool;
    /// Acquires a lock if that needs no sleep: btrfs tree locks of generations 2 and 3 wait for holders that spin, others for nobody.
    fn try_lock_spinning(&self, lock: LockId, side: Side) -> impl Future<Output = bool>;
    /// Releases a lock; semaphores may be released by another task than took them.
    fn unlock(&self, lock: LockId, side: Side) -> impl Future<Output = ()>;
    /// Changes how this task holds a lock; only btrfs tree locks of generations 2 and 3 have modes, others ignore it.
    fn convert(&self, lock: LockId, side: Side, mode: Mode) -> impl Future<Output = ()>;
    /// Waits for a completion.
    fn wait_for(&self, completion: LockId) -> impl Future<Output = ()>;
    /// The same for the end of I/O, which counts as waiting for I/O (`wait_for_completion_io`, `io_schedule` in a loop).
    fn wait_for_io(&self, completion: LockId) -> impl Future<Output = ()> {
        async move {
            self.io_schedule(true);
            self.wait_for(completion).await;
            self.io_schedule(false);
        }
    }
    /// Completes a completion: one waiter may go on.
    fn complete(&self, completion: LockId) -> impl Future<Output = ()>;

    /// A new device.
    fn new_device(&self, is: Hardware) -> DeviceId;
    /// Submits a request, whose completion interrupt does `then`. The task goes on at once.
    fn submit(&self, device: DeviceId, io: Io, then: Then);
    /// Adds a request to the task's plug, which holds it until it is flushed (`blk_add_rq_to_plug`): by [`Machine::flush_plug`], or as the
    /// task sleeps.
    fn submit_plugged(&self, device: DeviceId, io: Io, then: Then);
    /// Makes a request part of its neighbour, which is so many places before the last one that the task's plug holds.
    fn join_plugged(&self, before: usize, io: Io, then: Then);
    /// The same of a wake-up of who serves requests.
    fn wake_plugged(&self, task: TaskId);
    /// The same of work for a pool.
    fn queue_plugged(&self, work: LockId);
    /// Lets go of what the task's plug holds (`blk_finish_plug`).
    fn flush_plug(&self);
    /// How often the plug of a task was flushed.
    fn plug_flushed(&self, task: TaskId) -> u64;
    /// Whether somebody holds a lock, for who has looked at what lies beside its word.
    fn is_locked(&self, lock: LockId) -> bool;
    /// From now on a device holds this semaphore or bit, which the task has taken; who learns that the device is done unlocks it. Says no,
    /// and changes nothing, if it is a lock that only its owner can release, or a split one.
    fn hand_to_device(&self, lock: LockId) -> bool;

    /// Sleeps without using a CPU.
    fn sleep(&self, time: Time) -> impl Future<Output = ()>;
    /// Sleeps until woken by [`Machine::wake`] or [`Machine::wake_at_tick`]; an earlier wake-up is not lost.
    fn park(&self) -> impl Future<Output = ()>;
    /// The same for I/O (`io_schedule`).
    fn park_for_io(&self) -> impl Future<Output = ()> {
        async {
            self.io_schedule(true);
            self.park().await;
            self.io_schedule(false);
        }
    }
    /// The same for a worker of its CPU's pool that is done with its work. A wake-up means more work: it waits until no other worker
    /// of the CPU is at work.
    fn rest(&self) -> impl Future<Output = ()>;
    /// Wakes a task at once, and stops its timer.
    fn wake(&self, task: TaskId);
    /// Arms the timer of a task, which wakes it, for so many jiffies (`mod_timer`). An armed timer is moved. Returns when it
    /// rings: at the second tick from now for one jiffy, since it is never early (the rule `time.wheel`).
    fn wake_at_tick(&self, task: TaskId, ticks: u64) -> Time;
    /// Begins another program (`execve`): the scheduler may move the task to an idler CPU first (`sched_exec`).
    fn exec(&self) -> impl Future<Output = ()>;
    /// The process is about to end (`do_exit`): called before whoever waits for its end is woken.
    fn exiting(&self);
    /// From now on there is RCU: this is its thread, and of each CPU `ksoftirqd` with the completion that it waits for.
    fn start_rcu(&self, thread: TaskId, ksoftirqds: &[(TaskId, LockId)]);
    /// Queues so many callbacks, which take so much time together, to be invoked on this CPU after a grace period. Nothing happens
    /// where there is no RCU.
    fn call_rcu(&self, callbacks: u64, time: Time);
    /// From now on each CPU keeps stacks of processes that have ended. Others are for its worker, who waits for one of these and is
    /// woken by a callback that takes so long.
    fn keep_stacks(&self, workers: &[TaskId], callback: Time);
    /// How many stacks the worker of this CPU is to free now.
    fn stacks_to_free(&self) -> u64;
    /// A step of RCU's thread; answers what it asks.
    fn grace_period(&self, step: GracePeriod) -> bool;
    /// How long the next round of RCU's softirq takes, for `ksoftirqd` of this CPU, if there is something to do.
    fn next_softirq(&self) -> Option<Time>;
    /// Gives way if the scheduler wants the CPU.
    fn cond_resched(&self) -> impl Future<Output = ()>;
    /// The same, if the kernel is preempted voluntarily.
    fn might_sleep(&self) -> impl Future<Output = ()>;
    /// A system call is about to return: the task gives way if the scheduler wants the CPU (`exit_to_user_mode_loop`).
    fn exit_to_user_mode(&self) -> impl Future<Output = ()>;
    /// Gives this task a nice level, from -20 (the most CPU time) to 19; tasks that it starts have it too.
    fn set_nice(&self, nice: i32);
    /// Starts a new task.
    fn spawn<P, F>(&self, placement: Placement, kind: SpawnKind, program: P) -> TaskId
    where
        P: FnOnce(Self) -> F,
        F: Future<Output = ()> + 'static;

    /// Names what the task is doing, for lock waits by site; it does it at a pace of its own.
    fn at(&self, site: &'static str);
    /// An exception interrupts what the task is doing, and goes on at its pace: lock waits are told by this site until it is over.
    fn exception(&self, site: &'static str);
    /// It is over.
    fn return_from_exception(&self);
    /// Whether the task, where it sleeps from now on, waits for I/O (`in_iowait`, set by `io_schedule_prepare`): its CPU idles less deeply
    /// (the rule `idle.io_waiters`).
    fn io_schedule(&self, begins: bool);
    /// Names the function in which the task sleeps next (the kernel's `wchan`), for chains of waits.
    fn wchan(&self, function: &'static str);
    /// Uses so many bytes of the program's own memory in user mode, which drive others out of the caches; a call has ended.
    fn use_memory(&self, bytes: u64);
    /// Runs so many bytes of the program's code: memory, whose branches drive others out of the core's front end, too.
    fn use_code(&self, bytes: u64);
    /// An operation begins now.
    fn begin(&self);
    /// The operation called `name` ends; `counted` ones make up the throughput.
    fn end(&self, name: &'static str, counted: bool);
    /// What began or was due at `since` begins only now: a delay called `name`.
    fn delayed(&self, name: &'static str, since: Time);
    /// So many bytes of file data went from or to the program.
    fn moved(&self, bytes: u64);
    /// The program cannot go on: the run ends and says why.
    fn give_up(&self, reason: &str);
    /// The random stream of this run called `name`.
    fn stream(&self, name: &str) -> Xoshiro256PlusPlus;
}
