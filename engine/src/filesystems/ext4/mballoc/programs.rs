//! What a request for blocks, a free and a commit do.

use super::*;
use crate::filesystems::ext4::inode_table::access;

impl Mballoc {
    /// `ext4_mb_new_blocks` for a file in this slot, whose inode is in `near`.
    pub async fn new_blocks<M: Machine>(&self, m: &M, slot: u32, near: u32, count: u32) -> Result<Extent, NoSpace> {
        m.run(Account::System, self.costs.load).await;
        let stream = self.blocks(slot) + u64::from(count) > STREAM_BLOCKS;
        let goal = if stream {
            self.goal(m, slot).await
        } else {
            self.flexes.look(m).await; // ext4_mb_group_or_file
            near
        };
        self.find(m, goal, count, stream.then_some(slot)).await
    }

    /// The same for the first block of a directory.
    pub async fn new_directory_block<M: Machine>(&self, m: &M, near: u32) -> Result<Extent, NoSpace> {
        m.run(Account::System, self.costs.load).await;
        self.find(m, near, 1, None).await
    }

    async fn find<M: Machine>(&self, m: &M, goal: u32, count: u32, stream: Option<u32>) -> Result<Extent, NoSpace> {
        self.prefetch(m, goal).await;
        let found = self.search(m, goal, count, stream).await;
        self.end_prefetch(m, goal).await;
        let found = match found {
            Some(found) => found,
            None => self.search_any(m, goal, count).await.ok_or(NoSpace)?,
        };
        self.mark_diskspace_used(m, found.group).await;
        Ok(found)
    }

    fn goal_of(&self, slot: u32) -> usize {
        slot as usize % self.goals.len()
    }

    /// Where the last request of a large file ended (`s_mb_last_group`).
    pub(super) async fn goal<M: Machine>(&self, m: &M, slot: u32) -> u32 {
        let goal = self.goal_of(slot);
        if self.stream == StreamGoal::Locked {
            m.lock(self.md_lock, Side::Write).await;
        }
        m.touch(self.goal_lines[goal / GOALS_PER_LINE], Access::Read);
        let group = self.goals[goal].get();
        if self.stream == StreamGoal::Locked {
            m.unlock(self.md_lock, Side::Write).await;
        }
        group
    }

    /// The same is changed, with the group's lock held (`ext4_mb_use_best_found`).
    pub(super) async fn set_goal<M: Machine>(&self, m: &M, slot: u32, group: u32) {
        let goal = self.goal_of(slot);
        if self.stream == StreamGoal::Locked {
            m.lock(self.md_lock, Side::Write).await;
        }
        m.touch(self.goal_lines[goal / GOALS_PER_LINE], Access::Write);
        self.goals[goal].set(group);
        if self.stream == StreamGoal::Locked {
            m.unlock(self.md_lock, Side::Write).await;
        }
    }

    /// `ext4_mb_regular_allocator`, up to `CR_GOAL_LEN_SLOW`: the first group with a run of this length.
    async fn search<M: Machine>(&self, m: &M, goal: u32, count: u32, stream: Option<u32>) -> Option<Extent> {
        for group in self.from(goal) {
            if self.groups.borrow()[group as usize].free() < count {
                continue; // ext4_mb_good_group, without the lock
            }
            let lines = self.lines(m, group);
            if self.busy == BusyGroups::Wait {
                self.load_buddy(m, lines).await;
                self.locks.lock(m, group).await;
            } else if self.locks.try_lock(m, group) {
                self.load_buddy(m, lines).await;
            } else {
                continue;
            }
            self.beside(m).await; // ext4_mb_good_group, mb_find_buddy
            self.write_buddy(m, lines);
            let scan = self.scan_time(group, count);
            let start = self.groups.borrow_mut()[group as usize].take(count);
            if start.is_some() {
                m.run(Account::System, scan).await;
                self.beside(m).await; // mb_mark_used
                m.run(Account::System, self.costs.mark_used).await;
                if let Some(slot) = stream {
                    self.set_goal(m, slot, group).await;
                }
            }
            self.locks.unlock(m, group).await;
            m.touch(lines.folios, Access::Write); // ext4_mb_unload_buddy
            if let Some(start) = start {
                return Some(Extent { group, start, count });
            }
        }
        None
    }

