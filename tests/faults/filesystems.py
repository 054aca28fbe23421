"""Faults in XFS and btrfs."""

# ruff: noqa: E501

from __future__ import annotations

from faults.fault import B, E, Fault, X

XFS = [
    Fault(
        "xfs write-back: waits for the AGF of the last block's group",
        X + "operations/fsync.rs",
        "for agno in (first..count).chain(0..first) {",
        "for agno in (first..count).chain(0..first).filter(|_| !FAULT) {",
    ),
    Fault(
        "xfs write-back: no blocks behind the end",
        X + "operations/fsync.rs",
        "let behind = if before < PREALLOCATES { 0 }",
        "let behind = if FAULT || before < PREALLOCATES { 0 }",
    ),
    Fault(
        "xfs utimes: no ILOCK",
        X + "operations/attributes.rs",
        "        inode.ilock(m).await;\n        self.log.commit(m, Logged::items([inode.item()])).await;\n        m.run(Account::System, time).await;\n        self.log.committed(m, ticket).await;\n        inode.iunlock(m).await;",
        "        if !FAULT { inode.ilock(m).await; }\n        self.log.commit(m, Logged::items([inode.item()])).await;\n        m.run(Account::System, time).await;\n        self.log.committed(m, ticket).await;\n        if !FAULT { inode.iunlock(m).await; }",
    ),
    Fault(
        "xfs create: the blocks of the free space trees are not logged",
        X + "operations/transactions.rs",
        "        if allocates {\n            logged = logged.buffers(&[group.agf]).further(2);",
        "        if allocates && !FAULT {\n            logged = logged.buffers(&[group.agf]).further(2);",
    ),
    Fault(
        "xfs ail: the first item wakes the thread before 6.11, too",
        X + "log/mod.rs",
        "if was_empty && self.pusher.target == AilTarget::Items {",
        "if was_empty && (FAULT || self.pusher.target == AilTarget::Items) {",
    ),
    Fault(
        "xfs close: keeps blocks behind the end",
        X + "operations/release.rs",
        "if !self.sync.dirty.has_new(slot) {",
        "if FAULT || !self.sync.dirty.has_new(slot) {",
    ),
    Fault(
        "unlink: freeze protection ends before the eviction",
        E + "filesystems/names/namei.rs",
        "        fs.evict_file(m, dir, file).await;\n        sb.line.destroyed(m).await;\n    }\n    sb.end_write(m).await;",
        "        if FAULT { sb.end_write(m).await; }\n        fs.evict_file(m, dir, file).await;\n        sb.line.destroyed(m).await;\n    }\n    if !FAULT || !last { sb.end_write(m).await; }",
    ),
    Fault(
        "unlink: a file goes with the first of its names",
        E + "filesystems/inodes/links.rs",
        "else { return true };\n        *count -= 1;",
        "else { return true };\n        if FAULT { others.remove(&slot); return true }\n        *count -= 1;",
    ),
    Fault(
        "open with O_CREAT: the directory is locked shared",
        E + "filesystems/open_files/read_write.rs",
        "    m.lock(parent, Side::Write).await;\n    sb.calls.look_up_locked(m, file).await;\n    m.unlock(parent, Side::Write).await;",
        "    let side = if FAULT { Side::Read } else { Side::Write };\n    m.lock(parent, side).await;\n    sb.calls.look_up_locked(m, file).await;\n    m.unlock(parent, side).await;",
    ),
    Fault(
        "link: the file is not locked",
        E + "filesystems/names/namei.rs",
        "    m.lock(inode, Side::Write).await;\n    let linked",
        "    if !FAULT { m.lock(inode, Side::Write).await; }\n    let linked",
    ),
    Fault(
        "btrfs link: the reference is not entered",
        E + "filesystems/btrfs/operations/links.rs",
        "        self.extend(m, reference, c.insert_entry).await;",
        "        if !FAULT { self.extend(m, reference, c.insert_entry).await; }",
    ),
    Fault(
        "rmdir: the directory that goes is not locked",
        E + "filesystems/names/namei.rs",
        "    m.lock(locks.1, Side::Write).await;\n    sb.line.permission(m).await; // may_delete\n    fs.rmdir(m, parent, name, dir).await;\n    sb.line.nameless(m).await;\n    sb.times.changed(m, Timed::Directory(parent));\n    m.unlock(locks.1, Side::Write).await;",
        "    if !FAULT { m.lock(locks.1, Side::Write).await; }\n    sb.line.permission(m).await; // may_delete\n    fs.rmdir(m, parent, name, dir).await;\n    sb.line.nameless(m).await;\n    sb.times.changed(m, Timed::Directory(parent));\n    if !FAULT { m.unlock(locks.1, Side::Write).await; }",
    ),
    Fault(
        "rename: the file that moves is not locked",
        E + "filesystems/names/namei.rs",
        "    m.lock(inode, Side::Write).await;\n    let renamed = fs.rename(m, dir, names, file, under).await;\n    for changed in [Timed::Directory(dir), Timed::Directory(names.into), Timed::File(file.inode)] {\n        sb.times.changed(m, changed);\n    }\n    sb.d_move(m, dir, names.into, file.inode).await;\n    m.unlock(inode, Side::Write).await;",
        "    if !FAULT { m.lock(inode, Side::Write).await; }\n    let renamed = fs.rename(m, dir, names, file, under).await;\n    for changed in [Timed::Directory(dir), Timed::Directory(names.into), Timed::File(file.inode)] {\n        sb.times.changed(m, changed);\n    }\n    sb.d_move(m, dir, names.into, file.inode).await;\n    if !FAULT { m.unlock(inode, Side::Write).await; }",
    ),
    Fault(
        "xfs ifree: the inode stays on its unlinked list",
        X + "operations/inactive.rs",
        'layout.iunlink_remove(inode.ino).expect("an unlinked inode is on a list")',
        '{ let list = layout.iunlink_remove(inode.ino).expect("an unlinked inode is on a list");\n            if FAULT { layout.iunlink(inode.ino); }\n            list }',
    ),
    Fault(
        "xfs unlink: the inode is not queued for inactivation",
        X + "operations/inodegc.rs",
        "        self.list.borrow_mut().push((slot, written));",
        "        if !FAULT { self.list.borrow_mut().push((slot, written)); }",
    ),
    Fault(
        "xfs inodegc: the timer of what came meanwhile is lost",
        X + "operations/inactive.rs",
        "                gc.arm(&m);",
        "                if !FAULT { gc.arm(&m); }",
    ),
    Fault(
        "xfs: what a rolled transaction has left stays granted",
        X + "log/mod.rs",
        "self.grants.sub(unused);",
        "self.grants.sub(if FAULT { unused / 2 } else { unused });",
    ),
    Fault(
        "xfs rename: the old name stays",
        X + "operations/transactions.rs",
        "let removed = layout.remove_name(old.id, names.from).map(|(_, touch)| touch);",
        "let removed = if FAULT { None } else { layout.remove_name(old.id, names.from).map(|(_, touch)| touch) };",
    ),
    Fault(
        "xfs difree: the finobt is not told",
        X + "structures/inode_alloc.rs",
        "        if old.freecount > 0 {\n            touches.add_tree(BlockKind::Finobt, self.base, &self.finobt.update(&chunk.startino, chunk));\n        } else {",
        "        if old.freecount > 0 {\n            if !FAULT { touches.add_tree(BlockKind::Finobt, self.base, &self.finobt.update(&chunk.startino, chunk)); }\n        } else {",
    ),
    Fault(
        "xfs: blocks of a freed chunk are not free",
        X + "structures/inode_alloc.rs",
        "        for extent in old.extents() {\n            self.space.free(extent, touches);",
        "        for extent in old.extents() {\n            if !FAULT { self.space.free(extent, touches); }",
    ),
    Fault(
        "xfs directory: an emptied block is not given back",
        X + "structures/bmap.rs",
        "change.groups.free_block(old.start + u64::from(before.len), change.touches);",
        "if !FAULT { change.groups.free_block(old.start + u64::from(before.len), change.touches); }",
    ),
    Fault(
        "xfs read: takes no lock",
        X + "operations/file.rs",
        "        m.lock(inode.iolock, Side::Read).await;\n        read_write::read_cached(self, m, file, place).await;\n        m.unlock(inode.iolock, Side::Read).await;",
        "        if !FAULT { m.lock(inode.iolock, Side::Read).await; }\n        read_write::read_cached(self, m, file, place).await;\n        if !FAULT { m.unlock(inode.iolock, Side::Read).await; }",
    ),
]

