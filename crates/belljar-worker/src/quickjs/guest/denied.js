// APIs that other runtimes have and this one refuses: each attempt is reported to the host, and
// ends in a PermissionError whose hint says what to do instead.
//
// Only what code calls or reads outright is here, and `Deno` in deno.js. What code merely asks for by
// `typeof` (Bun, window, module …) stays undefined, so that such questions get an honest answer; the
// engine explains those names when code trips over them, see `missing_names.rs`.
(function (native) {
  "use strict";

  const { refuse } = native.errors;
  const { defineProperty } = Reflect;
  const expose = (name, value) => {
    defineProperty(globalThis, name, {
      value, writable: true, enumerable: false, configurable: true,
    });
  };
  const named = (name, value) => {
    defineProperty(value, "name", { value: name, configurable: true });
    return value;
  };

  const NETWORK = "Network access is not available in this run; pass the data in with `context`.";
  const FETCH_ONLY = "Use `fetch`, which reaches granted hosts, or pass the data in with `context`.";
  const THREADS = "There is one thread and no subprocess. Use async functions and Promise.all.";

  /** An argument as it stands in the log: short, quoted, and without running guest code. */
  function shown(value) {
    if (typeof value === "string") return JSON.stringify(value.slice(0, 300));
    return value === undefined ? "" : typeof value;
  }

  /** The grant of the host and the port of a URL. */
  function hostGrant(url) {
    const { URL } = native.global("URL");
    const parsed = URL.parse(`${url}`);
    if (!/^https?:$/.test(parsed?.protocol)) return undefined;
    const port = parsed.port || (parsed.protocol === "https:" ? 443 : 80);
    return { __proto__: null, kind: "net", name: `${parsed.hostname}:${port}` };
  }

  // An async function, because callers expect a promise and handle its rejection.
  async function fetch(input, init = undefined) {
    if (native.mayFetch()) {
      native.need("web/fetch");
      return native.fetch(input, init);
    }
    const url = typeof input === "object" && input !== null ? input.href ?? input.url : input;
    const target = shown(url);
    refuse(`fetch(${target})`, "permission.network", `fetch(${target}) needs the network`, NETWORK, hostGrant(url));
  }
  expose("fetch", fetch);

  function refuseToConstruct(name, code, reason, hint) {
    expose(name, named(name, class {
      constructor(target) {
        refuse(`new ${name}(${shown(target)})`, code, `${name} ${reason}`, hint);
      }
    }));
  }
  for (const name of ["XMLHttpRequest", "WebSocket", "EventSource", "WebTransport"]) {
    refuseToConstruct(name, "permission.network", "needs the network", FETCH_ONLY);
  }
  for (const name of ["Worker", "SharedWorker"]) {
    refuseToConstruct(name, "permission.host", "needs a thread of its own", THREADS);
  }

  const require = named("require", (name) => {
    const found = native.moduleNamed(String(name));
    if (found !== undefined) return found;
    const message = native.moduleRefused(String(name));
    refuse(`require(${shown(name)})`, "permission.module", message, native.moduleHint(String(name)));
  });
  require.resolve = named("resolve", (name) => String(name));
  require.cache = {};
  expose("require", require);
  expose("global", globalThis);
  expose("__dirname", "/work");
  expose("__filename", "/work/main.js");

  /** An object whose every property is refused, however it is asked for. */
  function forbidden(path, hintFor, open = {}) {
    const refuseKey = (key) => {
      const name = key === undefined ? path : `${path}.${String(key)}`;
      refuse(name, "permission.host", `${name} is not available`, hintFor(key));
    };
    // How the language itself looks at objects, when they are awaited, printed or returned.
    const isLook = (key) => typeof key === "symbol" || key === "then" || key === "toJSON";
    return new Proxy(Object.create(null), {
      get: (target, key) => (isLook(key) ? undefined : open[key] ?? refuseKey(key)),
      has: (target, key) => (isLook(key) ? false : open[key] !== undefined || refuseKey(key)),
      set: (target, key) => refuseKey(key),
      deleteProperty: (target, key) => refuseKey(key),
      defineProperty: (target, key) => refuseKey(key),
      getOwnPropertyDescriptor: (target, key) => (isLook(key) ? undefined : refuseKey(key)),
      ownKeys: () => refuseKey(undefined),
      getPrototypeOf: () => null,
    });
  }

  native.forbidden = forbidden;
})
