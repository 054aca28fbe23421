//! What processes leave to RCU: what they have mapped, and what is left of one that has ended (`kernel/exit.c`, `kernel/cred.c`,
//! `kernel/fork.c`, `lib/maple_tree.c` of 6.12). And the workers that free the stacks which no CPU keeps.

use crate::kernel::process::StackFree;
use crate::spec::{RunSpec, WorkloadSpec};
use crate::waist::time::from_ns;
use crate::waist::{Account, Host, Machine, Placement, SpawnKind, TaskId, Time};

/// How long the callbacks take.
#[derive(Clone, Copy, Debug)]
pub struct Prices {
    /// `delayed_put_pid`, `delayed_put_task_struct`, and `put_cred_rcu` after these.
    task: Time,
    cred: Time,
    map: Time,
    vma: Time,
    dentry: Time,
    proc: Time,
    /// Maps are nodes of a maple tree, which readers walk (since 6.1), and readers lock areas one by one (since 6.4).
    maple: bool,
    vma_rcu: bool,
}

/// How much of it a program leaves.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// Pages of its own, which are free when it has ended.
    pub pages: u64,
    maps: u64,
    vmas: u64,
    dentries: u64,
}

impl Left {
    /// From the workload's parameters, of the program of this name there.
    pub fn new(w: &WorkloadSpec, program: &str) -> Self {
        let number = |name: &str| w.number(&format!("{program}.{name}")) as u64;
        Self { pages: number("pages"), maps: number("maps"), vmas: number("areas"), dentries: number("lost_dentries") }
    }
}

impl Prices {
    /// Of the kernel's code.
    pub fn new(spec: &RunSpec) -> Self {
        let (c, rules) = (&spec.kernel.constants, &spec.kernel.rules);
        let price = |instructions: f64| from_ns(instructions * spec.machine.costs.instruction);
        Self {
            task: price(c.code_free_task),
            cred: price(c.code_free_cred),
            map: price(c.code_free_map),
            vma: price(c.code_free_area),
            dentry: price(c.code_free_dentry),
            proc: price(c.code_free_proc),
            maple: rules.maple_tree,
            vma_rcu: rules.area_rcu,
        }
    }

    /// Old nodes and areas of what a program has mapped and unmapped, and dentries of names that it has not found.
    pub fn mapped<M: Machine>(&self, m: &M, left: Left) {
        let nodes = if self.maple { left.maps } else { 0 };
        let areas = if self.vma_rcu { left.vmas } else { 0 };
        for (count, each) in [(nodes, self.map), (areas, self.vma), (left.dentries, self.dentry)] {
            queue(m, count, each);
        }
    }

    /// The program's file has the credentials from before `execve`, and goes with its last map (`exit_mm`).
    pub fn exits<M: Machine>(&self, m: &M) {
        queue(m, 1, self.cred);
    }

    /// `release_task`, by the parent: the task, its number and its credentials, and so many entries of `/proc` about it.
    pub fn reaped<M: Machine>(&self, m: &M, proc: u64) {
        m.call_rcu(CALLBACKS_OF_TASK, self.task);
        queue(m, CALLBACKS_OF_PROC * proc, self.proc / CALLBACKS_OF_PROC);
    }
}

/// `delayed_put_pid`, `delayed_put_task_struct`, `put_cred_rcu`.
const CALLBACKS_OF_TASK: u64 = 3;
/// `i_callback`, `inode_free_by_rcu`, `__d_free`.
const CALLBACKS_OF_PROC: u64 = 3;

fn queue<M: Machine>(m: &M, count: u64, each: Time) {
    if count > 0 {
        m.call_rcu(count, count * each);
    }
}

/// Starts the workers that free stacks (`delayed_vfree_work`, of the workqueue `events`, so bound to their CPUs).
pub fn start_workers<H: Host>(host: &mut H, spec: &RunSpec) {
    if spec.kernel.rules.stack_free == StackFree::Pages {
        return;
    }
    let (c, cpus) = (&spec.kernel.constants, spec.machine.cpus);
    let price = |instructions: f64| from_ns(instructions * spec.machine.costs.instruction);
    let (callback, free) = (price(c.code_free_stack), price(c.code_vfree));
    let spawn = |cpu| host.spawn(Placement::Pinned(cpu), SpawnKind::Background, move |m| delayed_vfree_work(m, free));
    let workers: Vec<TaskId> = (0..cpus).map(spawn).collect();
    host.setup(|m| m.keep_stacks(&workers, callback));
}

async fn delayed_vfree_work<M: Machine>(m: M, free: Time) {
    m.at("delayed_vfree_work");
    loop {
        m.rest().await;
        let count = m.stacks_to_free();
        m.run(Account::System, count * free).await;
    }
}
