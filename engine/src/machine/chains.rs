//! Why everybody waits: waiter, lock, holder, what that waits for, ... to the root, added up over time.
//!
//! Each lock that somebody waits for knows what stands in the way: what its holder does. When an instant is over at which that has
//! changed, the time since it changed last is added to its chain, once for everybody who waits. So the chains of a class add up to its waits, exactly. Chains are
//! nodes of a tree that grows from the reasons: a node is the one nearer to the root and one word more.

use super::lock::{ClassId, LockId, LockKind, Side};
use super::state::State;
use super::task::{Status, TaskId};
use super::time::Time;

/// What is at the end of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// The holder runs.
    Runs,
    /// It was given the lock and has not run since.
    Granted,
    /// It was woken for something else and waits for a CPU.
    Woken,
    /// It was taken off its CPU.
    Preempted,
    /// It sleeps until a timer rings.
    Timer,
    /// It sleeps until a device has done a request.
    Device,
    /// It sleeps until somebody completes something.
    Completion,
    /// It sleeps until another task wakes it.
    WakeUp,
    /// It sleeps for a lock, which was not counted as a wait.
    Lock,
    /// A device has the lock.
    InDevice,
    /// Readers have it.
    Readers,
    /// Nobody has it: who comes next is on the way.
    Nobody,
    /// Who took it has ended.
    Gone,
    /// It goes on for more than [`MOST`] locks.
    Farther,
}

impl Reason {
    const ALL: [(Self, &'static str); 14] = [
        (Self::Runs, "running"),
        (Self::Granted, "granted"),
        (Self::Woken, "woken"),
        (Self::Preempted, "preempted"),
        (Self::Timer, "timer"),
        (Self::Device, "device"),
        (Self::Completion, "completion"),
        (Self::WakeUp, "wake-up"),
        (Self::Lock, "lock"),
        (Self::InDevice, "held by device"),
        (Self::Readers, "readers"),
        (Self::Nobody, "nobody"),
        (Self::Gone, "gone"),
        (Self::Farther, "farther"),
    ];
}

/// The law of chains.
pub const ADD_UP: &str = "chains add up to waits";

/// Locks that a chain is followed for.
const MOST: u8 = 8;

/// Locks that a change is passed on to, one behind the other: only a deadlock has more.
const ROUND: u8 = u8::MAX;

const NONE: u32 = u32::MAX;

/// What a node adds to the chain nearer to the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Nothing else: it is the root.
    Root(Reason),
    /// The function that sleeps.
    Function(u16),
    /// What the task is doing.
    Site(u16),
    /// A lock's class, which somebody waits for on this side.
    Lock(ClassId, Side),
    /// A lock's class, whoever waits for it.
    Held(ClassId),
}

#[derive(Debug)]
struct Node {
    word: Word,
    nearer: u32,
    /// Locks in the chain.
    locks: u8,
    /// The first of those that begin here, and the next one with the same beginning.
    first: u32,
    next: u32,
    /// Time in this chain: of everybody who waited, or for how long anybody did.
    time: Time,
}

/// Those who wait for a lock on the same side at the same place.
#[derive(Debug)]
struct Group {
    site: u16,
    side: Side,
    waiting: u32,
    /// Their chain, if it is known.
    chain: u32,
}

/// A lock that somebody has waited for.
#[derive(Debug)]
struct Waited {
    /// How many wait for it now.
    waiting: u32,
    /// What stands in their way; until when their time is booked.
    held: u32,
    since: Time,
    /// It may be something else by now.
    stale: bool,
    /// The same with the lock's class, if it is known.
    class: u32,
    groups: Vec<Group>,
    /// Who of them holds locks that somebody waits for.
    blocking: Vec<TaskId>,
}

impl Default for Waited {
    fn default() -> Self {
        Self { waiting: 0, held: 0, since: 0, stale: false, class: NONE, groups: Vec::new(), blocking: Vec::new() }
    }
}

