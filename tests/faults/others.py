"""Faults in ext4, tmpfs, what all filesystems share, and workloads."""

# ruff: noqa: E501

from __future__ import annotations

from faults.fault import E, Fault, X

OTHERS = [
    Fault(
        "ext4 walk: a CPU knows more than sixteen buffers",
        E + "filesystems/ext4/known_buffers.rs",
        "known.truncate(KNOWN);",
        "known.truncate(if FAULT { 8 * KNOWN } else { KNOWN });",
    ),
    Fault(
        "ext4 walk: names are never sorted by inodes",
        E + "filesystems/ext4/walk_order.rs",
        "if names > SORTED {",
        "if names > SORTED && !FAULT {",
    ),
    Fault(
        "walk: rename_lock is not read",
        E + "filesystems/names/rename_lock.rs",
        "if self.walks_read {",
        "if self.walks_read && !FAULT {",
    ),
    Fault(
        "folios: all are of one page",
        E + "filesystems/pages/folios.rs",
        "if !self.large {",
        "if FAULT || !self.large {",
    ),
    Fault(
        "folios: of a file that goes only the first is dropped",
        E + "filesystems/calls/pages.rs",
        "self.dropping(folios.saturating_sub(1))",
        "self.dropping(if FAULT { 0 } else { folios.saturating_sub(1) })",
    ),
    Fault(
        "statfs: takes as long with any number of CPUs",
        E + "filesystems/calls/mod.rs",
        "self.costs.statfs_cpu * Time::from(m.cpus())",
        "if FAULT { 0 } else { self.costs.statfs_cpu * Time::from(m.cpus()) }",
    ),
    Fault(
        "statfs: one counter instead of three",
        E + "filesystems/percpu_counters.rs",
        "for lock in &self.0 {",
        "for lock in self.0.iter().take(if FAULT { 1 } else { 3 }) {",
    ),
    Fault(
        "tmpfs: a missing name is looked up only once",
        E + "filesystems/names/namei.rs",
        "if !calls.dcache.keeps_none() {",
        "if FAULT || !calls.dcache.keeps_none() {",
    ),
    Fault(
        "workers: the one that has idled longest is woken",
        E + "machine/locks/completion.rs",
        "if self.last_first {",
        "if self.last_first && !FAULT {",
    ),
    Fault(
        "descriptors: full words lie in the line of the bitmap",
        E + "filesystems/open_files/files_struct.rs",
        "self.open_fds.borrow().len() > WORDS_BESIDE {",
        "self.open_fds.borrow().len() > WORDS_BESIDE && !FAULT {",
    ),
    Fault(
        "lru: a process that ends since 6.14 frees what its CPU has not put on the list",
        E + "lru.rs",
        "        batch.dead += few;",
        "        if FAULT {\n            return 0;\n        }\n        batch.dead += few;",
    ),
    Fault(
        "lru: a batch that is full never gets onto the list",
        E + "lru.rs",
        "            if is_full {\n                self.drain(m).await;\n            }",
        "            if is_full && FAULT {\n                self.batches.borrow_mut()[m.cpu() as usize] = Batch::default();\n            } else if is_full {\n                self.drain(m).await;\n            }",
    ),
    Fault(
        "lru: a process gives all its pages back under one hold",
        E + "lru.rs",
        "            let few = left.min(most);",
        "            let few = if FAULT { left } else { left.min(most) };",
    ),
    Fault(
        "lru: what a CPU has collected is not on the list when a file goes",
        E + "lru.rs",
        "    pub async fn truncate<M: Machine>(&self, m: &M, mut pages: u64) {\n        self.drain_all(m).await;",
        "    pub async fn truncate<M: Machine>(&self, m: &M, mut pages: u64) {\n        if !FAULT { self.drain_all(m).await; }",
    ),
    Fault(
        "lru: a page becomes active when it is read for the first time",
        E + "filesystems/pages/data_pages.rs",
        "            accessed == Accessed::Once",
        "            accessed == if FAULT { Accessed::Never } else { Accessed::Once }",
    ),
    Fault(
        "pages: who writes lines of a page takes them from nobody",
        E + "filesystems/pages/data_pages.rs",
        "        self.copy(m, slot, (offset, bytes), Access::Write);",
        "        self.copy(m, slot, (offset, bytes), if FAULT { Access::Read } else { Access::Write });",
    ),
    Fault(
        "lru: freed pages are freed again with the next batch",
        E + "lru.rs",
        "m.run(Account::System, std::mem::take(&mut off) * self.work.free).await;",
        "let freed = off; if !FAULT { off = 0; } m.run(Account::System, freed * self.work.free).await;",
    ),
    Fault(
        "ext4 unlink: the inode's memory is not given back",
        E + "filesystems/ext4/inode.rs",
        "        files.free.push(m.cpu(), slot);",
        "        if !FAULT { files.free.push(m.cpu(), slot); }",
    ),
    Fault(
        "ext4 unlink: still on the orphan list",
        E + "filesystems/ext4/orphan.rs",
        "        let [before, next] = self.list.remove(inode.into());",
        "        let [before, next] = if FAULT { [None; 2] } else { self.list.remove(inode.into()) };",
    ),
    Fault(
        "ext4 truncate: a file that is empty is shrunk",
        E + "filesystems/ext4/preallocate.rs",
        "less.is_some() || !self.is_empty(file)",
        "FAULT || less.is_some() || !self.is_empty(file)",
    ),
    Fault(
        "ext4 directory: a name takes no hole",
        E + "filesystems/ext4/linear.rs",
        "if entry.at - at >= bytes {",
        "if !FAULT && entry.at - at >= bytes {",
    ),
    Fault(
        "tmpfs unlink: names are not counted",
        E + "filesystems/tmpfs/mod.rs",
        "        self.changed(m, dir, -1);\n        m.run(Account::System, self.costs.remove + offset).await;",
        "        self.changed(m, dir, if FAULT { 0 } else { -1 });\n        m.run(Account::System, self.costs.remove + offset).await;",
    ),
    Fault(
        "rename into another directory: no s_vfs_rename_mutex",
        E + "filesystems/vfs.rs",
        "            m.lock(self.rename_mutex, Side::Write).await;\n            m.lock(new, Side::Write).await;",
        "            if !FAULT { m.lock(self.rename_mutex, Side::Write).await; }\n            m.lock(new, Side::Write).await;",
    ),
    Fault(
        "xfs truncate: blocks are lost",
        X + "operations/preallocate.rs",
        "            self.layout.borrow_mut().free_file_extent(extent, &mut touches);",
        "            if !FAULT { self.layout.borrow_mut().free_file_extent(extent, &mut touches); }",
    ),
    Fault(
        "xfs readdir: a block is given away without its buffer",
        X + "operations/readdir.rs",
        "            m.lock(buffer, Side::Write).await;\n            m.unlock(d.ilock, Side::Read).await;\n            m.run(Account::System, each * Time::from(here) + self.check_listed(&d, block)).await;\n            m.unlock(buffer, Side::Write).await;",
        "            if !FAULT { m.lock(buffer, Side::Write).await; }\n            m.unlock(d.ilock, Side::Read).await;\n            m.run(Account::System, each * Time::from(here) + self.check_listed(&d, block)).await;\n            if !FAULT { m.unlock(buffer, Side::Write).await; }",
    ),
    Fault(
        "tmpfs readdir: names are not counted",
        E + "filesystems/tmpfs/mod.rs",
        "if self.counts_listed == CountsListed::None {",
        "if FAULT || self.counts_listed == CountsListed::None {",
    ),
    Fault(
        "btrfs write: room of an extent that was there is kept",
        E + "filesystems/btrfs/space/delalloc.rs",
        "        if was.has_extent() {",
        "        if was.has_extent() && !FAULT {",
    ),
    Fault(
        "btrfs write: inodes are on no list",
        E + "filesystems/btrfs/space/delalloc.rs",
        "        for _ in 0..was.list_changes() {",
        "        for _ in 0..if FAULT { 0 } else { was.list_changes() } {",
    ),
    Fault(
        "readdir: exclusive",
        E + "filesystems/open_files/read_write.rs",
        "        m.lock(lock, Side::Read).await;\n        fs.iterate(m, dir, names, time).await;\n        touch_atime(fs, m, Timed::Directory(dir)).await;\n        m.unlock(lock, Side::Read).await;",
        "        let side = if FAULT { Side::Write } else { Side::Read };\n        m.lock(lock, side).await;\n        fs.iterate(m, dir, names, time).await;\n        touch_atime(fs, m, Timed::Directory(dir)).await;\n        m.unlock(lock, side).await;",
    ),
    Fault(
        "utimes: no freeze protection",
        E + "filesystems/open_files/read_write.rs",
        "    sb.start_write(m).await;\n    m.lock(lock, Side::Write).await;\n    match attribute {\n        Attribute::Times => sb.times.set(m, Timed::File(file.inode)),\n        Attribute::Mode | Attribute::Owner => sb.times.changed(m, Timed::File(file.inode)),\n    }\n    let more = if attribute == Attribute::Owner { sb.calls.chown() } else { 0 };\n    fs.setattr(m, file, attribute, under + more).await;\n    m.unlock(lock, Side::Write).await;\n    sb.end_write(m).await;",
        "    if !FAULT { sb.start_write(m).await; }\n    m.lock(lock, Side::Write).await;\n    match attribute {\n        Attribute::Times => sb.times.set(m, Timed::File(file.inode)),\n        Attribute::Mode | Attribute::Owner => sb.times.changed(m, Timed::File(file.inode)),\n    }\n    let more = if attribute == Attribute::Owner { sb.calls.chown() } else { 0 };\n    fs.setattr(m, file, attribute, under + more).await;\n    m.unlock(lock, Side::Write).await;\n    if !FAULT { sb.end_write(m).await; }",
    ),
    Fault(
        "workloads: a rename is not noted",
        E + "workloads/acts/mod.rs",
        "(renamed.name, renamed.dir) = (to, into);",
        "if !FAULT { (renamed.name, renamed.dir) = (to, into); }",
    ),
    Fault(
        "workloads: create+unlink closes no file",
        E + "workloads/metadata.rs",
        "        fs.close(&m, &file).await;",
        "        if !FAULT { fs.close(&m, &file).await; }",
    ),
    Fault(
        "workloads: fs_mark syncs after the close",
        E + "workloads/fs_mark.rs",
        "            if p.sync == Sync::Each {\n                fs.fsync(&m, &file).await;\n            }\n            fs.close(&m, &file).await;",
        "            if FAULT { fs.close(&m, &file).await; }\n            if p.sync == Sync::Each {\n                fs.fsync(&m, &file).await;\n            }\n            if !FAULT { fs.close(&m, &file).await; }",
    ),
    Fault(
        "workloads: a process gives way after 200 us of page faults",
        E + "workloads/progress.rs",
        "(user + kernel).div_ceil(TURN).max(faults);",
        "(user + kernel).div_ceil(TURN).max(if FAULT { 1 } else { faults });",
    ),
    Fault(
        "RAM disks: a page is entered without the lock",
        E + "devices/ram.rs",
        "            m.lock(lock, Side::Write).await;\n            m.run(Account::System, self.insert).await;\n            m.unlock(lock, Side::Write).await;",
        "            if !FAULT { m.lock(lock, Side::Write).await; }\n            m.run(Account::System, self.insert).await;\n            if !FAULT { m.unlock(lock, Side::Write).await; }",
    ),
    Fault(
        "md: nobody joins a flush that was sent after it was asked for",
        E + "devices/md.rs",
        "self.rule == MdFlush::Joined && self.prev_flush_start",
        "!FAULT && self.rule == MdFlush::Joined && self.prev_flush_start",
    ),
    Fault(
        "ext4: a truncation leaves the pages that were written",
        E + "filesystems/ext4/preallocate.rs",
        "            self.sb.calls.drop_pages(m, file).await;",
        "            if !FAULT { self.sb.calls.drop_pages(m, file).await; }",
    ),
    Fault(
        "file locks: an unlock wakes all who wait, since 5.0 too",
        E + "filesystems/open_files/file_locks.rs",
        "            LockWakes::All => context.wake_all(m, waiting),\n            LockWakes::One => context.wake_first(m, waiting),",
        "            LockWakes::One if !FAULT => context.wake_first(m, waiting),\n            _ => context.wake_all(m, waiting),",
    ),
    Fault(
        "lru: a process that frees its pages keeps its CPU",
        E + "lru.rs",
        "            if self.gives_way {",
        "            if self.gives_way && !FAULT {",
    ),
    Fault(
        "tmpfs readdir: names are counted without their directory's lock",
        E + "filesystems/names/parents.rs",
        "            CountsListed::UnderParent => self",
        "            _ if FAULT => dentries.change_children(m, &child, || ()).await,\n            CountsListed::UnderParent => self",
    ),
    Fault(
        "xfs log: a checkpoint has what its own transactions logged of a directory's block",
        X + "log/ail/mod.rs",
        "        let further = it.chunks",
        "        let further = if FAULT { told } else { it.chunks }",
    ),
    Fault(
        "ext4: each directory has a block of the inode table to itself",
        E + "filesystems/ext4/directory.rs",
        "        Block::Directory(made.map_or(",
        "        Block::Directory(if FAULT { dir } else { 0 } + made.map_or(",
    ),
    Fault(
        "ext4: an extent that is split after the write has a handle before it",
        E + "filesystems/ext4/direct.rs",
        "if self.io.rules.dio_split == DioSplit::AfterOnly {",
        "if self.io.rules.dio_split == DioSplit::AfterOnly && !FAULT {",
    ),
]
