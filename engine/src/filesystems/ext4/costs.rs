//! The CPU times of creating, writing, unlinking and of htree directories, as sums of steps between locks.

use crate::cost_table;
use crate::waist::Time;

cost_table!(pub(super) CreateCosts {
    walk: ["openat.before_i_rwsem"],
    lookup: ["openat.under_i_rwsem"],
    mark: ["inode_bitmap.mark"],
    table_block: ["inode_table.block"],
    retry: ["inode_bitmap.retry"],
    find_group: ["cu_short.ext4_journal_start_sb"],
    start_handle: ["cu_short.jbd2_handle_start"],
    new_inode: ["cu_short.ext4_mark_inode_dirty"],
    tree_init: ["cu_short.ext4_mark_inode_dirty_2"],
    allocated: ["cu_short.ext4_allocate_inode"],
    add_entry: ["cu_short.ext4_mark_inode_dirty_3", "cu_short.ext4_mark_inode_dirty_4"],
    stop: ["cu_short.jbd2_handle_stop"],
    tail: ["openat.i_rwsem_tail"],
    open: ["openat.after_i_rwsem"],
    close: ["cu_short.enter_close", "cu_short.ext4_discard_preallocations", "cu_short.exit_close"],
});

cost_table!(pub(super) HtreeCosts {
    lookup: ["cu_htree.ext4_request_inode"],
    lookup_linear: ["cu_short.ext4_request_inode"],
    add_entry: ["cu_htree.ext4_mark_inode_dirty_3", "cu_htree.ext4_mark_inode_dirty_4"],
    find_entry: ["cu_htree.ext4_journal_start_inode"],
    delete_entry: ["cu_htree.ext4_mark_inode_dirty_5", "cu_htree.ext4_mark_inode_dirty_6"],
});

impl HtreeCosts {
    /// What a rename takes longer in htree directories: the lookup and insertion of a new name, and the removal of the old.
    pub(super) fn rename(&self, create: &CreateCosts, unlink: &UnlinkCosts) -> (Time, Time) {
        let enter = (self.lookup + self.add_entry).saturating_sub(self.lookup_linear + create.add_entry);
        let leave = (self.find_entry + self.delete_entry).saturating_sub(unlink.find_entry + unlink.delete_entry);
        (enter, leave)
    }
}

// The first block of a directory, besides what the allocator does (`ext4_init_new_dir`).
cost_table!(pub(super) MkdirCosts {
    map: [
        "mkdir_htree.ext4_ext_map_blocks_enter",
        "mkdir_htree.ext4_ext_map_blocks_exit",
        "mkdir_htree.ext4_ext_map_blocks_enter_2",
        "mkdir_htree.ext4_request_blocks"
    ],
    insert: [
        "mkdir_htree.ext4_allocate_blocks",
        "mkdir_htree.ext4_mark_inode_dirty_4",
        "mkdir_htree.ext4_ext_map_blocks_exit_2"
    ],
    fill: ["mkdir_htree.ext4_mark_inode_dirty_5", "mkdir_htree.ext4_mark_inode_dirty_6"],
    remove_space: ["mballoc.remove_space"],
});

cost_table!(pub(super) WriteCosts {
    write: [
        "tmp_short.enter_write",
        "tmp_short.ext4_da_write_begin",
        "tmp_short.ext4_ext_map_blocks_enter",
        "tmp_short.ext4_ext_map_blocks_exit",
        "tmp_short.ext4_da_reserve_space",
        "tmp_short.ext4_da_write_end",
        "tmp_short.exit_write"
    ],
    close: ["tmp_short.enter_close", "tmp_short.exit_close"],
});

cost_table!(pub(super) UnlinkCosts {
    walk: ["cu_short.enter_unlinkat", "unlinkat.before_i_rwsem"],
    lookup: ["unlinkat.under_i_rwsem"],
    find_entry: ["cu_short.ext4_journal_start_inode", "cu_short.jbd2_handle_start_2"],
    delete_entry: ["cu_short.ext4_mark_inode_dirty_5", "cu_short.ext4_mark_inode_dirty_6"],
    drop_link: ["cu_short.ext4_mark_inode_dirty_5", "cu_short.ext4_mark_inode_dirty_2"],
    stop: ["cu_short.jbd2_handle_stop_2", "cu_short.ext4_unlink_exit"],
    tail: ["unlinkat.i_rwsem_tail"],
    evict_start: [
        "unlinkat.after_i_rwsem",
        "cu_short.ext4_evict_inode",
        "cu_short.ext4_begin_ordered_truncate",
        "cu_short.ext4_journal_start_inode_2",
        "cu_short.jbd2_handle_start_3"
    ],
    evict_pages: [
        "tmp_short.ext4_invalidate_folio",
        "tmp_short.ext4_release_folio",
        "tmp_short.ext4_journal_start_inode_2",
        "tmp_short.ext4_da_release_space"
    ],
    orphan: ["cu_short.ext4_mark_inode_dirty_7", "cu_short.ext4_mark_inode_dirty_8"],
    free_inode: ["cu_short.ext4_free_inode", "cu_short.ext4_discard_preallocations_2"],
    evict_stop: ["cu_short.jbd2_handle_stop_3"],
    callback: ["i_callback"],
    exit: ["cu_short.exit_unlinkat"],
});
