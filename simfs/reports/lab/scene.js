// What the player draws of a window: `data` of simfs/reports/timeline/html.py, with the same results.
import {DOING, follow} from "./follow.js";

/**
 * @typedef {[string, number, number, number]} LongWait lock, task, begin, end (ps)
 * @typedef {{states: string[], looks: object[], switching: object, hatches: object, rows: number, strips: number}} Style
 */

/** Times of a window (ps), as simfs/experiments/scene.py has them. */
const LENGTH = 2e9, LONGEST = 10 * LENGTH;
const STATES = ["AWAY", "RUNS", "SPINS", "HOLDS", "GRANTED", "STALLED", "WAITS", "WAITS_ELSEWHERE", "RUNNABLE", "DEVICE", "SLEEPS"];
const CALM = new Set(["RUNS", "SLEEPS", "AWAY", "DEVICE", "WAITS_ELSEWHERE"]);
const HOLDING = new Set(["HOLDS", "GRANTED", "STALLED"]);

/**
 * What a task does, seen from the lock in focus.
 * @param {import("./follow.js").Interval} interval @param {string} focus
 */
function stateOf(interval, focus) {
  const {doing, waits, holds, granted, wokenBy} = interval;
  if (doing === "away") return "AWAY";
  if (holds.includes(focus)) {
    if (doing === "run") return "HOLDS";
    return granted.includes(focus) ? "GRANTED" : "STALLED";
  }
  if (doing === "run") return waits.length ? "SPINS" : "RUNS";
  if (doing === "runnable") return "RUNNABLE";
  if (waits.length) return waits.includes(focus) ? "WAITS" : "WAITS_ELSEWHERE";
  return wokenBy.startsWith("device") ? "DEVICE" : "SLEEPS";
}

/**
 * The longest of the waits, or null.
 * @param {LongWait[]} waits
 * @returns {LongWait | null}
 */
export function worstOf(waits) {
  return waits.reduce((/** @type {LongWait | null} */ a, b) => a && a[3] - a[2] >= b[3] - b[2] ? a : b, null);
}

/**
 * Begin and end of a window around a wait; too short a one has its end in the last quarter.
 * @param {LongWait | null} worst @param {number} least length (ps) @param {number} otherwise where without a wait
 */
export function windowAround(worst, least, otherwise) {
  if (!worst) return [otherwise, otherwise + least];
  const [, , begin, end] = worst, wait = end - begin, length = Math.min(Math.max(least, Math.floor(wait * 5 / 4)), LONGEST);
  const first = Math.max(0, wait <= length ? Math.floor((begin + end - length) / 2) : end - Math.floor(length * 3 / 4));
  return [first, first + length];
}

const counted = (counter, most) => [...counter].sort((a, b) => b[1] - a[1]).slice(0, most);
const plus = (counter, key, n) => counter.set(key, (counter.get(key) ?? 0) + n);

/**
 * What the player draws; times in ns since the window's begin.
 * @param {{in_force: any[], events: any[]}} watched @param {number} begin @param {number} end (ps)
 * @param {LongWait | null} worst @param {Style} style @param {string} id
 */
export function sceneOf(watched, begin, end, worst, style, id) {
  const line = follow(watched.in_force, watched.events, begin, end), focus = worst ? worst[0] : mostWaited(line);
  return new Scene(line, focus, worst).data(style, id);
}

function mostWaited(line) {
  const waited = new Map();
  for (const span of line.spans.filter((each) => each.kind === "wait")) {
    plus(waited, span.about, Math.min(span.end ?? line.end, line.end) - Math.max(span.begin, line.begin));
  }
  return counted(waited, 1)[0]?.[0] ?? "";
}

class Scene {
  constructor(line, focus, worst) {
    Object.assign(this, {line, focus, worst});
    this.when = (time) => Math.floor((Math.min(time, line.end) - line.begin) / 1000);
  }

  // Tasks that have to do with the focus in the order in which they first have it, then those that run.
  order() {
    const first = new Map(), ran = new Map();
    for (const {kind, about, task, begin, end} of this.line.spans) {
      if (kind === "operation" || about !== this.focus) continue;
      const had = kind === "wait" ? end ?? Infinity : begin;
      first.set(task, Math.min(first.get(task) ?? Infinity, had));
    }
    if (first.size) return [...first].sort((a, b) => (a[1] === b[1] ? a[0] - b[0] : a[1] - b[1])).map(([task]) => task);
    for (const [task, parts] of this.line.tasks) plus(ran, task, parts.reduce((sum, p) => sum + (p.doing === "run" ? p.end - p.begin : 0), 0));
    return counted(ran, Infinity).filter(([, time]) => time).map(([task]) => task);
  }

