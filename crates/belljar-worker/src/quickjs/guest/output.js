// `output(value)` and `debug(value, label)`: show a value and return it. `state`: what code leaves
// in there is handed on beside its value, see state.rs.
(function (native) {
  "use strict";

  const { stringify } = JSON;
  const { inspect, print } = native;

  function shown(value) {
    if (typeof value === "string") return value;
    try {
      const json = stringify(value, null, 2);
      if (json !== undefined) return json;
    } catch {
      // A cycle or a BigInt: no JSON, but it can be looked at.
    }
    return inspect(value);
  }

  /** Prints a value for whoever reads standard output. */
  function output(value) {
    print("stdout", `${shown(value)}\n`);
    return value;
  }

  /** Notes a value in the log. */
  function debug(value, label) {
    const text = inspect(value);
    print("log", label === undefined ? text : `${String(label)}: ${text}`);
    return value;
  }

  for (const [name, value] of [["output", output], ["debug", debug], ["state", {}]]) {
    Object.defineProperty(globalThis, name, {
      value, writable: true, enumerable: false, configurable: true,
    });
  }
})
