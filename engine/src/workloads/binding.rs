//! Which CPU each task of a workload is bound to, and all that it starts, as benchmarks bind their processes and threads.

use crate::machine::CpuId;
use crate::spec::{Binding, MachineSpec, RunSpec};
use crate::waist::Placement;

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

/// Where task after task starts, without end. With more tasks than CPUs it begins again at the first.
pub fn placements(spec: &RunSpec) -> impl Iterator<Item = Placement> + 'static {
    let anywhere = spec.workload.pin_to_cpu.map_or(Placement::Anywhere, Placement::Pinned);
    let places = match spec.workload.binding {
        Binding::None => vec![anywhere],
        binding => order(binding, &spec.machine).into_iter().map(Placement::Pinned).collect(),
    };
    places.into_iter().cycle()
}
