// Texts that code prints or compares, in the words of V8: dates with the name of their zone, and the messages
// of two errors that the engine words otherwise or not at all.
(function () {
  "use strict";

  const { apply, defineProperty } = Reflect;
  const { valueOf, toString, toTimeString, toISOString } = Date.prototype;
  const ZONE = " (Coordinated Universal Time)";
  const replace = (owner, name, value) => {
    defineProperty(owner, name, { value, writable: true, enumerable: false, configurable: true });
  };
  const isInvalid = (date) => {
    const time = apply(valueOf, date, []);
    return time !== time;
  };

  const methods = {
    toString() {
      return isInvalid(this) ? "Invalid Date" : apply(toString, this, []) + ZONE;
    },
    toTimeString() {
      return isInvalid(this) ? "Invalid Date" : apply(toTimeString, this, []) + ZONE;
    },
    toISOString() {
      if (isInvalid(this)) throw new RangeError("Invalid time value");
      return apply(toISOString, this, []);
    },
    any(values) {
      return apply(then, apply(any, this, [values]), [undefined, named]);
    },
  };
  for (const name of ["toString", "toTimeString", "toISOString"]) replace(Date.prototype, name, methods[name]);

  const { any } = Promise;
  const { then } = Promise.prototype;
  const named = (error) => {
    if (error instanceof AggregateError && error.message === "") replace(error, "message", "All promises were rejected");
    throw error;
  };
  replace(Promise, "any", methods.any);
});
