// Errors about arguments, in Node's words and with Node's codes: `native.invalid`.
(function (native) {
  "use strict";

  const { inspect } = native;

  function coded(error, code) {
    error.code = code;
    return error;
  }

  function received(value) {
    if (value === null || value === undefined) return `Received ${value}`;
    if (typeof value === "function") return `Received function ${value.name}`;
    if (typeof value === "object") {
      const name = value.constructor?.name;
      return name ? `Received an instance of ${name}` : `Received ${inspect(value)}`;
    }
    return `Received type ${typeof value} (${inspect(value).slice(0, 28)})`;
  }

  native.invalid = {
    __proto__: null,
    coded,
    type: (name, expected, value) => coded(
      new TypeError(`The ${name.endsWith(" argument") ? name : `"${name}" argument`} must be ${expected}. ${received(value)}`),
      "ERR_INVALID_ARG_TYPE",
    ),
    value: (name, reason, value) => coded(
      new TypeError(`The argument '${name}' ${reason}. Received ${inspect(value)}`),
      "ERR_INVALID_ARG_VALUE",
    ),
    range: (name, expected, value) => coded(
      new RangeError(`The value of "${name}" is out of range. It must be ${expected}. Received ${inspect(value)}`),
      "ERR_OUT_OF_RANGE",
    ),
    plain: (code, message) => coded(new Error(message), code),
  };
});
