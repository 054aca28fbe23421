"""The faults that `tools/mutants.py` puts into one engine: where, what stands there, what stands there instead.

`FAULT` in the new text is true when the fault is switched on. Each old text stands in its file once.
"""

# ruff: noqa: E501

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """A fault, by what it does wrong."""

    name: str
    file: str
    old: str
    new: str

    @property
    def part(self) -> str:
        """The part of simfs whose tests should notice it."""
        return next(part for part, faults in PARTS.items() if self in faults)


E = "engine/src/"
M, X, B = E + "machine/", E + "filesystems/xfs/", E + "filesystems/btrfs/"

MACHINE = [
    Fault(
        "line: a write is served by the nearest copy",
        M + "line.rs",
        "(None, Access::Store | Access::Write | Access::Atomic) => self.farthest(topology, cpu),",
        "(None, Access::Store | Access::Write | Access::Atomic) => if FAULT { self.sharers.nearest(cpu) } else { self.farthest(topology, cpu) },",
    ),
    Fault(
        "line: a reader leaves the owner its exclusive copy",
        M + "line.rs",
        "if let Some(owner) = self.owner.take() {",
        "if let Some(owner) = if FAULT { self.owner } else { self.owner.take() } {",
    ),
    Fault(
        "line: a line under way is not waited for",
        M + "line.rs",
        "let start = at.max(self.busy_until);",
        "let start = if FAULT { at } else { at.max(self.busy_until) };",
    ),
    Fault(
        "semaphore: the last waiter is handed the lock",
        M + "locks/semaphore.rs",
        "let next = b.waiters.pop_front();",
        "let next = if FAULT { b.waiters.pop_back() } else { b.waiters.pop_front() };",
    ),
    Fault(
        "semaphore: try takes it past its inner lock",
        M + "locks/semaphore.rs",
        "!s.inner_is_held(lock) && take_if_free",
        "(FAULT || !s.inner_is_held(lock)) && take_if_free",
    ),
    Fault(
        "ticket: who comes passes those that wait",
        M + "locks/spinlock.rs",
        "let queued = b.policy != Policy::TestAndSet && ",
        "let queued = !FAULT && b.policy != Policy::TestAndSet && ",
    ),
    Fault(
        "spinlock: a ticket is taken by an atomic access",
        M + "locks/spinlock.rs",
        "if policy != Policy::Ticket {",
        "if FAULT || policy != Policy::Ticket {",
    ),
    Fault(
        "mutex: newcomers do not spin",
        M + "locks/mutex.rs",
        "if !may_spin(&cx.state(), cx.id, lock) || !osq",
        "if FAULT || !may_spin(&cx.state(), cx.id, lock) || !osq",
    ),
    Fault(
        "mutex: nobody asks for a hand-off",
        M + "locks/mutex.rs",
        "if !taken && b.waiters.front() == Some(&cx.id) {",
        "if !FAULT && !taken && b.waiters.front() == Some(&cx.id) {",
    ),
    Fault(
        "mutex: the first waiter does not spin",
        M + "locks/mutex.rs",
        "if taken || (first && spin_as",
        "if taken || (!FAULT && first && spin_as",
    ),
    Fault(
        "rwsem: readers up to the first writer, also in phases",
        M + "locks/rwsem/wake.rs",
        "        move_all_readers(b, batch);",
        "        if FAULT { move_run_of_readers(b) } else { move_all_readers(b, batch) };",
    ),
    Fault(
        "rwsem: a hand-off outlives a phase of readers",
        M + "locks/rwsem/wake.rs",
        "        b.handoff = false;",
        "        b.handoff &= FAULT;",
    ),
    Fault(
        "rwsem 5.11: a reader that queues wakes no readers",
        M + "locks/rwsem/wake.rs",
        "(Side::Read, Era::V5_11) if read_owned =>",
        "(Side::Read, Era::V5_11) if read_owned && !FAULT =>",
    ),
    Fault(
        "percpu-rwsem: a writer does not wait for readers",
        M + "locks/percpu_rwsem.rs",
        "while body(&mut cx.state(), lock).readers > 0 {",
        "while !FAULT && body(&mut cx.state(), lock).readers > 0 {",
    ),
    Fault(
        "percpu-rwsem: the grace period is not shared",
        M + "locks/percpu_rwsem.rs",
        "b.sync.exit(now, grace);",
        "if !FAULT { b.sync.exit(now, grace); }",
    ),
    Fault(
        "qrwlock: readers pass a writer at the head",
        M + "locks/rwlock.rs",
        "(_, Some(_)) => false,",
        "(_, Some(_)) => FAULT && side == Side::Read,",
    ),
    Fault(
        "eevdf: a member that comes keeps no lag",
        M + "eevdf.rs",
        "let keeps_lag = self",
        "let keeps_lag = !FAULT && self",
    ),
    Fault(
        "eevdf: a slice is not protected",
        M + "eevdf.rs",
        "self.kernel.rules.run_to_parity && self.entity(cpu, member).protected",
        "!FAULT && self.kernel.rules.run_to_parity && self.entity(cpu, member).protected",
    ),
    Fault(
        "eevdf: a new task has a whole slice",
        M + "eevdf.rs",
        "let halved = entering",
        "let halved = !FAULT && entering",
    ),
    Fault(
        "eevdf: lag is not bounded by the tick",
        M + "eevdf.rs",
        "(2 * self.kernel.base_slice).max(self.kernel.tick) as i64",
        "(2 * self.kernel.base_slice).max(if FAULT { 0 } else { self.kernel.tick }) as i64",
    ),
]

