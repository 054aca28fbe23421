//! Delayed references: what the extent tree is still to be told about blocks and extents that came or went, one head an
//! address, in the order of addresses (`fs/btrfs/delayed-ref.c`). Who changes a tree adds heads; commits and reclaim run them.

use super::Space;
use crate::filesystems::btrfs::tree::key::NODE_SIZE;
use crate::filesystems::costs::Costs;
use crate::waist::Machine;
use crate::waist::{Access, Account, LineId, LockId, Side, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A tree block of a level.
    Block(u8),
    /// So many bytes of a file.
    Data(u64),
}

impl Extent {
    /// How large it is.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Block(_) => u64::from(NODE_SIZE),
            Self::Data(bytes) => bytes,
        }
    }
}

/// What has become of an extent since the extent tree was last told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It came.
    Added,
    /// It went.
    Dropped,
    /// Another file uses data, or one fewer: the count in their item changes.
    Counted,
    /// Data came and went: only their checksums are still to go (`must_insert_reserved` in `cleanup_ref_head`).
    Both,
}

/// All delayed refs of an address together (`struct btrfs_delayed_ref_head`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its address.
    pub place: u64,
    /// What lies there.
    pub extent: Extent,
    /// What has become of it.
    pub change: Change,
}

/// Heads that wait, and those that are being run.
#[derive(Debug, Default)]
pub struct Heads {
    waiting: BTreeMap<u64, (Extent, Change)>,
    /// Address, and the mutex that its runner holds meanwhile.
    running: Vec<(u64, LockId)>,
    /// Where the next search for a head begins (`run_delayed_start`).
    next: u64,
}

impl Heads {
    /// Adds a head. What came and went before anybody told the extent tree cancels out, and that of a block is nobody's business
    /// (`check_ref_cleanup`): false.
    pub fn add(&mut self, head: Head) -> bool {
        let Head { place, extent, change } = head;
        let before = self.waiting.get(&place).map(|&(_, before)| before).filter(|before| *before != Change::Counted);
        if change == Change::Counted && before.is_some() {
            return true; // who came or went tells of the count, too
        }
        let cancels = before.is_some_and(|before| before != change);
        match (cancels, extent) {
            (true, Extent::Block(_)) => _ = self.waiting.remove(&place),
            (true, Extent::Data(_)) => _ = self.waiting.insert(place, (extent, Change::Both)),
            (false, _) => _ = self.waiting.insert(place, (extent, change)),
        }
        !cancels
    }

    /// `btrfs_select_ref_head`: the next in the order of addresses, round and round, with its runner's mutex. What has come to one
    /// that is being run (`processing`) waits.
    pub fn select(&mut self, mutex: LockId) -> Option<Head> {
        let is_free = |(&place, _): &(&u64, &(Extent, Change))| self.runner(place).is_none();
        let next = self.waiting.range(self.next..).find(is_free).or_else(|| self.waiting.iter().find(is_free));
        let (&place, &(extent, change)) = next?;
        self.waiting.remove(&place);
        self.running.push((place, mutex));
        self.next = place + 1;
        Some(Head { place, extent, change })
    }

