//! Locks of ranges of a file (`fcntl(F_SETLK)`, `posix_lock_inode` of fs/locks.c). A file's list of them is under a spinlock that
//! lies in one line with the list's head: `flc_lock` since 4.0, before that `i_lock`; until 3.10 one of all files.
//!
//! Processes have ranges of their own in a file, and each looks at those of the others, or all of them ask for the whole file, and
//! who finds it locked waits (`F_SETLKW`). Threads of a process have their locks together, and do not wait for each other. A lock
//! that is there is changed or taken off by whichever of them comes, whose CPU fetches its lines: those of the lock, and of the list
//! of the CPU that put it there (`file_lock_list`, `fl_link_cpu`).
//!
//! Who waits for a range is in the list of the lock that he waits for, under one spinlock of all files (`blocked_lock_lock`,
//! `posix_lock_inode`). The unlock wakes all of them, of whom one gets the range, and the others wait again
//! (`locks_wake_up_blocks`). Since 5.0 a request that conflicts with one that waits is in that one's list, behind it
//! (`__locks_insert_block`), so that the unlock wakes one, and those behind it stay behind it. If it gets the range, they wait for
//! that (`locks_move_blocks`); if somebody else was faster, it wakes the next of them and waits again.
//! Who has got a range, or given it back, took that spinlock in 5.6-rc5 to see that nobody waits (`locks_delete_block`).
//!
//! Left out: the hash of those who wait, in which a deadlock is looked for (`posix_locks_deadlock`); locks that a `close` gives
//! back; `i_lock` as far as others take it (3.11 to 3.19).

use crate::filesystems::by_slot::BySlot;
use crate::kernel::vfs::{LockWakes, PosixLocks as Guard};
use crate::kernel::Rules;
use crate::waist::{Access, Account, ClassId, LineId, LockId, Machine, Side, TaskId, Time};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Its place in the list, its owner and its range are in a line each (0, 64 and 128 of `struct file_lock`, counted in 6.12).
const LOCK_LINES: u32 = 3;

/// Those who wait one behind the other, and the lines of their requests.
type Waiting = VecDeque<(TaskId, LineId)>;

/// What somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The process.
    pub owner: TaskId,
    /// To lock, or else to unlock.
    pub set: bool,
    /// The whole file, which is waited for, or a range that nobody else asks for.
    pub whole: bool,
}

/// The lines of a lock, and of the list of the CPU on which it was put there.
#[derive(Clone, Copy)]
struct Placed {
    lock: LineId,
    list: LineId,
}

/// `struct file_lock_context`.
struct Context {
    flc_lock: LockId,
    /// Whose locks are there, in the order of the list.
    held: RefCell<Vec<(u32, Placed)>>,
    /// Who has the whole file. Ranges do not conflict with it.
    whole: Cell<Option<TaskId>>,
    /// Who waits for what is held, and behind each who was woken and has not asked again.
    waiting: RefCell<Waiting>,
    behind: RefCell<Vec<(TaskId, Waiting)>>,
}

impl Context {
    /// Looks at so many of the list.
    fn compare<M: Machine>(&self, m: &M, entries: usize) {
        self.held.borrow().iter().take(entries).for_each(|(_, there)| m.touch(there.lock, Access::Read));
    }

    /// Whether somebody else has what is asked for.
    fn conflicts(&self, request: Request) -> bool {
        request.whole && request.set && self.whole.get().is_some_and(|owner| owner != request.owner)
    }

    fn waits(&self, task: TaskId) -> bool {
        let is_in = |waiting: &Waiting| waiting.iter().any(|&(waiter, _)| waiter == task);
        is_in(&self.waiting.borrow()) || self.behind.borrow().iter().any(|(_, waiting)| is_in(waiting))
    }

    /// Those behind a task that has been woken, which asks again.
    fn take_behind(&self, task: TaskId) -> Waiting {
        let mut behind = self.behind.borrow_mut();
        let place = behind.iter().position(|&(woken, _)| woken == task);
        place.map_or_else(Waiting::new, |place| behind.swap_remove(place).1)
    }

    /// The first is woken, whom the others stay behind.
    fn wake_first<M: Machine>(&self, m: &M, mut waiting: Waiting) {
        if let Some(first) = waiting.pop_front() {
            self.wake(m, first);
            if !waiting.is_empty() {
                self.behind.borrow_mut().push((first.0, waiting));
            }
        }
    }

    /// All are woken.
    fn wake_all<M: Machine>(&self, m: &M, waiting: Waiting) {
        waiting.into_iter().for_each(|one| self.wake(m, one));
    }

    fn wake<M: Machine>(&self, m: &M, (task, line): (TaskId, LineId)) {
        m.touch(line, Access::Write);
        m.wake(task);
    }
}

/// Those of a mount's files.
pub struct FileLocks {
    class: ClassId,
    /// That of all files, before 3.11.
    global: Option<LockId>,
    /// `blocked_lock_lock`, and whether it is taken even if nobody waits.
    blocked: OnceCell<LockId>,
    asks_blocked: bool,
    wakes: LockWakes,
    /// Under the spinlock.
    under: Time,
    contexts: BySlot<Rc<Context>>,
    /// By task: the allocator gives the same memory again.
    placed: BySlot<Placed>,
}

impl FileLocks {
    /// No file has one, by the rules of a kernel; what is done under the spinlock takes `under`.
    pub fn new<M: Machine>(m: &M, rules: &Rules, under: Time) -> Self {
        let class = m.class("vfs.flc_lock", "vfs.flc_lock");
        let global = (rules.posix_locks == Guard::Global).then(|| m.new_lock(class));
        let (asks_blocked, wakes) = (rules.asks_blocked, rules.lock_wakes);
        let (contexts, placed) = (BySlot::default(), BySlot::default());
        Self { class, global, blocked: OnceCell::new(), asks_blocked, wakes, under, contexts, placed }
    }

