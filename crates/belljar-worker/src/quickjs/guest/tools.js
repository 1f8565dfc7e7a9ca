// Tools of the host: `mcp.server.tool(args)`, `tools.call(name, args)`, and the search for tools.
//
// The guest has no list of tools: a name goes out as it is written, and the host answers, or says
// what comes nearest. Names are only ever data: namespaces are proxies without a prototype, so no
// tool, whatever it is called, can shadow anything. Offers `native.settle(call, isOk, value)`.
(function (native) {
  "use strict";

  const { defineProperty } = Reflect;
  const { create, freeze } = Object;
  const PromiseHere = Promise;
  const { PermissionError } = native.errors;
  const define = (target, name, value) => {
    defineProperty(target, name, { value, writable: true, enumerable: false, configurable: true });
  };

  /** A tool failed, or could not be called. */
  class ToolError extends Error {
    constructor(message, options) {
      super(message);
      define(this, "code", options?.code ?? "tool.failed");
      define(this, "hint", options?.hint);
      define(this, "toolName", options?.toolName);
    }
  }
  define(ToolError.prototype, "name", "ToolError");
  native.toolPrototype = ToolError.prototype;

  // Calls under way, by number. No prototype, so no number of them is anything else.
  let waiting = { __proto__: null };

  /** Calls of an earlier run of the session: nobody will answer them. */
  native.forgetCalls = () => {
    waiting = { __proto__: null };
  };

  native.settle = (call, isOk, value) => {
    if (waiting[call] === undefined) return;
    const { resolve, reject, origin } = waiting[call];
    delete waiting[call];
    if (isOk) {
      resolve(value);
      return;
    }
    const isPermission = /^(?:permission|approval)\./.test(value.code);
    const Class = isPermission ? PermissionError : ToolError;
    const error = new Class(value.message, value);
    if (isPermission) define(error, "toolName", value.toolName);
    // The stack of the call, not of the loop that heard of its end.
    const stack = native.rawStack(origin);
    define(error, "stack", native.presentStack(error, stack));
    native.keepStack(error, stack);
    reject(error);
  };

  function send(server, tool, args) {
    const origin = new Error();
    return new PromiseHere((resolve, reject) => {
      const named = args === undefined || args === null ? {} : args;
      // The host refuses arguments that are not an object; it knows the tool's own name.
      const call = native.callTool(server, tool, named, native.values, native.rawStack(origin));
      if (typeof call === "string") {
        throw new ToolError(call, { code: "serialization.unsupported", toolName: tool });
      }
      waiting[call] = { __proto__: null, resolve, reject, origin };
    });
  }

  // How the language itself looks at objects, when they are awaited, printed or returned.
  const isLook = (key) => typeof key === "symbol" || key === "then" || key === "toJSON";

  /** An object that has every property there could be, made by `make` when it is first asked for. */
  function namespace(make) {
    const made = { __proto__: null };
    const fixed = () => {
      throw new TypeError("tools cannot be changed");
    };
    return new Proxy(create(null), {
      get(target, key) {
        if (isLook(key)) return undefined;
        return made[key] ??= make(key);
      },
      has: (target, key) => !isLook(key),
      set: fixed,
      defineProperty: fixed,
      deleteProperty: fixed,
      setPrototypeOf: fixed,
      getPrototypeOf: () => null,
    });
  }

  const mcp = namespace((server) => namespace((tool) => (args) => send(server, tool, args)));

  const tools = freeze({
    __proto__: null,
    /** Calls a tool by its name, `server__tool`. */
    call: (name, args) => send(null, String(name), args),
    /** Finds tools for a purpose. */
    search: (intent, k = 5) => send("belljar", "search", { intent: String(intent), k }),
    /** Says what a tool takes and gives. */
    describe: (name) => send("belljar", "describe", { name: String(name) }),
    /** Lists the names of all tools. */
    list: () => send("belljar", "list", {}),
  });

  const load = (handle) => send("belljar", "load", { handle });
  native.expose({ mcp, tools, load, __callTool__: tools.call, ToolError });
});
