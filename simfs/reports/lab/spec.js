// What the page asks of the engine: the RunSpec of the scenario `lock-cycle` with the choices of the form laid over it.

/**
 * @typedef {{lock: string, tasks: number, cpus: number, hold: number, think: number, times: string, readers: number,
 *   seed: number, duration: number}} Choice times in ns; `times` is how they are drawn; `readers` a share
 * @typedef {{base: any, locks: Record<string, object>, cpus: Record<string, {machine: object, kernel: object}>,
 *   warmup: number}} Kit made by templates.py: a RunSpec and what differs in it
 */

/**
 * The RunSpec (JSON) of a choice.
 * @param {Kit} kit @param {Choice} choice @param {number} replication
 */
export function specOf(kit, choice, replication = 0) {
  const {base} = kit, {machine, kernel} = kit.cpus[choice.cpus];
  const drawn = {
    think_ns: choice.think, think_distribution: choice.times, hold_ns: choice.hold, hold_distribution: choice.times,
  };
  return JSON.stringify({
    ...base, seed: choice.seed, replication, warmup_ns: kit.warmup * choice.duration, duration_ns: choice.duration,
    machine, kernel: {...kernel, locks: kit.locks[choice.lock]},
    workload: {...base.workload, tasks: choice.tasks, params: {...base.workload.params, readers: choice.readers, ...drawn}},
  });
}

/**
 * The numbers of tasks that a curve has: to twice the CPUs.
 * @param {number} cpus
 */
export function tasksOfCurve(cpus) {
  const steps = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96].filter((n) => n <= 2 * cpus);
  return steps.length > 9 ? steps.filter((n) => n !== 3 && n !== 6) : steps;
}
