// Engines in a few threads, so that the page stays alive; requests wait in a queue.

/** @typedef {{call: "run" | "watch", spec: string, start?: number}} Request */

/** Engines, and what they are asked. */
export class Pool {
  /** @param {WebAssembly.Module} module @param {string} code of worker.js */
  constructor(module, code) {
    Object.assign(this, {module, code, free: [], busy: new Map(), waiting: []});
    const most = Math.max(1, Math.min(navigator.hardwareConcurrency || 2, 6));
    for (let n = 0; n < most; n++) this.#hire();
  }

  #hire() {
    const url = URL.createObjectURL(new Blob([this.code], {type: "text/javascript"}));
    const worker = new Worker(url);
    worker.postMessage({module: this.module});
    worker.onmessage = ({data}) => this.#done(worker, data);
    worker.onerror = (event) => this.#done(worker, {problem: event.message});
    this.free.push(worker);
  }

  /**
   * What an engine answers. Rejects with the engine's words, or with "stopped".
   * @param {Request} request
   * @returns {Promise<string>}
   */
  ask(request) {
    return new Promise((resolve, reject) => {
      this.waiting.push({request, resolve, reject});
      this.#next();
    });
  }

  #next() {
    while (this.free.length && this.waiting.length) {
      const worker = this.free.pop(), job = this.waiting.shift();
      this.busy.set(worker, job);
      worker.postMessage(job.request);
    }
  }

  #done(worker, {said, problem}) {
    const job = this.busy.get(worker);
    if (!job) return;
    this.busy.delete(worker);
    this.free.push(worker);
    if (problem === undefined) job.resolve(said);
    else job.reject(new Error(problem));
    this.#next();
  }

  /** Ends all that runs or waits. */
  stop() {
    const jobs = [...this.busy.values(), ...this.waiting];
    for (const worker of this.busy.keys()) {
      worker.terminate();
      this.#hire();
    }
    this.busy.clear();
    this.waiting.length = 0;
    for (const job of jobs) job.reject(new Error("stopped"));
  }
}
