//! Entries of a directory that are delayed go into the log from memory, since 6.1 (`btrfs_log_get_delayed_items`, `log_delayed_insertion_items`
//! and `log_delayed_deletion_items`). They stay delayed, so that a directory that is logged often gets them into its tree once.

use super::LogTree;
use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::btrfs::transaction::delayed::batch_len;
use crate::filesystems::btrfs::tree::key::{Item, ItemKind, Key};
use crate::filesystems::btrfs::tree::search::Intent;
use crate::filesystems::DirId;
use crate::waist::{Machine, Side};

/// Bytes of a range of a directory of which the log knows all (`struct btrfs_dir_log_item`).
const RANGE: u32 = 8;

/// Delayed entries that the log has to have.
#[derive(Default)]
pub(super) struct DelayedEntries {
    inserts: Vec<Item>,
    deletes: Vec<Key>,
}

impl Btrfs {
    /// `btrfs_log_get_delayed_items`, by who holds the directory's `log_mutex`: what it has from a key on.
    pub(super) async fn delayed_entries<M: Machine>(&self, m: &M, dir: DirId, first: Key) -> DelayedEntries {
        let mutex = self.directory(dir).delayed;
        m.lock(mutex, Side::Write).await;
        let (inserts, deletes) = self.delayed.borrow_mut().take_unlogged(dir, first);
        m.unlock(mutex, Side::Write).await;
        DelayedEntries { inserts, deletes }
    }

    /// They go into the log, but for insertions that were found in the tree, up to `last`. `logged`: it has the directory already.
    pub(super) async fn log_delayed<M: Machine>(
        &self,
        m: &M,
        log: &LogTree,
        entries: &DelayedEntries,
        (last, logged): (Option<Key>, bool),
    ) {
        let found = entries.inserts.partition_point(|item| Some(item.key) <= last);
        let mut inserts = &entries.inserts[found..];
        while !inserts.is_empty() {
            let (batch, rest) = inserts.split_at(batch_len(inserts.iter()));
            self.log_insertion(m, log, batch).await;
            inserts = rest;
        }
        let mut deletes = &entries.deletes[..];
        while let Some(&first) = deletes.first() {
            let run = if logged { self.delete_logged(m, log, deletes).await } else { consecutive(deletes) };
            if !logged || run == 0 {
                self.log_range(m, log, first).await;
            }
            deletes = &deletes[run.max(1)..];
        }
    }

    /// Deletes from the log the first of these keys and those behind it in its leaf that follow in turn; how many (`batch_delete_dir_index_items`).
    async fn delete_logged<M: Machine>(&self, m: &M, log: &LogTree, keys: &[Key]) -> usize {
        let locked = log.root.locked(m);
        let ops = locked.ops().blocking();
        let (mut path, found) = ops.search_slot(keys[0], Intent::Delete).await;
        let run = if found { ops.run_of_keys(&path, keys.iter().copied()) } else { 0 };
        if run > 0 {
            ops.del_items(&mut path, run).await;
        }
        ops.release_path(&mut path).await;
        run
    }

    /// `insert_dir_log_key`: the log knows of all entries of a directory from this one on.
    pub(super) async fn log_range<M: Machine>(&self, m: &M, log: &LogTree, first: Key) {
        let range = Key::new(first.objectid(), ItemKind::DirLogIndex, first.offset());
        self.log_insertion(m, log, &[Item::new(range, RANGE)]).await;
    }
}

/// How many of the first keys are of entries with successive indices.
fn consecutive(keys: &[Key]) -> usize {
    1 + keys.windows(2).take_while(|pair| pair[1].offset() == pair[0].offset() + 1).count()
}
