// setTimeout, setInterval, setImmediate and similar functions, in Node's order and with Node's objects.
//
// Offers `native.loop` to the event loop in Rust, which owns the waiting: `runOne()` runs one
// callback that is due, so that promise jobs come in between, and `delay(isBodyDone)` says how
// long nothing will be. Works on built-ins as they were before guest code could change them.
(function (native) {
  "use strict";

  const MAX_DELAY = 2 ** 31 - 1;
  const { apply } = Reflect;
  const { max, trunc } = Math;

  // Waiting timers, a binary heap by time and then by order of creation.
  const heap = [];
  const timersById = new Map();
  const getTimer = timersById.get.bind(timersById);
  const setTimer = timersById.set.bind(timersById);
  const deleteTimer = timersById.delete.bind(timersById);
  const clearTimers = timersById.clear.bind(timersById);
  let immediates = [];
  let sequence = 0;
  let referenced = 0;

  const isBefore = (a, b) => a.at < b.at || (a.at === b.at && a.order < b.order);

  function place(entry, index) {
    heap[index] = entry;
    entry.index = index;
  }

  function siftUp(entry, index) {
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(entry, heap[parent])) break;
      place(heap[parent], index);
      index = parent;
    }
    place(entry, index);
  }

  function siftDown(entry, index) {
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child += 1;
      if (!isBefore(heap[child], entry)) break;
      place(heap[child], index);
      index = child;
    }
    place(entry, index);
  }

  function schedule(entry) {
    entry.order = ++sequence;
    entry.at = native.now() + entry.delay;
    if (entry.isReferenced) referenced += 1;
    setTimer(entry.id, entry);
    siftUp(entry, heap.length);
  }

  function unschedule(entry) {
    const { index } = entry;
    if (index < 0) return;
    entry.index = -1;
    if (entry.isReferenced) referenced -= 1;
    deleteTimer(entry.id);
    const last = heap[heap.length - 1];
    heap.length -= 1;
    if (last === entry) return;
    if (index > 0 && isBefore(last, heap[(index - 1) >> 1])) siftUp(last, index);
    else siftDown(last, index);
  }

  class Timeout {
    #entry;

    constructor(entry) {
      this.#entry = entry;
    }

    static entryOf(value) {
      const isOne = typeof value === "object" && value !== null && #entry in value;
      return isOne ? value.#entry : undefined;
    }

    ref() {
      return setReferenced(this, this.#entry, true);
    }

    unref() {
      return setReferenced(this, this.#entry, false);
    }

    hasRef() {
      return this.#entry.isReferenced;
    }

    refresh() {
      const entry = this.#entry;
      if (entry.index >= 0) {
        unschedule(entry);
        schedule(entry);
      }
      return this;
    }

    close() {
      clear(this);
      return this;
    }

    [Symbol.toPrimitive]() {
      return this.#entry.id;
    }

    [Symbol.dispose]() {
      clear(this);
    }
  }
  const { entryOf } = Timeout;
  delete Timeout.entryOf;

  class Immediate {
    #entry;

    constructor(entry) {
      this.#entry = entry;
    }

    static entryOf(value) {
      const isOne = typeof value === "object" && value !== null && #entry in value;
      return isOne ? value.#entry : undefined;
    }

    ref() {
      return this;
    }

    unref() {
      return this;
    }

    hasRef() {
      return true;
    }

    [Symbol.dispose]() {
      clearImmediate(this);
    }
  }
  const immediateEntryOf = Immediate.entryOf;
  delete Immediate.entryOf;

  function setReferenced(timeout, entry, isReferenced) {
    if (entry.isReferenced !== isReferenced) {
      entry.isReferenced = isReferenced;
      if (entry.index >= 0) referenced += isReferenced ? 1 : -1;
    }
    return timeout;
  }

  function checkCallback(callback) {
    if (typeof callback === "function") return;
    const shown = callback === null ? "null" : typeof callback;
    throw new TypeError(`The "callback" argument must be of type function. Received ${shown}`);
  }

  function start(callback, delay, args, isRepeating) {
    checkCallback(callback);
    delay = trunc(delay);
    if (!(delay >= 1 && delay <= MAX_DELAY)) delay = 1;
    const entry = {
      id: sequence + 1, callback, args, delay, isRepeating,
      isReferenced: true, index: -1, at: 0, order: 0,
    };
    schedule(entry);
    return entry.timeout = new Timeout(entry);
  }

  function setTimeout(callback, delay, ...args) {
    return start(callback, delay, args, false);
  }

  function setInterval(callback, delay, ...args) {
    return start(callback, delay, args, true);
  }

  function clear(timer) {
    const isNumber = typeof timer === "number" || typeof timer === "string";
    const entry = isNumber ? getTimer(+timer) : entryOf(timer);
    if (entry === undefined) return;
    entry.isRepeating = false;
    unschedule(entry);
  }

  function clearTimeout(timer) {
    clear(timer);
  }

  function clearInterval(timer) {
    clear(timer);
  }

  function setImmediate(callback, ...args) {
    checkCallback(callback);
    const entry = { callback, args };
    immediates[immediates.length] = entry;
    return new Immediate(entry);
  }

  function clearImmediate(immediate) {
    const entry = immediateEntryOf(immediate);
    if (entry !== undefined) entry.callback = undefined;
  }

  // One round of the loop: the timers that existed when it began, then the immediates that did.
  let newest = -1;
  let batch = [];
  let next = 0;

  /** A delay of one millisecond, the shortest there is, is not worth sleeping for. */
  const isDue = (entry, now) => (entry.delay <= 1 && !native.isDurable()) || entry.at <= now;

  function runTimer() {
    const entry = heap[0];
    if (entry === undefined || entry.order > newest || !isDue(entry, native.now())) return false;
    unschedule(entry);
    try {
      apply(entry.callback, entry.timeout, entry.args);
    } finally {
      if (entry.isRepeating && entry.index < 0) schedule(entry);
    }
    return true;
  }

  function runImmediate() {
    while (next < batch.length) {
      const { callback, args } = batch[next++];
      if (callback !== undefined) {
        apply(callback, undefined, args);
        return true;
      }
    }
    return false;
  }

  function runOne() {
    if (newest < 0) newest = sequence;
    for (let round = 0; round < 2; round++) {
      if (next === 0 && runTimer()) return true;
      if (next === 0) {
        batch = immediates;
        immediates = [];
      }
      if (runImmediate()) return true;
      next = 0;
      batch = [];
      newest = sequence;
    }
    return false;
  }

  /** Milliseconds until something is due; negative when nothing ever will be. */
  function delay(isBodyDone) {
    if (heap.length === 0 || (isBodyDone && referenced === 0)) return -1;
    return max(0, heap[0].at - native.now());
  }

  /** Drops all that waits: what a run of a session leaves is not the next one's. */
  function forget() {
    for (let i = 0; i < heap.length; i++) heap[i].index = -1;
    heap.length = 0;
    clearTimers();
    immediates = [];
    batch = [];
    next = 0;
    newest = -1;
    referenced = 0;
  }

  native.loop = { runOne, delay, forget, Timeout, Immediate };

  const timers = {
    setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate,
  };
  native.timerFunctions = { __proto__: null, ...timers };
  for (const name of Object.keys(timers)) {
    Object.defineProperty(globalThis, name, {
      value: timers[name], writable: true, enumerable: false, configurable: true,
    });
  }
})
