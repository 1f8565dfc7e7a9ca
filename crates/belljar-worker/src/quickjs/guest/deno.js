// `Deno`, as far as code that was written for it needs one here: files of the cell, granted
// variables, and for all else the refusal Deno itself would give, in its words.
//
// A refusal is a `Deno.errors.NotCapable`, which is a `Deno.errors.PermissionDenied`, which is a
// `PermissionError`: code written for either version of Deno catches it, and so does code written
// for this sandbox.
(function (native) {
  "use strict";

  const { PermissionError } = native.errors;
  const { sync } = native.fileFunctions;
  const { pathText } = native.fileErrors;
  const { defineProperty } = Reflect;
  const { stringify } = JSON;
  const { isOutside } = native.fileErrors;

  const named = (name, value) => {
    defineProperty(value, "name", { value: name, configurable: true });
    return value;
  };
  const withName = (name, base) => {
    const made = named(name, class extends base {});
    defineProperty(made.prototype, "name", {
      value: name, writable: true, enumerable: false, configurable: true,
    });
    return made;
  };

  const errors = { __proto__: null, PermissionDenied: withName("PermissionDenied", PermissionError) };
  errors.NotCapable = withName("NotCapable", errors.PermissionDenied);
  for (const name of [
    "NotFound", "AlreadyExists", "NotADirectory", "IsADirectory", "InvalidData", "TimedOut",
    "Interrupted", "BadResource", "Busy", "NotSupported", "ConnectionRefused", "ConnectionReset",
    "ConnectionAborted", "NotConnected", "AddrInUse", "AddrNotAvailable", "BrokenPipe",
    "UnexpectedEof", "WriteZero", "WouldBlock", "Http", "FilesystemLoop",
  ]) errors[name] = withName(name, Error);

  const NETWORK = "Use `fetch`, which reaches granted hosts, or pass the data in with `context`.";
  const PROCESS = "There is no subprocess in this language. Do it in code, or run it with language bash.";
  const KINDS = {
    __proto__: null,
    read: ["permission.file", () => "Only /work, /tmp and granted paths exist here."],
    write: ["permission.file", () => "Only /work, /tmp and paths granted for writing can be changed."],
    net: ["permission.network", () => NETWORK],
    env: ["permission.host", (what) => (what === undefined
      ? "Code sees an environment variable of the host only if it is granted."
      : "Code sees a variable of the host only if it is granted; `context` can pass the value instead.")],
    run: ["permission.command", () => PROCESS],
    ffi: ["permission.host", () => "Libraries of the host cannot be loaded. Write it in TypeScript."],
    sys: ["permission.host", () => "The machine is hidden from the code. Input is in `context`."],
  };

  /** The kinds that a grant of the same name would allow. */
  const GRANTS = ["read", "write", "env"];

  /** The refusal Deno would give. */
  function refusal(kind, what) {
    const [code, hintFor] = KINDS[kind];
    const target = what === undefined ? undefined : String(what).slice(0, 300);
    const message = `Requires ${kind} access${target === undefined ? "" : ` to ${stringify(target)}`}`;
    const missing = GRANTS.includes(kind) && target !== undefined
      ? { __proto__: null, kind, name: target }
      : undefined;
    return new errors.NotCapable(message, { code, hint: hintFor(target), missing });
  }

  /** Refuses, and tells the host what was attempted. */
  function refuse(api, kind, what) {
    const isNamed = what !== undefined && kind !== "sys";
    native.denied(`Deno.${api}(${isNamed ? stringify(String(what).slice(0, 300)) : ""})`);
    throw refusal(kind, what);
  }

  const FILE_ERRORS = {
    __proto__: null,
    ENOENT: "NotFound", EEXIST: "AlreadyExists", ENOTDIR: "NotADirectory", EISDIR: "IsADirectory",
  };

  /** Does it with `fs`, which tells the host of refusals, and says what went wrong as Deno would. */
  function attempt(kind, path, act) {
    const name = pathText(path);
    try {
      return act(name);
    } catch (error) {
      const isRefused = ["EACCES", "EPERM", "EROFS"].includes(error?.code);
      const isAbsent = error?.code === "ENOENT" && isOutside(name);
      if (isRefused || isAbsent) throw refusal(kind, name);
      const known = errors[FILE_ERRORS[error?.code]];
      if (known === undefined) throw error;
      const copy = new known(error.message);
      copy.code = error.code;
      defineProperty(copy, "syscall", { value: error.syscall, configurable: true });
      defineProperty(copy, "hint", { value: error.hint, configurable: true });
      defineProperty(copy, "missing", { value: error.missing, configurable: true });
      throw copy;
    }
  }

  const api = { __proto__: null };
  /** One operation, at once as `nameSync` and as a promise under its own name. */
  function operation(name, now) {
    api[`${name}Sync`] = named(`${name}Sync`, now);
    api[name] = named(name, async (...values) => now(...values));
  }
  const file = (name, kind, act) => {
    operation(name, (path, ...rest) => attempt(kind, path, (text) => act(text, ...rest)));
  };
  const writing = (options) => ({
    flag: options?.append ? "a" : options?.createNew ? "wx" : "w",
    mode: options?.mode ?? 0o666,
  });
  const entry = (name, status) => ({
    name,
    isFile: status.isFile(),
    isDirectory: status.isDirectory(),
    isSymlink: status.isSymbolicLink(),
  });
  const information = (status) => ({
    ...entry(undefined, status), size: status.size, mtime: status.mtime, mode: status.mode,
  });
  const listed = (path) => attempt("read", path, (text) => sync
    .readdirSync(text, { withFileTypes: true }).map((one) => entry(one.name, one)));

  file("readTextFile", "read", (path) => sync.readFileSync(path, "utf8"));
  file("readFile", "read", (path) => sync.readFileSync(path));
  file("stat", "read", (path) => information(sync.statSync(path)));
  file("lstat", "read", (path) => information(sync.lstatSync(path)));
  file("writeTextFile", "write", (path, text, options) => sync.writeFileSync(path, text, writing(options)));
  file("writeFile", "write", (path, bytes, options) => sync.writeFileSync(path, bytes, writing(options)));
  file("mkdir", "write", (path, options) => { sync.mkdirSync(path, options); });
  file("remove", "write", (path, options) => {
    if (options?.recursive) sync.rmSync(path, { recursive: true });
    else if (sync.lstatSync(path).isDirectory()) sync.rmdirSync(path);
    else sync.unlinkSync(path);
  });
  for (const [name, move] of [["rename", sync.renameSync], ["copyFile", sync.copyFileSync]]) {
    operation(name, (from, to) => {
      attempt("read", from, (source) => sync.accessSync(source));
      attempt("write", to, (target) => { move(pathText(from), target); });
    });
  }
  api.readDirSync = (path) => listed(path)[Symbol.iterator]();
  api.readDir = async function* readDir(path) { yield* listed(path); };

  for (const [kind, names] of [
    ["read", ["open", "readLink", "realPath", "watchFs"]],
    ["write", ["create", "symlink", "link", "chmod", "chown", "truncate", "makeTempFile", "makeTempDir"]],
    ["ffi", ["dlopen"]],
    ["sys", ["hostname", "osRelease", "osUptime", "loadavg", "networkInterfaces", "systemMemoryInfo", "uid", "gid"]],
  ]) {
    for (const name of names) {
      const about = (target) => (kind === "sys" ? name : target);
      operation(name, (target) => refuse(name, kind, about(target)));
    }
  }
  // These have no other form.
  for (const name of ["dlopen", "hostname", "osRelease", "osUptime", "loadavg", "networkInterfaces", "systemMemoryInfo", "uid", "gid"]) {
    api[name] = named(name, api[`${name}Sync`]);
    delete api[`${name}Sync`];
  }

  const address = (options) => {
    if (typeof options !== "object" || options === null) return options;
    const host = options.hostname ?? options.path ?? "0.0.0.0";
    return options.port === undefined ? host : `${host}:${options.port}`;
  };
  for (const name of ["connect", "connectTls", "startTls", "resolveDns", "createHttpClient"]) {
    api[name] = named(name, async (options) => refuse(name, "net", address(options)));
  }
  for (const name of ["listen", "listenTls", "listenDatagram", "serve"]) {
    api[name] = named(name, (options) => refuse(name, "net", address(options)));
  }

  api.Command = named("Command", class {
    #name;

    constructor(name) { this.#name = String(name); }
    async output() { return refuse("Command", "run", this.#name); }
    outputSync() { return refuse("Command", "run", this.#name); }
    spawn() { return refuse("Command", "run", this.#name); }
  });
  api.run = named("run", (options) => refuse("run", "run", options?.cmd?.[0]));
  api.kill = named("kill", (id) => refuse("kill", "run", id));

  const variable = (name) => native.variable(String(name));
  api.env = {
    __proto__: null,
    get: (name) => variable(name) ?? refuse("env.get", "env", name),
    has: (name) => (variable(name) === undefined ? refuse("env.has", "env", name) : true),
    set: (name) => refuse("env.set", "env", name),
    delete: (name) => refuse("env.delete", "env", name),
    toObject: () => {
      const names = native.variables();
      if (names.length === 0) refuse("env.toObject", "env");
      const granted = {};
      for (let i = 0; i < names.length; i++) granted[names[i]] = variable(names[i]);
      return granted;
    },
  };

  const HINTS = {
    __proto__: null,
    exit: "Use `return value` to end the code, or throw an Error.",
    stdin: "There is no standard input. Input is in `context`.",
    stdout: "Use console.log(...).",
    stderr: "Use console.error(...).",
  };
  const HINT = "This is not Deno: only its file functions, Deno.env and Deno.errors are available "
    + "here. Input is in `context`, output is console.log and `return`.";
  const open = {
    __proto__: null, ...api, errors, args: [], cwd: () => "/work",
    inspect: native.inspect, build: { os: "linux" },
  };
  native.expose({ Deno: native.forbidden("Deno", (key) => HINTS[key] ?? HINT, open) });
})
