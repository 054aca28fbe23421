// What each task and each CPU does from when to when: `follow` of simfs/results/timeline.py, with the same results.
// Times are picoseconds.

/**
 * @typedef {[number, number | null, number, string, string]} TraceEvent time, task, CPU, what, about what
 * @typedef {{begin: number, end: number, doing: string, cpu: number, waits: string[], holds: string[],
 *   granted: string[], wokenBy: string}} Interval
 * @typedef {{begin: number, end: number, task: number | null, idle: boolean}} Ran
 * @typedef {{task: number, kind: string, about: string, begin: number, end: number | null}} Span
 * @typedef {{lock: string, giver: number, released: number, taker: number, acquired: number}} HandOver
 * @typedef {{begin: number, end: number, tasks: Map<number, Interval[]>, cpus: Map<number, Ran[]>, spans: Span[],
 *   handOvers: HandOver[], kinds: Map<number, string>}} Line
 */

export const DOING = ["away", "run", "runnable", "asleep"];
const RUNS_NOW = new Set(["run", "segment end", "look"]);
/** @type {Record<string, string>} */
const LEAVES = {sleep: "asleep", preempt: "runnable", yield: "runnable", exit: "away"};

/**
 * The time line of a window, from what was in force at its begin and what happened in it.
 * @param {TraceEvent[]} inForce @param {TraceEvent[]} events @param {number} begin @param {number} end
 * @returns {Line}
 */
export function follow(inForce, events, begin, end) {
  const follower = new Follower(begin, end);
  inForce.forEach((event) => follower.see(event));
  follower.line.handOvers.length = 0;
  events.forEach((event) => follower.see(event));
  return follower.finish();
}

const key = (...parts) => parts.join("\n");

function without(list, one) {
  const at = list.indexOf(one);
  if (at >= 0) list.splice(at, 1);
  return at >= 0;
}

class Follower {
  constructor(begin, end) {
    /** @type {Line} */
    this.line = {begin, end, tasks: new Map(), cpus: new Map(), spans: [], handOvers: [], kinds: new Map()};
    this.tasks = new Map();
    this.cpus = new Map();
    this.open = new Map();
    this.lastRelease = new Map();
    this.actor = ""; // who or what causes the events that come now
  }

  /** @param {TraceEvent} event */
  see([time, number, cpu, what, about]) {
    if (number === null) return this.cpu(time, cpu, what, about);
    const task = this.task(number);
    if (RUNS_NOW.has(what)) this.actor = `task ${number}`;
    else if (what === "timer") this.actor = "timer";
    if (what === "start") this.line.kinds.set(number, about);
    else if (what === "run" || what === "wake" || what in LEAVES) this.move(time, number, task, cpu, what);
    else if (what === "begin" || what === "end") this.operation(time, number, what, about);
    else if (what === "wait" || what === "hand to device" || /^(acquire|release)/.test(what)) this.lock(time, number, task, what, about);
  }

  task(number) {
    if (!this.tasks.has(number)) {
      const now = {since: this.line.begin, doing: "away", cpu: 0, waits: [], holds: [], granted: [], past: [], asleepFrom: 0};
      this.tasks.set(number, now);
    }
    return this.tasks.get(number);
  }

  cpu(time, cpu, what, about) {
    if (what === "idle" || what === "idle exit") this.runs(cpu, time, null, what === "idle");
    if (["idle exit", "tick", "device done"].includes(what)) this.actor = what === "device done" ? about : "";
  }

  runs(cpu, time, task, idle = false) {
    const {begin} = this.line;
    this.keepRan(cpu, this.cpus.get(cpu) ?? {begin, end: begin, task: null, idle: true}, time);
    this.cpus.set(cpu, {begin: time, end: time, task, idle});
  }

  keepRan(cpu, ran, until) {
    const begin = Math.max(ran.begin, this.line.begin), end = Math.min(until, this.line.end);
    if (begin >= end) return;
    if (!this.line.cpus.has(cpu)) this.line.cpus.set(cpu, []);
    this.line.cpus.get(cpu)?.push({...ran, begin, end});
  }

  // A task comes to a CPU, leaves it, or wakes.
  move(time, number, task, cpu, what) {
    this.close(time, task);
    if (what === "wake") {
      if (task.doing === "asleep") for (const each of task.past.slice(task.asleepFrom)) each.wokenBy = this.actor;
      Object.assign(task, {doing: "runnable", cpu});
      return;
    }
    Object.assign(task, {granted: [], cpu});
    if (what === "run") {
      task.doing = "run";
      this.runs(cpu, time, number);
      return;
    }
    Object.assign(task, {doing: LEAVES[what], asleepFrom: task.past.length});
    this.runs(cpu, time, null);
    if (what === "exit") Object.assign(task, {waits: [], holds: []});
  }

  operation(time, number, what, about) {
    const own = key(number, "operation", "");
    if (what === "begin") this.open.set(own, time);
    else this.span(number, "operation", about, this.closed(own) ?? this.line.begin, time);
  }

  closed(own) {
    const begin = this.open.get(own);
    this.open.delete(own);
    return begin;
  }

  lock(time, number, task, what, lock) {
    this.close(time, task);
    if (what === "wait") {
      task.waits.push(lock);
      this.open.set(key(number, "wait", lock), time);
    } else if (what.startsWith("acquire")) this.acquire(time, number, task, what === "acquire" ? "hold" : "hold shared", lock);
    else this.release(time, number, task, lock);
  }

  acquire(time, number, task, kind, lock) {
    if (without(task.waits, lock)) this.span(number, "wait", lock, this.closed(key(number, "wait", lock)), time);
    task.holds.push(lock);
    if (task.doing === "runnable" || task.doing === "asleep") task.granted.push(lock);
    this.open.set(key(number, kind, lock), time);
    const [giver, released] = this.lastRelease.get(lock) ?? [number, time];
    this.lastRelease.delete(lock);
    if (giver !== number) this.line.handOvers.push({lock, giver, released, taker: number, acquired: time});
  }

  release(time, number, task, lock) {
    without(task.holds, lock);
    without(task.granted, lock);
    for (const kind of ["hold", "hold shared"]) {
      const begin = this.closed(key(number, kind, lock));
      if (begin !== undefined) this.span(number, kind, lock, begin, time);
    }
    this.lastRelease.set(lock, [number, time]);
  }

  span(task, kind, about, begin, end) {
    if (end === null || end >= this.line.begin) this.line.spans.push({task, kind, about, begin, end});
  }

  // What a task did so far ends.
  close(time, task) {
    const begin = Math.max(task.since, this.line.begin), end = Math.min(time, this.line.end);
    const {doing, cpu, waits, holds, granted} = task;
    if (begin < end) task.past.push({begin, end, doing, cpu, waits: [...waits], holds: [...holds], granted: [...granted], wokenBy: ""});
    task.since = time;
  }

  finish() {
    const {line} = this;
    for (const [number, task] of [...this.tasks].sort((a, b) => a[0] - b[0])) {
      this.close(line.end, task);
      line.tasks.set(number, task.past);
    }
    for (const [cpu, ran] of this.cpus) this.keepRan(cpu, ran, line.end);
    for (const [own, begin] of this.open) {
      const [number, kind, about] = own.split("\n");
      this.span(Number(number), kind, about, begin, null);
    }
    line.spans.sort((a, b) => a.begin - b.begin);
    line.cpus = new Map([...line.cpus].sort((a, b) => a[0] - b[0]));
    return line;
  }
}
