//! Which CPU each task of a workload is bound to, and all that it starts, as benchmarks bind their processes and threads.
use crate::spec::{Binding, Load, MachineSpec};
use crate::waist::{CpuId, Machine, Placement};
use std::future::Future;

/// All CPUs in the order in which tasks are bound to them, one each; hyper-threads of a busy core come last.
fn order(binding: Binding, machine: &MachineSpec) -> Vec<CpuId> {
    let (per_core, per_socket) = (machine.cpus_per_core.max(1), machine.cpus_per_socket.max(1));
    let mut cpus: Vec<CpuId> = (0..machine.cpus).collect();
    cpus.sort_by_key(|cpu| {
        let (thread, socket, place) = (cpu % per_core, cpu / per_socket, cpu % per_socket);
        match binding {
            Binding::Spread => (thread, place, socket),
            Binding::None | Binding::Compact => (thread, socket, place),
        }
    });
    cpus
}

/// Where task after task of a load starts, without end, after those of the loads before it. With more tasks than CPUs it begins
/// again at the first.
pub fn placements(machine: &MachineSpec, load: Load<'_>) -> impl Iterator<Item = Placement> + 'static {
    let anywhere = load.workload.pin_to_cpu.map_or(Placement::Anywhere, Placement::Pinned);
    let places = match load.workload.binding {
        Binding::None => vec![anywhere],
        binding => order(binding, machine).into_iter().map(Placement::Pinned).collect(),
    };
    let skipped = load.first as usize % places.len();
    places.into_iter().cycle().skip(skipped)
}

/// The program of a task that has a nice level of its own. It is made here, as a future that came as an argument would have room twice.
pub async fn at_nice<M: Machine, F: Future<Output = ()>>(m: M, nice: i32, program: impl FnOnce(M) -> F) {
    m.set_nice(nice);
    program(m).await;
}
