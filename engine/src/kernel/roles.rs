//! The roles of locks: what programs ask a kernel for when they make one.

/// Each role, and what it guards.
pub const ROLES: [(&str, &str); 63] = [
    ("vfs.i_rwsem", "an inode: the names of a directory, the data of a file (a mutex before 4.7)"),
    ("vfs.freeze", "a superblock against being frozen while it is written to"),
    ("vfs.inode_hash", "the hash table of inodes, or one of its chains"),
    ("vfs.inode_list", "a superblock's list of inodes"),
    ("vfs.isec_list", "SELinux's list of a superblock's inodes, while it has no policy"),
    ("vfs.s_vfs_rename_mutex", "the directories of a superblock against two renames between them at a time"),
    ("vfs.s_umount", "a superblock against being unmounted while somebody syncs it"),
    ("vfs.wb_switch_rwsem", "the flusher of a device, against two who have it write all for a sync"),
    ("vfs.s_sync_lock", "who waits for all files of a superblock"),
    ("vfs.rename_lock", "the names of all dentries, against who looks for one while it is moved"),
    ("vfs.wb_list", "a device's list of files with dirty pages"),
    ("futex.bucket", "the futexes of a hash bucket; here of a word that programs in Python share"),
    ("user.pick_lock", "which files of its set filebench uses"),
    ("mm.lru_lock", "a node's list of pages that can be reclaimed"),
    ("mm.folio_lock", "a page of a file on tmpfs"),
    ("vfs.dentry_lru", "a node's list of dentries that nobody uses"),
    ("block.private_lock", "the buffers in a device's page cache, against who looks for one"),
    ("brd.lock", "the pages of a RAM disk"),
    ("md.lock", "an md array, against who asks for a flush of its members"),
    ("vfs.percpu_counter", "a count of which each CPU keeps a part, while somebody adds them up"),
    ("vfs.d_lock", "a dentry: its count of references"),
    ("vfs.file_lock", "the table of open files that the threads of a process share"),
    ("vfs.flc_lock", "the locked ranges of a file, or of all (before 3.11)"),
    ("vfs.blocked_lock_lock", "who waits for locked ranges of files, of all files"),
    ("tmpfs.stat_lock", "inodes that a mount of tmpfs may still make, and the next one's number"),
    ("xfs.buffer", "a metadata buffer: AGI, AGF, B-tree block, inode cluster, directory block"),
    ("xfs.ilock", "an inode's fields and extents (ILOCK)"),
    ("xfs.iolock", "an inode's data (IOLOCK)"),
    ("xfs.i_flags_lock", "an inode's flags, and its size before 5.13"),
    ("xfs.inodegc_wq", "the queue of the workers that free inodes, while a statfs waits for them"),
    ("xfs.cil_wq", "the queue of the workers that write checkpoints, while tasks that sync wait for them"),
    ("xfs.push_lock", "which checkpoints are being pushed"),
    ("xfs.icloglock", "the log buffers"),
    ("xfs.grant_lock", "the queue of those who wait for space in the log"),
    ("xfs.log_wait", "a queue of those who wait for a log buffer or for a checkpoint's commit record"),
    ("xfs.cil_ctx", "the context of the CIL: shared by commits, exclusive for its push"),
    ("xfs.cil_lock", "lists and counters of the CIL"),
    ("ext4.group_spin", "a block group"),
    ("ext4.s_md_lock", "the list of freed extents; the goal of large files before 6.17"),
    ("ext4.next_generation", "the generation of the next new inode, before 4.15"),
    ("ext4.orphan", "the list of orphans"),
    (
        "ext4.buffer",
        "a block of the inode table that is being brought in; without a journal, one of metadata that an fsync writes",
    ),
    ("ext4.j_state_lock", "the journal's state: shared by each handle that starts"),
    ("ext4.j_list_lock", "the lists of blocks of the journal's transactions"),
    ("ext4.j_checkpoint_mutex", "the journal's tail: whoever makes room in the log"),
    ("ext4.i_data_sem", "an inode's tree of extents: shared by look-ups, exclusive for changes"),
    ("ext4.i_es_lock", "an inode's tree of extents in memory"),
    ("btrfs.tree", "a block of a tree"),
    ("btrfs.inode_lock", "a subvolume's inodes in memory"),
    ("btrfs.objectid_mutex", "the number of a subvolume's next inode"),
    ("btrfs.root_item_lock", "when a subvolume changed last: whoever changes an inode"),
    ("btrfs.trans_lock", "the running transaction: whoever starts a handle"),
    ("btrfs.delayed_node", "an inode's delayed items"),
    ("btrfs.log_mutex", "a root's or a directory's log"),
    ("btrfs.log_csum_range", "ranges of the log whose checksums are being written"),
    ("btrfs.delayed_refs", "a transaction's delayed references"),
    ("btrfs.space_info", "room that is reserved"),
    ("btrfs.block_rsv", "the reserve of all trees together"),
    ("btrfs.delalloc_lock", "a subvolume's inodes with dirty pages"),
    ("btrfs.delayed_ref_head", "a block's delayed references"),
    ("btrfs.free_space_lock", "the free space of a block group"),
    ("lock", "what a lock cycle takes"),
    ("range_lock", "the index of a range lock"),
];

/// Roles of locks that say that there may be I/O: who sleeps for one waits for I/O, whoever has it (`folio_wait_bit_common`,
/// `wait_on_bit_lock_io` of `lock_buffer`, `mutex_lock_io`, which the checkpoint has since 4.11).
const FOR_IO: [&str; 3] = ["mm.folio_lock", "ext4.buffer", "ext4.j_checkpoint_mutex"];

/// Whether who sleeps for a lock of a role waits for I/O.
pub fn is_for_io(role: &str) -> bool {
    FOR_IO.contains(&role)
}

/// The roles alone.
pub fn roles() -> impl Iterator<Item = &'static str> + Clone {
    ROLES.iter().map(|(role, _)| *role)
}
