// Uses every control of a report, twice each, and writes down what came of it.
const wrong = [];
window.addEventListener("error", (event) => wrong.push(event.message));
console.error = (...all) => wrong.push(all.join(" "));
window.addEventListener("load", () => {
  const root = document.querySelector("main"), seen = {buttons: 0, boxes: 0, options: 0, read: [], unnamed: []};
  const named = (node) => node.textContent.trim() || node.getAttribute("aria-label") || node.closest("label");
  for (const node of document.querySelectorAll("button, input, select, [tabindex]")) if (!named(node)) seen.unnamed.push(node.outerHTML);
  for (const box of root.querySelectorAll("input[type=checkbox]")) { box.click(); box.click(); seen.boxes += 1; }
  for (const select of root.querySelectorAll("select")) for (const option of [...select.options, select.options[0]]) {
    select.value = option.value; select.dispatchEvent(new Event("change")); seen.options += 1;
  }
  for (const node of [...document.querySelectorAll("button")]) { node.click(); node.click(); seen.buttons += 1; }
  for (const node of root.querySelectorAll("[aria-label='all lines']")) node.click();
  for (const set of root.querySelectorAll(".chart-set")) {
    const chart = set.querySelector(".chart [tabindex]");
    chart.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
    seen.read.push(set.querySelector("output").textContent);
  }
  const head = [...document.querySelectorAll("header th")][1];
  head.querySelector("button").click();
  seen.sort = [head.getAttribute("aria-sort"), ...[...document.querySelectorAll("header tbody tr")].map((row) => Number(row.cells[1].dataset.sort))];
  seen.views = root.querySelectorAll(".view:not([hidden])").length;
  seen.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  seen.wrong = wrong;
  const out = document.createElement("pre");
  out.id = "said";
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
});
