//! The log as transactions meet it: space in it, and the commit into the CIL under `xc_ctx_lock` held shared.
//!
//! Since 6.0 the CIL is per CPU, so a commit writes few shared lines besides the context lock's. Before, every commit moved its
//! items to the tail of one list and added up their space, under a spinlock.

pub use buffer::Item;
pub use iclog::IclogSize;
mod ail;
pub mod buffer;
mod checkpoint;
pub mod clusters;
mod context;
pub mod grant;
mod iclog;
#[cfg(test)]
mod tests;
mod wait;
mod xfsaild;

use crate::devices::BlockDevice;
use crate::filesystems::costs::Costs;
use crate::filesystems::inodes::super_line::SuperLine;
use crate::filesystems::log_area::LogArea;
use crate::filesystems::xfs::directory_buffers::{Blocks, LargeMaps};
use crate::filesystems::xfs::structures::touch::CHUNK;
use crate::kernel::xfs::{AilTarget, Cil};
use crate::waist::Machine;
use crate::waist::{Access, Account, LineId, LockId, Side, Time};
use ail::Ail;
use buffer::Buffer;
use checkpoint::Checkpoints;
use context::Context;
use grant::{GrantHead, Naming, Reservation, Ticket};
use std::cell::RefCell;
use std::rc::Rc;
use xfsaild::Pusher;

crate::cost_table!(CilCosts {
    counters: ["cil_counters"],
    item: ["cil_item"],
    chunk: ["cil_chunk"],
    attach: ["create_node.lock_inode_cluster", "create_node.unlock_inode_cluster"],
});

/// Chunks of a block of 4 KiB.
const BLOCK_CHUNKS: u32 = 4096 / CHUNK as u32;

/// The log of one mount.
pub struct Log {
    /// `m_active_trans`, where transactions under way are counted.
    active: Option<LineId>,
    /// Space accounting of the CIL context.
    cil: LineId,
    ctx_lock: LockId,
    design: Cil,
    /// `xc_cil_lock`, and the lines that are written under it: space counters, and list pointers of an item and its neighbours.
    cil_lock: LockId,
    counters: LineId,
    list: LineId,
    /// What owners are translated by, if that is asked when an inode is copied.
    owner: Option<SuperLine>,
    costs: CilCosts,
    bytes: u64,
    names: Naming,
    pub(super) checkpoints: Checkpoints,
    pub(super) grants: Rc<GrantHead>,
    roundoff: u64,
    pub(super) ail: RefCell<Ail>,
    pub(super) pusher: Pusher,
}

/// What a transaction commits.
#[derive(Clone, Debug, Default)]
pub struct Logged {
    items: arrayvec::ArrayVec<Item, 16>,
    /// Of larger blocks of directories, by the lines of their buffers.
    large: LargeMaps,
    further: usize,
    frees_extents: bool,
}

impl Logged {
    /// These dirty items.
    pub fn items(items: impl IntoIterator<Item = Item>) -> Self {
        Self { items: items.into_iter().collect(), ..Self::default() }
    }

    /// And this item.
    pub fn and(mut self, item: Item) -> Self {
        self.items.push(item);
        self
    }

    /// And these buffers.
    pub fn buffers(mut self, buffers: &[Buffer]) -> Self {
        self.items.extend(buffers.iter().map(Buffer::item));
        self
    }

    /// And those of these of which something is logged.
    pub fn blocks(mut self, blocks: &Blocks) -> Self {
        self.items.extend(blocks.buffers.iter().filter(|buffer| buffer.chunks > 0).map(Buffer::item));
        self.large.extend_from_slice(&blocks.large);
        self
    }

    /// And so many that have no lines of their own here: the group's free space trees and free list, and an inode that is being made.
    pub fn further(mut self, items: usize) -> Self {
        self.further = items;
        self
    }

    /// And extents that stay busy until they are on disk.
    pub fn freeing_extents(mut self) -> Self {
        self.frees_extents = true;
        self
    }
}

