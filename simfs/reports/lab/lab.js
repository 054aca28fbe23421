// The page: reads the form, asks the engines, shows curve, numbers and time line.
import {Pool} from "./pool.js";
import {sceneOf, windowAround, worstOf} from "./scene.js";
import {specOf, tasksOfCurve} from "./spec.js";

/** Runs of each point of a curve. */
const RUNS = 3;
/** A start that no run comes to (ps). */
const NEVER = 2 ** 62;

const kept = (id) => document.getElementById(id)?.textContent ?? "";
const kit = JSON.parse(kept("kit")), form = /** @type {HTMLFormElement} */ (document.getElementById("choice"));
const place = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

async function unpacked() {
  const packed = Uint8Array.from(atob(kept("engine").trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

/** @returns {import("./spec.js").Choice} */
function chosen() {
  const of = (name) => form.elements[name].value, number = (name) => Number(of(name));
  return {
    lock: of("lock"), tasks: number("tasks"), cpus: number("cpus"), hold: number("hold") * 1000, think: number("think") * 1000,
    times: of("times"), readers: number("readers") / 100, seed: number("seed"), duration: number("duration") * 1e6,
  };
}

// Everything but the lock and the tasks: curves of one setting can be laid beside each other.
function setting({lock, tasks, ...others}) { return JSON.stringify(others); }

function number(value) {
  return value >= 100 ? Math.round(value).toLocaleString("en-GB") : String(Number(value.toPrecision(3)));
}

function duration(ns) {
  for (const [scale, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]]) if (ns >= scale) return `${number(ns / scale)} ${unit}`;
  return `${Math.round(ns)} ns`;
}

const percent = (part, whole) => whole ? `${number(100 * part / whole)} %` : "-";
const rate = (result) => result.operations / result.window_ns * 1e9;

// Rows of the table: what it is and its value for a run.
function rows({result, choice}) {
  const lock = result.locks[0], all = choice.cpus * result.window_ns, time = (account) => percent(result.cpu_ns[account], all);
  const each = result.per_task_operations;
  const cpu = [["CPU time thinking", "user"], ["in the lock's critical section", "system"], ["spinning", "spin"],
    ["switching", "switch"], ["in interrupts", "irq"], ["idle", "idle"]].map(([name, account]) => [name, time(account)]);
  const found = [["cycles per second", number(rate(result))], ["cycles of a task, fewest to most", `${number(Math.min(...each))} to ${number(Math.max(...each))}`], ...cpu];
  if (!lock) return found;
  const {acquired, contended} = lock;
  return [...found,
    ["lock taken", number(acquired)], ["of these after waiting", percent(contended, acquired)],
    ["wait, mean of those who wait", contended ? duration(lock.wait_total_ns / contended) : "-"],
    ["wait, 99 % are below", contended ? duration(lock.wait_p99_ns) : "-"], ["wait, longest", contended ? duration(lock.wait_max_ns) : "-"],
    ["hold, mean", acquired ? duration(lock.hold_total_ns / acquired) : "-"],
    ["waits that spun to their end", number(lock.resolved_spinning)], ["waits that slept", number(lock.slept)],
    ["handed to a waiter", number(lock.handoffs)], ["taken past waiters", number(lock.steals)],
    ["transfers of the lock's cache lines", number(lock.line_transfers)]];
}

function title({lock, tasks, cpus}) { return `${lock}, ${tasks} task${tasks === 1 ? "" : "s"}, ${cpus} CPU${cpus === 1 ? "" : "s"}`; }

class Lab {
  /** @param {Pool} pool */
  constructor(pool) {
    Object.assign(this, {pool, lines: new Map(), setting: "", before: null, now: null});
    place("run").addEventListener("click", () => this.act(() => this.run()));
    place("curve").addEventListener("click", () => this.act(() => this.curve()));
    place("stop").addEventListener("click", () => pool.stop());
    form.addEventListener("input", () => this.about());
    form.addEventListener("submit", (event) => event.preventDefault());
    this.about();
  }

  // What tells the chosen lock from others.
  about() {
    const list = document.createElement("dl");
    list.className = "facts";
    for (const [name, text] of Object.entries(kit.about[chosen().lock] ?? {})) {
      const pair = list.appendChild(document.createElement("div"));
      pair.append(Object.assign(document.createElement("dt"), {textContent: name}), Object.assign(document.createElement("dd"), {textContent: text}));
    }
    place("about").replaceChildren(list);
  }

  say(text) { place("said").textContent = text; }

  async act(work) {
    if (!form.reportValidity()) return;
    const buttons = [place("run"), place("curve")];
    for (const button of buttons) /** @type {HTMLButtonElement} */ (button).disabled = true;
    /** @type {HTMLButtonElement} */ (place("stop")).disabled = false;
    try {
      await work();
    } catch (error) {
      this.say(`No result: ${error instanceof Error ? error.message : error}`);
    }
    for (const button of buttons) /** @type {HTMLButtonElement} */ (button).disabled = false;
    /** @type {HTMLButtonElement} */ (place("stop")).disabled = true;
  }

  async run() {
    const choice = chosen(), spec = specOf(kit, choice);
    this.say(`Running ${title(choice)} ...`);
    const {result, longest} = JSON.parse(await this.pool.ask({call: "watch", spec, start: NEVER}));
    const least = Math.min(2e9, Math.round(1000 * (40 * choice.hold + 2 * choice.think)));
    const worst = worstOf(longest), [begin, end] = windowAround(worst, least, Math.round(JSON.parse(spec).warmup_ns * 1000));
    const short = JSON.stringify({...JSON.parse(spec), warmup_ns: 0, duration_ns: end / 1000});
    const watched = JSON.parse(await this.pool.ask({call: "watch", spec: short, start: begin}));
    this.before = this.now;
    this.now = {choice, result};
    this.table();
    this.timeline(sceneOf(watched, begin, end, worst, kit.style, "line"), choice, begin, end, worst);
    const broken = result.laws.filter((law) => !law.ok).map((law) => law.law);
    const spin = percent(result.cpu_ns.spin, choice.cpus * result.window_ns);
    this.say(result.stall ? `${title(choice)}: the run stalled (${result.stall.kind}).` : broken.length ? `${title(choice)}: broken: ${broken.join(", ")}.`
      : `${title(choice)}: ${number(rate(result))} cycles per second; ${spin} of CPU time is spent spinning.`);
  }

  table() {
    const columns = [this.now, this.before].filter(Boolean), table = document.createElement("table");
    const add = (parent, tag, text, kind) => parent.append(Object.assign(document.createElement(tag), {textContent: text, className: kind ?? ""}));
    const head = table.createTHead().insertRow(), body = table.createTBody(), all = columns.map(rows);
    add(head, "th", "");
    columns.forEach((each, at) => add(head, "th", `${at ? "before" : "now"}: ${title(each.choice)}, hold ${duration(each.choice.hold)}, think ${duration(each.choice.think)}`, "n"));
    all[0].forEach(([name], at) => {
      const row = body.insertRow();
      add(row, "th", name);
      for (const column of all) add(row, "td", column[at]?.[1] ?? "-", "n");
    });
    place("numbers").replaceChildren(table);
  }

  timeline(data, choice, begin, end, worst) {
    const template = /** @type {HTMLTemplateElement} */ (document.getElementById("player"));
    const player = /** @type {HTMLElement} */ (template.content.firstElementChild.cloneNode(true));
    player.querySelector("h2").textContent = title(choice);
    const wait = worst ? ` around its longest wait: task ${worst[1]} for ${duration((worst[3] - worst[2]) / 1000)}` : "; nobody waited";
    player.querySelector("p").textContent = `${duration((end - begin) / 1000)} of the run${wait}. Click a task or use the arrow keys.`;
    place("line").replaceChildren(player);
    simfsTimeline(player, data);
  }

  async curve() {
    const choice = chosen(), tasks = tasksOfCurve(choice.cpus), own = setting(choice);
    if (this.setting !== own) this.lines.clear();
    this.setting = own;
    let done = 0;
    const all = tasks.flatMap((n) => Array.from({length: RUNS}, async (_, replication) => {
      const said = await this.pool.ask({call: "run", spec: specOf(kit, {...choice, tasks: n}, replication)});
      this.say(`Curve of ${choice.lock}: ${++done} of ${tasks.length * RUNS} runs`);
      return JSON.parse(said);
    }));
    const results = await Promise.all(all), points = tasks.map((_, at) => results.slice(at * RUNS, (at + 1) * RUNS));
    this.lines.set(choice.lock, {x: tasks, points});
    this.draw();
    const best = points.map((runs) => runs.reduce((sum, r) => sum + rate(r), 0) / RUNS), top = best.indexOf(Math.max(...best));
    this.say(`${choice.lock} on ${choice.cpus} CPUs: most at ${tasks[top]} tasks, ${number(best[top])} cycles per second; ${number(best.at(-1))} at ${tasks.at(-1)}.`);
  }

  // Mean of the runs; whiskers from the lowest to the highest.
  draw() {
    const columns = (points, of) => {
      const values = points.map((runs) => runs.map(of));
      return [values.map((v) => v.reduce((a, b) => a + b) / v.length), values.map((v) => Math.min(...v)), values.map((v) => Math.max(...v))];
    };
    const share = (account) => (r) => 100 * r.cpu_ns[account] / Object.values(r.cpu_ns).reduce((a, b) => a + b);
    const lines = [...this.lines].map(([name, {x, points}]) => ({
      name, x, ideal: [], numbers: {rate: columns(points, rate), spin: columns(points, share("spin")), idle: columns(points, share("idle"))},
    }));
    const root = document.createElement("div");
    root.className = "chart-set";
    place("curves").replaceChildren(root);
    simfsCharts(root, "curves", {
      key: "workload.tasks", label: "tasks", words: [], lines, measured: [], log: false, apart: false, joined: true,
      quantities: [["rate", "cycles per second"], ["spin", "CPU time spinning (%)"], ["idle", "CPU time idle (%)"]],
    });
  }
}

unpacked().then((module) => {
  const lab = new Lab(new Pool(module, kept("worker")));
  lab.act(() => lab.run());
}, (error) => { place("said").textContent = `This browser cannot run the engine: ${error.message}`; });