/// All chains of a run.
#[derive(Debug)]
pub struct Chains {
    on: bool,
    nodes: Vec<Node>,
    locks: Vec<Waited>,
    /// Those at which something has changed at this instant.
    stale: Vec<LockId>,
}

/// One lock of a chain, and what its holder is doing there; no site where nobody is known to have it.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Its class.
    pub class: ClassId,
    /// The side that is waited for.
    pub side: Side,
    /// What its holder is doing.
    pub site: Option<u16>,
}

/// What is at the end of a chain, and the function that sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Root {
    /// Why nobody goes on.
    pub reason: Reason,
    /// The function that sleeps, if it is known.
    pub function: Option<u16>,
}

impl Root {
    /// The reason's name in results.
    pub fn name(&self) -> &'static str {
        Reason::ALL[self.reason as usize].1
    }
}

/// A chain, from the waiter on, and the time in it.
#[derive(Clone, Debug)]
pub struct Chain {
    /// What the waiter is doing; nothing where it is about whoever has the first lock.
    pub waiter: Option<u16>,
    /// The locks.
    pub links: Vec<Link>,
    /// What is at the end.
    pub root: Root,
    /// The time of all who waited together; of a holder the time for which somebody waited for it.
    pub time: Time,
}

impl Chains {
    /// None yet; none ever unless `on`.
    pub fn new(on: bool) -> Self {
        let mut nodes = Vec::with_capacity(if on { 1024 } else { Reason::ALL.len() });
        for (reason, _) in Reason::ALL {
            let word = Word::Root(reason);
            nodes.push(Node { word, nearer: NONE, locks: 0, first: NONE, next: NONE, time: 0 });
        }
        Self { on, nodes, locks: Vec::new(), stale: Vec::new() }
    }

    /// Whether they are recorded.
    pub fn on(&self) -> bool {
        self.on
    }

    /// Something has changed about what stands in the way of those who wait for `lock`, which is seen when the instant is over.
    fn mark(&mut self, lock: LockId) {
        if !std::mem::replace(&mut self.locks[lock as usize].stale, true) {
            self.stale.push(lock);
        }
    }

