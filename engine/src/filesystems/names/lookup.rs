//! Names of files that are not in memory (`fs/namei.c`: `lookup_slow`; `lookup_one_qstr_excl` where the directory is locked already): a new
//! dentry, the filesystem's `lookup`, which finds the name and reads the inode, and both enter the caches. Who uses the file then gives the
//! dentry back, which nobody else has, so that it comes onto the list of unused ones (`dput`).

use super::namei::InodeOperations;
use crate::filesystems::inodes::listed;
use crate::filesystems::{DirId, File};
use crate::waist::{Machine, Side};

/// The walk to a name whose file is not in memory, from a directory that is open (`fts_open` of `find`, `chmod -R` and `rm -r`): it takes a
/// reference of the directory (`try_to_unlazy`), and its lock shared, or exclusive for an `open` that may create. That one begins at the root,
/// of which it takes a reference, too (`legitimize_root`).
pub async fn look_up_cold<M: Machine, F: InodeOperations<M>>(
    fs: &F,
    m: &M,
    (dir, name): (DirId, &[u8]),
    file: &File,
    side: Side,
) {
    let (sb, parent) = (fs.super_block(), fs.directory_lock(dir));
    m.at("lookup");
    let from_root = side == Side::Write;
    if from_root {
        sb.calls.get_root(m).await;
    }
    sb.calls.get_directory(m, dir).await;
    m.lock(parent, side).await;
    bring_in(fs, m, (dir, name), file).await;
    m.unlock(parent, side).await;
    sb.calls.put_directory(m, dir).await; // terminate_walk
    if from_root {
        sb.calls.put_root(m).await;
    }
}

/// The lookup of a name, in a directory that is locked, unless its file is in memory.
pub async fn bring_in<M: Machine, F: InodeOperations<M>>(fs: &F, m: &M, (dir, name): (DirId, &[u8]), file: &File) {
    let (sb, slot) = (fs.super_block(), file.inode);
    if !sb.cold.has(slot) {
        return;
    }
    sb.cold.comes(slot); // others find its dentry from now on
    sb.calls.d_alloc(m, dir).await;
    sb.calls.rename_lock.d_lookup(m).await;
    let lookup = sb.calls.dcache.look_up(m, dir, name);
    sb.calls.made(m, slot, (dir, name));
    fs.look_up_inode(m, dir, name, file).await;
    sb.instantiate(m, listed::file(slot)).await;
    sb.calls.dcache.looked_up(m, lookup);
    sb.calls.is_child(m, dir, listed::file(slot));
    if sb.calls.files.enters_list(slot) {
        sb.calls.dcache.unused_of(m, slot).await;
    }
}
