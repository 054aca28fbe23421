// The controls of a report: charts by uPlot with lines to switch, a table's columns to sort by, views of locks.
// Data is beside each chart (`curves.py`). Without scripts every table of the report is there, only longer.
(function () {
  "use strict";
  const DASHES = [[], [9, 4], [9, 3, 2, 3], [2, 3], [14, 4], [9, 3, 2, 3, 2, 3], [4, 2], [16, 3, 4, 3]];
  const SHAPES = ["disc", "square", "diamond", "triangle", "nabla", "plus", "star", "cross"];
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function make(parent, tag, attributes, text) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  }

  function button(parent, text, pressed, act) {
    const node = make(parent, "button", {type: "button", "aria-pressed": String(pressed)}, text);
    node.addEventListener("click", () => act(node));
    return node;
  }

  // One of several buttons is pressed.
  function oneOf(parent, label, names, chosen, act) {
    const group = make(parent, "div", {class: "group", role: "group", "aria-label": label});
    const all = names.map(([key, name]) => button(group, name, key === chosen, (own) => {
      for (const each of all) each.setAttribute("aria-pressed", String(each === own));
      act(key);
    }));
  }

  function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

  // Colour, dash and shape together tell any line from all others, in greyscale too.
  function look(index) {
    const turn = Math.floor(index / 8);
    return {colour: css(`--l${index % 8}`), dash: DASHES[(index + turn) % 8], shape: SHAPES[(index + 3 * turn) % 8]};
  }

  function number(value) {
    if (value === null || value === undefined) return "-";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 100) return Math.round(value).toLocaleString("en-GB");
    return size >= 0.001 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
  }

  // For the axes of small panels.
  function brief(value) {
    for (const [scale, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (Math.abs(value) >= scale) return `${number(value / scale)}${unit}`;
    return number(value);
  }

  function duration(ns) {
    for (const [scale, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]]) if (ns >= scale * 0.9995) return `${number(ns / scale)} ${unit}`;
    return `${Math.round(ns)} ns`;
  }

  function path(shape, x, y, r) {
    const p = new Path2D(), to = (...points) => { points.forEach(([a, b], at) => at ? p.lineTo(x + a * r, y + b * r) : p.moveTo(x + a * r, y + b * r)); p.closePath(); };
    if (shape === "disc") p.arc(x, y, r, 0, 2 * Math.PI);
    else if (shape === "square") to([-0.85, -0.85], [0.85, -0.85], [0.85, 0.85], [-0.85, 0.85]);
    else if (shape === "diamond") to([0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]);
    else if (shape === "triangle") to([0, -1.2], [1.1, 0.8], [-1.1, 0.8]);
    else if (shape === "nabla") to([0, 1.2], [1.1, -0.8], [-1.1, -0.8]);
    else if (shape === "star") to([0, -1.3], [0.3, -0.3], [1.3, 0], [0.3, 0.3], [0, 1.3], [-0.3, 0.3], [-1.3, 0], [-0.3, -0.3]);
    else if (shape === "plus") to([-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]);
    else to([-1.1, -0.6], [-0.6, -1.1], [0, -0.5], [0.6, -1.1], [1.1, -0.6], [0.5, 0], [1.1, 0.6], [0.6, 1.1], [0, 0.5], [-0.6, 1.1], [-1.1, 0.6], [-0.5, 0]);
    return p;
  }

  function whisker(ctx, x, low, high, r) {
    ctx.beginPath();
    ctx.moveTo(x, low); ctx.lineTo(x, high);
    for (const y of [low, high]) { ctx.moveTo(x - r, y); ctx.lineTo(x + r, y); }
    ctx.stroke();
  }

  function swatch(style) {
    const dash = style.dash.join(" "), ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg");
    for (const [key, value] of Object.entries({width: 34, height: 12, "aria-hidden": "true"})) svg.setAttribute(key, value);
    const line = document.createElementNS(ns, "line");
    for (const [key, value] of Object.entries({x1: 0, y1: 6, x2: 34, y2: 6, stroke: style.colour, "stroke-width": 2, "stroke-dasharray": dash})) line.setAttribute(key, value);
    svg.append(line);
    return svg;
  }

  // Draws whiskers and shapes of lines, then measured points: hollow, with a cross, in ink.
  function marks(spec) {
    return (u) => {
      const ctx = u.ctx, ratio = devicePixelRatio || 1, r = (spec.small ? 2.6 : 3.6) * ratio;
      ctx.save();
      ctx.beginPath();
      ctx.rect(u.bbox.left - r, u.bbox.top - 2 * r, u.bbox.width + 2 * r, u.bbox.height + 3 * r);
      ctx.clip();
      ctx.setLineDash([]);
      const at = (x, y) => [u.valToPos(x, "x", true), u.valToPos(y, "y", true)];
      for (const line of spec.lines) {
        if (line.plain) continue;
        ctx.strokeStyle = ctx.fillStyle = line.style.colour;
        ctx.lineWidth = ratio;
        line.x.forEach((x, i) => {
          if (line.y[i] === null) return;
          const [px, py] = at(x, line.y[i]);
          if (line.low && line.low[i] !== null && line.high[i] !== null) whisker(ctx, px, at(x, line.low[i])[1], at(x, line.high[i])[1], 3 * ratio);
          if (!spec.bare) ctx.fill(path(line.style.shape, px, py, r));
        });
      }
      ctx.strokeStyle = css("--ink");
      for (const mark of spec.measured || []) {
        const [px, py] = at(mark.x, mark.y);
        ctx.lineWidth = ratio;
        if (mark.low !== null && mark.high !== null) whisker(ctx, px, at(mark.x, mark.low)[1], at(mark.x, mark.high)[1], 4 * ratio);
        ctx.lineWidth = 2.4 * ratio;
        ctx.fillStyle = css("--paper");
        const own = path(mark.shape, px, py, r * 1.7);
        ctx.fill(own); ctx.stroke(own);
      }
      ctx.restore();
    };
  }

  function aligned(lines) {
    const xs = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b), place = new Map(xs.map((x, i) => [x, i]));
    return [xs, ...lines.map((line) => {
      const ys = new Array(xs.length).fill(null);
      line.x.forEach((x, i) => { ys[place.get(x)] = line.y[i]; });
      return ys;
    })];
  }

  // The next 1, 2 or 5 of a power of ten below or above.
  function nice(value, up) {
    const power = 10 ** Math.floor(Math.log10(value)), steps = [1, 2, 5, 10].map((step) => step * power);
    return up ? steps.find((step) => step >= value * 0.999) : steps.filter((step) => step <= value * 1.001).pop();
  }

  // All panels share an axis.
  function bounds(specs) {
    const [spec] = specs, lines = specs.flatMap((each) => each.lines).flatMap((line) => [...line.y, ...(line.plain ? [] : [...(line.low || []), ...(line.high || [])])]);
    const ys = [...lines, ...specs.flatMap((each) => each.measured || []).flatMap((mark) => [mark.y, mark.low, mark.high])].filter((y) => y !== null && y !== undefined);
    const positive = ys.filter((y) => y > 0);
    if (spec.ylog && positive.length) return [nice(Math.min(...positive), false), nice(Math.max(...positive), true)];
    const low = Math.min(0, ...ys), high = Math.max(...ys, low) || 1;
    return [low && low * 1.08, high * 1.06];
  }

  // spec: lines [{name, x, y, low, high, style, plain}], measured, xlabel, ylabel, xwords, xsplits, xname, ylog, yname, small, group.
  function plot(host, spec, told) {
    const data = aligned(spec.lines), xs = data[0], ink = css("--ink"), grid = css("--edge"), font = "12px system-ui, sans-serif";
    const all = [...xs, ...(spec.measured || []).map((mark) => mark.x)], first = Math.min(...all), last = Math.max(...all), pad = (last - first || 1) * 0.03;
    // As over_tasks has it in figures: most numbers would stand in the first eighth.
    const far = !spec.words && !spec.xsplits && first > 0 && last >= 256 * first && xs[Math.floor(xs.length / 2)] < last / 8;
    const left = far ? first / 1.2 : spec.words || spec.xsplits ? first - pad : Math.min(0, first), [bottom, top] = spec.bounds;
    const axis = {stroke: ink, font, labelFont: font, grid: {stroke: grid, width: 0.7}, ticks: {stroke: grid, width: 0.7}, labelSize: spec.small ? 0 : 20};
    const x = {...axis, label: spec.small ? undefined : spec.xlabel, values: (u, splits) => splits.map((v) => v === null ? "" : spec.xname(v)), space: spec.small ? 30 : 45};
    const powers = Array.from({length: 40}, (_, i) => (spec.small ? 8 : 2) ** i).filter((v) => v >= first && v <= last);
    if (spec.xsplits || far) x.splits = () => far ? powers : spec.xsplits;
    else if (all.every(Number.isInteger)) x.incrs = [1, 2, 4, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 500, 1000, 1e4, 1e5, 1e6];
    const y = {...axis, label: spec.small ? undefined : spec.ylabel, size: (u, texts) => spec.small ? 46 : Math.max(72, 24 + 7 * Math.max(0, ...(texts || []).map((text) => `${text ?? ""}`.length))), values: (u, splits) => splits.map((v) => v === null ? "" : spec.small && spec.brief ? brief(v) : spec.yname(v))};
    const u = new uPlot({
      width: Math.max(host.clientWidth, 200), height: spec.small ? 170 : Math.max(260, Math.min(430, host.clientWidth * 0.55)),
      legend: {show: false}, padding: [10, 14, 0, 0],
      cursor: {y: false, drag: {x: false, y: false}, points: {size: 9}, sync: {key: spec.group}},
      scales: {x: {time: false, distr: far ? 3 : 1, log: 2, range: () => [left, far ? last * 1.2 : last + pad]}, y: {distr: spec.ylog && bottom > 0 ? 3 : 1, range: () => [bottom, top]}},
      axes: [x, y],
      series: [{}, ...spec.lines.map((line) => ({
        label: line.name, stroke: line.style.colour, dash: line.style.dash, spanGaps: true, points: {show: false},
        width: line.plain ? 1 : 1.8, paths: spec.joined === false ? () => null : undefined,
      }))],
      hooks: {draw: [marks(spec)], setCursor: [(self) => { if (self.cursor.idx !== null && self.cursor.idx !== undefined) told(xs[self.cursor.idx]); }]},
    }, data, host);
    u.root.setAttribute("aria-hidden", "true");
    let place = -1;
    host.addEventListener("keydown", (event) => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      place = Math.max(0, Math.min(xs.length - 1, place + step));
      u.setCursor({left: u.valToPos(xs[place], "x"), top: 10});
      told(xs[place]);
      event.preventDefault();
    });
    return u;
  }

  // A set of charts with its controls; `drawn()` gives what is to be drawn now, one spec a panel.
  class Charts {
    constructor(root, data) {
      this.root = root; this.data = data; this.plots = []; this.hidden = new Set();
      this.controls = make(root, "div", {class: "controls"});
      this.group = `g${Math.random()}`;
    }

    lines(names) {
      this.fields = make(this.root, "fieldset", {class: "lines"});
      make(this.fields, "legend", {}, "Lines");
      this.styles = new Map(names.map((name, at) => [name, at]));
      if (names.length > 2) {
        for (const [text, every] of [["all", true], ["none", false]]) {
          const node = make(this.controls, "button", {type: "button", "aria-label": `${text} lines`}, text);
          node.addEventListener("click", () => {
            for (const box of this.fields.querySelectorAll("input")) { box.checked = every; this.note(box); }
            this.draw();
          });
        }
      }
      for (const name of names) {
        const label = make(this.fields, "label", {}), box = make(label, "input", {type: "checkbox", checked: "", value: name});
        label.dataset.line = name;
        make(label, "span", {}, name);
        box.addEventListener("change", () => { this.note(box); this.draw(); });
      }
    }

    note(box) { if (box.checked) this.hidden.delete(box.value); else this.hidden.add(box.value); }

    finish() {
      this.about = make(this.root, "p", {class: "axis-note"});
      this.charts = make(this.root, "div", {class: "charts"});
      this.out = make(this.root, "output", {class: "readout", "aria-live": "polite"}, "Point at a chart, or use the arrow keys in it.");
      let width = this.charts.clientWidth;
      new ResizeObserver(() => { if (Math.abs(this.charts.clientWidth - width) > 4) { width = this.charts.clientWidth; this.draw(); } }).observe(this.charts);
      dark.addEventListener("change", () => this.draw());
      this.draw();
    }

    style(name) { return look(this.styles.get(name)); }

    draw() {
      for (const label of this.fields.querySelectorAll("label")) {
        label.querySelector("svg")?.remove();
        label.querySelector("input").after(swatch(this.style(label.dataset.line)));
      }
      for (const plot of this.plots) plot.destroy();
      this.charts.replaceChildren();
      const specs = this.specs(this.data.lines === undefined ? [] : this.data.lines.filter((line) => !this.hidden.has(line.name)));
      this.charts.classList.toggle("apart", specs.length > 1);
      this.about.textContent = specs.length > 1 ? `${specs[0].ylabel}, over ${specs[0].xlabel}` : "";
      const shared = specs.length ? bounds(specs) : null;
      this.plots = specs.map((spec) => {
        const chart = make(this.charts, "div", {class: "chart"});
        if (spec.title) make(chart, "h4", {}, spec.title);
        const host = make(chart, "div", {tabindex: "0", role: "group", "aria-label": `${spec.title || spec.ylabel} over ${spec.xlabel}: arrow keys read it`});
        return plot(host, {...spec, bounds: shared, group: this.group, small: specs.length > 1}, (x) => this.tell(specs, spec, x));
      });
      if (!specs.length) make(this.charts, "p", {}, "No line is chosen.");
    }

    tell(specs, spec, x) {
      this.out.replaceChildren();
      make(this.out, "b", {}, `${spec.xlabel} ${spec.xname(x)}: `);
      const found = specs.flatMap((each) => each.lines.filter((line) => !line.plain).flatMap((line) => {
        const at = line.x.indexOf(x);
        if (at < 0 || line.y[at] === null) return [];
        const wide = line.low && line.low[at] !== null && line.high[at] !== null ? ` ± ${spec.yname((line.high[at] - line.low[at]) / 2)}` : "";
        return [[line.y[at], `${line.name} ${spec.yname(line.y[at])}${wide}`]];
      }));
      for (const [, text] of found.sort((a, b) => b[0] - a[0])) make(this.out, "span", {}, text);
      const seen = new Set(specs.flatMap((each) => (each.measured || []).filter((mark) => mark.x === x).map((mark) => `measured: ${spec.yname(mark.y)}, ${mark.label}`)));
      for (const text of seen) make(this.out, "span", {}, text);
    }
  }

  class Curves extends Charts {
    constructor(root, data) {
      super(root, data);
      this.quantity = "rate"; this.apart = data.apart; this.log = data.log; this.linear = false;
      const select = make(this.controls, "select", {"aria-label": "what is drawn"});
      for (const [key, name] of data.quantities) make(select, "option", {value: key}, name);
      select.addEventListener("change", () => { this.quantity = select.value; this.draw(); });
      const toggle = (text, field) => button(this.controls, text, this[field], (own) => {
        this[field] = !this[field];
        own.setAttribute("aria-pressed", String(this[field]));
        this.draw();
      });
      if (data.lines.length > 1) toggle("a panel each", "apart");
      toggle("logarithmic", "log");
      if (data.lines.some((line) => line.ideal.length)) toggle("perfect scaling", "linear");
      this.lines(data.lines.map((line) => line.name));
      if (data.measured.length) make(root, "p", {class: "axis-note"}, "Black outlines: measured values, each in the shape of its line.");
      this.finish();
    }

    specs(lines) {
      const rate = this.quantity === "rate", share = this.quantity !== "rate" && this.quantity !== "loss";
      const drawn = lines.map((line) => {
        const [y, low, high] = line.numbers[this.quantity];
        return {name: line.name, x: line.x, y, low, high, ideal: line.ideal, style: this.style(line.name)};
      });
      const names = this.data.words, ylabel = this.data.quantities.find(([key]) => key === this.quantity)[1];
      const common = {
        brief: !share, xlabel: this.data.label, ylabel, ylog: this.log && rate, joined: this.data.joined, words: names.length > 0,
        xsplits: names.length ? names.map((_, at) => at) : undefined,
        xname: (x) => names.length ? names[x] ?? "" : number(x), yname: (y) => share ? `${number(y)} %` : number(y),
      };
      const measured = (own) => rate ? this.data.measured.filter((mark) => own.some((line) => line.name === mark.line)).map((mark) => ({...mark, shape: this.style(mark.line).shape})) : [];
      const ideal = (own) => this.linear && rate ? own.filter((line) => line.ideal.length).map((line) => ({
        name: `perfect scaling of ${line.name}`, x: line.x, y: line.ideal, plain: true, style: {colour: css("--soft"), dash: [2, 4], shape: "disc"},
      })) : [];
      if (!drawn.length) return [];
      if (!this.apart || drawn.length < 2) return [{...common, lines: [...ideal(drawn), ...drawn], measured: measured(drawn)}];
      return drawn.map((line) => ({...common, title: line.name, lines: [...ideal([line]), line], measured: measured([line])}));
    }
  }

  const nines = (percent) => percent >= 100 ? 4.6 : -Math.log10(1 - percent / 100);

  class Latency extends Charts {
    constructor(root, data) {
      super(root, data);
      const names = Object.keys(data.operations);
      this.operation = names[0]; this.log = true;
      if (names.length > 1) {
        const select = make(this.controls, "select", {"aria-label": "operation"});
        for (const name of names) make(select, "option", {value: name}, name);
        select.addEventListener("change", () => { this.operation = select.value; this.draw(); });
      }
      button(this.controls, "logarithmic", true, (own) => { this.log = !this.log; own.setAttribute("aria-pressed", String(this.log)); this.draw(); });
      this.lines([...new Set(Object.values(data.operations).flat().map((line) => line.name))]);
      this.finish();
    }

    specs() {
      const x = this.data.percent.map(nines), known = new Map(x.map((at, i) => [at, this.data.percent[i]]));
      const ticks = [50, 90, 99, 99.9, 99.99, 100], named = new Map(ticks.map((p) => [nines(p), p === 100 ? "all" : `${p} %`]));
      const lines = this.data.operations[this.operation].filter((line) => !this.hidden.has(line.name)).map((line) => ({
        name: line.name, x, y: line.y, style: this.style(line.name),
      }));
      return lines.length ? [{
        lines, xlabel: "part of operations", ylabel: `${this.operation}: done within`, ylog: this.log, bare: true, xsplits: [...named.keys()],
        xname: (at) => named.get(at) ?? `${known.get(at) ?? ""} %`, yname: duration,
      }] : [];
    }
  }

  class Ladder extends Charts {
    constructor(root, data) {
      super(root, data);
      this.lines(data.lines.map((line) => line.name));
      this.finish();
    }

    specs(lines) {
      return lines.length ? [{
        xlabel: "hold time removed (%)", ylabel: this.data.label, xname: number, yname: (y) => `${number(y)} %`,
        lines: lines.map((line) => ({name: line.name, x: line.x, y: line.gain[0], low: line.gain[1], high: line.gain[2], style: this.style(line.name)})),
      }] : [];
    }
  }

  function sortable(table) {
    const rows = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const text = head.textContent, node = document.createElement("button");
      node.type = "button";
      node.textContent = text;
      head.replaceChildren(node);
      node.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => row.cells[at].dataset.sort === undefined ? NaN : Number(row.cells[at].dataset.sort);
        const numeric = [...rows.rows].some((row) => !Number.isNaN(key(row)));
        const compare = (a, b) => numeric
          ? (Number.isNaN(key(b)) ? -Infinity : key(b)) - (Number.isNaN(key(a)) ? -Infinity : key(a)) || 0
          : b.cells[at].textContent.localeCompare(a.cells[at].textContent);
        rows.append(...[...rows.rows].sort((a, b) => down ? compare(a, b) : compare(b, a)));
      });
    });
  }

  // Of locks one variant and one view at a time.
  function views(root) {
    const all = [...root.querySelectorAll(".view")], distinct = (key) => [...new Set(all.map((each) => each.dataset[key]))];
    const variants = distinct("variant"), names = distinct("view"), chosen = {variant: variants[0], view: names[0]};
    const controls = document.createElement("div");
    controls.className = "controls";
    root.prepend(controls);
    const empty = make(root, "p", {}, "This variant has no such view: chains are recorded by run --why, else for the variant of the time line.");
    const show = () => {
      for (const each of all) each.hidden = each.dataset.variant !== chosen.variant || each.dataset.view !== chosen.view;
      empty.hidden = all.some((each) => !each.hidden);
    };
    const select = make(controls, "select", {"aria-label": "variant"});
    for (const name of variants) make(select, "option", {value: name}, name);
    select.addEventListener("change", () => { chosen.variant = select.value; show(); });
    oneOf(controls, "view of locks", names.map((name) => [name, name]), names[0], (name) => { chosen.view = name; show(); });
    show();
  }

  const KINDS = {curves: Curves, latency: Latency, ladder: Ladder};
  window.simfsCharts = (root, kind, data) => new KINDS[kind](root, data);
  window.simfsReport = () => {
    for (const root of document.querySelectorAll(".chart-set")) {
      const script = root.querySelector("script");
      window.simfsCharts(root, script.dataset.kind, JSON.parse(script.textContent));
    }
    document.querySelectorAll("main table, header table").forEach(sortable);
    document.querySelectorAll(".views").forEach(views);
  };
})();