    /// The head is done.
    pub fn finish(&mut self, place: u64) {
        self.running.retain(|(running, _)| *running != place);
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The mutex of who runs the head of an address.
    pub fn runner(&self, place: u64) -> Option<LockId> {
        self.running.iter().find(|(running, _)| *running == place).map(|(_, mutex)| *mutex)
    }
}

/// The delayed refs of the running transaction under their spinlock (`struct btrfs_delayed_ref_root`), and the space that
/// they are about.
pub struct DelayedRefs {
    lock: LockId,
    line: LineId,
    time: Time,
    heads: RefCell<Heads>,
    /// Free and used space.
    pub space: RefCell<Space>,
    /// Files besides the first that use data, by the place of these.
    shared: RefCell<BTreeMap<u64, u32>>,
}

impl DelayedRefs {
    /// No delayed refs, on a filesystem with this space.
    pub fn new<M: Machine>(m: &M, space: Space, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            lock: m.new_lock(m.class("btrfs.delayed_refs", "btrfs.delayed_refs")),
            line: m.new_line("btrfs.delayed_refs heads", costs.number("btrfs_delayed_refs.shared")? as u32),
            time: costs.sum(&["delayed_ref_lock"])?,
            heads: RefCell::default(),
            space: RefCell::new(space),
            shared: RefCell::default(),
        })
    }

    /// Takes a place for a tree block and delays its reference.
    pub async fn add_block<M: Machine>(&self, m: &M, level: usize) -> u64 {
        let place = self.take_block();
        self.add(m, Head { place, extent: Extent::Block(level as u8), change: Change::Added }).await;
        place
    }

    /// Takes a place for a tree block that the extent tree never hears of, one of the log.
    pub fn take_block(&self) -> u64 {
        self.space.borrow_mut().allocate_block()
    }

    /// `btrfs_alloc_reserved_file_extent`: the extent tree is to be told of data.
    pub async fn add_data<M: Machine>(&self, m: &M, place: u64, bytes: u64) {
        self.add(m, Head { place, extent: Extent::Data(bytes), change: Change::Added }).await;
    }

    /// `btrfs_inc_extent_ref`, or `btrfs_free_extent` of data that others use: the extent tree is to be told of the count.
    pub async fn count_data<M: Machine>(&self, m: &M, place: u64, bytes: u64) {
        self.add(m, Head { place, extent: Extent::Data(bytes), change: Change::Counted }).await;
    }

    /// Another file uses the data at a place.
    pub fn share(&self, place: u64) {
        *self.shared.borrow_mut().entry(place).or_default() += 1;
    }

    /// A file uses them no more; whether another still does.
    pub fn unshare(&self, place: u64) -> bool {
        let mut shared = self.shared.borrow_mut();
        let Some(others) = shared.get_mut(&place) else { return false };
        *others -= 1;
        if *others == 0 {
            shared.remove(&place);
        }
        true
    }

    /// How many files use them.
    pub fn users(&self, place: u64) -> u32 {
        1 + self.shared.borrow().get(&place).copied().unwrap_or(0)
    }

    /// Gives back a tree block or data. `new` blocks of the running transaction that the extent tree has not heard of are free
    /// at once, all else when the transaction is committed.
    pub async fn give_back<M: Machine>(&self, m: &M, place: u64, extent: Extent, new: bool) {
        let waits = self.add(m, Head { place, extent, change: Change::Dropped }).await;
        self.space.borrow_mut().give_back(place, extent.bytes(), new && !waits);
    }

    async fn add<M: Machine>(&self, m: &M, head: Head) -> bool {
        self.locked(m, |heads| heads.add(head)).await
    }

    /// Does something to the heads under the spinlock.
    pub async fn locked<M: Machine, T>(&self, m: &M, change: impl FnOnce(&mut Heads) -> T) -> T {
        m.lock(self.lock, Side::Write).await;
        m.touch(self.line, Access::Write);
        m.run(Account::System, self.time).await;
        let answer = change(&mut self.heads.borrow_mut());
        m.unlock(self.lock, Side::Write).await;
        answer
    }

    /// Whether nobody runs a head.
    pub fn at_rest(&self) -> bool {
        self.heads.borrow().running.is_empty()
    }

    /// The heads that wait.
    pub fn heads(&self) -> Vec<Head> {
        let head = |(&place, &(extent, change)): (&u64, &(Extent, Change))| Head { place, extent, change };
        self.heads.borrow().waiting.iter().map(head).collect()
    }

    /// How many heads wait.
    pub fn waiting(&self) -> usize {
        self.heads.borrow().waiting()
    }

    /// How long the spinlock is held.
    pub fn time(&self) -> Time {
        self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(place: u64, added: bool) -> Head {
        Head { place, extent: Extent::Block(0), change: if added { Change::Added } else { Change::Dropped } }
    }

    #[test]
    fn data_that_came_and_went_leave_their_checksums_to_whoever_runs_the_head() {
        let data = |change| Head { place: 8192, extent: Extent::Data(4096), change };
        let mut heads = Heads::default();
        assert!(heads.add(data(Change::Added)));
        assert!(!heads.add(data(Change::Dropped)));
        assert_eq!(heads.select(0), Some(data(Change::Both)));
    }

    #[test]
    fn a_count_changes_nothing_of_what_came_or_went() {
        let data = |change| Head { place: 8192, extent: Extent::Data(4096), change };
        for (first, second, told) in [
            (Change::Counted, Change::Counted, Change::Counted),
            (Change::Added, Change::Counted, Change::Added),
            (Change::Counted, Change::Dropped, Change::Dropped),
            (Change::Dropped, Change::Counted, Change::Dropped),
        ] {
            let mut heads = Heads::default();
            assert!(heads.add(data(first)) && heads.add(data(second)));
            assert_eq!(heads.select(0), Some(data(told)));
        }
    }

    #[test]
    fn a_block_that_came_and_went_is_nobodys_business() {
        let mut heads = Heads::default();
        assert!(heads.add(block(16384, true)));
        assert!(!heads.add(block(16384, false)));
        assert_eq!(heads.select(0), None);
    }

    #[test]
    fn heads_run_in_the_order_of_addresses_round_and_round() {
        let mut heads = Heads::default();
        for place in [30, 10, 20] {
            heads.add(block(place, true));
        }
        assert_eq!(heads.select(0).map(|head| head.place), Some(10));
        heads.add(block(5, false));
        let rest: Vec<u64> = std::iter::from_fn(|| heads.select(0)).map(|head| head.place).collect();
        assert_eq!(rest, [20, 30, 5]);
    }

    #[test]
    fn what_comes_to_a_head_that_is_being_run_waits_until_that_is_done() {
        let mut heads = Heads::default();
        heads.add(block(10, true));
        heads.select(7);
        heads.add(block(10, false));
        assert_eq!(heads.select(8), None);
        heads.finish(10);
        assert_eq!(heads.select(8).map(|head| head.change), Some(Change::Dropped));
    }

    #[test]
    fn who_asks_finds_the_mutex_of_who_runs_a_head() {
        let mut heads = Heads::default();
        heads.add(block(10, true));
        assert_eq!(heads.runner(10), None);
        heads.select(7);
        assert_eq!(heads.runner(10), Some(7));
        heads.finish(10);
        assert_eq!(heads.runner(10), None);
    }
}