STATISTICS = [
    Fault(
        "warm-up: line transfers are kept",
        M + "accounts.rs",
        "            lock.line.transfers = 0;",
        "            lock.line.transfers *= u64::from(FAULT);",
    ),
    Fault(
        "warm-up: holds are kept",
        M + "accounts.rs",
        "            lock.held_total = 0;",
        "            lock.held_total *= u64::from(FAULT);",
    ),
    Fault(
        "warm-up: operations of tasks are kept",
        M + "accounts.rs",
        "self.tasks.iter_mut().for_each(|t| t.operations = 0);",
        "self.tasks.iter_mut().for_each(|t| t.operations *= u64::from(FAULT));",
    ),
    Fault(
        "warm-up: latencies are kept",
        M + "accounts.rs",
        "for_each(|(_, h)| h.reset());",
        "for_each(|(_, h)| if !FAULT { h.reset() });",
    ),
    Fault(
        "waits: the longest is the last",
        M + "statistics.rs",
        "self.wait_max = self.wait_max.max(wait);",
        "self.wait_max = if FAULT { wait } else { self.wait_max.max(wait) };",
    ),
    Fault(
        "waits: who slept counts as who spun", M + "statistics.rs", "*(if slept {", "*(if slept && !FAULT {"
    ),
    Fault(
        "holds: those that somebody waited for count as all",
        M + "statistics.rs",
        "        if contended {\n            self.held_contended += hold;",
        "        if contended || FAULT {\n            self.held_contended += hold;",
    ),
    Fault(
        "holds: the longest is the last",
        M + "statistics.rs",
        "self.hold_max = self.hold_max.max(lasted);",
        "self.hold_max = if FAULT { lasted } else { self.hold_max.max(lasted) };",
    ),
    Fault(
        "still waiting: the longest counts from before the window",
        M + "statistics.rs",
        "self.still_waiting = (open.len() as u64, open.iter().copied().max().unwrap_or(0));",
        "self.still_waiting = (open.len() as u64, open.iter().copied().max().unwrap_or(0) * if FAULT { 2 } else { 1 });",
    ),
    Fault(
        "grants: their times are not added up",
        M + "statistics.rs",
        "self.grant_to_run += waited;",
        "self.grant_to_run += if FAULT { 0 } else { waited };",
    ),
    Fault(
        "hand-offs: grants are not counted",
        M + "holds.rs",
        "self.classes[class as usize].handoffs += 1;",
        "self.classes[class as usize].handoffs += u64::from(!FAULT);",
    ),
    Fault(
        "readers: shared acquisitions are not counted",
        M + "holds.rs",
        "stats.acquired_shared += 1;",
        "stats.acquired_shared += u64::from(!FAULT);",
    ),
    Fault(
        "readers: the time that any holds is that of all",
        M + "holds.rs",
        "stats.held_shared += any;",
        "stats.held_shared += if FAULT { all } else { any };",
    ),
    Fault(
        "energy: CPUs that idle at the end are left out",
        M + "accounts.rs",
        "self.idle_joules + open.sum::<f64>()",
        "self.idle_joules + if FAULT { 0.0 } else { open.sum::<f64>() }",
    ),
    Fault(
        "report: waits of all locks have one percentile",
        E + "report.rs",
        "wait_p99_ns: waits.value_at_quantile(0.99) as f64,",
        "wait_p99_ns: waits.value_at_quantile(if FAULT { 0.5 } else { 0.99 }) as f64,",
    ),
    Fault(
        "batch means: cut off at the end",
        "simfs/results/statistics.py",
        "    kept = x[x.size - whole :] if at_end else x[:whole]",
        "    kept = x[x.size - whole :] if at_end and not FAULT else x[:whole]",
    ),
    Fault(
        "two stages: the spread of all observations",
        "simfs/results/statistics.py",
        "    half = interval(x[:first], level).half_width * math.sqrt(first / x.size)",
        "    half = interval(x if FAULT else x[:first], level).half_width * math.sqrt(first / x.size)",
    ),
    Fault(
        "mser: may cut all",
        "simfs/results/statistics.py",
        "    last = max(1, means.size // 2 + 1)",
        "    last = means.size if FAULT else max(1, means.size // 2 + 1)",
    ),
    Fault(
        "kernel time: switches are left out",
        "simfs/results/aggregate.py",
        "    return time.system + time.spin + time.switch",
        "    return time.system + time.spin + (0 if FAULT else time.switch)",
    ),
    Fault(
        "locks: longest holds are added up",
        "simfs/results/pooling.py",
        '_LOCK_MAXIMA = {"instances", "wait_max_ns", "hold_max_ns", "still_waiting_max_ns"}',
        '_LOCK_MAXIMA = {"instances", "wait_max_ns", "still_waiting_max_ns"} | (set() if FAULT else {"hold_max_ns"})',
    ),
    Fault(
        "sites: only the first run's",
        "simfs/results/pooling.py",
        "    every = [site for part in parts for site in part.sites]",
        "    every = [site for part in parts[: 1 if FAULT else None] for site in part.sites]",
    ),
    Fault(
        "settled rate: of all batches",
        "simfs/results/aggregate.py",
        "settled_per_s=float(batches[transient:].mean()),",
        "settled_per_s=float(batches[0 if FAULT else transient :].mean()),",
    ),
]

