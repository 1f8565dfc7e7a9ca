// Node's `util`; `util/types` is util-types.js.
(function (native) {
  "use strict";

  native.need("node/invalid", "node/deep-equal", "node/util-types");
  const { invalid, format } = native;
  const { apply, defineProperty, getPrototypeOf, setPrototypeOf } = Reflect;
  const { getOwnPropertyDescriptors, defineProperties } = Object;
  const later = globalThis.queueMicrotask;

  /** `inspect(value, options)`, or as it once was: `inspect(value, showHidden, depth)`. */
  function inspect(value, options, depth) {
    if (typeof options === "object" && options !== null) return native.inspect(value, options);
    return native.inspect(value, options === undefined ? {} : { showHidden: options === true, depth });
  }
  inspect.custom = Symbol.for("nodejs.util.inspect.custom");
  inspect.defaultOptions = { depth: 2, showHidden: false, maxArrayLength: 100, colors: false };

  const CUSTOM = Symbol.for("nodejs.util.promisify.custom");

  function promisify(original) {
    if (typeof original !== "function") throw invalid.type("original", "of type function", original);
    native.need("node/timers");
    if (original[CUSTOM] !== undefined) return original[CUSTOM];
    function promised(...values) {
      return new Promise((resolve, reject) => {
        const callback = (error, value) => (error ? reject(error) : resolve(value));
        apply(original, this, [...values, callback]);
      });
    }
    setPrototypeOf(promised, getPrototypeOf(original));
    return defineProperties(promised, getOwnPropertyDescriptors(original));
  }
  promisify.custom = CUSTOM;

  function callbackify(original) {
    if (typeof original !== "function") throw invalid.type("original", "of type function", original);
    return function (...values) {
      const callback = values.pop();
      if (typeof callback !== "function") throw invalid.type("last argument", "of type function", callback);
      const failed = (reason) => reason || Object.assign(
        invalid.plain("ERR_FALSY_VALUE_REJECTION", "Promise was rejected with falsy value"), { reason });
      apply(original, this, values).then(
        (value) => later(() => callback(null, value)),
        (reason) => later(() => callback(failed(reason))),
      );
    };
  }

  function inherits(constructor, parent) {
    if (typeof constructor !== "function") throw invalid.type("ctor", "of type function", constructor);
    if (typeof parent !== "function") throw invalid.type("superCtor", "of type function", parent);
    defineProperty(constructor, "super_", { value: parent, writable: true, configurable: true });
    setPrototypeOf(constructor.prototype, parent.prototype);
  }

  function deprecate(original, message) {
    let isTold = false;
    return function (...values) {
      if (!isTold) native.print("stderr", `DeprecationWarning: ${message}\n`.toWellFormed());
      isTold = true;
      return new.target ? Reflect.construct(original, values, new.target) : apply(original, this, values);
    };
  }

  // Nothing here is a terminal, so text has no colours.
  const styleText = (style, text) => `${text}`;

  const debuglog = () => Object.assign(() => {}, { enabled: false });
  const util = {
    inspect, promisify, callbackify, inherits, deprecate, styleText, debuglog, debug: debuglog,
    format: (...values) => format(values),
    formatWithOptions: (options, ...values) => format(values),
    isDeepStrictEqual: (first, second) => native.deepEqual(first, second, true),
    isArray: Array.isArray,
    stripVTControlCharacters: (text) => String(text).replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, ""),
    toUSVString: (text) => String(text).toWellFormed(),
    types: native.nodeModules["util/types"],
  };
  for (const name of ["TextEncoder", "TextDecoder"]) native.forward(util, name);
  native.offer("util", util);
});
