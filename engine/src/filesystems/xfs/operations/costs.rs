//! Times of the operations, each by the steps of the traced calls that it is the sum of.

use super::super::structures::directory::geometry::DirGeometry;
use super::super::structures::directory::DirForm;
use super::super::structures::touch::{BlockKind, Scanned, Touches};
use crate::cost_table;
use crate::waist::Time;

cost_table!(pub(super) CreateCosts {
    walk: ["openat.before_i_rwsem"],
    lookup: ["openat.under_i_rwsem"],
    lookup_end: ["cu_short.unlock_dir_ilock_shared"],
    lookup_node: ["cu_node.lock_dir_da_node", "cu_node.lock_dir_leafn", "cu_node.unlock_dir_da_node", "cu_node.unlock_dir_leafn"],
    lookup_data: ["create_node_agf.lock_dir_data", "create_node_agf.unlock_dir_data"],
    reserve: ["cu_short.log_reserve", "cu_short.trans_alloc", "cu_short.lock_dir_ilock_excl"],
    agi: ["cu_short.read_agi", "cu_short.lock_agi"],
    inode_btrees: ["cu_short.lock_finobt", "cu_short.lock_inobt"],
    iget_find: ["cu_short.iget_recycle"],
    iget_recycle: ["cu_short.try_file_ilock_excl", "cu_short.unlock_file_ilock_excl", "cu_short.lock_file_ilock_excl"],
    iget_miss: ["create_node.iget_miss", "create_node.try_file_ilock_excl"],
    finish: ["cu_short.defer_finish", "cu_short.trans_commit"],
    commit: ["cu_short.unlock_agi"],
    commit_node: ["cu_node.unlock_agi"],
    release: ["cu_short.unlock_finobt", "cu_short.unlock_inobt", "cu_short.trans_free", "cu_short.unlock_file_ilock_excl_2", "cu_short.unlock_dir_ilock_excl"],
    tail: ["openat.i_rwsem_tail"],
    open: ["openat.after_i_rwsem"],
});

cost_table!(pub(super) NameCosts {
    add_da_node: ["cu_node.lock_dir_da_node_2"],
    add_leafn: ["cu_node.lock_dir_leafn_2"],
    add_freeindex: ["cu_node.lock_dir_freeindex"],
    add_data: ["cu_node.lock_dir_data"],
    remove_da_node: ["cu_node.lock_dir_da_node_3"],
    remove_leafn: ["cu_node.lock_dir_leafn_3"],
    remove_freeindex: ["cu_node.lock_dir_freeindex_2"],
    remove_data: ["cu_node.lock_dir_data_2"],
});

cost_table!(pub(super) ShortCosts {
    look: ["dir_sf.look"],
    add: ["dir_sf.add"],
    remove: ["dir_sf.remove"],
});

cost_table!(pub(super) BlockCosts {
    look: ["dir_block.look"],
    add: ["dir_block.add"],
    remove: ["dir_block.remove"],
    commit: ["dir_block.commit"],
});

cost_table!(pub(super) LeafCosts {
    add: ["dir_leaf.add"],
    remove: ["dir_leaf.remove"],
    commit: ["dir_leaf.commit"],
});

cost_table!(pub(super) ScanCosts {
    name: ["dir_scan.name"],
    run: ["dir_scan.run"],
    node: ["cu_node.lock_dir_leafn"],
    entry: ["dir_leaf.entry"],
    map: ["dir_buffer.map"],
});

cost_table!(pub(super) SpaceCosts {
    agf: ["create_node_agf.read_agf", "create_node_agf.trylock_agf"],
    allocate: ["create_node_agf.lock_agfl", "create_node_agf.unlock_agfl", "create_node_agf.lock_cntbt", "create_node_agf.lock_bnobt", "create_node_agf.lock_bmbt"],
    chunk: ["ialloc.chunk"],
    new_dir_block: ["create_node_agf.lock_dir_freeindex_2"],
    commit: ["create_node_agf.unlock_agi"],
    roll: ["cu_node_agf.lock_bmbt_2", "cu_node_agf.defer_finish_2", "cu_node_agf.trans_roll", "cu_node_agf.trans_dup"],
    free_agf: ["cu_node_agf.read_agf_2", "cu_node_agf.lock_agf"],
    free: ["cu_node_agf.lock_agfl_2", "cu_node_agf.unlock_agfl_2", "cu_node_agf.lock_bnobt_2", "cu_node_agf.lock_cntbt_2", "cu_node_agf.trans_commit_3"],
    free_commit: ["cu_node_agf.unlock_agf_2", "cu_node_agf.unlock_bnobt_2", "cu_node_agf.unlock_cntbt_2", "cu_node_agf.trans_free_3"],
});

