//! `rename` (`ext4_rename`): the new name in, the old one out, in one handle.

use super::directory::LINEAR_NAMES;
use super::journal::credits;
use super::Ext4;
use crate::filesystems::{DirId, File, Renaming};
use crate::waist::Machine;
use crate::waist::{Access, Account, Side, Time};

impl Ext4 {
    pub(super) async fn rename_file<M: Machine>(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File) {
        let (before, under, after) = self.sb.rename();
        m.at("rename");
        m.run(Account::System, before).await;
        self.sb.start_write(m).await;
        let ((old, old_line, _), (new, new_line, _)) = (self.directory(dir), self.directory(names.into));
        let victim = self.i_rwsem(file);
        self.sb.calls.files.found(m, file.inode);
        self.sb.lock_rename(m, new, old).await;
        m.lock(victim, Side::Write).await;
        m.touch(old_line, Access::Write);
        if names.into != dir {
            m.touch(new_line, Access::Write);
        }
        self.search_leaf(m, dir, names.from);
        self.search_leaf(m, names.into, names.to);
        let handle = self.journal.start(m, credits::RENAME).await;
        m.run(Account::System, under + self.htree_time(dir, names.into)).await;
        let changed = [self.name_blocks(dir, names.from), self.name_blocks(names.into, names.to)].concat();
        self.count_names(dir, -1);
        self.count_names(names.into, 1);
        self.stop(m, handle, file.inode, &changed).await;
        self.sb.d_move(m).await;
        m.unlock(victim, Side::Write).await;
        self.sb.unlock_rename(m, new, old).await;
        self.sb.end_write(m).await;
        m.run(Account::System, after).await;
    }

    /// What the names take longer in directories that are an htree.
    fn htree_time(&self, old: DirId, new: DirId) -> Time {
        let is_htree = |dir| self.directory(dir).2 > LINEAR_NAMES;
        let (enter, leave) = self.htree.rename(&self.create, &self.unlink);
        let of = |dir, time| if is_htree(dir) { time } else { 0 };
        of(new, enter) + of(old, leave)
    }
}