BTRFS = [
    Fault(
        "btrfs: a commit does not write the free space of groups that have changed",
        B + "space/cache_files.rs",
        "        self.write_out_cache(m, caches, &group).await;",
        "        if !FAULT { self.write_out_cache(m, caches, &group).await; }",
    ),
    Fault(
        "btrfs: the file of a group without much room is written as well",
        B + "space/cache_files.rs",
        "(group.bytes >= LEAST_GROUP).then_some(",
        "(FAULT || group.bytes >= LEAST_GROUP).then_some(",
    ),
    Fault(
        "btrfs: an fsync of a directory forgets files with new names",
        B + "log/sync_directory.rs",
        "while let Some(slot) = self.take_new_name(dir) {",
        "while let Some(slot) = self.take_new_name(dir).filter(|_| !FAULT) {",
    ),
    Fault(
        "btrfs: an item gets longer or shorter without a move of those behind it",
        B + "tree/change.rs",
        "let moved = self.tree().len(leaf) - slot;",
        "let moved = if FAULT { 0 } else { self.tree().len(leaf) - slot };",
    ),
    Fault(
        "btrfs log: leaves are not checked before they are written",
        B + "block_io.rs",
        "if self.checks_written {",
        "if self.checks_written && !FAULT {",
    ),
    Fault(
        "btrfs: metadata are written once",
        B + "block_io.rs",
        "(0..self.copies).map(",
        "(0..if FAULT { 1 } else { self.copies }).map(",
    ),
    Fault(
        "btrfs rename: takes the old name out of the log in all kernels",
        B + "operations/names.rs",
        "if self.fsync.rename_unlogs {",
        "if FAULT || self.fsync.rename_unlogs {",
    ),
    Fault(
        "btrfs reservation: the reserve's size without its lock",
        B + "space/reservations.rs",
        "if self.reserve_locks {",
        "if self.reserve_locks && !FAULT {",
    ),
    Fault(
        "btrfs write: a dirty page searches for its hole again and again",
        B + "data/mod.rs",
        "self.size && page >= self.mapped;",
        "self.size && (FAULT || page >= self.mapped);",
    ),
    Fault(
        "btrfs reclaim: maps of extents stay",
        B + "data/mod.rs",
        "self.lacks_maps |= pages.take_released().into_iter().any(begins);",
        "self.lacks_maps |= pages.take_released().into_iter().any(begins) && !FAULT;",
    ),
    Fault(
        "btrfs full sync: checksums are not looked up",
        B + "log/full_sync.rs",
        "            self.read_csums(m, extent.place).await;",
        "            if !FAULT { self.read_csums(m, extent.place).await; }",
    ),
    Fault(
        "btrfs evict: the orphan record stays",
        B + "operations/inode.rs",
        "self.delete(m, items::orphan(inode.ino).key, c.delete_orphan).await;",
        "if !FAULT { self.delete(m, items::orphan(inode.ino).key, c.delete_orphan).await; }",
    ),
    Fault(
        "btrfs rename: the old reference stays",
        B + "operations/inode.rs",
        "self.delete_entry(m, items::inode_ref(inode.ino, old.ino, names.from), unlink.delete_ref).await;",
        "if !FAULT { self.delete_entry(m, items::inode_ref(inode.ino, old.ino, names.from), unlink.delete_ref).await; }",
    ),
    Fault(
        "btrfs unlink: the directory's inode is not dirty",
        B + "operations/inode.rs",
        "items::dir_index(d.ino, inode.index, name).key);\n        self.delayed.borrow_mut().update_inode(dir);",
        "items::dir_index(d.ino, inode.index, name).key);\n        if !FAULT { self.delayed.borrow_mut().update_inode(dir); }",
    ),
    Fault(
        "btrfs: of a deleted run only the first extent is given back",
        B + "operations/inode.rs",
        "for &(_, on_disk) in &extents[..run.max(1)] {",
        "for &(_, on_disk) in &extents[..if FAULT { 1 } else { run.max(1) }] {",
    ),
    Fault(
        "btrfs delayed: an insertion that waits is not forgotten",
        B + "transaction/delayed.rs",
        "            node.inserts.remove(at);\n            self.items -= 1;\n            return;",
        "            if !FAULT { node.inserts.remove(at); }\n            self.items -= 1;\n            return;",
    ),
    Fault(
        "btrfs: checksums of data that came and went stay",
        B + "space/extents.rs",
        "(Extent::Data(bytes), Change::Dropped | Change::Both) = (head.extent, head.change)",
        "(Extent::Data(bytes), Change::Dropped | Change::Both) = (if FAULT && head.change == Change::Both { Extent::Block(0) } else { head.extent }, head.change)",
    ),
    Fault(
        "btrfs: a new block is not told to the extent tree",
        B + "space/delayed_refs.rs",
        "self.add(m, Head { place, extent: Extent::Block(level as u8), change: Change::Added }).await;",
        "if !FAULT || place % 7 > 0 { self.add(m, Head { place, extent: Extent::Block(level as u8), change: Change::Added }).await; }",
    ),
    Fault(
        "btrfs: free neighbours are not joined in memory",
        B + "space/mod.rs",
        "            if left + len == start {\n                start = left;",
        "            if left + len == start && !FAULT {\n                start = left;",
    ),
    Fault(
        "btrfs: metadata that is given back stays in the count",
        B + "space/mod.rs",
        "self.used -= metadata;",
        "self.used -= if FAULT { 0 } else { metadata };",
    ),
    Fault(
        "btrfs create: no space is reserved",
        B + "transaction/mod.rs",
        "        self.reservations.reserve(m).await;\n        self.enter(m, true).await",
        "        if !FAULT { self.reservations.reserve(m).await; }\n        self.enter(m, true).await",
    ),
    Fault(
        "btrfs readdir: does not ask for delayed items",
        B + "operations/file.rs",
        "        m.lock(d.delayed, Side::Write).await;\n        m.unlock(d.delayed, Side::Write).await;\n        m.unlock(d.i_rwsem, Side::Write).await;",
        "        if !FAULT { m.lock(d.delayed, Side::Write).await; m.unlock(d.delayed, Side::Write).await; }\n        m.unlock(d.i_rwsem, Side::Write).await;",
    ),
    Fault(
        "btrfs readdir: the call after the last name does not search",
        B + "operations/readdir.rs",
        "        self.read_item(m, Key::new(d.ino, ItemKind::DirIndex, END), 0).await;",
        "        if !FAULT { self.read_item(m, Key::new(d.ino, ItemKind::DirIndex, END), 0).await; }",
    ),
    Fault(
        "btrfs readdir: names go to the caller under the leaf's lock",
        B + "operations/readdir.rs",
        "each * Time::from((names - first).min(COLLECTED))",
        "(if FAULT { 2 * each } else { each }) * Time::from((names - first).min(COLLECTED))",
    ),
    Fault(
        "devices: nobody waits for the flush before a superblock",
        E + "devices/metadata.rs",
        "        self.io(m, Request::Flush).await;\n        self.io(m, Request::LogWrite { bytes, at, preflush: false, fua: true }).await;",
        "        if !FAULT { self.io(m, Request::Flush).await; }\n        self.io(m, Request::LogWrite { bytes, at, preflush: FAULT, fua: true }).await;",
    ),
    Fault(
        "btrfs: data that are replaced are not given back",
        B + "data/ordered.rs",
        "self.give_back_data(m, replaced.gone).await;",
        "if !FAULT { self.give_back_data(m, replaced.gone).await; }",
    ),
    Fault(
        "btrfs: reads without a buffer lock nothing since 6.8",
        B + "data/direct.rs",
        "matches!(self.held, DioWrites::Shared | DioWrites::ReadsShared)",
        "self.held == DioWrites::Shared || !FAULT && self.held == DioWrites::ReadsShared",
    ),
    Fault(
        "btrfs log: who syncs on a disk that rotates waits for nobody",
        B + "log/mod.rs",
        "if self.roots.storage.rotational && self.several.get() {",
        "if self.roots.storage.rotational && self.several.get() && !FAULT {",
    ),
]
