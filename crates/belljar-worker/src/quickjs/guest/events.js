// Event, EventTarget, CustomEvent, AbortController and AbortSignal: what libraries and agents use
// to cancel and to notify. No bubbling, there is no tree.
(function (native) {
  "use strict";

  const { setTimeout } = globalThis;
  // Set by the classes' static blocks, which alone may touch their private state.
  let runListeners;
  let abortSignal;

  class Event {
    #type;
    #cancelable;
    #prevented = false;
    #stopped = false;
    #target = null;
    #timeStamp = native.now();

    static {
      runListeners = (event, target, listeners) => {
        event.#target = target;
        for (const listener of listeners) {
          if (event.#stopped) break;
          listener(event);
        }
        return !event.#prevented;
      };
    }

    constructor(type, options = {}) {
      if (arguments.length === 0) throw new TypeError("new Event needs a type");
      this.#type = `${type}`;
      this.#cancelable = Boolean(options?.cancelable);
    }

    get type() {
      return this.#type;
    }
    get target() {
      return this.#target;
    }
    get currentTarget() {
      return this.#target;
    }
    get cancelable() {
      return this.#cancelable;
    }
    get defaultPrevented() {
      return this.#prevented;
    }
    get timeStamp() {
      return this.#timeStamp;
    }
    get bubbles() {
      return false;
    }

    preventDefault() {
      if (this.#cancelable) this.#prevented = true;
    }

    stopPropagation() {}

    stopImmediatePropagation() {
      this.#stopped = true;
    }
  }

  class CustomEvent extends Event {
    #detail;

    constructor(type, options = {}) {
      super(type, options);
      this.#detail = options?.detail ?? null;
    }

    get detail() {
      return this.#detail;
    }
  }

  class EventTarget {
    #listeners = [];

    addEventListener(type, callback, options) {
      if (callback === null || callback === undefined) return;
      if (typeof callback !== "function" && typeof callback !== "object") {
        throw new TypeError("addEventListener needs a function");
      }
      const { once = false, signal } =
        typeof options === "object" && options !== null ? options : {};
      const name = `${type}`;
      if (signal?.aborted || this.#find(name, callback) !== undefined) return;
      this.#listeners.push({ type: name, callback, once });
      signal?.addEventListener("abort", () => this.removeEventListener(name, callback), {
        once: true,
      });
    }

    removeEventListener(type, callback) {
      const found = this.#find(`${type}`, callback);
      this.#listeners = this.#listeners.filter((listener) => listener !== found);
    }

    #find(type, callback) {
      return this.#listeners.find(
        (listener) => listener.type === type && listener.callback === callback,
      );
    }

    dispatchEvent(event) {
      if (!(event instanceof Event)) throw new TypeError("dispatchEvent needs an Event");
      const matching = this.#listeners.filter((listener) => listener.type === event.type);
      return runListeners(
        event,
        this,
        matching.map((listener) => () => this.#call(listener, event)),
      );
    }

    #call(listener, event) {
      const { type, callback, once } = listener;
      if (this.#find(type, callback) === undefined) return;
      if (once) this.removeEventListener(type, callback);
      try {
        if (typeof callback === "function") callback.call(this, event);
        else callback.handleEvent(event);
      } catch (error) {
        // One listener's mistake must not keep the others from hearing.
        native.print(
          "stderr",
          `Uncaught in a listener for "${type}": ${native.inspect(error)}\n`.toWellFormed(),
        );
      }
    }
  }

  const INTERNAL = Symbol("internal");

  class AbortSignal extends EventTarget {
    #aborted = false;
    #reason = undefined;
    #dependents = [];
    onabort = null;

    constructor(key) {
      super();
      if (key !== INTERNAL)
        throw new TypeError("Illegal constructor: use new AbortController().signal");
      Object.defineProperty(this, "onabort", { enumerable: false });
    }

    static {
      abortSignal = (signal, reason) => {
        if (signal.#aborted) return;
        signal.#aborted = true;
        signal.#reason =
          reason === undefined
            ? new DOMException("This operation was aborted", "AbortError")
            : reason;
        const event = new Event("abort");
        if (typeof signal.onabort === "function") signal.onabort(event);
        signal.dispatchEvent(event);
        for (const dependent of signal.#dependents) abortSignal(dependent, signal.#reason);
        signal.#dependents = [];
      };
    }

    get aborted() {
      return this.#aborted;
    }
    get reason() {
      return this.#reason;
    }

    throwIfAborted() {
      if (this.#aborted) throw this.#reason;
    }

    static abort(reason) {
      const signal = new AbortSignal(INTERNAL);
      abortSignal(signal, reason);
      return signal;
    }

    static timeout(milliseconds) {
      if (!(milliseconds >= 0))
        throw new RangeError("AbortSignal.timeout needs a number of milliseconds");
      const signal = new AbortSignal(INTERNAL);
      const reason = new DOMException("The operation was aborted due to timeout", "TimeoutError");
      // Like Node's, this timer does not keep the run alive.
      setTimeout(() => abortSignal(signal, reason), milliseconds)?.unref?.();
      return signal;
    }

    static any(signals) {
      const combined = new AbortSignal(INTERNAL);
      for (const signal of signals) {
        if (!(signal instanceof AbortSignal))
          throw new TypeError("AbortSignal.any needs a list of signals");
        if (signal.#aborted) {
          abortSignal(combined, signal.#reason);
          break;
        }
        signal.#dependents.push(combined);
      }
      return combined;
    }
  }

  class AbortController {
    #signal = new AbortSignal(INTERNAL);

    get signal() {
      return this.#signal;
    }

    abort(reason) {
      abortSignal(this.#signal, reason);
    }
  }

  for (const type of [Event, CustomEvent, EventTarget, AbortSignal, AbortController]) {
    Object.defineProperty(type.prototype, Symbol.toStringTag, {
      value: type.name,
      configurable: true,
    });
  }
  native.printAs(AbortSignal, (signal, show) => [`aborted: ${show(signal.aborted)}`]);
  native.printAs(AbortController, (controller, show) => [`signal: ${show(controller.signal)}`]);
  native.printAs(Event, (event, show) => [
    `type: ${show(event.type)}`,
    `timeStamp: ${show(event.timeStamp)}`,
  ]);
  native.expose({ Event, CustomEvent, EventTarget, AbortSignal, AbortController });
});
