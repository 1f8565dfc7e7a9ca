// Text of a whole print: `native.format(args)` does what console.log does with its arguments,
// `%s %d %i %f %j %o %O %c %%` included, and `native.cut` bounds what is printed. Never throws.
(function (native) {
  "use strict";

  const { inspect, maxPrint, kinds } = native;
  const { getPrototypeOf } = Reflect;

  /** At most `maxPrint` characters, and a note when something is missing. */
  function cut(text) {
    if (text.length <= maxPrint) return text;
    return `${text.slice(0, maxPrint)}\n... [cut here: ${text.length - maxPrint} more characters]`;
  }

  /** Whether printing with %s should ask the value itself how it reads. */
  function hasOwnText(value) {
    if (typeof value === "function") return true;
    let holder = value;
    for (let step = 0; holder !== null && step < 64; step++) {
      if (Object.hasOwn(holder, "toString")) return !BUILT_IN.has(holder);
      holder = getPrototypeOf(holder);
    }
    return false;
  }

  const BUILT_IN = new Set([
    Object.prototype,
    Array.prototype,
    Function.prototype,
    Date.prototype,
    RegExp.prototype,
    Error.prototype,
    Symbol.prototype,
    Number.prototype,
    String.prototype,
    Boolean.prototype,
    BigInt.prototype,
    getPrototypeOf(Uint8Array.prototype),
  ]);

  function number(convert, value) {
    if (typeof value === "bigint") return `${value}n`;
    if (typeof value === "symbol") return "NaN";
    const result = convert(value);
    return Object.is(result, -0) ? "-0" : `${result}`;
  }

  const FORMATS = {
    s(value) {
      if (typeof value === "string") return value;
      if (typeof value === "function" || (typeof value === "object" && value !== null)) {
        const target = native.unwrapProxy(value);
        const own = target !== null && kinds.safely(() => hasOwnText(target), false);
        return own ? `${value}` : inspect(value, { depth: 0 });
      }
      return inspect(value);
    },
    d: (value) => number(Number, value),
    i: (value) => number(parseInt, value),
    f: (value) => (typeof value === "symbol" ? "NaN" : `${parseFloat(value)}`),
    j(value) {
      try {
        return `${JSON.stringify(value)}`;
      } catch (error) {
        if (/circular/.test(error?.message)) return "[Circular]";
        throw error;
      }
    },
    o: (value) => inspect(value, { showHidden: true, depth: 4 }),
    O: (value) => inspect(value),
    c: () => "",
  };

  function fillIn(template, values) {
    let used = 0;
    const text = template.replace(/%([sdifjoOc%])/g, (whole, letter) => {
      if (letter === "%") return "%";
      if (used >= values.length) return whole;
      const value = values[used];
      used += 1;
      // A value that throws when it is converted spoils its own place only.
      return kinds.safely(() => FORMATS[letter](value), "[could not be converted]");
    });
    return [text, values.slice(used)];
  }

  function format(args) {
    let parts = [];
    let rest = args;
    if (typeof args[0] === "string" && args.length > 1) {
      const [text, unused] = fillIn(args[0], args.slice(1));
      parts = [text];
      rest = unused;
    }
    let length = 0;
    for (const value of rest) {
      const text = typeof value === "string" ? value : inspect(value);
      parts.push(text);
      length += text.length + 1;
      if (length > maxPrint) break;
    }
    return parts.join(" ");
  }

  native.cut = cut;
  native.format = format;
});
