// `fs`, put together: the functions that answer at once, those with a callback, and the promises.
//
// All work is done at once; callbacks and promises only report it later.
(function (native) {
  "use strict";

  const { constants, Stats, Dirent, sync } = native.fileFunctions;
  const { invalid } = native;
  const { apply, defineProperty } = Reflect;
  const later = globalThis.setImmediate;

  const named = (name, value) => {
    defineProperty(value, "name", { value: name, configurable: true });
    return value;
  };

  function withCallback(name, now) {
    return named(name, (...values) => {
      const callback = values[values.length - 1];
      if (typeof callback !== "function") throw invalid.type("cb", "of type function", callback);
      values.length -= 1;
      let result;
      try {
        result = apply(now, undefined, values);
      } catch (error) {
        later(callback, name === "exists" ? false : error);
        return;
      }
      if (name === "exists") later(callback, result);
      else later(callback, null, result);
    });
  }

  const fs = {};
  const promises = { constants };
  for (const syncName in sync) {
    const now = sync[syncName];
    const name = syncName.slice(0, -"Sync".length);
    fs[syncName] = named(syncName, now);
    fs[name] = withCallback(name, now);
    if (name === "exists") continue;
    promises[name] = named(name, async (...values) => apply(now, undefined, values));
  }
  native.offer("fs", fs);
  native.offer("fs/promises", promises);
  native.expose({
    fs: Object.assign(fs, { promises, constants, Stats, Dirent }),
    artifact: native.artifact,
  });
});
