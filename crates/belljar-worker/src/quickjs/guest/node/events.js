// Node's `events`: EventEmitter, and waiting for its events.
//
// EventEmitter is a function, not a class: code from before classes calls it as one.
(function (native) {
  "use strict";

  native.need("node/invalid");
  const { invalid, inspect } = native;
  const { apply, defineProperty, ownKeys } = Reflect;
  // The listeners of an emitter, by event; no property of it, so that it prints as its own data.
  const registers = new WeakMap();
  const maxima = new WeakMap();

  function registerOf(emitter) {
    let register = registers.get(emitter);
    if (register === undefined) registers.set(emitter, register = new Map());
    return register;
  }

  function checkListener(listener) {
    if (typeof listener !== "function") throw invalid.type("listener", "of type function", listener);
  }

  function add(emitter, event, listener, call, isFirst) {
    checkListener(listener);
    const register = registerOf(emitter);
    if (register.has("newListener")) emitter.emit("newListener", event, listener);
    const entry = { listener, call };
    const list = register.get(event) ?? [];
    register.set(event, isFirst ? [entry, ...list] : [...list, entry]);
    return emitter;
  }

  function remove(emitter, event, isMeant) {
    const register = registerOf(emitter);
    const list = register.get(event) ?? [];
    const at = list.findLastIndex(isMeant);
    if (at < 0) return emitter;
    const { listener } = list[at];
    if (list.length === 1) register.delete(event);
    else register.set(event, list.toSpliced(at, 1));
    if (register.has("removeListener")) emitter.emit("removeListener", event, listener);
    return emitter;
  }

  function once(emitter, event, listener) {
    checkListener(listener);
    function call(...values) {
      remove(emitter, event, (entry) => entry.call === call);
      return apply(listener, this, values);
    }
    call.listener = listener;
    return call;
  }

  function EventEmitter() {}

  const methods = {
    on(event, listener) {
      return add(this, event, listener, listener, false);
    },
    once(event, listener) {
      return add(this, event, listener, once(this, event, listener), false);
    },
    prependListener(event, listener) {
      return add(this, event, listener, listener, true);
    },
    prependOnceListener(event, listener) {
      return add(this, event, listener, once(this, event, listener), true);
    },
    off(event, listener) {
      checkListener(listener);
      return remove(this, event, (entry) => entry.listener === listener || entry.call === listener);
    },
    removeAllListeners(event) {
      if (event === undefined) registerOf(this).clear();
      else registerOf(this).delete(event);
      return this;
    },
    emit(event, ...values) {
      const list = registerOf(this).get(event);
      if (list === undefined) {
        if (event === "error") throw unheard(values[0]);
        return false;
      }
      for (const { call } of list) apply(call, this, values);
      return true;
    },
    listenerCount(event, listener) {
      const list = registerOf(this).get(event) ?? [];
      return listener === undefined ? list.length : list.filter((entry) => entry.listener === listener).length;
    },
    listeners(event) {
      return (registerOf(this).get(event) ?? []).map((entry) => entry.listener);
    },
    rawListeners(event) {
      return (registerOf(this).get(event) ?? []).map((entry) => entry.call);
    },
    eventNames() {
      return [...registerOf(this).keys()];
    },
    setMaxListeners(count) {
      maxima.set(this, count);
      return this;
    },
    getMaxListeners() {
      return maxima.get(this) ?? EventEmitter.defaultMaxListeners;
    },
  };
  methods.addListener = methods.on;
  methods.removeListener = methods.off;
  for (const name of ownKeys(methods)) {
    defineProperty(EventEmitter.prototype, name, { value: methods[name], writable: true, enumerable: false, configurable: true });
  }

  /** The error that `emit("error")` throws when nobody listens. */
  function unheard(reason) {
    if (reason instanceof Error) return reason;
    const error = invalid.plain("ERR_UNHANDLED_ERROR", `Unhandled error. (${typeof reason === "string" ? `'${reason}'` : inspect(reason)})`);
    error.context = reason;
    return error;
  }

  const aborted = (signal) => Object.assign(new Error("The operation was aborted", { cause: signal.reason }), { name: "AbortError", code: "ABORT_ERR" });

  /** A promise of the next event. */
  function nextEvent(emitter, event, options) {
    return new Promise((resolve, reject) => {
      const signal = options?.signal;
      if (signal?.aborted) return reject(aborted(signal));
      if (typeof emitter.addEventListener === "function") {
        emitter.addEventListener(event, (heard) => resolve([heard]), { once: true });
        return undefined;
      }
      const heard = (...values) => {
        emitter.off("error", failed);
        resolve(values);
      };
      const failed = (error) => {
        emitter.off(event, heard);
        reject(error);
      };
      emitter.once(event, heard);
      if (event !== "error") emitter.once("error", failed);
      signal?.addEventListener("abort", () => {
        emitter.off(event, heard).off("error", failed);
        reject(aborted(signal));
      }, { once: true });
      return undefined;
    });
  }

  /** All events to come, for `for await`. */
  function allEvents(emitter, event, options) {
    const [ready, waiting] = [[], []];
    let failure;
    const heard = (...values) => (waiting.length > 0 ? waiting.shift().resolve({ value: values, done: false }) : ready.push(values));
    const failed = (error) => (waiting.length > 0 ? waiting.shift().reject(error) : failure = { error });
    const end = () => {
      emitter.off(event, heard).off("error", failed);
      for (const one of waiting.splice(0)) one.resolve({ value: undefined, done: true });
      return Promise.resolve({ value: undefined, done: true });
    };
    emitter.on(event, heard);
    if (event !== "error") emitter.on("error", failed);
    options?.signal?.addEventListener("abort", () => failed(aborted(options.signal)), { once: true });
    return {
      next() {
        if (ready.length > 0) return Promise.resolve({ value: ready.shift(), done: false });
        if (failure !== undefined) return Promise.reject(failure.error);
        return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
      },
      return: end,
      throw: (error) => end().then(() => Promise.reject(error)),
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  Object.assign(EventEmitter, {
    EventEmitter, once: nextEvent, on: allEvents, defaultMaxListeners: 10,
    errorMonitor: Symbol("events.errorMonitor"),
    listenerCount: (emitter, event) => emitter.listenerCount(event),
    getEventListeners: (emitter, event) => emitter.listeners(event),
    setMaxListeners: (count, ...emitters) => emitters.forEach((one) => one.setMaxListeners?.(count)),
  });
  native.offer("events", EventEmitter);
});