    fn blocked<M: Machine>(&self, m: &M) -> LockId {
        *self.blocked.get_or_init(|| m.new_lock(m.class("vfs.blocked_lock_lock", "vfs.blocked_lock_lock")))
    }

    /// `fcntl_setlk`, all of which takes `time`: tries until nobody else has what is asked for.
    pub async fn set_lock<M: Machine>(&self, m: &M, file: u32, request: Request, time: Time) {
        let context = self.context(m, file);
        m.run(Account::System, time.saturating_sub(self.under)).await;
        while !self.posix_lock_inode(m, &context, request, self.under.min(time)).await {
            m.wchan("fcntl_setlk");
            while context.waits(m.task()) {
                m.park().await;
            }
        }
        self.delete_block(m).await;
    }

    /// `posix_lock_inode`, which takes `time` under the spinlock: the lock comes, or the one that is there goes. Returns whether it did,
    /// or the request waits.
    async fn posix_lock_inode<M: Machine>(&self, m: &M, context: &Context, request: Request, time: Time) -> bool {
        m.lock(context.flc_lock, Side::Write).await;
        m.touch_beside(context.flc_lock, Access::Write);
        let conflicts = context.conflicts(request);
        if conflicts {
            context.compare(m, usize::MAX);
            self.insert_block(m, context).await;
        } else {
            self.change(m, context, request);
            if request.whole {
                context.whole.set(request.set.then_some(request.owner));
            }
            self.move_blocks(m, context).await;
        }
        m.run(Account::System, time).await;
        if !request.set {
            self.wake_up_blocks(m, context).await;
        }
        m.unlock(context.flc_lock, Side::Write).await;
        !conflicts
    }

    /// The list of locks changes.
    fn change<M: Machine>(&self, m: &M, context: &Context, Request { owner, set, .. }: Request) {
        let own = context.held.borrow().iter().position(|&(by, _)| by == owner);
        match own {
            Some(at) if set => {
                context.compare(m, usize::MAX);
                m.touch(context.held.borrow()[at].1.lock, Access::Write);
            }
            Some(at) => {
                context.compare(m, at);
                let (_, there) = context.held.borrow_mut().remove(at);
                m.touch(there.lock, Access::Write);
                m.touch(there.list, Access::Atomic);
            }
            None => {
                context.compare(m, usize::MAX);
                if set {
                    self.put(m, context, owner);
                }
            }
        }
    }

    /// `__locks_insert_block`: who waits again wakes the one behind him, and goes by all those that wait (since 5.0).
    async fn insert_block<M: Machine>(&self, m: &M, context: &Context) {
        let (blocked, line) = (self.blocked(m), self.lines(m).lock);
        m.lock(blocked, Side::Write).await;
        context.wake_first(m, context.take_behind(m.task()));
        if self.wakes == LockWakes::One {
            context.waiting.borrow().iter().for_each(|&(_, line)| m.touch(line, Access::Read));
        }
        m.touch(line, Access::Write);
        context.waiting.borrow_mut().push_back((m.task(), line));
        m.settle().await;
        m.unlock(blocked, Side::Write).await;
    }

    /// `locks_move_blocks`: those behind the task wait for the lock that it has got.
    async fn move_blocks<M: Machine>(&self, m: &M, context: &Context) {
        let behind = context.take_behind(m.task());
        if behind.is_empty() {
            return;
        }
        m.lock(self.blocked(m), Side::Write).await;
        context.waiting.borrow_mut().extend(behind);
        m.unlock(self.blocked(m), Side::Write).await;
    }

    /// `locks_wake_up_blocks` of the lock that goes.
    async fn wake_up_blocks<M: Machine>(&self, m: &M, context: &Context) {
        if context.waiting.borrow().is_empty() {
            return;
        }
        m.lock(self.blocked(m), Side::Write).await;
        let waiting = context.waiting.take();
        match self.wakes {
            LockWakes::All => context.wake_all(m, waiting),
            LockWakes::One => context.wake_first(m, waiting),
        }
        m.settle().await;
        m.unlock(self.blocked(m), Side::Write).await;
    }

    /// `locks_delete_block`: the request is in nobody's list.
    async fn delete_block<M: Machine>(&self, m: &M) {
        if self.asks_blocked {
            m.lock(self.blocked(m), Side::Write).await;
            m.unlock(self.blocked(m), Side::Write).await;
        }
    }

    fn context<M: Machine>(&self, m: &M, file: u32) -> Rc<Context> {
        let flc_lock = || self.global.unwrap_or_else(|| m.new_lock(self.class));
        let new = || Context {
            flc_lock: flc_lock(),
            held: RefCell::default(),
            whole: Cell::default(),
            waiting: RefCell::default(),
            behind: RefCell::default(),
        };
        self.contexts.get_or_make(file, || Rc::new(new()))
    }

    fn put<M: Machine>(&self, m: &M, context: &Context, owner: u32) {
        let new = self.lines(m);
        m.touch(new.lock, Access::Write);
        m.touch(new.list, Access::Atomic);
        context.held.borrow_mut().push((owner, new));
    }

    /// Of a request of this task.
    fn lines<M: Machine>(&self, m: &M) -> Placed {
        self.placed.get_or_make(m.task(), || Placed {
            lock: m.new_line("vfs.file_lock entries", LOCK_LINES),
            list: m.new_line("vfs.file_lock entries", 1),
        })
    }
}
