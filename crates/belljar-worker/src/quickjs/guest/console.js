// The guest's `console`: log, info and debug go to standard output, warn, error, assert and trace
// to standard error, one print each, so that output survives the end of the cell. How values look
// is inspect.js's business.
(function (native) {
  "use strict";

  const { inspect, format, cut, kinds } = native;
  const counts = new Map();
  const timers = new Map();
  let indent = "";

  /** Groups an earlier run of the session has left open. */
  native.forgetGroups = () => {
    indent = "";
  };

  function write(stream, text) {
    const lines = indent === "" ? text : indent + text.replaceAll("\n", "\n" + indent);
    native.print(stream, cut(lines).toWellFormed() + "\n");
  }

  function warn(text) {
    write("stderr", "Warning: " + text);
  }

  const labelOf = (label) =>
    kinds.safely(() => (label === undefined ? "default" : `${label}`), "default");

  function elapsed(milliseconds) {
    const two = (number) => `${number}`.padStart(2, "0");
    const seconds = milliseconds / 1000;
    if (seconds >= 3600) {
      const minutes = Math.floor(seconds / 60);
      return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(Math.floor(seconds % 60))} (h:mm:ss)`;
    }
    if (seconds >= 60) {
      const rest = (seconds % 60).toFixed(3).padStart(6, "0");
      return `${Math.floor(seconds / 60)}:${rest} (m:ss.mmm)`;
    }
    return seconds >= 1 ? `${seconds.toFixed(3)}s` : `${Number(milliseconds.toFixed(3))}ms`;
  }

  function timePassed(label, method) {
    const began = timers.get(label);
    if (began === undefined) {
      warn(`No such label '${label}' for console.${method}()`);
      return undefined;
    }
    return `${label}: ${elapsed(native.now() - began)}`;
  }

  function drawn(data, columns) {
    native.need("console-table");
    return native.tableText(native.unwrapProxy(data), columns);
  }

  const console = {
    log(...values) {
      write("stdout", format(values));
    },
    info(...values) {
      write("stdout", format(values));
    },
    debug(...values) {
      write("stdout", format(values));
    },
    warn(...values) {
      write("stderr", format(values));
    },
    error(...values) {
      write("stderr", format(values));
    },
    dir(value, options) {
      write(
        "stdout",
        inspect(value, typeof options === "object" && options !== null ? options : {}),
      );
    },
    dirxml(...values) {
      write("stdout", format(values));
    },
    table(data, columns) {
      const tabular = typeof data === "object" && data !== null;
      const text = tabular ? kinds.safely(() => drawn(data, columns), undefined) : undefined;
      write("stdout", text ?? format([data]));
    },
    assert(condition, ...values) {
      if (condition) return;
      const [first, ...rest] = values;
      if (typeof first === "string")
        write("stderr", format([`Assertion failed: ${first}`, ...rest]));
      else write("stderr", format(["Assertion failed", ...values]));
    },
    trace(...values) {
      const frames = native.agentFrames(new Error());
      const text = values.length === 0 ? "Trace" : `Trace: ${format(values)}`;
      write("stderr", frames === "" ? text : `${text}\n${frames}`);
    },
    group(...values) {
      if (values.length > 0) write("stdout", format(values));
      // Deeper than this only the reader is lost.
      if (indent.length < 200) indent += "  ";
    },
    groupCollapsed(...values) {
      console.group(...values);
    },
    groupEnd() {
      indent = indent.slice(2);
    },
    count(label) {
      const name = labelOf(label);
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      write("stdout", `${name}: ${count}`);
    },
    countReset(label) {
      const name = labelOf(label);
      if (!counts.delete(name)) warn(`Count for '${name}' does not exist`);
    },
    time(label) {
      const name = labelOf(label);
      if (timers.has(name)) warn(`Label '${name}' already exists for console.time()`);
      else timers.set(name, native.now());
    },
    timeEnd(label) {
      const name = labelOf(label);
      const passed = timePassed(name, "timeEnd");
      if (passed !== undefined) write("stdout", passed);
      timers.delete(name);
    },
    timeLog(label, ...values) {
      const passed = timePassed(labelOf(label), "timeLog");
      if (passed !== undefined) write("stdout", format([passed, ...values]));
    },
  };
  Object.defineProperty(console, Symbol.toStringTag, { value: "console", configurable: true });
  native.console = console;
  Object.defineProperty(globalThis, "console", {
    value: console,
    writable: true,
    configurable: true,
  });
});
