// The face of the engine in WebAssembly (engine/web): RunSpecs and results are text, as seam 2 of docs/seams.md has them.

/** The engine, with a memory of its own. */
export class Engine {
  /**
   * @param {WebAssembly.Module} module
   * @returns {Promise<Engine>}
   */
  static async of(module) {
    return new Engine(await WebAssembly.instantiate(module, {}));
  }

  /** @param {WebAssembly.Instance} instance */
  constructor(instance) {
    this.exports = /** @type {any} */ (instance.exports);
  }

  /** What the engine was built from, as `simfs._engine.__source__`. */
  source() {
    this.exports.source();
    return this.#reply();
  }

  /**
   * Runs a RunSpec. Throws an Error that says what is wrong with it.
   * @param {string} spec
   * @returns {string} the result
   */
  run(spec) {
    return this.#asked(spec, () => this.exports.run());
  }

  /**
   * The same with what happens at `start` (ps) and later.
   * @param {string} spec
   * @param {number} start
   * @returns {string} result, in_force, events and longest in one document
   */
  watch(spec, start) {
    return this.#asked(spec, () => this.exports.watch(BigInt(start)));
  }

  /** @param {string} spec @param {() => number} act */
  #asked(spec, act) {
    const bytes = new TextEncoder().encode(spec), at = this.exports.request(bytes.length);
    new Uint8Array(this.exports.memory.buffer).set(bytes, at);
    let sound;
    try {
      sound = act();
    } catch (trap) {
      throw new Error(`defect of the engine: ${this.#reply() || trap}`);
    }
    const said = this.#reply();
    if (!sound) throw new Error(said);
    return said;
  }

  #reply() {
    const {memory, reply, reply_length: length} = this.exports;
    return new TextDecoder().decode(new Uint8Array(memory.buffer, reply(), length()));
  }
}