    /// Whether anything has changed at this instant.
    #[inline]
    pub(super) fn are_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    fn grown(&mut self, nearer: u32, word: Word) -> u32 {
        let mut at = self.nodes[nearer as usize].first;
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.word == word {
                return at;
            }
            at = node.next;
        }
        self.grow(nearer, word)
    }

    #[cold]
    fn grow(&mut self, nearer: u32, word: Word) -> u32 {
        let at = self.nodes.len() as u32;
        let below = &mut self.nodes[nearer as usize];
        let locks = below.locks + u8::from(matches!(word, Word::Lock(..)));
        let next = std::mem::replace(&mut below.first, at);
        self.nodes.push(Node { word, nearer, locks, first: NONE, next, time: 0 });
        at
    }

    /// Whether anybody waits for `lock`.
    #[inline]
    fn is_waited_for(&self, lock: LockId) -> bool {
        self.locks.get(lock as usize).is_some_and(|waited| waited.waiting > 0)
    }

    /// Adds the time since that was done last to the chains of `lock`, which is of this class.
    fn book(&mut self, lock: LockId, class: ClassId, now: Time) {
        let waited = &mut self.locks[lock as usize];
        let span = now - std::mem::replace(&mut waited.since, now);
        if span == 0 {
            return;
        }
        let held = waited.held;
        if waited.class == NONE {
            self.locks[lock as usize].class = self.grown(held, Word::Held(class));
        }
        let anybody = self.locks[lock as usize].class;
        self.nodes[anybody as usize].time += span;
        for at in 0..self.locks[lock as usize].groups.len() {
            let &Group { site, side, waiting, chain } = &self.locks[lock as usize].groups[at];
            if waiting == 0 {
                continue;
            }
            let chain = if chain == NONE { self.name(lock, at, Word::Lock(class, side), site) } else { chain };
            self.nodes[chain as usize].time += Time::from(waiting) * span;
        }
    }

    /// Finds the chain of a group.
    fn name(&mut self, lock: LockId, group: usize, what: Word, site: u16) -> u32 {
        let held = self.locks[lock as usize].held;
        let waits = self.grown(held, what);
        let chain = self.grown(waits, Word::Site(site));
        self.locks[lock as usize].groups[group].chain = chain;
        chain
    }

    /// What stands in the way of those who wait for `lock` is `held` from now on.
    fn change(&mut self, lock: LockId, held: u32) {
        let waited = &mut self.locks[lock as usize];
        waited.held = held;
        waited.class = NONE;
        waited.groups.iter_mut().for_each(|group| group.chain = NONE);
    }

    /// One waits for `lock` who did not, or the other way round.
    fn count(&mut self, lock: LockId, site: u16, side: Side, one: i32) {
        let waited = &mut self.locks[lock as usize];
        waited.waiting = waited.waiting.wrapping_add_signed(one);
        let known = waited.groups.iter().position(|group| group.site == site && group.side == side);
        let at = known.unwrap_or_else(|| {
            waited.groups.push(Group { site, side, waiting: 0, chain: NONE });
            waited.groups.len() - 1
        });
        let group = &mut waited.groups[at];
        group.waiting = group.waiting.wrapping_add_signed(one);
    }

    /// Forgets all times up to now.
    pub(super) fn start_window(&mut self, now: Time) {
        self.nodes.iter_mut().for_each(|node| node.time = 0);
        self.locks.iter_mut().for_each(|waited| waited.since = now);
    }

    /// The chains of everybody who waited.
    pub fn waits(&self) -> impl Iterator<Item = Chain> + '_ {
        self.told(|node| matches!(node.word, Word::Site(_)))
    }

    /// The chains of whoever had a lock that somebody waited for.
    pub fn holds(&self) -> impl Iterator<Item = Chain> + '_ {
        self.told(|node| matches!(node.word, Word::Held(_)))
    }

    fn told(&self, wanted: impl Fn(&Node) -> bool + 'static) -> impl Iterator<Item = Chain> + '_ {
        let numbers = 0..self.nodes.len() as u32;
        numbers.filter_map(move |at| {
            let node = &self.nodes[at as usize];
            (node.time > 0 && wanted(node)).then(|| self.tell(at, node.time))
        })
    }

    /// The chain that ends with a node.
    fn tell(&self, mut at: u32, time: Time) -> Chain {
        let (mut waiter, mut links, mut function) = (None, Vec::<Link>::new(), None);
        loop {
            let node = &self.nodes[at as usize];
            match node.word {
                Word::Root(reason) => return Chain { waiter, links, root: Root { reason, function }, time },
                Word::Function(name) => function = Some(name),
                Word::Lock(class, side) => links.push(Link { class, side, site: None }),
                Word::Held(class) => links.push(Link { class, side: Side::Write, site: None }),
                Word::Site(site) => match links.last_mut() {
                    Some(link) => link.site = Some(site),
                    None => waiter = Some(site),
                },
            }
            at = node.nearer;
        }
    }
}

impl State {
    /// `task` begins to wait for `lock`.
    pub(super) fn begin_wait(&mut self, task: TaskId, lock: LockId, side: Side) {
        if self.chains.on {
            self.chain_begins(task, lock, side);
        } else {
            self.tasks[task as usize].waits.push((lock, self.now, side));
        }
    }

    /// `task` has `lock`, the last one it waited for.
    pub(super) fn end_wait(&mut self, task: TaskId, lock: LockId, side: Side) {
        if self.chains.on {
            self.chain_ends(task, lock, side);
        } else {
            self.tasks[task as usize].waits.pop();
        }
    }

