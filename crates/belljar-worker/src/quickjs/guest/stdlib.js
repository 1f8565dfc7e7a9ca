// The global `data`: a small library for lists, tables, numbers and dates, so that agents write
// less. Put together from the stdlib-*.js files; documented in docs/javascript.md.
(function (native) {
  "use strict";

  const { items, tables, numbers, text, dates } = native.stdlib;
  const data = {};
  for (const part of [items, tables, numbers, text, dates]) {
    for (const name of Object.keys(part)) {
      Object.defineProperty(data, name, {
        value: part[name],
        writable: true,
        enumerable: true,
        configurable: true,
      });
    }
  }
  Object.defineProperty(data, Symbol.toStringTag, { value: "data", configurable: true });
  native.expose({ data });
});