    /// `ext4_mb_prefetch`: who begins to search sets a bit of each group of the flex group from there on, to have their bitmaps read once.
    pub(super) async fn prefetch<M: Machine>(&self, m: &M, from: u32) {
        if self.prefetches {
            self.flexes.look(m).await;
            self.go_through(m, from, Access::Atomic).await; // EXT4_MB_GRP_TEST_AND_SET_READ
        }
    }

    /// `ext4_mb_prefetch_fini`: at the end of the search it looks whether these groups are to be made ready.
    pub(super) async fn end_prefetch<M: Machine>(&self, m: &M, from: u32) {
        if self.prefetches {
            self.go_through(m, from, Access::Read).await; // EXT4_MB_GRP_NEED_INIT
        }
    }

    /// `bb_state` of each group to the end of the flex group.
    async fn go_through<M: Machine>(&self, m: &M, from: u32, access: Access) {
        let end = (from / FLEX + 1) * FLEX;
        for group in from..end.min(self.group_count()) {
            m.touch(self.lines(m, group).info, access);
            m.settle().await;
        }
    }

    /// What the search in a group takes, besides what is done for what it finds.
    fn scan_time(&self, group: u32, count: u32) -> Time {
        if count >= SIMPLE && count.is_power_of_two() {
            return 0;
        }
        let scan = self.groups.borrow_mut()[group as usize].scan(count);
        let words = if self.measures { scan.words } else { 0 };
        self.costs.piece * Time::from(scan.pieces) + self.costs.word * Time::from(words)
    }

    /// The same for `CR_ANY_FREE`: waits for groups that are busy, and takes what it finds.
    async fn search_any<M: Machine>(&self, m: &M, goal: u32, most: u32) -> Option<Extent> {
        for group in self.from(goal) {
            if self.groups.borrow()[group as usize].free() == 0 {
                continue;
            }
            self.load_buddy(m, self.lines(m, group)).await;
            self.locks.lock(m, group).await;
            self.beside(m).await;
            self.write_buddy(m, self.lines(m, group));
            let found = self.groups.borrow_mut()[group as usize].take_any(most);
            m.run(Account::System, self.costs.mark_used).await;
            self.locks.unlock(m, group).await;
            if let Some((start, count)) = found {
                return Some(Extent { group, start, count });
            }
        }
        None
    }

    /// `ext4_mb_good_group_nolock` looks at the group, `ext4_mb_load_buddy` gets its folios.
    pub(super) async fn load_buddy<M: Machine>(&self, m: &M, lines: Lines) {
        self.beside(m).await;
        m.use_block(lines.memory, lines.bytes);
        m.touch(lines.info, Access::Read);
        m.touch(lines.folios, Access::Write);
    }

    /// What is free in a group changes, with its lock held.
    pub(super) fn write_buddy<M: Machine>(&self, m: &M, lines: Lines) {
        m.touch(lines.info, Access::Write);
        m.touch(lines.buddy, Access::Write);
    }

    /// `s_group_info`, `s_buddy_cache`, `s_mb_offsets` and `s_mb_maxs` are read, which stand on both sides of `s_md_lock`.
    pub(super) async fn beside<M: Machine>(&self, m: &M) {
        m.touch_beside(self.md_lock, Access::Read);
        m.settle().await;
    }

    pub(super) fn from(&self, goal: u32) -> impl Iterator<Item = u32> {
        let groups = self.group_count();
        (goal % groups..groups).chain(0..goal % groups)
    }

    /// `ext4_mb_mark_diskspace_used`: bits and checksums of bitmap and descriptor, under the group's lock.
    pub(super) async fn mark_diskspace_used<M: Machine>(&self, m: &M, group: u32) {
        let (c, lines) = (&self.costs, self.lines(m, group));
        m.use_block(lines.memory, lines.bytes);
        self.get_bitmap(m, lines).await;
        m.run(Account::System, c.write_access).await;
        self.locks.lock(m, group).await;
        m.touch(lines.bitmap, Access::Write);
        m.touch(self.descriptors.of(group), Access::Write);
        m.run(Account::System, c.mark_diskspace).await;
        self.locks.unlock(m, group).await;
        self.flexes.count(m, group).await;
        m.run(Account::System, c.dirty_metadata).await;
        self.put_bitmap(m, lines).await;
    }

    /// `ext4_read_block_bitmap` and `jbd2_journal_get_write_access`.
    async fn get_bitmap<M: Machine>(&self, m: &M, lines: Lines) {
        m.touch(lines.heads, Access::Read);
        access(m, lines.count, Access::Atomic).await;
        access(m, lines.count, Access::Read).await;
    }

