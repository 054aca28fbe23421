//! What a mounted XFS must be like when nothing is under way: structures as the files need, and the log's space accounted for.

use super::mount::Xfs;
use super::structures::layout;
use crate::filesystems::ledger::Ledger;
use crate::filesystems::{Audit, DirId};
use crate::gathered::gathered;
use std::collections::{BTreeMap, BTreeSet};

impl Audit for Xfs {
    fn under_way(&self) -> Option<&'static str> {
        if !self.storage.writeback.at_rest() {
            return Some("writeback");
        }
        let inactivation = self.inodes.any_inactivating().then_some("inactivation of inodes");
        inactivation.or_else(|| (!self.log.checkpoints.at_rest()).then_some("a checkpoint"))
    }

    fn audit(&self, ledger: &Ledger) -> Result<(), String> {
        let id = |dir: DirId| self.directory(dir).id;
        let names: BTreeMap<layout::DirId, _> =
            gathered(ledger.names().into_iter().map(|(dir, names)| (id(dir), names)));
        let named = self.layout.borrow().audit(&names)?;
        ledger.compare_links(|dir| self.layout.borrow().dir(id(dir)).links())?;
        for (dir, name, slot) in ledger.files() {
            let (core, disk) = (self.inodes.inode(slot).ino, named[&(id(dir), name)]);
            if core != disk {
                return Err(format!("a file is inode {core} in core and {disk} on disk"));
            }
        }
        let further = ledger.files().len() - ledger.inodes().len();
        if gathered::<BTreeSet<u64>, _>(named.values().copied()).len() + further != named.len() {
            return Err("two files have the same inode".to_owned());
        }
        let (granted, held) = (self.log.grants.granted(), self.log.checkpoints.space());
        if granted != held {
            return Err(format!("{granted} bytes of the log are granted, {held} are waiting to be on disk"));
        }
        Ok(())
    }
}
