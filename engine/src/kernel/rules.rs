//! The table of all rules. A rule is a line here, its values beside in its family's file, and its eras in
//! `models/kernels/timeline.yaml`; the default, for specs that do not give it, is that of Linux 6.12.

use super::choice::Choice;
use super::{block, btrfs, ext4, idle, mm, process, sched, time, vfs, workqueue, xfs};
use crate::nearest::hint;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One rule as others see it.
#[derive(Clone, Debug, Serialize)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// The values it can have, in the order in which kernels had them.
    pub values: Vec<Value>,
    /// Its value where a spec does not say.
    pub default: Value,
}

macro_rules! rules {
    ($(#[doc = $about:literal] $name:literal => $field:ident: $choice:ty = $default:expr;)+) => {
        /// The rules of a kernel.
        #[derive(Clone, Copy, Debug, Deserialize)]
        #[serde(try_from = "BTreeMap<String, Value>")]
        pub struct Rules { $(#[doc = $about] pub $field: $choice,)+ }

        impl Default for Rules {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl TryFrom<BTreeMap<String, Value>> for Rules {
            type Error = String;

            fn try_from(given: BTreeMap<String, Value>) -> Result<Self, String> {
                let mut rules = Self::default();
                for (name, value) in &given {
                    let known = match name.as_str() {
                        $($name => choose(value, &mut rules.$field),)+
                        _ => return Err(format!("kernel.rules: unknown rule '{name}'{}", hint(name, [$($name),+]))),
                    };
                    known.map_err(|problem| format!("kernel.rules.{name}: {problem}"))?;
                }
                Ok(rules)
            }
        }

        impl Rules {
            /// All rules there are.
            pub fn table() -> Vec<Rule> {
                vec![$(describe::<$choice>($name, $about, $default),)+]
            }
        }
    };
}

rules! {
    /// CPUs execute one after the other in each round of `cpu_relax`, as those of the laboratory do.
    "cpu.turns" => turns: bool = false;
    /// Which scheduler ordinary tasks have.
    "sched.class" => class: sched::Class = sched::Class::Eevdf;
    /// EEVDF: a running task is protected from wake-up preemption for its slice (`RUN_TO_PARITY`).
    "sched.run_to_parity" => run_to_parity: bool = true;
    /// EEVDF: lag is kept over a sleep (`PLACE_LAG`).
    "sched.place_lag" => place_lag: bool = true;
    /// EEVDF: a new task has half a slice to begin with (`PLACE_DEADLINE_INITIAL`).
    "sched.place_deadline_initial" => place_deadline_initial: bool = true;
    /// EEVDF: who comes from another queue has what was left of its slice (`PLACE_REL_DEADLINE`).
    "sched.place_rel_deadline" => place_rel_deadline: bool = true;
    /// EEVDF: a CPU looks for another task as soon as its own is ahead and not protected (`PREEMPT_SHORT`).
    "sched.preempt_short" => preempt_short: bool = true;
    /// EEVDF: who sleeps ahead of the average stays in the queue until it is not (`DELAY_DEQUEUE`).
    "sched.delay_dequeue" => delay_dequeue: bool = true;
    /// EEVDF: a group whose task goes to sleep is picked again if it has others (`PICK_BUDDY`).
    "sched.pick_buddy" => pick_buddy: bool = false;
    /// Which tasks compete for a CPU as a group: those of the load, one session (`autogroup`) or in one `cgroup`, or none.
    "sched.groups" => groups: sched::Groups = sched::Groups::Autogroup;
    /// A process that ends leaves its session for the root group before its parent is woken (`sched_autogroup_exit_task`).
    "sched.exit_leaves_autogroup" => exit_leaves_autogroup: bool = true;
    /// How many CPUs a wake-up looks at for an idle one (`select_idle_cpu`).
    "sched.wake_scan" => wake_scan: sched::WakeScan = sched::WakeScan::Utilization;
    /// A CPU that switches to a kernel thread or to idle keeps the page tables that are loaded (`enter_lazy_tlb`).
    "sched.lazy_tlb" => lazy_tlb: bool = true;
    /// A wake-up looks at the CPU before the last one too (`recent_used_cpu`).
    "sched.recent_cpu" => recent_cpu: bool = true;
    /// Who wakes a task notes its own CPU as that one, so it mostly has no other to go to (`current->recent_used_cpu`).
    "sched.waker_recent_cpu" => waker_recent_cpu: bool = false;
    /// Whom a kernel thread of its own CPU wakes stays there if that has nothing else to do (`is_per_cpu_kthread`).
    "sched.kthread_stacking" => kthread_stacking: bool = true;
    /// Who wakes somebody on an idle CPU leaves most of it to that CPU (`ttwu_queue_wakelist`).
    "sched.wakeup_queue" => wakeup_queue: bool = true;
    /// What a waker does about a sleeper whose CPU has not switched from it yet (`on_cpu` in `try_to_wake_up`).
    "sched.descheduling" => descheduling: sched::Descheduling = sched::Descheduling::DequeuedFirst;
    /// From which CPUs an idle one takes a task (`group_classify`).
    "sched.busiest" => busiest: sched::Busiest = sched::Busiest::Runnable;
    /// How much busier a NUMA node may become than another (`adjust_numa_imbalance`, `imb_numa_nr`).
    "sched.numa_imbalance" => numa_imbalance: sched::NumaImbalance = sched::NumaImbalance::EighthOfNode;
    /// When a CPU about to idle looks for a task to take (`sched_balance_newidle`).
    "sched.newidle" => newidle: sched::NewIdle = sched::NewIdle::Always;
    /// Spinlocks check and store their owner, which lies in their line (`CONFIG_DEBUG_SPINLOCK`).
    "lock.debug_spinlock" => debug_spinlock: bool = false;
    /// Who changes a list loads the neighbours' pointers first (`CONFIG_DEBUG_LIST`).
    "lock.debug_list" => debug_list: bool = false;
    /// Who releases a semaphore wakes the first waiter when it has given back the inner spinlock (`wake_q` in `up`).
    "lock.semaphore_wake_queue" => semaphore_wake_queue: bool = false;
    /// Who chooses the idle state of a CPU (`drivers/cpuidle/governors`).
    "idle.governor" => governor: idle::Governor = idle::Governor::Residency;
    /// A CPU on which tasks wait for I/O idles less deeply (`performance_multiplier` of the `menu` governor).
    "idle.io_waiters" => io_waiters: bool = true;
    /// How long an idle CPU polls before its governor chooses again (`cpuidle_poll_time`).
    "idle.polling" => polling: idle::Polling = idle::Polling::LongResidency;
    /// How long the host polls for a halted virtual CPU, with the governor `haltpoll` (`kvm_vcpu_halt`).
    "idle.host_polling" => host_polling: idle::HostPolling = idle::HostPolling::Fixed;
    /// How exact the timers of the wheel are (`kernel/time/timer.c`).
    "time.wheel" => wheel: time::Wheel = time::Wheel::Levels;
    /// Where a kernel can be preempted, it is outside of RCU's readers (`CONFIG_PREEMPT_RCU`).
    "rcu.preemptible" => preemptible_rcu: bool = true;
    /// While `ksoftirqd` is awake, interrupts leave softirqs to it (`ksoftirqd_running`).
    "softirq.ksoftirqd_first" => ksoftirqd_first: bool = false;
    /// How the kernel stack of a process is freed that no CPU keeps (`free_thread_stack`).
    "process.stack_free" => stack_free: process::StackFree = process::StackFree::Callback;
    /// What a process has mapped is a maple tree, whose old nodes go to RCU (`ma_free_rcu`).
    "mm.maple_tree" => maple_tree: bool = true;
    /// A process that ends gives way between batches of pages that it frees (`tlb_batch_pages_flush`).
    "mm.gather_gives_way" => gather_gives_way: bool = true;
    /// How pages of a process that ends are freed (`free_pages_and_swap_cache`).
    "mm.page_release" => page_release: mm::PageRelease = mm::PageRelease::Batches;
    /// A process that ends first puts on the list what its CPU has collected (`lru_add_drain` in `exit_mmap`).
    "mm.exit_drains" => exit_drains: bool = true;
    /// A page that is read for the second time goes to the list of active pages (`folio_mark_accessed`).
    "mm.activates" => activates: bool = true;
    /// Areas that a process unmaps go to RCU (`vm_area_free`).
    "mm.area_rcu" => area_rcu: bool = true;
    /// What one `inode_hash_lock` guards.
    "vfs.inode_hash" => inode_hash: vfs::InodeHash = vfs::InodeHash::Global;
    /// How the hash is looked at for an inode that is to come into memory (`iget_locked`).
    "vfs.inode_lookup" => inode_lookup: vfs::InodeLookup = vfs::InodeLookup::Rcu;
    /// A request asks whether its file has mandatory locks (`rw_verify_area`).
    "vfs.mandatory_locks" => mandatory_locks: bool = false;
    /// How many lists of inodes a superblock has.
    "vfs.inode_list" => inode_list: vfs::InodeList = vfs::InodeList::Global;
    /// How many lists of inodes SELinux keeps for a superblock while it has no policy (`inode_doinit_with_dentry`).
    "vfs.isec_list" => isec_list: vfs::IsecList = vfs::IsecList::None;
    /// What one lock of lists of unused dentries guards (`d_lru_add`).
    "vfs.dentry_lru" => dentry_lru: vfs::DentryLru = vfs::DentryLru::PerNode;
    /// The dentry of a name that is removed stays, and says that it is missing (`d_delete`).
    "vfs.unlink_keeps_dentry" => unlink_keeps_dentry: bool = true;
    /// Names that are looked up are in a table (`d_alloc_parallel`).
    "vfs.parallel_lookups" => parallel_lookups: bool = true;
    /// What is in the cache line of the count of inodes without names (`drop_nlink`).
    "vfs.remove_count" => remove_count: vfs::RemoveCount = vfs::RemoveCount::BesideOperations;
    /// An `open` with `O_CREAT` of an absolute path takes a reference of `/` (`try_to_unlazy` in `open_last_lookups`).
    "vfs.creat_counts_root" => creat_counts_root: bool = true;
    /// Who kills a dentry gives its reference of the directory back under the lock by which he unlists it (`__dentry_kill`).
    "vfs.kill_counts_parent" => kill_counts_parent: bool = true;
    /// An open file keeps the reference of its dentry that the walk took (`vfs_open_consume`, a patch).
    "vfs.open_consumes_path" => open_consumes_path: bool = false;
    /// An `open` with `O_CREAT` looks for the name before it locks the directory (`lookup_fast_for_open`).
    "vfs.creat_looks_first" => creat_looks_first: bool = true;
    /// A walk of a path waits while somebody moves a dentry (`path_init`).
    "vfs.walks_read_rename_lock" => walks_read_rename_lock: bool = true;
    /// A loop device gives its requests to a pool of workers (`loop_queue_work`); else it has a thread of its own.
    "block.loop_in_pool" => loop_in_pool: bool = true;
    /// Which CPUs have a pool of workers together for unbound workqueues.
    "workqueue.pods" => workqueue_pods: workqueue::Pods = workqueue::Pods::Cache;
    /// An unbound workqueue that does one item at a time does so on all CPUs together (`__WQ_ORDERED`).
    "workqueue.orders_one" => workqueue_orders_one: bool = false;
    /// Who looks for a buffer in a device's page cache takes its `private_lock` (`__find_get_block_slow`).
    "block.private_lock" => private_lock: bool = true;
    /// What is submitted under a plug joins any request there, and not the last one only (`blk_attempt_plug_merge`).
    "block.plug_merges_any" => plug_merges_any: bool = false;
    /// When a plug is flushed before it takes another request (`blk_add_rq_to_plug`).
    "block.plug_limit" => plug_limit: block::PlugLimit = block::PlugLimit::ThirtyTwoOrLarge;
    /// The flusher has one plug for all files of a round (`wb_writeback`), and not one for each (`writepages`).
    "block.flusher_plugs" => flusher_plugs: bool = true;
    /// Whether who reads writes the inode for its `atime` (`touch_atime`).
    "vfs.atime" => atime: vfs::Atime = vfs::Atime::Relatime;
    /// How fine the times of inodes are (`inode_set_ctime_current`).
    "vfs.inode_clock" => inode_clock: vfs::InodeClock = vfs::InodeClock::Tick;
    /// A closed file goes to RCU (`file_free_rcu`).
    "vfs.file_callback" => file_callback: bool = false;
    /// How the count of a dentry's references is changed (`CMPXCHG_LOOP`).
    "vfs.dentry_ref" => dentry_ref: vfs::DentryRef = vfs::DentryRef::Immediate;
    /// What lies in the cache line of that count.
    "vfs.dentry_line" => dentry_line: vfs::DentryLine = vfs::DentryLine::Apart;
    /// The kernel (4.13 or later) runs with AppArmor, and no profile confines the load (`apparmor_file_alloc_security`).
    "vfs.apparmor" => apparmor: bool = false;
    /// With it, an `open` takes a reference of the label to look at it (`apparmor_file_open`).
    "vfs.apparmor_open_counts" => apparmor_open_counts: bool = false;
    /// How `fstat` finds its file (`vfs_fstatat`).
    "vfs.fstat" => fstat: vfs::FstatCall = vfs::FstatCall::Descriptor;
    /// How a descriptor is given its file (`fd_install`).
    "vfs.fd_install" => fd_install: vfs::FdInstall = vfs::FdInstall::Rcu;
    /// Who gets a new descriptor looks under `file_lock` whether it has a file (`alloc_fd`).
    "vfs.fd_check" => fd_check: bool = true;
    /// Whose locked ranges one lock guards (`posix_lock_inode`).
    "vfs.posix_locks" => posix_locks: vfs::PosixLocks = vfs::PosixLocks::PerFile;
    /// How a reference of an open file is taken (`__fget_files`).
    "vfs.file_ref" => file_ref: vfs::FileRef = vfs::FileRef::Exchanged;
    /// What is in the cache line of that count (`struct file`).
    "vfs.file_line" => file_line: vfs::FileLine = vfs::FileLine::WithOperations;
    /// Whom an unlock of a range wakes of those who wait for it (`locks_wake_up_blocks`).
    "vfs.lock_wakes" => lock_wakes: vfs::LockWakes = vfs::LockWakes::One;
    /// Who has locked a range, or unlocked it, looks under the lock of all files whether anybody waits (`locks_delete_block`).
    "vfs.asks_blocked" => asks_blocked: bool = false;
    /// How a free descriptor is looked for (`find_next_fd`).
    "vfs.fd_search" => fd_search: vfs::FdSearch = vfs::FdSearch::Cleared;
    /// Calls that move the position of a file that others may use lock it (`fdget_pos`).
    "vfs.f_pos_lock" => f_pos_lock: bool = true;
    /// What gives the names of a directory of tmpfs their offsets (`simple_offset_add`).
    "tmpfs.offsets" => directory_offsets: vfs::DirectoryOffsets = vfs::DirectoryOffsets::MapleTree;
    /// How who lists a directory of tmpfs takes a reference of each name's dentry.
    "tmpfs.counts_listed" => tmpfs_counts_listed: vfs::CountsListed = vfs::CountsListed::Alone;
    /// tmpfs counts the changes of a directory (`SB_I_VERSION`).
    "tmpfs.i_version" => tmpfs_i_version: bool = true;
    /// What a commit into the CIL takes `xc_cil_lock` for.
    "xfs.cil" => cil: xfs::Cil = xfs::Cil::PerCpu;
    /// How many checkpoints are written at a time (`xlog_cil_push_work`).
    "xfs.cil_push" => cil_push: xfs::CilPush = xfs::CilPush::Pipelined;
    /// Of what parts the queue of their workers is (`flush_workqueue_prep_pwqs`).
    "xfs.cil_queue" => cil_queue: xfs::CilQueue = xfs::CilQueue::Cpu;
    /// Which writes of a checkpoint flush the device (`xlog_write_iclog`).
    "xfs.log_flushes" => log_flushes: xfs::LogFlushes = xfs::LogFlushes::Ends;
    /// A checkpoint puts the items of lists by CPU into their order first (`xlog_cil_order_cmp`).
    "xfs.cil_order" => cil_order: bool = true;
    /// Transactions under way are counted in one word of the mount (`m_active_trans`).
    "xfs.counts_transactions" => counts_transactions: bool = false;
    /// Who logs an inode translates its owner by the superblock's `s_user_ns` (`xfs_inode_to_log_dinode`).
    "xfs.translates_owner" => translates_owner: bool = true;
    /// Inodes are made with room for attributes, as a security module labels them (`xfs_create_need_xattr`).
    "xfs.attribute_forks" => attribute_forks: bool = true;
    /// Inodes can know their names and directories (`xfs_has_parent`), if the filesystem was made so.
    "xfs.parent_pointers" => parent_pointers: bool = true;
    /// It is built with `CONFIG_XFS_DEBUG`.
    "xfs.debug" => xfs_debug: bool = false;
    /// Who takes or frees an inode asks whether the count of free ones is below zero (`xfs_mod_ifree`).
    "xfs.ifree_compare" => ifree_compare: bool = false;
    /// The buffers of a group are in a hash table that grows (`pag_buf_hash`), not in a tree.
    "xfs.buffer_hash" => buffer_hash: bool = true;
    /// Who frees unlinked inodes (`xfs_inodegc`).
    "xfs.inodegc" => inodegc: xfs::Inactivation = xfs::Inactivation::PerCpu;
    /// What a `statfs` does about unlinked inodes that wait for a worker (`xfs_fs_statfs`).
    "xfs.statfs_inodegc" => statfs_inodegc: xfs::StatfsInodegc = xfs::StatfsInodegc::Push;
    /// Who takes the number of an inode that is still in core waits for a grace period (`xfs_iget_recycle`).
    "xfs.recycle_waits" => recycle_waits: bool = false;
    /// When the pointers of unlinked lists are changed in the inodes' buffers (`xfs_iunlink`).
    "xfs.iunlink" => iunlink: xfs::UnlinkedList = xfs::UnlinkedList::InMemory;
    /// How `fsync` holds the ILOCK (`xfs_fsync_flush_log`).
    "xfs.fsync_ilock" => fsync_ilock: xfs::FsyncIlock = xfs::FsyncIlock::HeldIfPinned;
    /// What extents are made of delayed blocks (`xfs_bmapi_convert_delalloc`).
    "xfs.delalloc" => delalloc: xfs::Delalloc = xfs::Delalloc::Unwritten;
    /// After which log force `fsync` does not flush the device itself (`xfs_file_fsync`).
    "xfs.log_flushed" => log_flushed: xfs::LogFlushed = xfs::LogFlushed::Wrote;
    /// What tells `xfsaild` how far to push (`xlog_grant_push_ail`, `xfs_ail_calc_push_target`).
    "xfs.ail_target" => ail_target: xfs::AilTarget = xfs::AilTarget::Items;
    /// What `xfsaild` does about pinned items (`xfsaild_push`).
    "xfs.ail_force" => ail_force: xfs::AilForce = xfs::AilForce::Queues;
    /// How `xfsaild` goes along the AIL (`xfsaild_push`).
    "xfs.ail_turn" => ail_turn: xfs::AilTurn = xfs::AilTurn::Submits;
    /// Whose `close` tries for the IOLOCK (`xfs_file_release`).
    "xfs.release" => release: xfs::Release = xfs::Release::Writers;
    /// A buffered write gets large folios (`mapping_set_large_folios`, `iomap_get_folio`).
    "xfs.large_folios" => xfs_large_folios: bool = true;
    /// How a direct write looks at the file's size.
    "xfs.dio_size_check" => dio_size_check: xfs::DioSizeCheck = xfs::DioSizeCheck::Lockless;
    /// What a direct write of less than a block takes of the IOLOCK (`xfs_file_dio_write_unaligned`).
    "xfs.dio_unaligned" => dio_unaligned: xfs::DioUnaligned = xfs::DioUnaligned::Shared;
    /// What lies in the cache line of the ILOCK's count (`struct xfs_inode`).
    "xfs.ilock_line" => ilock_line: xfs::IlockLine = xfs::IlockLine::Apart;
    /// What lies in the cache line of the IOLOCK's count (`struct inode` in `struct xfs_inode`).
    "xfs.iolock_line" => iolock_line: xfs::IolockLine = xfs::IolockLine::Apart;
    /// An insertion that fits the leaf unlocks the leaf's parent before it searches the leaf.
    "btrfs.early_unlock" => early_unlock: bool = true;
    /// A leaf that a deletion leaves nearly empty pushes to its neighbours what they have room for (`btrfs_del_items`).
    "btrfs.pushes_some_items" => pushes_some_items: bool = false;
    /// An extent takes the place of others without another search only where these lie in one leaf (`btrfs_drop_extents`).
    "btrfs.replaces_in_one_leaf" => replaces_in_one_leaf: bool = false;
    /// Checksums go into an item that ends where they begin without another search (`btrfs_csum_file_blocks`).
    "btrfs.extends_csums_in_place" => extends_csums_in_place: bool = true;
    /// In the log they do also where that is the last item of its leaf.
    "btrfs.log_joins_last_csums" => log_joins_last_csums: bool = false;
    /// The inode of a new file is written once more, as a delayed item.
    "btrfs.delays_new_inodes" => delays_new_inodes: bool = false;
    /// When a write in place asks whether its extent is shared (`run_delalloc_nocow`).
    "btrfs.nocow_check" => nocow_check: btrfs::NocowCheck = btrfs::NocowCheck::PathReleased;
    /// When what is delayed is done for the room reserved (`need_preemptive_reclaim`).
    "btrfs.reclaim" => reclaim: btrfs::MetadataReclaim = btrfs::MetadataReclaim::Preemptive;
    /// Who reserves room sums two counters over all CPUs to ask for that (`need_preemptive_reclaim`).
    "btrfs.preempt_sums" => preempt_sums: bool = false;
    /// And reads the size of a reserve under the reserve's own lock (`btrfs_block_rsv_reserved`).
    "btrfs.reserve_locks" => reserve_locks: bool = true;
    /// A write before the end of its file asks whether there is an extent (`btrfs_find_new_delalloc_bytes`).
    "btrfs.finds_new_bytes" => finds_new_bytes: bool = true;
    /// What who finds no room for metadata does (`__reserve_bytes`).
    "btrfs.reserving" => reserving: btrfs::Reserving = btrfs::Reserving::Tickets;
    /// Who starts a change of items reserves room for as many delayed references, too (`btrfs_reserve_trans_metadata`).
    "btrfs.reserves_refs" => reserves_refs: bool = true;
    /// How a search makes blocking locks of its path spinning again (`btrfs_clear_path_blocking`).
    "btrfs.path_clearing" => path_clearing: btrfs::PathClearing = btrfs::PathClearing::Never;
    /// The items of leaves are checked before they are written (`btrfs_check_leaf` in `btree_csum_one_bio`).
    "btrfs.checks_written" => checks_written: bool = true;
    /// Who computes the checksums of data that nobody waits for (`should_async_write`).
    "btrfs.data_sums" => data_sums: btrfs::DataSums = btrfs::DataSums::Submitter;
    /// When the flusher writes tree blocks (`btree_writepages`).
    "btrfs.btree_writepages" => btree_writepages: btrfs::BtreeWritepages = btrfs::BtreeWritepages::Many;
    /// A write of at most a tree block's size through the page cache waits for trees, too (`btrfs_buffered_write`).
    "btrfs.writes_balance_trees" => writes_balance_trees: bool = false;
    /// How often tree blocks are written (`mkfs.btrfs -m`).
    "btrfs.metadata_profile" => metadata_profile: btrfs::MetadataProfile = btrfs::MetadataProfile::Dup;
    /// Where free space is kept on disk (`space_cache=v1` or `v2`).
    "btrfs.space_cache" => space_cache: btrfs::SpaceCache = btrfs::SpaceCache::Tree;
    /// Data of three sizes lie in block groups of their own (`btrfs_bg_size_class`).
    "btrfs.size_classes" => size_classes: bool = true;
    /// What waits while a commit holds `tree_log_mutex`.
    "btrfs.tree_log_mutex" => tree_log_mutex: btrfs::TreeLogMutex = btrfs::TreeLogMutex::LogSuper;
    /// When an fsync commits the whole transaction because of renames (`btrfs_record_unlink_dir`).
    "btrfs.full_commit" => full_commit: btrfs::FullCommit = btrfs::FullCommit::Directory;
    /// From when on a rename keeps the log from being written (`btrfs_rename`).
    "btrfs.rename_pin" => rename_pin: btrfs::RenamePin = btrfs::RenamePin::Joined;
    /// And takes `log_mutex` to say so (`btrfs_pin_log_trans`).
    "btrfs.pin_locks_log" => pin_locks_log: bool = false;
    /// A rename takes the old name out of the log before it puts the new one there (`__btrfs_unlink_inode`).
    "btrfs.rename_unlogs" => rename_unlogs: bool = false;
    /// Who takes a name out of a logged directory changes the directory's inode there, too (`btrfs_del_dir_entries_in_log`).
    "btrfs.unlink_logs_inode" => unlink_logs_inode: bool = false;
    /// Whether the log has an inode (`inode_logged`).
    "btrfs.inode_logged" => inode_logged: btrfs::InodeLogged = btrfs::InodeLogged::Searched;
    /// A rename asks in the same way whether the log is to have the new name (`btrfs_log_new_name`), and not memory alone.
    "btrfs.new_name_asks" => new_name_asks: bool = true;
    /// What lies in the cache line of a space_info's lock (`struct btrfs_space_info`).
    "btrfs.space_info_line" => space_info_line: btrfs::SpaceInfoLine = btrfs::SpaceInfoLine::WithUse;
    /// An inode in memory holds a reference on its subvolume's root (`btrfs_grab_root`).
    "btrfs.inodes_hold_root" => inodes_hold_root: bool = true;
    /// In what a subvolume's inodes are found that are in memory (`struct btrfs_root`).
    "btrfs.inode_index" => inode_index: btrfs::InodeIndex = btrfs::InodeIndex::Xarray;
    /// A rename, and a clone, begins what is delayed and waits where that is too much (`btrfs_btree_balance_dirty`).
    "btrfs.rename_balances" => rename_balances: bool = true;
    /// An inode in which a search found no extended attributes is not searched again (`BTRFS_INODE_NO_XATTRS`).
    "btrfs.remembers_no_xattrs" => remembers_no_xattrs: bool = true;
    /// A rename of a file that the log has syncs the log, or commits (`btrfs_log_new_name`).
    "btrfs.rename_syncs_log" => rename_syncs_log: bool = false;
    /// An fsync of a file that got or lost one of several names logs the directories of all (`btrfs_log_all_parents`).
    "btrfs.logs_parents" => logs_parents: bool = true;
    /// An fsync of a new file logs new directories above it that the log already has (`log_new_ancestors`).
    "btrfs.relogs_ancestors" => relogs_ancestors: bool = false;
    /// An fsync of a new file with the name of a deleted one logs the directory (`log_conflicting_inodes`).
    "btrfs.logs_parent_of_deleted" => logs_parent_of_deleted: bool = false;
    /// What an fsync that logs only what has changed waits for (`btrfs_sync_file`).
    "btrfs.fsync_wait" => fsync_wait: btrfs::FsyncWait = btrfs::FsyncWait::Writeback;
    /// An fsync does not take a file for logged while writes of it are under way (`skip_inode_logging`).
    "btrfs.fsync_asks_ordered" => fsync_asks_ordered: bool = true;
    /// How direct writes of data with checksums are done (`btrfs_direct_write`).
    "btrfs.direct_write" => direct_write: btrfs::DirectWrite = btrfs::DirectWrite::Direct;
    /// What a direct write holds.
    "btrfs.dio_writes" => btrfs_dio_writes: btrfs::DioWrites = btrfs::DioWrites::ReadsShared;
    /// With what handle an inode is marked dirty (`btrfs_dirty_inode`).
    "btrfs.dirty_inode" => dirty_inode: btrfs::DirtyInode = btrfs::DirtyInode::Joins;
    /// When a commit that waits for the one before keeps out who starts a handle (`btrfs_commit_transaction`).
    "btrfs.commit_start" => commit_start: btrfs::CommitStart = btrfs::CommitStart::AfterPrevious;
    /// Of several tasks that want a commit, who runs delayed references before it (`btrfs_commit_transaction`).
    "btrfs.commit_flush" => commit_flush: btrfs::CommitFlush = btrfs::CommitFlush::First;
    /// What reclaiming a page does to the next fsync of its file (`try_release_extent_mapping`).
    "btrfs.extent_map_release" => extent_map_release: btrfs::ExtentMapRelease = btrfs::ExtentMapRelease::OldMaps;
    /// How checksums are put into the log (`log_csums`).
    "btrfs.log_csums" => log_csums: btrfs::LogCsums = btrfs::LogCsums::Insert;
    /// A full sync copies all items of a file in the leaves that the transaction has changed (`copy_items`).
    "btrfs.copies_old_extents" => copies_old_extents: bool = false;
    /// Who logs an extent fills its item in the log's leaf (`log_one_extent`).
    "btrfs.fills_item_in_leaf" => fills_item_in_leaf: bool = false;
    /// How an inode is logged (`btrfs_log_inode`).
    "btrfs.log_inode" => log_inode: btrfs::LogInode = btrfs::LogInode::LeafCloned;
    /// How a directory is logged (`log_dir_items`).
    "btrfs.log_directory" => log_directory: btrfs::LogDirectory = btrfs::LogDirectory::Delayed;
    /// What a direct read holds; `unlocked` is the mount option `dioread_nolock` of kernels where it is exclusive.
    "ext4.dio_reads" => dio_reads: ext4::DioReads = ext4::DioReads::Shared;
    /// What a direct write holds; `relocked` is the mount option `dioread_nolock` of kernels where it is exclusive.
    "ext4.dio_writes" => dio_writes: ext4::DioWrites = ext4::DioWrites::Shared;
    /// What a direct write of part of a block holds (`ext4_dio_write_checks`).
    "ext4.dio_unaligned" => ext4_dio_unaligned: ext4::DioUnaligned = ext4::DioUnaligned::Shared;
    /// What a direct write into blocks that were allocated and not written holds.
    "ext4.dio_unwritten" => dio_unwritten: ext4::DioUnwritten = ext4::DioUnwritten::Shared;
    /// When a direct write into such blocks splits their extent, and in which journal handles (`ext4_iomap_begin`).
    "ext4.dio_split" => dio_split: ext4::DioSplit = ext4::DioSplit::Before;
    /// New blocks of buffered writes are unwritten until a worker converts them (`ext4_should_dioread_nolock`).
    "ext4.dioread_nolock" => dioread_nolock: bool = true;
    /// A direct write starts a journal handle although its blocks are there (`ext4_iomap_alloc`).
    "ext4.dio_handles" => dio_handles: bool = false;
    /// Who asks whether the transaction of the inode's last change is over (`jbd2_transaction_committed`).
    "ext4.committed_check" => committed_check: ext4::CommittedCheck = ext4::CommittedCheck::Lockless;
    /// The largest part of the log that a transaction may have (`jbd2_journal_get_max_txn_bufs`).
    "ext4.transaction_size" => transaction_size: ext4::TransactionSize = ext4::TransactionSize::Third;
    /// How far a commit looks for buffers that were written to their places.
    "ext4.checkpoint_scan" => checkpoint_scan: ext4::CheckpointScan = ext4::CheckpointScan::Stops;
    /// Who looks blocks up asks the tree of extents in memory before `i_data_sem` (`ext4_es_lookup_extent`).
    "ext4.extent_status" => extent_status: bool = true;
    /// How a page that has no block yet is put into that tree (`ext4_da_map_blocks`).
    "ext4.delayed_insert" => delayed_insert: ext4::DelayedInsert = ext4::DelayedInsert::Exclusive;
    /// A change of attributes takes `s_orphan_lock` to see that the inode is no orphan (`ext4_orphan_del`).
    "ext4.setattr_orphan" => setattr_orphan: bool = false;
    /// Without a journal inodes that were freed a moment ago are passed by (`recently_deleted`).
    "ext4.avoids_freed" => avoids_freed: bool = true;
    /// Without a journal an `fsync` has the inode's lock (`__generic_file_fsync`).
    "ext4.fsync_locks" => fsync_locks: bool = false;
    /// Who marks an inode dirty asks twice whether the filesystem was shut down (`ext4_forced_shutdown`).
    "ext4.shutdown_checks" => shutdown_checks: bool = true;
    /// Who gets a block to write looks for errors of the device beside `j_list_lock` (`jbd2_check_fs_dev_write_error`).
    "ext4.device_checks" => device_checks: bool = true;
    /// Who removes a name of a directory of one block writes zeros over its record (`ext4_generic_delete_entry`).
    "ext4.wipes_entries" => wipes_entries: bool = true;
    /// The superblock's buffer is locked while the list of orphans changes it, and the checksum written then.
    "ext4.locked_superblock" => locked_superblock: bool = true;
    /// A truncation within a block takes `j_list_lock` although the inode is on the transaction's list (`jbd2_journal_file_inode`).
    "ext4.ordered_range" => ordered_range: bool = true;
    /// A buffered write starts a journal handle for each page (`ext4_da_write_begin`).
    "ext4.write_handles" => write_handles: bool = false;
    /// Who has written a file's pages back starts one more handle, finds no page and stops it (`ext4_writepages`).
    "ext4.vain_handle" => vain_handle: bool = false;
    /// A buffered write that makes a file longer has its inode dirty in a handle (`ext4_da_write_end`, `mark_inode_dirty`).
    "ext4.append_dirties" => append_dirties: bool = false;
    /// Who opens a file takes a reference of its directory, to look whether it is encrypted (`fscrypt_file_open`).
    "ext4.open_counts_directory" => open_counts_directory: bool = false;
    /// A buffered write gets large folios (`mapping_set_large_folios`).
    "ext4.large_folios" => ext4_large_folios: bool = false;
    /// Who finds that another took the inode that he chose looks for the next under the group's lock (`__ext4_new_inode`).
    "ext4.locked_inode_search" => locked_inode_search: bool = true;
    /// How many more directories than the average a flex group may have grows with its size (`find_group_orlov`).
    "ext4.directories_by_flex" => directories_by_flex: bool = true;
    /// The generation of a new inode is counted under `s_next_gen_lock`.
    "ext4.next_generation" => next_generation: bool = false;
    /// Where lookups of extents in memory are counted (`es_stats_cache_hits`).
    "ext4.es_stats" => es_stats: ext4::EsStats = ext4::EsStats::PerCpu;
    /// What a request for blocks does about a group that is locked (`ext4_try_lock_group`).
    "ext4.busy_groups" => busy_groups: ext4::BusyGroups = ext4::BusyGroups::Wait;
    /// Who searches a group for a few blocks measures the whole run of free blocks at each piece of it that he looks at.
    "ext4.measures_runs" => measures_runs: bool = true;
    /// Who searches for blocks sets a bit of each group of the flex group from there on (`ext4_mb_prefetch`).
    "ext4.prefetches_groups" => prefetches_groups: bool = true;
    /// Who frees blocks gives the group's lock back between the bitmap and the list of what is freed (`ext4_mb_mark_context`).
    "ext4.frees_apart" => frees_apart: bool = true;
    /// Who changes a block sets bits of its buffer although they are set (`set_buffer_meta`, `set_buffer_prio`).
    "ext4.sets_buffer_bits" => sets_buffer_bits: bool = false;
    /// Where requests of large files begin to search (`s_mb_last_group`).
    "ext4.stream_goal" => stream_goal: ext4::StreamGoal = ext4::StreamGoal::Locked;
    /// What is done under `s_md_lock` for an extent that is freed (`ext4_mb_free_metadata`).
    "ext4.freed_extents" => freed_extents: ext4::FreedExtents = ext4::FreedExtents::Listed;
    /// How an md array passes a flush on to its members (`md_flush_request`).
    "md.flush" => md_flush: block::MdFlush = block::MdFlush::Inline;
}

fn choose<C: Choice>(given: &Value, chosen: &mut C) -> Result<(), String> {
    *chosen = C::ALL[place(given, &|at| C::ALL.get(at).map(|value| value.written()))?];
    Ok(())
}

/// Where a value stands among those of a rule: the part that all rules have in common.
fn place(given: &Value, value: &dyn Fn(usize) -> Option<Value>) -> Result<usize, String> {
    let known: Vec<_> = (0..).map_while(value).collect();
    known.iter().position(|value| value == given).ok_or_else(|| {
        let known: Vec<_> = known.iter().map(Value::to_string).collect();
        format!("{given} is not one of {}", known.join(", "))
    })
}

fn describe<C: Choice>(name: &'static str, about: &'static str, default: C) -> Rule {
    described(name, about, &|at| C::ALL.get(at).map(|value| value.written()), default.written())
}

fn described(name: &'static str, about: &'static str, value: &dyn Fn(usize) -> Option<Value>, default: Value) -> Rule {
    Rule { name, about: about.trim(), values: (0..).map_while(value).collect(), default }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &str, value: Value) -> Result<Rules, String> {
        Rules::try_from(BTreeMap::from([(name.to_owned(), value)]))
    }

    #[test]
    fn every_rule_takes_each_of_its_values_and_nothing_else() {
        for rule in Rules::table() {
            assert!(rule.values.len() > 1 && rule.values.contains(&rule.default), "{}", rule.name);
            for value in &rule.values {
                given(rule.name, value.clone()).expect(rule.name);
            }
            assert!(given(rule.name, "no such value".into()).expect_err(rule.name).contains(rule.name));
            assert!(given(rule.name, 1.into()).is_err());
        }
    }

    #[test]
    fn a_rule_that_is_given_is_the_only_one_that_changes() {
        let rules = given("xfs.cil", "global".into()).expect("a value of it");
        assert_eq!((rules.cil, rules.cil_push), (xfs::Cil::Global, xfs::CilPush::Pipelined));
        assert!(given("xfs.cli", "global".into()).expect_err("no such rule").contains("unknown rule 'xfs.cli'"));
    }
}
