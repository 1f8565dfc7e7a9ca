// Randomness and clocks of the web: `crypto`, whose `subtle` is hashes.js, and `performance`. Bytes and time come
// from the engine, because in a durable run both must be the same again when it is replayed.
(function (native) {
  "use strict";

  const QUOTA = 65536;
  const INTEGER_ARRAYS = new Set([
    "Int8Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "Int16Array",
    "Uint16Array",
    "Int32Array",
    "Uint32Array",
    "BigInt64Array",
    "BigUint64Array",
  ]);
  const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

  function getRandomValues(view) {
    const name =
      ArrayBuffer.isView(view) && !(view instanceof DataView)
        ? native.kinds.typedArrayName(view)
        : "";
    if (!INTEGER_ARRAYS.has(name)) {
      throw new DOMException(
        "getRandomValues needs a typed array of integers",
        "TypeMismatchError",
      );
    }
    if (view.byteLength > QUOTA) {
      throw new DOMException(
        `The requested length exceeds ${QUOTA} bytes: ${view.byteLength}`,
        "QuotaExceededError",
      );
    }
    native.fillRandom(new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
    return view;
  }

  function randomUUID() {
    const bytes = new Uint8Array(16);
    native.fillRandom(bytes);
    // Version 4, variant 1 (RFC 9562).
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = Array.from(bytes, (byte) => HEX[byte]).join("");
    return [
      hex.slice(0, 8),
      hex.slice(8, 12),
      hex.slice(12, 16),
      hex.slice(16, 20),
      hex.slice(20),
    ].join("-");
  }

  const crypto = { getRandomValues, randomUUID };
  Object.defineProperties(crypto, {
    subtle: {
      configurable: true,
      get() {
        native.need("hashes");
        return native.subtle;
      },
    },
    [Symbol.toStringTag]: { value: "Crypto", configurable: true },
  });

  let entries = [];

  function addEntry(entry) {
    // A loop that marks for ever must not eat the memory of the run.
    if (entries.length < 100_000) entries.push(entry);
    return entry;
  }

  function timeOf(mark, otherwise) {
    if (mark === undefined) return otherwise;
    if (typeof mark === "number") return mark;
    const found = entries.findLast(
      (entry) => entry.entryType === "mark" && entry.name === `${mark}`,
    );
    if (found === undefined)
      throw new DOMException(`The mark '${mark}' does not exist`, "SyntaxError");
    return found.startTime;
  }

  const clear = (type, name) => {
    entries = entries.filter(
      (entry) => entry.entryType !== type || (name !== undefined && entry.name !== `${name}`),
    );
  };

  const performance = {
    get timeOrigin() {
      return (native.isDurable() ? native.clock() : Date.now()) - native.now();
    },
    now: () => native.now(),
    mark(name, options = {}) {
      const startTime = options?.startTime ?? native.now();
      return addEntry({
        name: `${name}`,
        entryType: "mark",
        startTime,
        duration: 0,
        detail: options?.detail ?? null,
      });
    },
    measure(name, from, to) {
      const options = typeof from === "object" && from !== null ? from : { start: from, end: to };
      const startTime = timeOf(options.start, 0);
      const end = timeOf(
        options.end,
        options.duration === undefined ? native.now() : startTime + options.duration,
      );
      return addEntry({
        name: `${name}`,
        entryType: "measure",
        startTime,
        duration: end - startTime,
        detail: options.detail ?? null,
      });
    },
    getEntries: () => [...entries],
    getEntriesByName: (name) => entries.filter((entry) => entry.name === `${name}`),
    getEntriesByType: (type) => entries.filter((entry) => entry.entryType === type),
    clearMarks: (name) => clear("mark", name),
    clearMeasures: (name) => clear("measure", name),
    toJSON: () => ({ timeOrigin: performance.timeOrigin }),
  };
  Object.defineProperty(performance, Symbol.toStringTag, {
    value: "Performance",
    configurable: true,
  });
  native.expose({ crypto, performance });
});
