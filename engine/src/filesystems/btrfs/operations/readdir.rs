//! Listing a directory (`btrfs_real_readdir` of Linux 4.14 to 6.18).
//!
//! Left out: entries of one directory in several leaves, and that the call after the last name takes the directory's lock anew.

use super::super::mount::Btrfs;
use super::super::tree::items;
use super::super::tree::key::{ItemKind, Key};
use crate::filesystems::DirId;
use crate::waist::Machine;
use crate::waist::{Access, Account, Time};

/// Entries that are collected at a time: a page of `struct dir_entry`, 24 bytes and a name, here of eight.
const COLLECTED: u32 = 4096 / (24 + 8);
/// Where who has read all entries goes on (`ctx->pos`).
const END: u64 = i32::MAX as u64;

impl Btrfs {
    /// Entries are collected with their leaf locked, a page of them at a time, and given to the caller without it. The call after the
    /// last name searches as well.
    pub(super) async fn list_names<M: Machine>(&self, m: &M, dir: DirId, names: u32, time: Time) {
        let (d, each) = (self.directory(dir), self.costs.readdir.collect);
        m.touch(d.line, Access::Read);
        let first_entry = items::dir_index(d.ino, items::DIR_START_INDEX, b"").key;
        let searches = 2 * self.fs_root(d.ino).root.unlocked_search(); // which the time has
        m.run(Account::System, time.saturating_sub(each * Time::from(names) + searches)).await;
        for first in (0..names.max(1)).step_by(COLLECTED as usize) {
            self.read_item(m, first_entry, each * Time::from((names - first).min(COLLECTED))).await;
        }
        self.read_item(m, Key::new(d.ino, ItemKind::DirIndex, END), 0).await;
    }
}
