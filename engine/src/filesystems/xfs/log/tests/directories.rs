//! What checkpoints have of the blocks of a directory.

use super::{checkpoint, mounted, MS};
use crate::filesystems::names::namei::InodeOperations;
use crate::filesystems::xfs::mount::Xfs;
use crate::filesystems::File;
use crate::machine::Context;
use crate::waist::Machine;

/// Names of 16 letters, of which a block holds 126.
fn name(nth: usize) -> Vec<u8> {
    format!("file number {nth:04}").into_bytes()
}

/// Puts all that was logged into its place.
async fn write(m: &Context, fs: &Xfs) {
    checkpoint(m, fs).await;
    while !fs.log.ail.borrow().is_empty() {
        fs.log.pusher.push_all(m);
        m.sleep(100 * MS).await;
    }
}

/// Removes names in one checkpoint: its bytes in the log, from which nothing is written to its place meanwhile.
async fn remove(m: &Context, fs: &Xfs, files: &[File], names: impl IntoIterator<Item = usize>) -> u64 {
    let before = fs.log.ail.borrow().tail_space();
    for nth in names {
        InodeOperations::unlink(fs, m, 0, &name(nth), &files[nth], true).await;
    }
    checkpoint(m, fs).await;
    let after = fs.log.ail.borrow().tail_space();
    after - before
}

#[test]
fn a_checkpoint_has_what_was_logged_of_the_blocks_that_it_changes_and_of_no_others() {
    mounted(10_000 * MS, |m, fs| async move {
        let mut files = Vec::new();
        for nth in 0..1000 {
            let inode = InodeOperations::create(&*fs, &m, 0, &name(nth)).await.expect("there is room");
            files.push(File { inode, written: false, writable: false });
        }
        write(&m, &fs).await;
        remove(&m, &fs, &files, 0..100).await; // of one block, and so of all hash index blocks
        let elsewhere = remove(&m, &fs, &files, [200]).await;
        let there = remove(&m, &fs, &files, [100]).await;
        assert!(there > elsewhere + 3000, "{there} {elsewhere}");
    });
}