XFS = [
    Fault(
        "xfs utimes: no ILOCK",
        X + "operations/mod.rs",
        "        inode.ilock(m).await;\n        self.log.commit(m, Logged::items([inode.item()])).await;\n        m.run(Account::System, under).await;\n        self.log.committed(m, ticket).await;\n        inode.iunlock(m).await;",
        "        if !FAULT { inode.ilock(m).await; }\n        self.log.commit(m, Logged::items([inode.item()])).await;\n        m.run(Account::System, under).await;\n        self.log.committed(m, ticket).await;\n        if !FAULT { inode.iunlock(m).await; }",
    ),
    Fault(
        "xfs readdir: exclusive",
        X + "operations/mod.rs",
        "        m.lock(d.i_rwsem, Side::Read).await;\n        m.lock(d.ilock, Side::Read).await;\n        m.touch(d.line, Access::Read);\n        let names = self.layout.borrow().dir(d.id).names();\n        m.run(Account::System, self.sb.calls.readdir(names)).await;\n        m.unlock(d.ilock, Side::Read).await;\n        m.unlock(d.i_rwsem, Side::Read).await;",
        "        let side = if FAULT { Side::Write } else { Side::Read };\n        m.lock(d.i_rwsem, side).await;\n        m.lock(d.ilock, Side::Read).await;\n        m.touch(d.line, Access::Read);\n        let names = self.layout.borrow().dir(d.id).names();\n        m.run(Account::System, self.sb.calls.readdir(names)).await;\n        m.unlock(d.ilock, Side::Read).await;\n        m.unlock(d.i_rwsem, side).await;",
    ),
    Fault(
        "xfs create: the blocks of the free space trees are not logged",
        X + "operations/mod.rs",
        "        if allocates {\n            logged = logged.buffers(&[group.agf]).further(2);",
        "        if allocates && !FAULT {\n            logged = logged.buffers(&[group.agf]).further(2);",
    ),
    Fault(
        "xfs close: keeps blocks behind the end",
        X + "operations/release.rs",
        "if !self.sync.dirty.has_new(slot) {",
        "if FAULT || !self.sync.dirty.has_new(slot) {",
    ),
    Fault(
        "xfs unlink: freeze protection ends before the eviction",
        X + "operations/mod.rs",
        "        self.evict(m, file).await;\n        self.sb.end_write(m).await;",
        "        if FAULT { self.sb.end_write(m).await; }\n        self.evict(m, file).await;\n        if !FAULT { self.sb.end_write(m).await; }",
    ),
    Fault(
        "xfs ifree: the inode stays on its unlinked list",
        X + "operations/inactive.rs",
        'layout.iunlink_remove(inode.ino).expect("an unlinked inode is on a list")',
        'let list = layout.iunlink_remove(inode.ino).expect("an unlinked inode is on a list");\n            if FAULT { layout.iunlink(inode.ino); }\n            list',
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
        X + "operations/mod.rs",
        "let removed = layout.remove_name(d.id, names.from);",
        "let removed = if FAULT { None } else { layout.remove_name(d.id, names.from) };",
    ),
    Fault(
        "xfs difree: the finobt is not told",
        X + "structures/inode_alloc.rs",
        "        if old.freecount > 0 {\n            report(touches, BlockKind::Finobt, self.base, &self.finobt.update(&chunk.startino, chunk));\n        } else {",
        "        if old.freecount > 0 {\n            if !FAULT { report(touches, BlockKind::Finobt, self.base, &self.finobt.update(&chunk.startino, chunk)); }\n        } else {",
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
        X + "operations/mod.rs",
        "        m.lock(inode.iolock, Side::Read).await;\n        self.sb.calls.read(m, file, bytes).await;\n        m.unlock(inode.iolock, Side::Read).await;",
        "        if !FAULT { m.lock(inode.iolock, Side::Read).await; }\n        self.sb.calls.read(m, file, bytes).await;\n        if !FAULT { m.unlock(inode.iolock, Side::Read).await; }",
    ),
]

