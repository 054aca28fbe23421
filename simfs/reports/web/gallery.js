// A model for explore.js that asks `simfs lab`.
(function () {
  "use strict";
  const start = JSON.parse(document.getElementById("start").textContent), heard = {};
  const values = {factors: start.factors, at: start.at, shown: {problem: "The first runs are made."}};
  let asked = 0;
  const model = {
    get: (key) => values[key],
    set: (key, value) => { values[key] = value; },
    on: (event, act) => { heard[event] = act; },
    save_changes: () => look(),
  };

  // Of several answers, only that to the last question counts.
  async function look() {
    const own = ++asked;
    let shown;
    try {
      const body = JSON.stringify({name: start.name, at: values.at});
      const said = await fetch("/look", {method: "POST", headers: {"X-Simfs-Token": start.token}, body});
      shown = said.ok ? await said.json() : {problem: await said.text()};
    } catch {
      shown = {problem: "simfs lab does not answer: has it ended?"};
    }
    if (own !== asked) return;
    values.shown = shown;
    heard["change:shown"]();
  }

  window.simfsExplore({model, el: document.getElementById("here")});
  document.querySelector(".simfs-explore").classList.add("busy");
  look();
})();
