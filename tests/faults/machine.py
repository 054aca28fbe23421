"""Faults in the machine: lines, locks, the scheduler."""

from __future__ import annotations

from faults.fault import E, Fault, M

MACHINE = [
    Fault(
        "hyper-threads: four of a core do more than two",
        M + "cpus/topology.rs",
        "others => 2.0 * self.smt_speed / f64::from(others + 1),",
        "others => if FAULT { self.smt_speed } else { 2.0 * self.smt_speed / f64::from(others + 1) },",
    ),
    Fault(
        "line: a write is served by the nearest copy",
        M + "caches/line.rs",
        "self.farthest(topology, cpu).map(",
        "(if FAULT { self.sharers.nearest(cpu, |other| topology.transfer(other, cpu)).filter(|&s| s != cpu) } "
        "else { self.farthest(topology, cpu) }).map(",
    ),
    Fault(
        "line: a cache serves one core at a time before it gives the line away",
        M + "caches/rounds.rs",
        "own.filter(|&own| self.visits[own].takes(cpu, at))",
        "own.filter(|&own| !FAULT && self.visits[own].takes(cpu, at))",
    ),
    Fault(
        "line: a cache serves a core twice before it gives the line away",
        M + "caches/rounds.rs",
        "self.begins > at && !self.serves.contains(cpu)",
        "self.begins > at && (FAULT || !self.serves.contains(cpu))",
    ),
    Fault(
        "line: hyper-threads of one core queue apart",
        M + "caches/rounds.rs",
        "if !topology.has_siblings() {",
        "if FAULT || !topology.has_siblings() {",
    ),
    Fault(
        "warmth: data drive branches out of the front end",
        M + "caches/warmth.rs",
        "        [core, llc, tlb].into_iter().for_each(|cache| cache.used += bytes);\n    }",
        "        [core, llc, tlb].into_iter().for_each(|cache| cache.used += bytes);\n        if FAULT {\n"
        "            warmth.at(&self.topology, task.cpu).front.used += bytes;\n        }\n    }",
    ),
    Fault(
        "warmth: a machine without a TLB walks page tables",
        M + "caches/warmth.rs",
        "walk: if caches.tlb_bytes > 0.0 {",
        "walk: if FAULT || caches.tlb_bytes > 0.0 {",
    ),
    Fault(
        "eevdf: who is ahead goes on until its slice ends, since 6.12 too",
        M + "sched/eevdf.rs",
        "(used_up || preempt_short && !current.protected",
        "(used_up || preempt_short && !FAULT && !current.protected",
    ),
    Fault(
        "numa: workers that have not slept yet count as tasks of the node",
        M + "sched/idlest.rs",
        "1 + queue.iter().filter(|&&id| self.tasks[id as usize].background).count() as u64",
        "1 + queue.iter().filter(|&&id| !FAULT && self.tasks[id as usize].background).count() as u64",
    ),
    Fault(
        "rwsem: a reader does not look at the owner word",
        M + "locks/rwsem/mod.rs",
        "let looks = side == Side::Read && era.has_phases();",
        "let looks = !FAULT && side == Side::Read && era.has_phases();",
    ),
    Fault(
        "rwsem: who has failed spins without a look at the owner word",
        M + "locks/rwsem/mod.rs",
        "    cx.settle().await;\n    cx.state().touch_lock(cx.id, lock, Access::Read);\n    cx.settle().await;",
        "    if !FAULT {\n        cx.settle().await;\n        cx.state().touch_lock(cx.id, lock, Access::Read);\n"
        "        cx.settle().await;\n    }",
    ),
    Fault(
        "osq: who leaves the queue of spinners leaves its tail alone",
        M + "locks/osq.rs",
        "    s.touch_lock(cx.id, lock, Access::Atomic);\n    leave(",
        "    if !FAULT {\n        s.touch_lock(cx.id, lock, Access::Atomic);\n    }\n    leave(",
    ),
    Fault(
        "line: a reader leaves the owner its exclusive copy",
        M + "caches/line.rs",
        "self.owner = takes.then_some(cpu);",
        "self.owner = if takes { Some(cpu) } else { self.owner.filter(|_| FAULT) };",
    ),
    Fault(
        "line: a line under way is not waited for",
        M + "caches/line.rs",
        "self.busy_until = at.max(self.busy_until) + time;",
        "self.busy_until = at.max(if FAULT { 0 } else { self.busy_until }) + time;",
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
        "let takes = free && !s.inner_is_held(lock);",
        "let takes = free && (FAULT || !s.inner_is_held(lock));",
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
        "if policy == Policy::TestAndSet {",
        "if policy == Policy::TestAndSet || FAULT && policy == Policy::Ticket {",
    ),
    Fault(
        "mutex: newcomers do not spin",
        M + "locks/mutex.rs",
        "cx.runs(|code| code.spin);\n    if !osq",
        "cx.runs(|code| code.spin);\n    if FAULT || !osq",
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
        "rwsem: a reader that queues wakes no readers",
        M + "locks/rwsem/wake.rs",
        "(Side::Read, era) if read_owned &&",
        "(Side::Read, era) if !FAULT && read_owned &&",
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
        M + "sched/eevdf.rs",
        "let keeps_lag = self",
        "let keeps_lag = !FAULT && self",
    ),
    Fault(
        "eevdf: a slice is not protected",
        M + "sched/eevdf.rs",
        "self.kernel.rules.run_to_parity && self.entity(cpu, member).protected",
        "!FAULT && self.kernel.rules.run_to_parity && self.entity(cpu, member).protected",
    ),
    Fault(
        "eevdf: a new task has a whole slice",
        M + "sched/eevdf.rs",
        "let halved = entering",
        "let halved = !FAULT && entering",
    ),
    Fault(
        "eevdf: lag is not bounded by the tick",
        M + "sched/eevdf.rs",
        "(2 * self.kernel.base_slice).max(self.kernel.tick) as i64",
        "(2 * self.kernel.base_slice).max(if FAULT { 0 } else { self.kernel.tick }) as i64",
    ),
    Fault(
        "rcu: who finds the lock of its node held learns of a grace period all the same",
        M + "rcu/mod.rs",
        "let held = std::mem::take(&mut rcu.of(cpu).misses) && meets;",
        "let held = !FAULT && std::mem::take(&mut rcu.of(cpu).misses) && meets;",
    ),
    Fault(
        "rcu: nobody is asked to switch when a grace period is long",
        M + "rcu/urgent.rs",
        "of.urgent |= of.missing",
        "of.urgent |= !FAULT && of.missing",
    ),
    Fault(
        "rcu: kernel code is never inside of readers",
        M + "rcu/leaf.rs",
        "let inside = self.kernel.rcu_inside;",
        "let inside = if FAULT { 0.0 } else { self.kernel.rcu_inside };",
    ),
    Fault(
        "stacks: a CPU keeps as many as it gets",
        M + "stacks.rs",
        "let room = *kept < KEPT;",
        "let room = FAULT || *kept < KEPT;",
    ),
    Fault(
        "softirq: a CPU goes to another task before the tick's interrupt ends",
        M + "sched/preemption.rs",
        "if c.in_tick(self.now) {",
        "if !FAULT && c.in_tick(self.now) {",
    ),
    Fault(
        "sched: a busy CPU gives way in the instant of a wake-up elsewhere",
        M + "sched/resched.rs",
        "match by.filter(|by| by.cpu != cpu) {",
        "match by.filter(|by| !FAULT && by.cpu != cpu) {",
    ),
    Fault(
        "sched: a fork knows what CPUs do now",
        M + "sched/idlest.rs",
        "let moment = if at_start { self.now } else { self.looked_at(domain, without.is_none()) };",
        "let moment = if FAULT || at_start { self.now } else { self.looked_at(domain, without.is_none()) };",
    ),
    Fault(
        "sched: a look of a CPU about to idle takes no time",
        "simfs/machine/sched/newidle.py",
        "time = sum(look + LINES_A_CPU",
        "time = 0 if FAULT else sum(look + LINES_A_CPU",
    ),
    Fault(
        "sched: to take a task takes no time",
        "simfs/machine/sched/newidle.py",
        "cpu.before_switch += take",
        "cpu.before_switch += 0 if FAULT else take",
    ),
    Fault(
        "sched: who begins a program is elsewhere at once",
        "simfs/machine/sched/scheduler.py",
        "self.occupy(source, None, costs.wakeup + costs.context_switch)",
        "self.occupy(source, None, 0 if FAULT else costs.wakeup + costs.context_switch)",
    ),
    Fault(
        "sched: averages are brought up to date for a new task",
        "simfs/machine/sched/group.py",
        "        busy, half = queue.load.utilization,",
        "        if FAULT:\n            self.update_queue_load(queue)\n        busy, half = queue.load.utilization,",
    ),
    Fault(
        "compile: who ends is gone when it has woken its parent",
        E + "workloads/compile.rs",
        "            m.run(Account::System, start.gone).await;",
        "            if !FAULT {\n                m.run(Account::System, start.gone).await;\n            }",
    ),
    Fault(
        "compile: a child is there when its parent calls vfork",
        E + "workloads/compile.rs",
        "        m.run(Account::System, start.fork).await;",
        "        if !FAULT {\n            m.run(Account::System, start.fork).await;\n        }",
    ),
    Fault(
        "sched: the clock of a run queue is read anew at the switch to who preempts",
        M + "sched/resched.rs",
        "if std::mem::take(&mut c.skips_clock) {",
        "if std::mem::take(&mut c.skips_clock) && !FAULT {",
    ),
    Fault(
        "idle: no state asks who waits for a device",
        M + "cpus/cpu.rs",
        "take_while(|step| step.pays_from(waiters) <= idle)",
        "take_while(|step| step.pays_from(if FAULT { 0 } else { waiters }) <= idle)",
    ),
    Fault(
        "sched: a tick's timers wake before it accounts who runs",
        M + "constants.rs",
        "tick_timers: from_ns(constants.code_tick_timers * instruction)",
        "tick_timers: if FAULT { 0 } else { from_ns(constants.code_tick_timers * instruction) }",
    ),
    Fault(
        "qspinlock: who comes while the pending waiter takes the lock joins the queue",
        M + "locks/queued.rs",
        "if free && b.pending.is_some() && b.waiters.is_empty() {",
        "if free && b.pending.is_some() && b.waiters.is_empty() && !FAULT {",
    ),
]
