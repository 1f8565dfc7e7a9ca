// Node's `process`, as the cell sees it: granted variables, its two output streams, its clock, and
// an end. What would reach out of the cell is refused.
//
// `exit` cannot be caught: the engine interrupts the code, as at its deadline, and the run ends
// with what was printed so far. `native.endProcess` is called by the engine when a run that has
// used `process` is over: it tells listeners, and answers with the status the run ends with.
(function (native) {
  "use strict";

  native.need("node/invalid", "node/events");
  const { invalid } = native;
  const { refuse } = native.errors;
  const EventEmitter = native.nodeModules.events;
  const { defineProperty, ownKeys } = Reflect;
  const later = globalThis.queueMicrotask;

  // Variables that the code has set or deleted; the rest are the grants of the run.
  const own = new Map();
  const variable = (key) => (own.has(key) ? own.get(key) : native.variable(key));
  const asText = (value) => {
    if (typeof value === "symbol") throw new TypeError("Cannot convert a Symbol value to a string");
    return `${value}`;
  };
  const env = new Proxy({}, {
    get(target, key) {
      if (typeof key === "symbol") return undefined;
      const value = variable(key);
      if (value !== undefined) return value;
      if (!own.has(key)) native.missedVariable(key);
      return Object.prototype[key];
    },
    has: (target, key) => typeof key === "string" && variable(key) !== undefined,
    set(target, key, value) {
      own.set(asText(key), asText(value));
      return true;
    },
    defineProperty(target, key, { value }) {
      own.set(asText(key), asText(value));
      return true;
    },
    deleteProperty(target, key) {
      own.set(key, undefined);
      return true;
    },
    ownKeys: () => [...new Set([...native.variables(), ...own.keys()])].filter((key) => variable(key) !== undefined),
    getOwnPropertyDescriptor(target, key) {
      const value = typeof key === "string" ? variable(key) : undefined;
      return value === undefined ? undefined : { value, writable: true, enumerable: true, configurable: true };
    },
  });

  /** A stream that only takes text. */
  class OutputStream {
    #name;

    constructor(name, descriptor) {
      this.#name = name;
      this.fd = descriptor;
      this.isTTY = false;
      this.writable = true;
      this.columns = 80;
    }

    write(chunk, encoding, callback) {
      let text = chunk;
      if (ArrayBuffer.isView(chunk)) {
        native.need("fs-bytes");
        text = native.fileBytes.decode(native.fileBytes.viewOf(chunk), "utf8");
      }
      if (typeof text !== "string") throw invalid.type("chunk", "of type string or an instance of Buffer or Uint8Array", chunk);
      native.print(this.#name, text.toWellFormed());
      const done = typeof encoding === "function" ? encoding : callback;
      if (typeof done === "function") later(() => done());
      return true;
    }

    end(chunk, encoding, callback) {
      if (chunk !== undefined && typeof chunk !== "function") this.write(chunk, encoding);
      const done = [chunk, encoding, callback].find((one) => typeof one === "function");
      if (done !== undefined) later(() => done());
      return this;
    }

    getWindowSize() {
      return [this.columns, 24];
    }

    hasColors() {
      return false;
    }

    getColorDepth() {
      return 1;
    }
  }
  for (const name of ["on", "once", "off", "addListener", "removeListener", "emit"]) {
    OutputStream.prototype[name] = EventEmitter.prototype[name];
  }
  for (const name of ["cork", "uncork", "setDefaultEncoding"]) OutputStream.prototype[name] = () => {};

  const BILLION = 1_000_000_000;
  const nanoseconds = () => BigInt(Math.round(native.now() * 1e6));
  function hrtime(previous) {
    const now = nanoseconds();
    const [seconds, rest] = [Number(now / BigInt(BILLION)), Number(now % BigInt(BILLION))];
    if (previous === undefined) return [seconds, rest];
    const [passed, part] = [seconds - previous[0], rest - previous[1]];
    return part < 0 ? [passed - 1, part + BILLION] : [passed, part];
  }
  hrtime.bigint = nanoseconds;

  function memoryUsage() {
    const rss = native.residentBytes();
    return { rss, heapTotal: native.memoryLimit(), heapUsed: rss, external: 0, arrayBuffers: 0 };
  }
  memoryUsage.rss = () => native.residentBytes();

  let exitCode;
  let isEnding = false;

  function statusOf(code) {
    if (code === undefined || code === null) return undefined;
    const status = typeof code === "string" && code.trim() !== "" ? Number(code) : code;
    if (!Number.isInteger(status)) throw invalid.type("code", "of type number", code);
    return status;
  }

  function exit(code) {
    const status = statusOf(code) ?? exitCode ?? 0;
    exitCode = status;
    if (!isEnding) {
      isEnding = true;
      process.emit("exit", status);
    }
    native.exit(exitCode);
    // The engine interrupts this; nothing after it runs.
    for (;;) {}
  }

  native.endProcess = () => {
    isEnding = true;
    process.emit("exit", exitCode ?? 0);
    return exitCode ?? 0;
  };

  /** Forgets what a run of a session has left in its process: the next run begins anew. */
  native.forgetProcess = () => {
    isEnding = false;
    exitCode = undefined;
    process.removeAllListeners();
  };

  const process = Object.assign(Object.create(EventEmitter.prototype), {
    title: "belljar",
    version: "v20.20.2",
    versions: { node: "20.20.2", quickjs: "ng" },
    release: { name: "node", lts: "Iron" },
    arch: native.architecture,
    platform: "linux",
    argv0: "node",
    execArgv: [],
    execPath: "/usr/bin/node",
    pid: 2,
    ppid: 1,
    features: {},
    config: { variables: {} },
    stdout: new OutputStream("stdout", 1),
    stderr: new OutputStream("stderr", 2),
    env, exit, hrtime, memoryUsage,
    cwd: () => "/work",
    uptime: () => native.now() / 1000,
    nextTick: (callback, ...values) => {
      if (typeof callback !== "function") throw invalid.type("callback", "of type function", callback);
      later(() => callback(...values));
    },
    cpuUsage: () => ({ user: Math.round(native.now() * 1000), system: 0 }),
    emitWarning: (warning) => native.print("stderr", `Warning: ${warning?.message ?? warning}\n`.toWellFormed()),
    umask: () => 0o22,
    getuid: () => native.identity()[0],
    getgid: () => native.identity()[1],
    geteuid: () => native.identity()[0],
    getegid: () => native.identity()[1],
  });
  // Read late: this object is made before the run that it is for.
  let argv;
  defineProperty(process, "argv", {
    get: () => argv ??= ["/usr/bin/node", "/work/main.js", ...native.arguments()],
    set: (value) => { argv = value; },
    enumerable: true, configurable: true,
  });
  defineProperty(process, "exitCode", {
    get: () => exitCode,
    set: (code) => { exitCode = statusOf(code); },
    enumerable: true, configurable: true,
  });

  const REFUSED = {
    __proto__: null,
    kill: "There is no other process here. End the run with process.exit(code).",
    abort: "End the run with process.exit(code), or throw an Error.",
    chdir: "Relative paths always begin at /work. Use path.join(directory, name).",
    dlopen: "Libraries of the host cannot be loaded. Write it in TypeScript.",
    binding: "The internals of Node are not available. Use the modules that are.",
    setuid: "The user of a cell is fixed.",
    setgid: "The user of a cell is fixed.",
  };
  for (const name of ownKeys(REFUSED)) {
    const refused = () => refuse(`process.${name}`, "permission.host", `process.${name} is not available`, REFUSED[name]);
    defineProperty(process, name, { value: refused, writable: true, enumerable: false, configurable: true });
  }
  defineProperty(process, "stdin", {
    get: () => refuse("process.stdin", "permission.host", "process.stdin is not available", "There is no standard input. Input is in `context`."),
    enumerable: false, configurable: true,
  });
  defineProperty(process, Symbol.toStringTag, { value: "process", configurable: true });
  native.offer("process", process);
  native.expose({ process });
});