  // Of too many tasks, those that hold longest and those that wait longest.
  rows(most) {
    const held = new Map(), waited = new Map(), order = this.order();
    for (const task of order) for (const each of this.line.tasks.get(task)) {
      const state = stateOf(each, this.focus);
      plus(HOLDING.has(state) ? held : waited, task, CALM.has(state) ? 0 : each.end - each.begin);
    }
    if (this.worst && waited.has(this.worst[1])) waited.set(this.worst[1], Infinity);
    const kept = new Set(counted(held, Math.floor(most / 2)).map(([task]) => task));
    for (const [task] of counted(waited, Infinity)) if (kept.size < most) kept.add(task);
    return order.filter((task) => kept.has(task));
  }

  cpuRows(most) {
    const held = new Map(), sum = (ran) => ran.reduce((all, r) => all + (r.idle ? 0 : r.end - r.begin), 0);
    for (const parts of this.line.tasks.values()) for (const each of parts) {
      if (stateOf(each, this.focus) === "HOLDS") plus(held, each.cpu, each.end - each.begin);
    }
    const all = [...this.line.cpus].map(([cpu, ran]) => ({cpu, held: held.get(cpu) ?? 0, time: sum(ran)}));
    return all.sort((a, b) => b.held - a.held || b.time - a.time).slice(0, most).map(({cpu}) => cpu).sort((a, b) => a - b);
  }

  data(style, id) {
    const {line} = this, rows = this.rows(style.rows);
    const locks = [...new Set([...line.tasks.values()].flat().flatMap((part) => [...part.waits, ...part.holds]))].sort();
    const numbers = (names) => names.map((name) => locks.indexOf(name)), stateNumber = (each) => STATES.indexOf(stateOf(each, this.focus));
    const part = (each) => [this.when(each.begin), this.when(each.end), stateNumber(each), DOING.indexOf(each.doing), each.cpu,
      numbers(each.waits), numbers(each.holds), each.wokenBy];
    const shown = ([task, parts]) => parts.length && (rows.includes(task) || parts.some((each) => each.doing !== "away"));
    return {
      id, length: this.when(line.end), locks, looks: style.looks, areas: style.areas, switching: style.switching, hatches: style.hatches,
      tasks: [...line.tasks].filter(shown).map(([task, parts]) => ({id: task, name: this.name(task), parts: parts.map(part)})),
      rows, cpus: this.cpuRows(style.strips).map((cpu) => this.strip(cpu, stateNumber)), queue: this.queue(), spinning: this.spinning(),
      handOvers: line.handOvers.filter((over) => over.lock === this.focus)
        .map((o) => [o.giver, Math.max(this.when(o.released), 0), o.taker, this.when(o.acquired)]),
      moments: this.moments(rows), start: this.start(rows),
    };
  }

  name(task) { return `${(this.line.kinds.get(task) ?? "load") === "load" ? "task" : "kworker"} ${task}`; }

  // What a CPU does: [begin, end, task or null, state, whether the task's number fits in].
  strip(cpu, stateNumber) {
    const parts = [];
    for (const ran of this.line.cpus.get(cpu)) {
      if (ran.task === null) {
        if (!ran.idle) parts.push([this.when(ran.begin), this.when(ran.end), null, null, false]);
        continue;
      }
      for (const each of this.line.tasks.get(ran.task)) {
        if (each.doing !== "run" || each.cpu !== cpu || each.begin < ran.begin || each.begin >= ran.end) continue;
        parts.push([this.when(each.begin), this.when(each.end), ran.task, stateNumber(each), true]);
      }
    }
    return {cpu, parts};
  }

  // How many tasks wait for the focus: from when on.
  queue() {
    return this.together(this.line.spans.filter((span) => span.kind === "wait" && span.about === this.focus));
  }

  // How many of those are on a CPU: the same.
  spinning() {
    return this.together([...this.line.tasks.values()].flat().filter((each) => each.doing === "run" && each.waits.includes(this.focus)));
  }

  together(stretches) {
    const {line} = this, changes = new Map([[line.begin, 0]]);
    for (const {begin, end} of stretches) {
      plus(changes, Math.max(begin, line.begin), 1);
      if (end !== null) plus(changes, end, -1);
    }
    let there = 0;
    return [...changes].sort((a, b) => a[0] - b[0]).map(([time, change]) => [this.when(time), there += change]);
  }

  // When something happens to the lock in focus or to who has to do with it.
  moments(rows) {
    const times = new Set();
    for (const task of rows) {
      let last = "";
      for (const each of this.line.tasks.get(task)) {
        const state = stateOf(each, this.focus);
        if (state !== last) times.add(this.when(each.begin));
        last = state;
      }
    }
    return [...times].sort((a, b) => a - b);
  }

  // The player starts late in the longest wait, or at the begin.
  start(rows) {
    const {line, worst} = this;
    if (!worst || !line.tasks.has(worst[1])) return {task: rows[0] ?? Math.min(...line.tasks.keys()), time: 0};
    const first = Math.max(worst[2], line.begin);
    return {task: worst[1], time: this.when(first + Math.floor((Math.min(worst[3], line.end) - first) / 2))};
  }
}
