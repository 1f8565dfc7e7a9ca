// Code that most runs never use is compiled on first use: `native.need(file, …)` evaluates files of
// the library once each, `native.lazy(target, name, files)` makes a property that needs some.
// `native.loadAll()` evaluates everything, for a zygote with time to spare.
//
// Guest code may have run, and patched anything, before a file is evaluated. So `native` and its
// objects have no prototype that could hold a setter, and are never passed to a built-in.
(function (native) {
  "use strict";

  const { defineProperty } = Reflect;
  const loaded = new Set();
  const has = loaded.has.bind(loaded);
  const add = loaded.add.bind(loaded);

  native.need = function need(...files) {
    for (let i = 0; i < files.length; i++) {
      if (has(files[i])) continue;
      native.libraryFile(files[i])(native);
      add(files[i]);
    }
  };

  native.lazy = function lazy(target, name, files, read) {
    defineProperty(target, name, {
      get() {
        native.need(...files);
        const value = read();
        defineProperty(target, name, {
          value,
          writable: true,
          enumerable: false,
          configurable: true,
        });
        return value;
      },
      set(value) {
        defineProperty(target, name, {
          value,
          writable: true,
          enumerable: true,
          configurable: true,
        });
      },
      enumerable: false,
      configurable: true,
    });
  };

  const exposed = { __proto__: null };

  /** Hands a file's globals over to whoever touched one of them. */
  native.expose = function expose(values) {
    for (const name in values) exposed[name] = values[name];
  };

  const FS = ["fs-bytes", "fs-errors", "fs-sync", "fs"];
  const GLOBALS = [
    [["encoding"], "TextEncoder", "TextDecoder"],
    [["url"], "URL", "URLSearchParams"],
    [["clone"], "structuredClone"],
    [["events"], "Event", "CustomEvent", "EventTarget", "AbortSignal", "AbortController"],
    [["crypto"], "crypto", "performance"],
    [FS, "fs", "artifact"],
    [[...FS, "deno"], "Deno"],
    [["tools"], "mcp", "tools", "load", "__callTool__", "ToolError"],
    [
      ["stdlib-items", "stdlib-tables", "stdlib-numbers", "stdlib-text", "stdlib-dates", "stdlib"],
      "data",
    ],
  ];
  for (const [files, ...names] of GLOBALS) {
    for (const name of names) native.lazy(globalThis, name, files, () => exposed[name]);
  }

  const MODULES = {
    __proto__: null,
    "fs": () => exposed.fs,
    "fs/promises": () => exposed.fs.promises,
    "path": () => exposed.path,
  };

  /** One of Node's modules that are here, as `require` gives it; undefined for any other. */
  native.moduleNamed = (name) => {
    const read = MODULES[name.startsWith("node:") ? name.slice("node:".length) : name];
    if (read === undefined) return undefined;
    native.need(...FS, "path");
    return read();
  };

  native.loadAll = () => {
    native.need("console-table", ...FS, "path");
    for (const [, ...names] of GLOBALS) names.forEach((name) => globalThis[name]);
    for (const name of Object.getOwnPropertyNames(globalThis.Intl)) globalThis.Intl[name];
  };
});
