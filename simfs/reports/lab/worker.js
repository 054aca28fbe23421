// One engine in a thread of its own: told the module once, then asked {call, spec, start}.
import {Engine} from "./engine.js";

/** @type {Promise<Engine>} */
let engine;
self.onmessage = async ({data}) => {
  if (data.module) {
    engine = Engine.of(data.module);
    return;
  }
  try {
    const own = await engine;
    self.postMessage({said: data.call === "run" ? own.run(data.spec) : own.watch(data.spec, data.start)});
  } catch (error) {
    self.postMessage({problem: error instanceof Error ? error.message : String(error)});
  }
};
