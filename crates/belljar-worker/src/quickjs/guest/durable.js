// A clock that only moves when the host says so, for runs that must do the same when they are
// replayed. Evaluated in durable runs alone, before guest code.
(function (native) {
  "use strict";

  const { Date: Real } = globalThis;
  const { construct } = Reflect;

  function Date(...parts) {
    const given = parts.length === 0 ? [native.clock()] : parts;
    return new.target === undefined
      ? new Real(native.clock()).toString()
      : construct(Real, given, new.target);
  }
  const fixed = { writable: true, enumerable: false, configurable: true };
  Object.defineProperties(Date, {
    length: { value: 7, writable: false, enumerable: false, configurable: true },
    prototype: { value: Real.prototype, writable: false, enumerable: false, configurable: false },
    now: { value: function now() { return native.clock(); }, ...fixed },
    parse: { value: Real.parse, ...fixed },
    UTC: { value: Real.UTC, ...fixed },
  });
  Object.defineProperty(Real.prototype, "constructor", { value: Date, ...fixed });
  Object.defineProperty(globalThis, "Date", { value: Date, ...fixed });
});