    fn chain_begins(&mut self, task: TaskId, lock: LockId, side: Side) {
        if self.chains.locks.len() <= lock as usize {
            self.chains.locks.resize_with(self.locks.len(), Waited::default);
        }
        let side = self.side_of(lock, side);
        if self.chains.is_waited_for(lock) {
            self.chains.book(lock, self.locks[lock as usize].class, self.now);
        } else {
            self.chains.locks[lock as usize].since = self.now;
            self.chains.mark(lock);
            self.block(lock);
        }
        self.chains.count(lock, self.tasks[task as usize].site, side, 1);
        self.turn_to(task, |task, now| task.waits.push((lock, now, side)));
    }

    fn chain_ends(&mut self, task: TaskId, lock: LockId, side: Side) {
        self.chains.book(lock, self.locks[lock as usize].class, self.now);
        self.chains.count(lock, self.tasks[task as usize].site, self.side_of(lock, side), -1);
        self.turn_to(task, |task, _| {
            task.waits.pop();
        });
        if !self.chains.is_waited_for(lock) {
            self.unblock(lock);
        }
    }

    /// Changes what `task` waits for.
    fn turn_to(&mut self, task: TaskId, change: impl FnOnce(&mut super::task::Task, Time)) {
        let blocks = !self.tasks[task as usize].blocks.is_empty();
        if blocks {
            self.stand(task, false);
        }
        change(&mut self.tasks[task as usize], self.now);
        if blocks {
            self.stand(task, true);
            self.chain_of_task_changes(task);
        }
    }

    /// Those who wait for exclusive locks wait on one side.
    fn side_of(&self, lock: LockId, side: Side) -> Side {
        if self.locks[lock as usize].kind.shares() {
            side
        } else {
            Side::Write
        }
    }

    /// `lock`, which somebody waits for, is in the way of who waits for its holder.
    fn block(&mut self, lock: LockId) {
        let Some(holder) = self.locks[lock as usize].holder else { return };
        self.tasks[holder as usize].blocks.push(lock);
        if self.tasks[holder as usize].blocks.len() == 1 {
            self.stand(holder, true);
        }
    }

    /// `lock` is no longer, for its holder will have it no more or nobody waits for it.
    fn unblock(&mut self, lock: LockId) {
        let Some(holder) = self.locks[lock as usize].holder else { return };
        let blocks = &mut self.tasks[holder as usize].blocks;
        let before = blocks.len();
        blocks.retain(|&blocked| blocked != lock);
        if before > 0 && blocks.is_empty() {
            self.stand(holder, false);
        }
    }

    /// `task`, for which others wait, stands, or not, among those who wait for the lock it waits for.
    fn stand(&mut self, task: TaskId, there: bool) {
        let Some(lock) = self.tasks[task as usize].waits_for() else { return };
        let blocking = &mut self.chains.locks[lock as usize].blocking;
        if there {
            blocking.push(task);
        } else {
            blocking.retain(|&other| other != task);
        }
    }

    /// `lock` is about to lose its exclusive holder.
    #[inline]
    pub(super) fn chain_loses_holder(&mut self, lock: LockId) {
        if self.chains.is_waited_for(lock) {
            self.unblock(lock);
        }
    }

    /// `lock` has its exclusive holder.
    #[inline]
    pub(super) fn chain_has_holder(&mut self, lock: LockId) {
        if self.chains.is_waited_for(lock) {
            self.block(lock);
            self.chains.mark(lock);
        }
    }

    /// Something has changed about who has `lock`.
    #[inline]
    pub(super) fn chain_changes(&mut self, lock: LockId) {
        if self.chains.is_waited_for(lock) {
            self.chains.mark(lock);
        }
    }

    /// `task` does something else than before.
    #[inline]
    pub(super) fn chain_of_task_changes(&mut self, task: TaskId) {
        for &lock in &self.tasks[task as usize].blocks {
            self.chains.mark(lock);
        }
    }