impl Log {
    /// Makes the lines and locks of a log that lies there, with buffers of this size, of a filesystem with such names.
    pub fn new<M: Machine>(
        m: &M,
        (area, iclogs): (LogArea, IclogSize),
        names: Naming,
        (super_line, storage): (SuperLine, Rc<BlockDevice>),
        costs: &Costs<'_>,
    ) -> Result<Self, String> {
        let ctx_lock = m.new_lock(m.class("xfs.xc_ctx_lock", "xfs.cil_ctx"));
        let heads = costs.number("xfs_log.grant_heads")? as u32;
        let (grants, bytes) = (Rc::new(GrantHead::new(m, heads)), area.bytes);
        Ok(Self {
            active: costs.rules().counts_transactions.then(|| m.new_line("xfs.m_active_trans", 1)),
            cil: m.new_line("xfs.xc_ctx", costs.number("xfs_cil.shared")? as u32),
            ctx_lock,
            checkpoints: Checkpoints::new(m, ctx_lock, (area, iclogs), storage, grants.clone(), costs)?,
            design: costs.rules().cil,
            cil_lock: m.new_lock(m.class("xfs.xc_cil_lock", "xfs.cil_lock")),
            counters: m.new_line("xfs.xc_cil", costs.number("xfs_cil.counters")? as u32),
            list: m.new_line("xfs.li_cil", costs.number("xfs_cil.item_neighbours")? as u32),
            owner: costs.rules().translates_owner.then_some(super_line),
            costs: CilCosts::new(costs)?,
            bytes,
            names,
            grants,
            roundoff: iclogs.roundoff(),
            ail: RefCell::default(),
            pusher: Pusher::new(m, costs)?,
        })
    }

    /// Bytes in the log.
    pub fn size(&self) -> u64 {
        self.bytes
    }

    /// `xlog_grant_space_left`.
    fn space_left(&self) -> u64 {
        self.bytes.saturating_sub(self.ail.borrow().tail_space() + self.grants.granted())
    }

    /// `xfs_log_reserve`: waits for space; the heads move to this CPU.
    pub async fn reserve<M: Machine>(&self, m: &M, reservation: Reservation) -> Ticket {
        self.count_transaction(m);
        let ticket = Ticket::new(reservation, self.names, self.roundoff);
        self.grant_push_ail(m, ticket.bytes());
        let (free, wakes_pusher) = (|| self.space_left(), self.pusher.target == AilTarget::Items);
        let push = |need| if wakes_pusher { self.pusher.push_all(m) } else { self.grant_push_ail(m, need) };
        self.grants.check(m, ticket.bytes(), free, push).await;
        self.grants.add(ticket.bytes());
        self.grants.move_heads(m);
        ticket
    }

    /// `xlog_grant_push_ail`, before 6.11.
    fn grant_push_ail<M: Machine>(&self, m: &M, need: u64) {
        let free = self.space_left();
        let reservations = self.pusher.target == AilTarget::Reservations;
        if reservations && self.ail.borrow_mut().raise_target(free, need, self.bytes) {
            self.pusher.wake(m);
        }
    }

    /// `xfs_log_space_wake`. What is too little for the first has more pushed before 6.11.
    pub async fn space_wake<M: Machine>(&self, m: &M) {
        self.grants.space_wake(m, || self.space_left(), |need| self.grant_push_ail(m, need)).await;
    }

    /// `xlog_cil_ail_insert`: a checkpoint is on disk.
    pub async fn ail_insert<M: Machine>(&self, m: &M, context: Context) {
        let Context { items, space, .. } = context;
        self.grant_push_ail(m, 0); // xlog_state_set_callback
        let was_empty = self.ail.borrow_mut().insert(items, space);
        if was_empty && self.pusher.target == AilTarget::Items {
            self.pusher.wake(m);
        }
        self.grants.sub(space);
        self.space_wake(m).await;
    }

    /// Headers and padding of a log buffer are on disk.
    pub async fn pass<M: Machine>(&self, m: &M, bytes: u64) {
        self.ail.borrow_mut().pass(bytes);
        self.grants.sub(bytes);
        self.space_wake(m).await;
    }

    /// `xfs_trans_run_precommits`: inodes that are attached to no buffer are, under its lock. Those whose buffer the transaction
    /// itself has need none. The kernel does it in the order of inode numbers; a transaction that locks cluster buffers
    /// does it here before.
    pub async fn precommit<M: Machine>(&self, m: &M, items: &[Item]) {
        for &item in items {
            let Item::Inode { cluster, .. } = item else { continue };
            if !self.ail.borrow_mut().join(item) {
                continue;
            }
            let own = items.iter().any(|other| matches!(other, Item::Buffer(buffer) if *buffer == cluster));
            if !own {
                cluster.lock(m).await;
            }
            m.run(Account::System, self.costs.attach).await;
            self.ail.borrow_mut().attach(item);
            if !own {
                cluster.unlock(m).await;
            }
        }
    }

