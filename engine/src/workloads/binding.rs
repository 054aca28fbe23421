//! Which CPU each task of a lock cycle is bound to, as benchmarks bind their threads.

use crate::machine::CpuId;
use crate::spec::RunSpec;
use crate::waist::Placement;

/// The order in which tasks are bound to CPUs, one each; hyper-threads of a busy core come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// A socket is filled before the next one is begun.
    Compact,
    /// One socket after the other gets a task.
    Spread,
}

impl Binding {
    /// From its name; `none` leaves tasks to the scheduler.
    pub fn parse(name: &str) -> Result<Option<Self>, String> {
        match name {
            "none" => Ok(None),
            "compact" => Ok(Some(Self::Compact)),
            "spread" => Ok(Some(Self::Spread)),
            other => Err(format!("workload.params.binding: unknown '{other}'; known: none, compact, spread")),
        }
    }

    /// All CPUs in the order in which tasks are bound to them.
    fn order(self, spec: &RunSpec) -> Vec<CpuId> {
        let machine = &spec.machine;
        let (per_core, per_socket) = (machine.cpus_per_core.max(1), machine.cpus_per_socket.max(1));
        let mut cpus: Vec<CpuId> = (0..machine.cpus).collect();
        cpus.sort_by_key(|cpu| {
            let (thread, socket, place) = (cpu % per_core, cpu / per_socket, cpu % per_socket);
            match self {
                Self::Compact => (thread, socket, place),
                Self::Spread => (thread, place, socket),
            }
        });
        cpus
    }
}

/// Where task after task starts. With more tasks than CPUs it begins again at the first.
pub fn placements(binding: Option<Binding>, spec: &RunSpec, all: Placement) -> impl Iterator<Item = Placement> {
    let cpus = binding.map_or_else(Vec::new, |binding| binding.order(spec));
    (0..).map(move |task: usize| if cpus.is_empty() { all } else { Placement::Pinned(cpus[task % cpus.len()]) })
}