    /// The instant is over: sees what stands in the way of those who wait from now on.
    pub(super) fn settle_chains(&mut self) {
        while let Some(lock) = self.chains.stale.pop() {
            self.chains.locks[lock as usize].stale = false;
            if self.chains.is_waited_for(lock) {
                self.look_again(lock, 0);
            }
        }
    }

    fn pass_on(&mut self, task: TaskId, passed: u8) {
        for at in 0..self.tasks[task as usize].blocks.len() {
            let lock = self.tasks[task as usize].blocks[at];
            self.look_again(lock, passed);
        }
    }

    /// Sees what stands in the way of those who wait for `lock`.
    fn look_again(&mut self, lock: LockId, passed: u8) {
        let held = self.in_the_way(lock);
        if held == self.chains.locks[lock as usize].held {
            return;
        }
        self.chains.book(lock, self.locks[lock as usize].class, self.now);
        self.chains.change(lock, held);
        if passed == ROUND {
            return;
        }
        for at in 0..self.chains.locks[lock as usize].blocking.len() {
            let task = self.chains.locks[lock as usize].blocking[at];
            if self.locks[lock as usize].holder != Some(task) {
                self.pass_on(task, passed + 1);
            }
        }
    }

    fn in_the_way(&mut self, lock: LockId) -> u32 {
        let l = &self.locks[lock as usize];
        let reason = match l.holder {
            Some(_) if l.held_by_device() => Reason::InDevice,
            Some(holder) => return self.doing(holder),
            None if l.readers > 0 => Reason::Readers,
            None => Reason::Nobody,
        };
        reason as u32
    }

    /// The chain of what `task` does: it sleeps or spins for another lock, or sleeps for something else, or waits for a CPU, or runs.
    fn doing(&mut self, id: TaskId) -> u32 {
        let task = &self.tasks[id as usize];
        let waits = task.status == Status::Sleeping || task.spinning;
        let nearer = match task.waits.last() {
            Some(&(lock, _, side)) if waits && self.locks[lock as usize].holder != Some(id) => {
                let held = self.chains.locks[lock as usize].held;
                let class = self.locks[lock as usize].class;
                let far = self.chains.nodes[held as usize].locks >= MOST;
                self.chains.grown(if far { Reason::Farther as u32 } else { held }, Word::Lock(class, side))
            }
            Some(&(lock, ..)) => self.reason(id, self.locks[lock as usize].holder == Some(id)),
            None => self.reason(id, false),
        };
        self.chains.grown(nearer, Word::Site(self.tasks[id as usize].site))
    }

    fn reason(&mut self, id: TaskId, has_its_lock: bool) -> u32 {
        let task = &self.tasks[id as usize];
        let reason = match task.status {
            Status::Running => Reason::Runs,
            Status::Dead => Reason::Gone,
            Status::Runnable | Status::Sleeping if has_its_lock => Reason::Granted,
            Status::Runnable | Status::Sleeping => task.reason,
        };
        match (task.status, task.function) {
            (Status::Sleeping, function @ 1..) => self.chains.grown(reason as u32, Word::Function(function)),
            _ => reason as u32,
        }
    }

    /// The time in the chains of each class that somebody waited for; nothing where they are not recorded.
    pub(super) fn chains_by_class(&self) -> Vec<u128> {
        let mut sums = vec![0; if self.chains.on { self.classes.len() } else { 0 }];
        self.chains.waits().for_each(|chain| sums[chain.links[0].class as usize] += u128::from(chain.time));
        sums
    }

    /// Brings all chains up to now.
    pub(super) fn book_chains(&mut self) {
        for lock in 0..self.chains.locks.len() as LockId {
            if self.chains.is_waited_for(lock) {
                self.chains.book(lock, self.locks[lock as usize].class, self.now);
            }
        }
    }
}

impl LockKind {
    /// Whether readers share such a lock.
    pub fn shares(self) -> bool {
        matches!(self, Self::Rwlock(_) | Self::Rwsem(_) | Self::PercpuRwsem | Self::BtrfsTree3(_))
    }
}