    /// `xlog_cil_commit` up to the point where the items' locks are dropped. The caller runs the time of it, drops the locks
    /// and calls [`Log::committed`].
    pub async fn commit<M: Machine>(&self, m: &M, logged: Logged) {
        self.precommit(m, &logged.items).await;
        m.lock(self.ctx_lock, Side::Read).await;
        self.format_inodes(m, &logged).await;
        m.touch(self.cil, Access::Write);
        self.insert_items(m, &logged).await;
        self.checkpoints.write_part(m);
        let (bytes, further) = self.format_buffers(logged);
        self.grants.add(bytes);
        if further > 0 {
            m.run(Account::System, self.costs.chunk * Time::from(further)).await;
        }
    }

    /// `xfs_buf_item_format` copies all chunks of a buffer that were logged since it was written. What the items add to the context, and the
    /// chunks that are more than a block of 4 KiB has, which is in the traced commits.
    fn format_buffers(&self, logged: Logged) -> (u64, u32) {
        let mut ail = self.ail.borrow_mut();
        let (mut bytes, mut further) = (0, 0);
        for item in logged.items {
            let large = logged.large.iter().find(|(lines, _)| matches!(item, Item::Buffer(b) if b.lines == *lines));
            bytes += self.checkpoints.insert(&mut ail, item, large.map(|(_, map)| map));
            further += if large.is_some() { ail.chunks_of(item).saturating_sub(BLOCK_CHUNKS) } else { 0 };
        }
        (bytes, further)
    }

    /// `xfs_inode_item_format`: `i_uid_read` of each inode.
    async fn format_inodes<M: Machine>(&self, m: &M, logged: &Logged) {
        let Some(owner) = self.owner else { return };
        for _ in logged.items.iter().filter(|item| matches!(item, Item::Inode { .. })) {
            owner.owner(m).await;
        }
    }

    /// The part of `xlog_cil_insert_items` under `xc_cil_lock`.
    async fn insert_items<M: Machine>(&self, m: &M, logged: &Logged) {
        let (lists, counters) = (self.design <= Cil::PerCpuCounters, self.design == Cil::Global);
        let busy = self.design <= Cil::PerCpuLists && logged.frees_extents;
        if !(lists || busy) {
            return;
        }
        m.lock(self.cil_lock, Side::Write).await;
        let mut hold = 0;
        if counters {
            m.touch(self.counters, Access::Write);
            hold += self.costs.counters;
        }
        if lists {
            m.touch(self.list, Access::Write);
            hold += self.costs.item * (logged.items.len() + logged.further) as Time;
        }
        m.run(Account::System, hold).await;
        m.unlock(self.cil_lock, Side::Write).await;
    }

    /// The end of `xlog_cil_commit`, after the items' locks are dropped.
    pub async fn committed<M: Machine>(&self, m: &M, ticket: Ticket) {
        self.end_commit(m, ticket.bytes()).await;
    }

    /// The same where the transaction goes on with what else it has reserved (`xfs_trans_roll`).
    pub async fn rolled<M: Machine>(&self, m: &M, ticket: Ticket) -> Ticket {
        self.count_transaction(m); // xfs_trans_dup
        let (rest, left) = ticket.roll();
        self.end_commit(m, left).await;
        self.grant_push_ail(m, rest.unit()); // xfs_log_regrant
        rest
    }

    async fn end_commit<M: Machine>(&self, m: &M, unused: u64) {
        self.grants.move_heads(m); // the unused part of the reservation goes back
        self.grants.sub(unused);
        self.space_wake(m).await;
        self.checkpoints.push_background(m).await;
        self.count_transaction(m); // xfs_trans_free
    }

    /// One more transaction is under way, or one less, before 5.8.
    fn count_transaction<M: Machine>(&self, m: &M) {
        if let Some(line) = self.active {
            m.touch(line, Access::Write);
        }
    }
}
