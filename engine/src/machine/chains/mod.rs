//! Why everybody waits: waiter, lock, holder, what that waits for, ... to the root, added up over time.
//!
//! Each lock that somebody waits for knows what stands in the way: what its holder does. When an instant is over at which that has
//! changed, the time since it changed last is added to its chain, once for everybody who waits. So the chains of a class add up to
//! its waits, exactly. Chains are nodes of a tree that grows from the reasons: a node is the one nearer to the root and one word
//! more. `waiting` keeps who waits for whom, `settling` sees what stands in the way when an instant is over, `sleeping` adds up
//! sleeps for which no lock is the cause, `told` reads it all back.

mod settling;
mod sleeping;
mod told;
mod waiting;

pub use told::{Chain, Link, Root};

use crate::waist::time::Time;
use crate::waist::{ClassId, LockId, Side, TaskId};

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

/// Locks that a change is passed on to, one behind the other, and tasks that a deadlock is looked for among.
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
    /// Readers that were given it and have not run since.
    given: Vec<TaskId>,
    /// Who of them holds locks that somebody waits for.
    blocking: Vec<TaskId>,
}

impl Default for Waited {
    fn default() -> Self {
        Self {
            waiting: 0,
            held: 0,
            since: 0,
            stale: false,
            class: NONE,
            groups: Vec::new(),
            given: Vec::new(),
            blocking: Vec::new(),
        }
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
    pub(super) fn is_waited_for(&self, lock: LockId) -> bool {
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
}