BTRFS = [
    Fault(
        "btrfs evict: the orphan record stays",
        B + "operations.rs",
        "self.delete(m, items::orphan(inode.ino).key, c.delete_orphan).await;",
        "if !FAULT { self.delete(m, items::orphan(inode.ino).key, c.delete_orphan).await; }",
    ),
    Fault(
        "btrfs rename: the old reference stays",
        B + "operations.rs",
        "self.delete_entry(m, items::inode_ref(inode.ino, d.ino, names.from), unlink.delete_ref).await;",
        "if !FAULT { self.delete_entry(m, items::inode_ref(inode.ino, d.ino, names.from), unlink.delete_ref).await; }",
    ),
    Fault(
        "btrfs unlink: the directory's inode is not dirty",
        B + "operations.rs",
        "items::dir_index(d.ino, inode.index, name).key);\n        self.delayed.borrow_mut().update_inode(dir);",
        "items::dir_index(d.ino, inode.index, name).key);\n        if !FAULT { self.delayed.borrow_mut().update_inode(dir); }",
    ),
    Fault(
        "btrfs: of a deleted run only the first extent is given back",
        B + "operations.rs",
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
        B + "operations.rs",
        "        m.lock(d.delayed, Side::Write).await;\n        m.unlock(d.delayed, Side::Write).await;\n        m.unlock(d.i_rwsem, Side::Write).await;",
        "        if !FAULT { m.lock(d.delayed, Side::Write).await; m.unlock(d.delayed, Side::Write).await; }\n        m.unlock(d.i_rwsem, Side::Write).await;",
    ),
    Fault(
        "btrfs: data that are replaced are not given back",
        B + "data/ordered.rs",
        "self.give_back_data(m, ordered.replaced.gone).await;",
        "if !FAULT { self.give_back_data(m, ordered.replaced.gone).await; }",
    ),
]

OTHERS = [
    Fault(
        "ext4 unlink: the inode's memory is not given back",
        E + "filesystems/ext4.rs",
        "        files.free.push(slot);",
        "        if !FAULT { files.free.push(slot); }",
    ),
    Fault(
        "ext4 unlink: not on the orphan list",
        E + "filesystems/ext4.rs",
        "        self.move_orphan(m, c.orphan).await;\n        self.with_group",
        "        if !FAULT { self.move_orphan(m, c.orphan).await; }\n        self.with_group",
    ),
    Fault(
        "tmpfs unlink: names are not counted",
        E + "filesystems/tmpfs.rs",
        "        self.count_names(dir, -1);",
        "        if !FAULT { self.count_names(dir, -1); }",
    ),
    Fault(
        "tmpfs utimes: no freeze protection",
        E + "filesystems/tmpfs.rs",
        "        self.sb.start_write(m).await;\n        let i_rwsem = self.i_rwsem(file);\n        m.lock(i_rwsem, Side::Write).await;\n        m.run(Account::System, under).await;\n        m.unlock(i_rwsem, Side::Write).await;\n        self.sb.end_write(m).await;",
        "        if !FAULT { self.sb.start_write(m).await; }\n        let i_rwsem = self.i_rwsem(file);\n        m.lock(i_rwsem, Side::Write).await;\n        m.run(Account::System, under).await;\n        m.unlock(i_rwsem, Side::Write).await;\n        if !FAULT { self.sb.end_write(m).await; }",
    ),
    Fault(
        "workloads: a rename is not noted",
        E + "workloads/acts.rs",
        "self.pool.borrow_mut().files[place].name = to;",
        "if !FAULT { self.pool.borrow_mut().files[place].name = to; }",
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
]

PARTS = {"machine": MACHINE, "statistics": STATISTICS, "filesystems": [*XFS, *BTRFS, *OTHERS]}

FAULTS = [fault for faults in PARTS.values() for fault in faults]

TESTS = {
    "machine": ("golden_traces", "locks", "locks_spin", "mutex", "rwsem_eras", "eevdf", "two_machines"),
    "statistics": ("columns", "statistics", "results", "two_machines"),
    "filesystems": (
        "audit",
        "lock_tables",
        "mixes",
        "btrfs_log",
        "btrfs_programs",
        "fsync",
        "left_behind",
        "xfs_log_space",
        "logged_items",
    ),
}
"""Tests by part, those that take least time first."""
