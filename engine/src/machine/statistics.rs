//! What is counted within the measured window: of the locks of one class, and of wake-ups.
//!
//! Nothing here allocates while a run goes on, but the first time that something happens or takes so long.

use super::lock::LockKind;
use super::seldom::Empty;
use super::task::TaskKind;
use crate::hdr::Tally;
use crate::kernel::is_for_io;
use crate::waist::time::Time;
use crate::waist::ClassId;

/// Number of [`TaskKind`]s.
pub const KINDS: usize = TaskKind::ALL.len();

/// Acquisitions by one kind of task at one place in the programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlaceStats {
    /// All of them.
    pub acquired: u64,
    /// Those that had to wait.
    pub contended: u64,
    /// Those of them that came while somebody had the lock; the others met only who was about to.
    pub found_held: u64,
    /// Time waited.
    pub wait_total: Time,
}

impl std::iter::Sum for PlaceStats {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self {
            acquired: a.acquired + b.acquired,
            contended: a.contended + b.contended,
            found_held: a.found_held + b.found_held,
            wait_total: a.wait_total + b.wait_total,
        })
    }
}

/// The time of exclusive holds, by what the holder did meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub struct HoldTimes {
    /// It was on a CPU.
    pub running: Time,
    /// It had been granted the lock and waited for a CPU that others used.
    pub granted_behind: Time,
    /// The same, for a CPU that was idle and on its way out of that.
    pub granted_idle: Time,
    /// It had run with the lock, and waited for a CPU.
    pub preempted: Time,
    /// It slept.
    pub blocked: Time,
    /// A device had the lock.
    pub device: Time,
}

impl HoldTimes {
    /// All of it.
    pub fn total(&self) -> Time {
        self.running + self.runnable() + self.blocked + self.device
    }

    /// What the holder waited for a CPU.
    pub fn runnable(&self) -> Time {
        self.granted_behind + self.granted_idle + self.preempted
    }
}

impl Empty for HoldTimes {
    const EMPTY: &'static Self =
        &Self { running: 0, granted_behind: 0, granted_idle: 0, preempted: 0, blocked: 0, device: 0 };
}

impl std::ops::AddAssign<&Self> for HoldTimes {
    #[inline]
    fn add_assign(&mut self, other: &Self) {
        self.running += other.running;
        self.granted_behind += other.granted_behind;
        self.granted_idle += other.granted_idle;
        self.preempted += other.preempted;
        self.blocked += other.blocked;
        self.device += other.device;
    }
}

/// Statistics of all locks of one class within the measured window.
#[derive(Debug)]
pub struct ClassStats {
    /// Name, for example `xfs.AGI`.
    pub name: String,
    /// Role in the kernel profile, for example `xfs.buffer`.
    pub role: String,
    /// Type.
    pub kind: LockKind,
    /// Who sleeps for one waits for I/O.
    pub for_io: bool,
    /// Locks of this class.
    pub instances: u64,
    /// Acquisitions and waits, by place and kind of task: see [`ClassStats::by_site`] and [`ClassStats::by_kind`].
    places: Vec<PlaceStats>,
    /// Longest wait.
    pub wait_max: Time,
    /// All waits.
    pub waits: Tally,
    /// Exclusive holds, by the kind of the holder.
    pub held: [HoldTimes; KINDS],
    /// The same of holds during which somebody waited, of all kinds.
    pub held_contended: HoldTimes,
    /// Longest exclusive hold.
    pub hold_max: Time,
    /// All of them, where they are asked for.
    pub holds: Option<Tally>,
    /// Acquisitions that share it.
    pub acquired_shared: u64,
    /// Time held shared, of all who do together.
    pub hold_shared_total: Time,
    /// Time during which at least one holds it shared.
    pub held_shared: Time,
    /// Waits that ended without sleeping.
    pub resolved_spinning: u64,
    /// Waits that slept.
    pub slept: u64,
    /// Times the releaser handed ownership over.
    pub handoffs: u64,
    /// Times a newcomer took the lock while others were queued.
    pub steals: u64,
    /// Wake-ups by releasers.
    pub wakeups: u64,
    /// From grant to the new owner running.
    pub grant_to_run: Time,
    /// The same, each, by the kind of the new owner.
    pub grants: [Tally; KINDS],
    /// Waits that the window's end cut, and the longest of them.
    pub still_waiting: (u64, Time),
    /// The classes of the locks inside its locks, by their last name.
    pub(super) inside: Vec<(&'static str, ClassId)>,
    waiting: u64,
    waiting_since: Time,
    waiting_integral: u128,
}

impl ClassStats {
    /// The same class, with each exclusive hold recorded if `asked`.
    pub fn recording_holds(self, asked: bool) -> Self {
        Self { holds: asked.then(|| Tally::new(2)), ..self }
    }

    /// A class without any event yet.
    pub fn new(name: &str, role: &str, kind: LockKind) -> Self {
        Self {
            name: name.into(),
            role: role.into(),
            kind,
            for_io: is_for_io(role),
            instances: 0,
            places: Vec::new(),
            wait_max: 0,
            waits: Tally::new(2),
            held: Default::default(),
            held_contended: HoldTimes::default(),
            hold_max: 0,
            holds: None,
            acquired_shared: 0,
            hold_shared_total: 0,
            held_shared: 0,
            resolved_spinning: 0,
            slept: 0,
            handoffs: 0,
            steals: 0,
            wakeups: 0,
            grant_to_run: 0,
            grants: std::array::from_fn(|_| Tally::new(2)),
            still_waiting: (0, 0),
            inside: Vec::new(),
            waiting: 0,
            waiting_since: 0,
            waiting_integral: 0,
        }
    }