cost_table!(pub(super) MkdirCosts {
    walk: ["mkdir_node.enter_mkdirat", "mkdir_node.lock_dir_ilock_shared"],
    reserve: ["mkdir_node.log_reserve", "mkdir_node.trans_alloc", "mkdir_node.lock_dir_ilock_excl"],
    agi: ["mkdir_node.read_agi", "mkdir_node.lock_agi"],
    inode_btrees: ["mkdir_node.lock_finobt", "mkdir_node.lock_inobt"],
    iget_miss: ["mkdir_node.iget_miss", "mkdir_node.try_file_ilock_excl"],
    finish: ["mkdir_node.defer_finish", "mkdir_node.trans_commit"],
    release: ["mkdir_node.unlock_finobt", "mkdir_node.unlock_inobt", "mkdir_node.trans_free", "mkdir_node.unlock_file_ilock_excl", "mkdir_node.unlock_dir_ilock_excl"],
    exit: ["mkdir_node.exit_mkdirat"],
});

cost_table!(pub(super) WriteCosts {
    start: ["tmp_short.enter_write", "tmp_short.lock_file_iolock_excl"],
    attr: ["tmp_short.lock_file_ilock_shared", "tmp_short.unlock_file_ilock_shared", "tmp_short.file_buffered_write"],
    delalloc: ["tmp_short.lock_file_ilock_excl_2", "tmp_short.unlock_file_ilock_excl_3"],
    copy: ["tmp_short.unlock_file_iolock_excl"],
    end: ["tmp_short.exit_write"],
});

cost_table!(pub(super) UnlinkCosts {
    walk: ["cu_short.enter_unlinkat", "unlinkat.before_i_rwsem"],
    lookup: ["unlinkat.under_i_rwsem"],
    reserve: ["cu_short.log_reserve_2", "cu_short.trans_alloc_2", "cu_short.lock_dir_ilock_excl_2", "cu_short.try_file_ilock_excl_2"],
    agi: ["cu_short.iunlink", "cu_short.read_agi_2", "cu_short.lock_agi_2"],
    drop_link: ["cu_short.iunlink"],
    finish: ["cu_short.defer_finish_2", "cu_short.trans_commit_2"],
    commit: ["cu_short.unlock_agi_2"],
    commit_node: ["cu_node.unlock_agi_2"],
    release: ["cu_short.trans_free_2", "cu_short.unlock_file_ilock_excl_3", "cu_short.unlock_dir_ilock_excl_2"],
    tail: ["unlinkat.i_rwsem_tail"],
    evict: ["unlinkat.after_i_rwsem"],
    callback: ["inode_free_by_rcu"],
    queue: ["cu_short.inodegc_queue"],
    exit: ["cu_short.exit_unlinkat"],
    alone: ["unlink_node.lock_dir_da_node", "unlink_node.trans_commit", "unlink_node.unlock_agi"],
    listed: ["unlink_node_list.lock_dir_da_node", "unlink_node_list.trans_commit", "unlink_node_list.lock_inode_cluster", "unlink_node_list.unlock_agi", "unlink_node_list.unlock_inode_cluster"],
    traced_regions: ["iunlink.traced_regions"],
    evict_pages_and_all: ["tmp_short.inode_set_need_inactive"],
    evict_all: ["cu_short.inode_set_need_inactive"],
});

/// All times of the operations.
pub(in crate::filesystems::xfs) struct OperationCosts {
    pub(super) create: CreateCosts,
    pub(super) mkdir: MkdirCosts,
    pub(super) name: NameCosts,
    /// For each name that is passed by in a directory's inode.
    pub(super) short: ShortCosts,
    /// Besides what a directory in its inode takes, where its names are in one block.
    pub(super) block: BlockCosts,
    /// The same where their hashes are in a block of their own.
    pub(super) leaf: LeafCosts,
    /// For each name and free run of a block that is gone through for its largest runs, and each entry of a hash index that moves.
    pub(super) scan: ScanCosts,
    pub(super) space: SpaceCosts,
    pub(super) write: WriteCosts,
    pub(super) unlink: UnlinkCosts,
}

