// Node's `timers` and `timers/promises`.
(function (native) {
  "use strict";

  native.need("node/invalid");
  const {
    setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate,
  } = native.timerFunctions;

  const aborted = (signal) => Object.assign(
    new Error("The operation was aborted", { cause: signal.reason }), { name: "AbortError", code: "ABORT_ERR" });

  /** A promise that `start` settles by calling its argument, unless it is aborted before. */
  function waiting(start, stop, value, options) {
    const signal = options?.signal;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(aborted(signal));
      const timer = start(() => resolve(value));
      if (options?.ref === false) timer.unref();
      signal?.addEventListener("abort", () => {
        stop(timer);
        reject(aborted(signal));
      }, { once: true });
      return undefined;
    });
  }

  const promises = {
    setTimeout: (delay, value, options) => waiting((done) => setTimeout(done, delay), clearTimeout, value, options),
    setImmediate: (value, options) => waiting((done) => setImmediate(done), clearImmediate, value, options),
    setInterval: async function* (delay, value, options) {
      for (;;) {
        await promises.setTimeout(delay, undefined, options);
        yield value;
      }
    },
    scheduler: {
      wait: (delay, options) => promises.setTimeout(delay, undefined, options),
      yield: () => promises.setImmediate(),
    },
  };
  const CUSTOM = Symbol.for("nodejs.util.promisify.custom");
  for (const [original, promised] of [[setTimeout, promises.setTimeout], [setImmediate, promises.setImmediate]]) {
    Object.defineProperty(original, CUSTOM, { value: promised, configurable: true });
  }
  native.offer("timers/promises", promises);
  native.offer("timers", {
    setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate, promises,
  });
});
