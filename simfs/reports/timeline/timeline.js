// The player of a time line: draws the data that html.py gives, steps through it, says why a task waits.
// Times are nanoseconds since the window's begin. A part of a task is
// [begin, end, state, doing, cpu, waits, holds, woken by]; locks are indices into data.locks.
// Without `given`, the data is in a script of the root.
function simfsTimeline(root, given) {
  "use strict";
  const data = given || JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const NS = "http://www.w3.org/2000/svg";
  const ROW = 16, LEFT = 92, QUEUE = 46, GAP = 10, AXIS = 26, RUN = 1, RUNNABLE = 2, ASLEEP = 3;
  const ARROWS = 400; // hand-overs drawn at most in the width of the window
  const PACE = 200; // ms of a step that is played
  const svg = root.querySelector("svg"), slider = root.querySelector("input"), why = root.querySelector(".why");
  const clock = root.querySelector(".clock");
  const tasks = new Map(data.tasks.map((task) => [task.id, task]));
  const state = {time: 0, task: data.start.task, zoom: 1, playing: 0};
  let x = () => 0, cursor = null;

  function make(parent, name, attributes, text) {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  }

  function at(task, time) {
    const parts = task.parts;
    let low = 0, high = parts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (parts[middle][0] <= time) low = middle; else high = middle - 1;
    }
    return parts[low];
  }

  function holders(lock, time) {
    return data.tasks.filter((task) => at(task, time)[6].includes(lock));
  }

  function runner(cpu, time) {
    return data.tasks.find((task) => { const part = at(task, time); return part[3] === RUN && part[4] === cpu; });
  }

  function named(locks) { return locks.map((lock) => data.locks[lock]).join(", "); }

  // What a task does at a time, then the same of who keeps it waiting, to the root.
  function reasons(task, time, seen) {
    const part = at(task, time), [, , , doing, cpu, waits, holds, woken] = part;
    const has = holds.length ? `, holds ${named(holds)}` : "";
    const lock = waits.length ? waits[waits.length - 1] : null;
    if (seen.has(task.id)) return [`${task.name}: see above`];
    seen.add(task.id);
    if (doing === RUN) {
      const spins = lock === null ? "" : ` and spins for ${data.locks[lock]}`;
      return [`${task.name} runs on CPU ${cpu}${spins}${has}`, ...(lock === null ? [] : blamed(lock, time, seen))];
    }
    if (doing === RUNNABLE) {
      const other = runner(cpu, time);
      const behind = other ? `${other.name} runs there` : "that CPU is switching, or leaves its idle state";
      return [`${task.name} wants CPU ${cpu}${has}: ${behind}`];
    }
    if (doing !== ASLEEP) return [`${task.name} is not there`];
    if (lock !== null) return [`${task.name} sleeps, waits for ${data.locks[lock]}${has}`, ...blamed(lock, time, seen)];
    const until = woken ? `until ${woken}` : "beyond this window";
    return [`${task.name} sleeps ${until}${has}`];
  }

  function blamed(lock, time, seen) {
    const owners = holders(lock, time);
    if (!owners.length) return [`${data.locks[lock]} is free, or with a device`];
    const more = owners.length > 3 ? [`and ${owners.length - 3} more hold it`] : [];
    return owners.slice(0, 3).flatMap((owner) => reasons(owner, time, seen)).concat(more);
  }

  function bar(parent, y, part, look, label) {
    const [begin, end] = part, height = ROW * look.height;
    const box = {x: x(begin), y: y + (ROW - height) / 2, width: Math.max(x(end) - x(begin), 0.3), height};
    const node = make(parent, "rect", {...box, fill: look.colour});
    if (look.hatch) make(parent, "rect", {...box, fill: `url(#${data.id}-${look.hatch})`});
    if (label) make(node, "title", {}, label);
  }

  function draw() {
    svg.replaceChildren();
    const width = Math.max(root.querySelector(".scroll").clientWidth, 320) * state.zoom, span = data.length;
    const below = QUEUE + GAP + data.rows.length * ROW, height = below + GAP + data.cpus.length * ROW + AXIS;
    x = (time) => LEFT + time / span * (width - LEFT - 8);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    patterns();
    queue();
    data.rows.forEach((id, row) => taskRow(tasks.get(id), QUEUE + GAP + row * ROW));
    arrows();
    data.cpus.forEach((strip, row) => cpuRow(strip, below + GAP + row * ROW));
    axis(height, width);
    cursor = make(svg, "line", {class: "cursor", y1: 0, y2: height - AXIS});
    show();
  }

  function patterns() {
    const defs = make(svg, "defs", {});
    for (const [name, path] of Object.entries(data.hatches)) {
      const own = make(defs, "pattern", {id: `${data.id}-${name}`, width: 6, height: 6, patternUnits: "userSpaceOnUse"});
      make(own, "path", {d: path, stroke: "white", "stroke-width": 1.2, fill: "none"});
    }
  }

  // Who waits, and of them in front who spins.
  function queue() {
    const top = Math.max(1, ...data.queue.map((step) => step[1]));
    area(data.queue, top, data.areas.queue);
    area(data.spinning, top, data.areas.spinning);
    make(svg, "text", {x: LEFT - 6, y: 12, "text-anchor": "end"}, `queue, max ${top}`);
  }

  function area(steps, top, look) {
    const y = (n) => QUEUE - n / top * (QUEUE - 8);
    let path = `M${x(0)},${QUEUE}`;
    steps.forEach(([time, n], i) => {
      const until = i + 1 < steps.length ? steps[i + 1][0] : data.length;
      path += `L${x(time)},${y(n)}L${x(until)},${y(n)}`;
    });
    const d = `${path}L${x(data.length)},${QUEUE}Z`, stroke = look === data.areas.queue ? "#4d4d4d" : "none";
    make(svg, "path", {d, fill: look.colour, stroke, "stroke-width": 0.7});
    if (look.hatch) make(svg, "path", {d, fill: `url(#${data.id}-${look.hatch})`});
  }

  function taskRow(task, y) {
    const group = make(svg, "g", {class: "row", tabindex: 0, role: "button", "data-task": task.id, "aria-label": `why ${task.name} waits`});
    make(group, "rect", {x: 0, y, width: x(data.length), height: ROW, class: "back"});
    make(group, "text", {x: LEFT - 6, y: y + ROW * 0.75, "text-anchor": "end"}, task.name);
    for (const part of task.parts) {
      const look = data.looks[part[2]];
      if (look.height) bar(group, y, part, look, `${task.name}: ${look.name}`);
    }
  }

  function cpuRow(strip, y) {
    make(svg, "text", {x: LEFT - 6, y: y + ROW * 0.75, "text-anchor": "end"}, `CPU ${strip.cpu}`);
    for (const part of strip.parts) {
      const owner = part[2] === null ? "switching" : tasks.get(part[2]).name;
      bar(svg, y, part, part[2] === null ? data.switching : data.looks[part[3]], owner);
      if (part[2] !== null && x(part[1]) - x(part[0]) > 30 && part[4]) {
        const number = part[2] < 0 ? `k${-part[2]}` : part[2]; // a kernel thread's is below 0
        make(svg, "text", {x: (x(part[0]) + x(part[1])) / 2, y: y + ROW * 0.75, "text-anchor": "middle", class: "on"}, number);
      }
    }
  }

  // More would hide the rows; closer there is room for them.
  function arrows() {
    if (data.handOvers.length > ARROWS * state.zoom) return;
    const middle = (id) => QUEUE + GAP + (data.rows.indexOf(id) + 0.5) * ROW;
    for (const [giver, released, taker, acquired] of data.handOvers) {
      if (!data.rows.includes(giver) || !data.rows.includes(taker)) continue;
      const [x1, y1, x2, y2] = [x(released), middle(giver), x(acquired), middle(taker)];
      make(svg, "line", {x1, y1, x2, y2, class: "arrow"});
      const angle = Math.atan2(y2 - y1, x2 - x1) * 180 / Math.PI;
      make(svg, "path", {d: "M0,0L-6,-2.5L-6,2.5Z", class: "head", transform: `translate(${x2},${y2}) rotate(${angle})`});
    }
  }

  function axis(height, width) {
    const ticks = Math.max(2, Math.floor(width / 110)), rough = data.length / ticks;
    const power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
    for (let time = 0; time <= data.length; time += step) {
      make(svg, "line", {x1: x(time), x2: x(time), y1: height - AXIS, y2: height - AXIS + 4, class: "arrow"});
      const anchor = x(time) > width - 24 ? "end" : "middle";
      make(svg, "text", {x: x(time), y: height - 8, "text-anchor": anchor}, short(time));
    }
  }

  function short(ns) {
    return data.length >= 2e6 ? `${+(ns / 1e6).toFixed(4)} ms` : `${+(ns / 1e3).toFixed(3)} us`;
  }

  function show() {
    cursor.setAttribute("x1", x(state.time));
    cursor.setAttribute("x2", x(state.time));
    slider.value = state.time;
    clock.textContent = short(state.time);
    slider.setAttribute("aria-valuetext", short(state.time));
    for (const row of svg.querySelectorAll(".row")) {
      const own = Number(row.dataset.task) === state.task;
      row.classList.toggle("chosen", own);
      row.setAttribute("aria-pressed", own);
    }
    const list = document.createElement("ol");
    for (const reason of reasons(tasks.get(state.task), state.time, new Set())) {
      list.append(Object.assign(document.createElement("li"), {textContent: reason}));
    }
    why.replaceChildren(list);
  }

  function go(time) {
    state.time = Math.min(Math.max(time, 0), data.length - 1);
    show();
  }

  function step(way) {
    const next = way > 0 ? data.moments.find((m) => m > state.time) : data.moments.findLast((m) => m < state.time);
    go(next === undefined ? (way > 0 ? data.length - 1 : 0) : next);
  }

  // Steps until the end, a press of the button, or until the player is gone.
  function play() {
    if (state.playing) return pause();
    if (state.time >= data.length - 1) go(0);
    root.querySelector("[name='play']").textContent = "pause";
    state.playing = setInterval(() => {
      step(1);
      keep();
      if (state.time >= data.length - 1 || !root.isConnected) pause();
    }, PACE);
  }

  function pause() {
    clearInterval(state.playing);
    state.playing = 0;
    root.querySelector("[name='play']").textContent = "play";
  }

  function choose(id) {
    state.task = id;
    show();
  }

  const acts = {first: () => go(0), back: () => step(-1), play, forward: () => step(1), last: () => go(data.length - 1),
    worst: () => { state.task = data.start.task; go(data.start.time); },
    closer: () => { state.zoom = Math.min(state.zoom * 2, 64); draw(); keep(); },
    wider: () => { state.zoom = Math.max(state.zoom / 2, 1); draw(); keep(); }};
  function keep() { const box = root.querySelector(".scroll"); box.scrollLeft = x(state.time) - box.clientWidth / 2; }
  for (const button of root.querySelectorAll("button")) button.addEventListener("click", acts[button.name]);
  slider.addEventListener("input", () => go(Number(slider.value)));
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect(), row = event.target.closest(".row");
    if (row) state.task = Number(row.dataset.task);
    go(Math.round((event.clientX - box.left - LEFT) / (x(data.length) - LEFT) * data.length));
  });
  root.addEventListener("keydown", (event) => {
    const row = event.target.closest && event.target.closest(".row");
    if (row && (event.key === "Enter" || event.key === " ")) choose(Number(row.dataset.task));
    else if (event.target === slider) return;
    else if (event.key === "ArrowRight") step(1);
    else if (event.key === "ArrowLeft") step(-1);
    else return;
    event.preventDefault();
  });
  slider.max = Math.max(data.length - 1, 0);
  new ResizeObserver(() => draw()).observe(root.querySelector(".scroll"));
  draw();
  go(data.start.time);
}
