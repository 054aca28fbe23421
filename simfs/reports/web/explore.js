// Sliders over runs: what `Explorer` (explorer.py) gives, drawn by the charts of report.js.
// `model` is anywidget's: get, set, save_changes, on. `simfs lab` brings one of its own.
function simfsExplore(place) {
  "use strict";
  const {model, el} = place;
  const make = (parent, tag, attributes = {}, text = "") => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    parent.append(node);
    return node;
  };
  const root = make(el, "div", {class: "simfs-explore"}), sliders = make(root, "div", {class: "sliders"});
  const said = make(root, "ul", {class: "said", "aria-live": "polite"}), curve = make(root, "div"), locks = make(root, "div", {class: "wide"});
  let drawn = "";

  const inputs = model.get("factors").map(({key, values}, at) => {
    const label = make(sliders, "label", {}, ""), name = make(label, "span", {}, key);
    const input = make(label, "input", {type: "range", min: 0, max: values.length - 1, step: 1, name: key});
    const out = make(label, "output");
    const show = () => {
      out.textContent = values[input.value];
      input.setAttribute("aria-valuetext", values[input.value]);
    };
    input.value = model.get("at")[at];
    input.addEventListener("input", show);
    input.addEventListener("change", () => {
      model.set("at", inputs.map((each) => Number(each.input.value)));
      model.save_changes();
      root.classList.add("busy");
    });
    name.title = key;
    show();
    return {input, show};
  });

  function draw() {
    const shown = model.get("shown");
    root.classList.remove("busy");
    said.replaceChildren();
    for (const line of shown.problem ? [shown.problem] : shown.said) make(said, "li", {}, line);
    if (shown.problem) return;
    locks.innerHTML = shown.locks;
    if (drawn === JSON.stringify(shown.chart)) return;
    drawn = JSON.stringify(shown.chart);
    curve.replaceChildren();
    if (shown.chart) window.simfsCharts(make(curve, "div", {class: "chart-set"}), "curves", shown.chart);
  }

  model.on("change:shown", draw);
  model.on("change:at", () => inputs.forEach(({input, show}, at) => { input.value = model.get("at")[at]; show(); }));
  draw();
}
