"""Faults in XFS."""

# ruff: noqa: E501

from __future__ import annotations

from faults.fault import E, Fault, X

XFS = [
    Fault(
        "xfs counts: free inodes are added up however many there are",
        E + "filesystems/percpu_counters.rs",
        "        if count > self.enough {",
        "        if !FAULT && count > self.enough {",
    ),
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
        "        fs.evict_file(m, dir, file).await;\n        sb.destroy_inode(m, listed::file(slot)).await;\n    }\n    sb.end_write(m).await;",
        "        if FAULT { sb.end_write(m).await; }\n        fs.evict_file(m, dir, file).await;\n        sb.destroy_inode(m, listed::file(slot)).await;\n    }\n    if !FAULT || !last { sb.end_write(m).await; }",
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
        "    m.lock(locks.1, Side::Write).await;\n    sb.line.permission(m).await; // may_delete\n    fs.rmdir(m, parent, name, dir).await;\n    sb.line.nameless(m).await;\n    shrink_children(sb, m, dir).await;\n    sb.times.changed(m, Timed::Directory(parent));\n    m.unlock(locks.1, Side::Write).await;",
        "    if !FAULT { m.lock(locks.1, Side::Write).await; }\n    sb.line.permission(m).await; // may_delete\n    fs.rmdir(m, parent, name, dir).await;\n    sb.line.nameless(m).await;\n    shrink_children(sb, m, dir).await;\n    sb.times.changed(m, Timed::Directory(parent));\n    if !FAULT { m.unlock(locks.1, Side::Write).await; }",
    ),
    Fault(
        "rename: the file that moves is not locked",
        E + "filesystems/names/namei.rs",
        "    m.lock(inode, Side::Write).await;\n    let renamed = fs.rename(m, dir, names, file, under).await;\n    for changed in [Timed::Directory(dir), Timed::Directory(names.into), Timed::File(file.inode)] {\n        sb.times.changed(m, changed);\n    }\n    sb.d_move(m, dir, names.into, file.inode).await;\n    kill_replaced(sb, m, (names.into, names.to)).await;\n    m.unlock(inode, Side::Write).await;",
        "    if !FAULT { m.lock(inode, Side::Write).await; }\n    let renamed = fs.rename(m, dir, names, file, under).await;\n    for changed in [Timed::Directory(dir), Timed::Directory(names.into), Timed::File(file.inode)] {\n        sb.times.changed(m, changed);\n    }\n    sb.d_move(m, dir, names.into, file.inode).await;\n    kill_replaced(sb, m, (names.into, names.to)).await;\n    if !FAULT { m.unlock(inode, Side::Write).await; }",
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
        "change.groups.free_run(old.start + u64::from(before.len), len, change.touches);",
        "if !FAULT { change.groups.free_run(old.start + u64::from(before.len), len, change.touches); }",
    ),
    Fault(
        "xfs directory: the tree of hashes has blocks of 4 KiB",
        X + "structures/directory/geometry.rs",
        "        (self.bytes() - LEAF_HEADER) / HASH_ENTRY\n",
        "        (if FAULT { 4096 } else { self.bytes() } - LEAF_HEADER) / HASH_ENTRY\n",
    ),
    Fault(
        "xfs directory: a commit copies no more than 4 KiB of a larger block",
        X + "log/mod.rs",
        "further += if large.is_some() { ail",
        "further += if !FAULT && large.is_some() { ail",
    ),
    Fault(
        "xfs parents: a rename replaces the attribute in one transaction",
        X + "operations/parents.rs",
        "ParentChange::Replace => [Some(",
        "ParentChange::Replace if FAULT => [None, Some(last(c.set))],\n            ParentChange::Replace => [Some(",
    ),
    Fault(
        "xfs read: takes no lock",
        X + "operations/file.rs",
        "        m.lock(inode.iolock, Side::Read).await;\n        read_write::read_cached(self, m, file, place).await;\n        m.unlock(inode.iolock, Side::Read).await;",
        "        if !FAULT { m.lock(inode.iolock, Side::Read).await; }\n        read_write::read_cached(self, m, file, place).await;\n        if !FAULT { m.unlock(inode.iolock, Side::Read).await; }",
    ),
    Fault(
        "xfs read: random reads make no page active",
        X + "operations/file_io.rs",
        "self.sb.calls.mark_accessed(m, file, (io.offset, io.bytes)).await;",
        "if !FAULT { self.sb.calls.mark_accessed(m, file, (io.offset, io.bytes)).await; }",
    ),
    Fault(
        "pages: files that were only written have been read",
        "engine/src/filesystems/pages/data_pages.rs",
        "let before = if file.read {",
        "let before = if file.read || (FAULT && file.laid_out) {",
    ),
    Fault(
        "xfs create: waits for no inode that is being freed",
        X + "operations/enospc.rs",
        'let waits: Vec<_> = self.inodegc.iter().filter_map(|gc| gc.flush(m)).collect();\n        for done in waits {\n            m.wchan("xfs_inodegc_flush");',
        'let waits: Vec<_> = self.inodegc.iter().filter(|_| !FAULT).filter_map(|gc| gc.flush(m)).collect();\n        for done in waits {\n            m.wchan("xfs_inodegc_flush");',
    ),
]