impl OperationCosts {
    pub(in crate::filesystems::xfs) fn new(costs: &crate::filesystems::costs::Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            create: CreateCosts::new(costs)?,
            mkdir: MkdirCosts::new(costs)?,
            name: NameCosts::new(costs)?,
            short: ShortCosts::new(costs)?,
            block: BlockCosts::new(costs)?,
            leaf: LeafCosts::new(costs)?,
            scan: ScanCosts::new(costs)?,
            space: SpaceCosts::new(costs)?,
            write: WriteCosts::new(costs)?,
            unlink: UnlinkCosts::new(costs)?,
        })
    }

    /// A create's commit up to the first release, by how many buffers it has joined.
    pub(super) fn commit_time(&self, form: DirForm, allocates: bool) -> Time {
        match form {
            DirForm::Node if allocates => self.space.commit,
            form => self.create.commit + self.commit_names_time(form),
        }
    }

    /// The same of a remove's.
    pub(super) fn commit_remove_time(&self, form: DirForm) -> Time {
        match form {
            DirForm::Node => self.unlink.commit_node,
            form => self.unlink.commit + self.commit_names_time(form),
        }
    }

    /// What the blocks of a directory's names add to a commit, by its form. A node's are three (data, leaf, free index), a leaf's two.
    pub(super) fn commit_names_time(&self, form: DirForm) -> Time {
        match form {
            DirForm::Short => 0,
            DirForm::Block => self.block.commit,
            DirForm::Leaf => self.leaf.commit,
            DirForm::Node => self.create.commit_node.saturating_sub(self.create.commit),
        }
    }

    /// Looking for a name in a directory's blocks, by its form: a leaf is read and searched as a block is (`xfs_dir2_leaf_lookup_int`).
    pub(super) fn look_up_name_time(&self, form: DirForm) -> Time {
        match form {
            DirForm::Short => 0,
            DirForm::Block | DirForm::Leaf => self.block.look,
            DirForm::Node => self.create.lookup_node,
        }
    }

    /// Going through blocks of names for their largest free runs (`xfs_dir2_data_freescan`), and moving more entries of a hash index than one
    /// of 4 KiB has (`xfs_dir3_leaf_find_entry`): no counted or traced step has it.
    pub(super) fn scan_time(&self, touches: &Touches) -> Time {
        let Scanned { names, runs } = touches.scanned();
        let entries = usize::from(touches.shifted()).saturating_sub(DirGeometry::default().entries());
        self.descent_time(touches)
            + Time::from(names) * self.scan.name
            + Time::from(runs) * self.scan.run
            + entries as Time * self.scan.entry
    }

    /// Searching the nodes between a hash index's root and its leaf, and reading the block below each (`xfs_da3_node_lookup_int`): in the
    /// directories that were traced the root is the only node.
    pub(super) fn descent_time(&self, touches: &Touches) -> Time {
        let nodes = touches.iter().filter(|&(kind, _)| kind == BlockKind::DaNode).count() as Time;
        nodes.saturating_sub(1) * self.scan.node
    }

    /// Finding out where these blocks of directories are, of several blocks of the filesystem each (`xfs_dabuf_map`).
    pub(super) fn map_time(&self, touches: &Touches) -> Time {
        touches.iter().filter(|(kind, _)| kind.is_of_directory()).count() as Time * self.scan.map
    }

    /// Adding a name to a directory, by its form.
    pub(super) fn add_name_time(&self, form: DirForm) -> Time {
        let c = &self.name;
        match form {
            DirForm::Short => 0,
            DirForm::Block => self.block.add,
            DirForm::Leaf => self.leaf.add,
            DirForm::Node => c.add_da_node + c.add_leafn + c.add_freeindex + c.add_data,
        }
    }

    /// Taking one out.
    pub(super) fn remove_name_time(&self, form: DirForm) -> Time {
        let c = &self.name;
        match form {
            DirForm::Short => 0,
            DirForm::Block => self.block.remove,
            DirForm::Leaf => self.leaf.remove,
            DirForm::Node => c.remove_da_node + c.remove_leafn + c.remove_data + c.remove_freeindex,
        }
    }
}