    /// Starts the measured window: forgets all events, keeps who waits now.
    pub fn reset(&mut self, now: Time) {
        let fresh = Self::new("", "", self.kind);
        let (name, role) = (std::mem::take(&mut self.name), std::mem::take(&mut self.role));
        let Self { for_io, instances, waiting, .. } = *self;
        let holds = self.holds.is_some();
        *self = Self { name, role, for_io, instances, waiting, waiting_since: now, ..fresh.recording_holds(holds) };
    }

    /// What is counted of a kind of task at a place in the programs.
    #[inline(always)]
    pub fn at(&mut self, site: u16, kind: TaskKind) -> &mut PlaceStats {
        let place = usize::from(site) * KINDS + kind as usize;
        if place >= self.places.len() {
            self.make_room(site);
        }
        &mut self.places[place]
    }

    #[cold]
    fn make_room(&mut self, site: u16) {
        self.places.resize((usize::from(site) + 1) * KINDS, PlaceStats::default());
    }

    /// Whether any of the locks was held at any time.
    pub fn is_held(&self) -> bool {
        self.held_shared > 0 || self.held.iter().any(|held| held.total() > 0)
    }

    /// Acquisitions and waits at all places.
    pub fn everywhere(&self) -> PlaceStats {
        self.places.iter().copied().sum()
    }

    /// The same by the number of the place.
    pub fn by_site(&self) -> impl Iterator<Item = (usize, PlaceStats)> + '_ {
        self.places.chunks(KINDS).map(|kinds| kinds.iter().copied().sum()).enumerate()
    }

    /// The same of one kind of task.
    pub fn by_kind(&self, kind: TaskKind) -> PlaceStats {
        self.places.iter().copied().skip(kind as usize).step_by(KINDS).sum()
    }

    #[inline]
    fn integrate(&mut self, now: Time) {
        self.waiting_integral += u128::from(self.waiting) * u128::from(now - self.waiting_since);
        self.waiting_since = now;
    }

    /// A task begins to wait.
    #[inline]
    pub fn begin_wait(&mut self, now: Time) {
        self.integrate(now);
        self.waiting += 1;
    }

    /// A task has the lock after `wait`; `slept` says how, `held` whether somebody had it when the task came, `site` and
    /// `kind` where in the program and what sort of task.
    #[inline(always)]
    pub fn end_wait(&mut self, now: Time, wait: Time, slept: bool, held: bool, (site, kind): (u16, TaskKind)) {
        self.integrate(now);
        self.waiting -= 1;
        self.wait_max = self.wait_max.max(wait);
        self.waits.record(wait);
        *(if slept { &mut self.slept } else { &mut self.resolved_spinning }) += 1;
        let place = self.at(site, kind);
        place.contended += 1;
        place.found_held += u64::from(held);
        place.wait_total += wait;
    }

    /// An exclusive hold by a task of this `kind` has ended, or the window has.
    #[inline]
    pub fn end_hold(&mut self, kind: TaskKind, hold: &HoldTimes, contended: bool, lasted: Time) {
        self.held[kind as usize] += hold;
        if contended {
            self.held_contended += hold;
        }
        self.note_hold(lasted);
    }

    /// The same of a holder that has only run with the lock, for `span`.
    #[inline(always)]
    pub fn end_running_hold(&mut self, kind: TaskKind, contended: bool, span: Time) {
        self.held[kind as usize].running += span;
        if contended {
            self.held_contended.running += span;
        }
        self.note_hold(span);
    }

    #[inline]
    fn note_hold(&mut self, lasted: Time) {
        self.hold_max = self.hold_max.max(lasted);
        if let Some(holds) = &mut self.holds {
            holds.record(lasted);
        }
    }

    /// Who was granted the lock `waited` ago has come to run.
    pub fn granted_task_runs(&mut self, kind: TaskKind, waited: Time) {
        self.grant_to_run += waited;
        self.grants[kind as usize].record(waited);
    }

    /// Little's law in its exact form: the time integral of the number waiting equals the sum of the waits, those in
    /// progress (`open`: when each began) included. Returns both in ps. They are what the window's end cuts.
    pub fn little(&mut self, now: Time, window: Time, open: &[Time]) -> (u128, u128) {
        self.integrate(now);
        let open: Vec<Time> = open.iter().map(|&since| now - since.max(window)).collect();
        self.still_waiting = (open.len() as u64, open.iter().copied().max().unwrap_or(0));
        let open: u128 = open.iter().copied().map(u128::from).sum();
        (self.waiting_integral, u128::from(self.everywhere().wait_total) + open)
    }
}

/// What became of the wake-ups of one kind of task within the measured window.
#[derive(Debug)]
pub struct WakeStats {
    /// All of them; new tasks are not woken.
    pub wakeups: u64,
    /// The task stayed on the CPU where it had run last.
    pub on_previous: u64,
    /// It was moved to its waker's.
    pub on_waker: u64,
    /// The CPU where it had run last was busy while another one under the same last-level cache was idle.
    pub beside_idle: u64,
    /// Of these, it stayed there all the same.
    pub stacked: u64,
    /// From the wake-up until the task runs: where its CPU idled, and where it was busy.
    pub to_run: [Tally; 2],
}

impl Default for WakeStats {
    fn default() -> Self {
        let to_run = [Tally::new(2), Tally::new(2)];
        Self { wakeups: 0, on_previous: 0, on_waker: 0, beside_idle: 0, stacked: 0, to_run }
    }
}
