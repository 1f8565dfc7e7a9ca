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
  const forget = loaded.delete.bind(loaded);

  native.need = function need(...files) {
    for (let i = 0; i < files.length; i++) {
      if (has(files[i])) continue;
      // Files may need each other; the second to come gets what the first has made so far.
      add(files[i]);
      let isDone = false;
      try {
        native.libraryFile(files[i])(native);
        isDone = true;
      } finally {
        if (!isDone) forget(files[i]);
      }
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
  const STREAMS = ["web/streams-readable", "web/streams-writable"];
  const GLOBALS = [
    [["encoding"], "TextEncoder", "TextDecoder"],
    [["url"], "URL", "URLSearchParams"],
    [["clone"], "structuredClone"],
    [["events"], "Event", "CustomEvent", "EventTarget", "AbortSignal", "AbortController"],
    [["crypto"], "crypto", "performance"],
    [["crypto", "hashes"], "CryptoKey", "SubtleCrypto"],
    [["node/process"], "process"],
    [["node/buffer"], "Buffer"],
    [["web/blob"], "Blob", "File"],
    [["web/headers"], "Headers"],
    [["web/form-data"], "FormData"],
    [["web/body"], "Request", "Response"],
    [
      STREAMS,
      "ReadableStream",
      "ReadableStreamDefaultReader",
      "ReadableStreamDefaultController",
      "WritableStream",
      "WritableStreamDefaultWriter",
      "TransformStream",
      "TextEncoderStream",
      "TextDecoderStream",
      "CountQueuingStrategy",
      "ByteLengthQueuingStrategy",
    ],
    [["web/url-pattern"], "URLPattern"],
    [FS, "fs", "artifact"],
    [[...FS, "deno"], "Deno"],
    [["tools"], "mcp", "tools", "load", "__callTool__", "ToolError"],
    [
      ["stdlib-items", "stdlib-tables", "stdlib-numbers", "stdlib-text", "stdlib-dates", "stdlib"],
      "data",
    ],
  ];
  const filesOf = { __proto__: null };
  for (const [files, ...names] of GLOBALS) {
    for (const name of names) {
      filesOf[name] = files;
      native.lazy(globalThis, name, files, () => exposed[name]);
    }
  }
  native.global = function global(...names) {
    const values = { __proto__: null };
    for (let i = 0; i < names.length; i++) {
      native.need(...filesOf[names[i]]);
      values[names[i]] = exposed[names[i]];
    }
    return values;
  };

  // Modules of Node, by name without `node:`. What a file offers is there once it is evaluated.
  native.nodeModules = { __proto__: null };
  native.offer = function offer(name, module) {
    native.nodeModules[name] = module;
  };

  /** A member of a module that is a global of the library, and needs its files only when read. */
  native.forward = function forward(module, name) {
    native.lazy(module, name, filesOf[name], () => exposed[name]);
    defineProperty(module, name, { enumerable: true });
  };

  /** One of Node's modules that are here, as `require` gives it; undefined for any other. */
  native.moduleNamed = (name) => {
    const bare = name.startsWith("node:") ? name.slice("node:".length) : name;
    const file = native.moduleFile(bare);
    if (file === undefined) return undefined;
    if (file === "fs") native.need(...FS);
    else native.need(file);
    return native.nodeModules[bare];
  };

  // Modules that few runs import are left out: evaluated, they would be in the memory of every cell.
  native.loadAll = () => {
    native.need("console-table", ...FS, "node/path");
    for (const [files, ...names] of GLOBALS) {
      if (!files[0].startsWith("web/")) names.forEach((name) => globalThis[name]);
    }
    // Lists, relative times and segments are few programs' business.
    for (const name of ["NumberFormat", "DateTimeFormat", "Collator"]) globalThis.Intl[name];
  };
});
