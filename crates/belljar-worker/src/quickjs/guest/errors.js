// Errors: the one the library throws at guest code, and the stacks of all of them.
//
// Offers `native.errors.PermissionError`, `native.errors.refuse(attempt, code, message, hint)`,
// which tells the host and throws, `native.importModule`, which stands in for `import()` and, by
// its `now`, for `import` declarations of modules that are here, and
// `native.rawStack(error)` and `native.agentFrames(error)`: the engine's frames, and those of
// them that are the agent's, at the places the agent wrote.
(function (native) {
  "use strict";

  const { apply, defineProperty, getOwnPropertyDescriptor } = Reflect;
  const define = (target, name, value) => {
    defineProperty(target, name, { value, writable: true, enumerable: false, configurable: true });
  };

  /** Something was reached for that this run was not granted. */
  class PermissionError extends Error {
    constructor(message, options) {
      super(message);
      define(this, "code", options?.code ?? "permission.host");
      define(this, "hint", options?.hint);
      if (options?.missing !== undefined) define(this, "missing", options.missing);
    }
  }
  define(PermissionError.prototype, "name", "PermissionError");
  define(globalThis, "PermissionError", PermissionError);

  function refuse(attempt, code, message, hint, missing) {
    native.denied(attempt);
    throw new PermissionError(message, { code, hint, missing });
  }

  native.errors = { PermissionError, refuse };

  /**
   * As `import` sees a module: what `require` gives is its default. A module that is a function can
   * be called by the name of `import * as` too, as TypeScript's older way of importing has it.
   */
  function namespaceOf(module) {
    if (typeof module !== "function") {
      return defineProperties({ __proto__: null, default: module }, getOwnPropertyDescriptors(module));
    }
    const call = (...values) => module(...values);
    return assign(call, module, { default: module });
  }

  native.importModule = async function (name) {
    const module = String(name);
    const found = native.moduleNamed(module);
    if (found !== undefined) return namespaceOf(found);
    const attempt = `import(${JSON.stringify(module)})`;
    refuse(attempt, "permission.module", native.moduleRefused(module), native.moduleHint(module));
  };

  // A constant of a session whose declaration stays one, see transpile/session.rs.
  const { keys, assign, defineProperties, getOwnPropertyDescriptors } = Object;
  const scope = globalThis;
  native.importModule.keep = (values) => {
    const names = keys(values);
    for (let i = 0; i < names.length; i++) scope[names[i]] = values[names[i]];
  };

  /** A module, for `import`; what is imported by name must be in it. */
  native.importModule.now = (name, ...wanted) => {
    const namespace = namespaceOf(native.moduleNamed(name));
    for (let i = 0; i < wanted.length; i++) {
      if (!(wanted[i] in namespace)) throw missingExport(name, wanted[i], namespace);
    }
    return namespace;
  };

  function missingExport(module, name, namespace) {
    const listed = keys(namespace).filter((key) => key !== "default").join(", ");
    const message = `The requested module '${module}' does not provide an export named '${name}'`;
    const error = new SyntaxError(message);
    define(error, "hint", `Of ${module}, this is available: ${listed}.`);
    return error;
  }

  native.importModule.meta = {
    __proto__: null, url: "file:///work/main.js", filename: "/work/main.js", dirname: "/work", main: true,
    resolve: (name) => `${name}`,
  };

  // `stack` is an accessor of the prototype, whose value the engine sets when an error is made.
  // Agents know it as name, message and frames, the engine gives frames of what it runs.
  const engineStack = getOwnPropertyDescriptor(Error.prototype, "stack");
  const toHeadline = Error.prototype.toString;
  const isEngineStack = RegExp.prototype.test.bind(/^(?: +at [^\n]*\n)*$/);

  // Errors that were made where they did not happen, and the frames of where they did.
  const kept = new WeakMap();
  const getKept = kept.get.bind(kept);
  native.keepStack = kept.set.bind(kept);

  // A DOMException has a stack of its own instead.
  native.rawStack = (error) => getKept(error) ?? apply(engineStack.get, error, [])
    ?? getOwnPropertyDescriptor(error, "stack")?.value;

  native.agentFrames = (error) => {
    const stack = native.rawStack(error);
    return typeof stack === "string" ? native.mapFrames(stack, className(error)) : "";
  };

  function className(error) {
    try {
      return String(error.constructor.name);
    } catch {
      return "";
    }
  }

  function present(error, stack) {
    if (typeof stack !== "string" || !isEngineStack(stack)) return stack;
    const frames = native.mapFrames(stack, className(error));
    const headline = apply(toHeadline, error, []);
    return frames === "" ? headline : `${headline}\n${frames}`;
  }

  native.presentStack = present;

  defineProperty(Error.prototype, "stack", {
    ...engineStack,
    get: { get stack() { return present(this, native.rawStack(this)); } }.__lookupGetter__("stack"),
  });

  const capture = Error.captureStackTrace;
  define(Error, "captureStackTrace", function captureStackTrace(target, above) {
    apply(capture, Error, [target, above ?? captureStackTrace]);
    const captured = getOwnPropertyDescriptor(target, "stack");
    if (typeof captured?.value !== "string") return;
    define(target, "stack", present(target, captured.value));
  });

  // Ten frames are soon used up by the library's own.
  Error.stackTraceLimit = 30;
})