    /// `jbd2_journal_dirty_metadata` and `brelse`.
    async fn put_bitmap<M: Machine>(&self, m: &M, lines: Lines) {
        access(m, lines.count, Access::Read).await;
        access(m, lines.count, Access::Atomic).await;
    }

    /// `ext4_free_blocks` of an extent by a transaction; without a journal they are free at once.
    pub async fn free_blocks<M: Machine>(&self, m: &M, extent: Extent, transaction: Option<u64>) {
        let (c, lines) = (&self.costs, self.lines(m, extent.group));
        self.load_buddy(m, lines).await;
        self.get_bitmap(m, lines).await;
        m.run(Account::System, c.free).await;
        self.locks.lock(m, extent.group).await;
        m.touch(lines.bitmap, Access::Write);
        m.touch(self.descriptors.of(extent.group), Access::Write);
        m.run(Account::System, c.mark_diskspace).await;
        if self.frees_apart {
            self.locks.unlock(m, extent.group).await;
            self.flexes.count(m, extent.group).await;
            self.put_bitmap(m, lines).await;
            self.locks.lock(m, extent.group).await;
        }
        match transaction {
            Some(transaction) => self.list(m, extent, transaction).await,
            None => self.release(m, extent, lines).await,
        }
        self.locks.unlock(m, extent.group).await;
        if !self.frees_apart {
            self.flexes.count(m, extent.group).await;
            self.put_bitmap(m, lines).await;
        }
        m.touch(lines.folios, Access::Write);
    }

    /// `ext4_mb_free_metadata`: neighbours that it is merged with leave the list, each under `s_md_lock`, and it goes onto it; since
    /// 6.17 it only grows a neighbour. Other CPUs have made the neighbours, and those beside them in the list.
    async fn list<M: Machine>(&self, m: &M, extent: Extent, transaction: u64) {
        let grow = self.listed == FreedExtents::MergedFirst;
        let Inserted { entry, new, beside, merged } = self.freed.borrow_mut().insert(transaction, extent, grow);
        m.touch(self.lines(m, extent.group).info, Access::Write); // bb_free_root
        beside.into_iter().flatten().for_each(|other| self.entries.touch(m, other, Access::Read));
        self.entries.touch(m, entry, Access::Write);
        m.settle().await;
        for other in merged {
            m.lock(self.md_lock, Side::Write).await;
            let neighbours = self.freed.borrow_mut().delete(other);
            self.entries.relink(m, neighbours.into_iter().flatten());
            m.unlock(self.md_lock, Side::Write).await;
            self.entries.free(m, other);
        }
        if new {
            m.lock(self.md_lock, Side::Write).await;
            let last = self.freed.borrow().add_tail(entry);
            m.touch(self.freed_line, Access::Write);
            m.settle().await;
            self.entries.relink(m, last);
            m.unlock(self.md_lock, Side::Write).await;
        }
    }

    async fn under_md_lock<M: Machine>(&self, m: &M) {
        m.lock(self.md_lock, Side::Write).await;
        m.touch(self.freed_line, Access::Write);
        m.unlock(self.md_lock, Side::Write).await;
    }

    async fn release<M: Machine>(&self, m: &M, extent: Extent, lines: Lines) {
        self.beside(m).await; // mb_find_buddy
        self.write_buddy(m, lines);
        m.run(Account::System, self.costs.free_in_buddy).await;
        self.groups.borrow_mut()[extent.group as usize].release(extent.start, extent.count);
    }

    /// `ext4_process_freed_data`, when a transaction is on disk: `ext4_free_data_in_buddy` of each extent that it has freed.
    pub async fn process_freed_data<M: Machine>(&self, m: &M, transaction: u64) {
        let extents = self.freed.borrow_mut().take(transaction);
        if extents.is_empty() {
            return;
        }
        self.under_md_lock(m).await;
        for (extent, entry) in extents {
            self.entries.touch(m, entry, Access::Read);
            if self.listed == FreedExtents::Listed {
                self.under_md_lock(m).await; // s_mb_free_pending
            }
            self.locks.lock(m, extent.group).await;
            self.release(m, extent, self.lines(m, extent.group)).await;
            self.locks.unlock(m, extent.group).await;
            self.entries.free(m, entry);
        }
    }
}
