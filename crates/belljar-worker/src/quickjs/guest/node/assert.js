// Node's `assert` and `assert/strict`.
(function (native) {
  "use strict";

  native.need("node/invalid", "node/deep-equal", "node/line-diff");
  const { invalid, deepEqual, inspect } = native;
  const { is } = Object;
  const { defineProperty } = Reflect;

  const SENTENCES = {
    __proto__: null,
    strictEqual: "Expected values to be strictly equal:",
    deepStrictEqual: "Expected values to be strictly deep-equal:",
    deepEqual: "Expected values to be loosely deep-equal:",
    notStrictEqual: 'Expected "actual" to be strictly unequal to:',
    notDeepStrictEqual: 'Expected "actual" not to be strictly deep-equal to:',
    notDeepEqual: 'Expected "actual" not to be loosely deep-equal to:',
  };
  // Two values of so many characters are shown side by side; of so many, with a mark where they part.
  const SHORT = 12;
  const MARKED = 80;

  const shown = (value) => inspect(value, { depth: 1000, maxArrayLength: Infinity, compact: false, sorted: true });

  const isPlain = (value) => typeof value !== "function" && (typeof value !== "object" || value === null);

  /** The difference between two values that should be strictly or deeply equal. */
  function difference(operator, sentence, [actual, expected], [first, second]) {
    const isShort = !first.includes("\n") && !second.includes("\n") && first !== second;
    const length = first.length + second.length;
    if (isShort && length <= SHORT && isPlain(actual) && isPlain(expected)) return `${sentence}\n\n${first} !== ${second}\n`;
    if (operator === "strictEqual" && first === second && !isPlain(actual)) {
      return `Values have same structure but are not reference-equal:\n\n${first}\n`;
    }
    let mark = "";
    if (isShort && isPlain(actual) && length < MARKED) {
      let at = 0;
      while (first[at] === second[at]) at += 1;
      if (at > 2) mark = `\n  ${" ".repeat(at)}^`;
    }
    const { text, isCut } = native.lineDiff(first, second);
    return `${sentence}\n+ actual - expected${isCut ? " ... Lines skipped" : ""}\n\n${text}${mark}`;
  }

  function describe(operator, actual, expected, message) {
    const [first, second] = [shown(actual), shown(expected)];
    if (operator === "equal" || operator === "==") return `${first} == ${second}`;
    if (operator === "notEqual" || operator === "!=") return `${first} != ${second}`;
    const sentence = message ?? SENTENCES[operator];
    if (sentence === undefined) return "Failed";
    if (operator.startsWith("not")) {
      return first.includes("\n") ? `${sentence}\n\n${first}\n` : `${sentence} ${first}`;
    }
    if (operator === "deepEqual") return `${sentence}\n\n${first}\n\nshould loosely deep-equal\n\n${second}`;
    return difference(operator, sentence, [actual, expected], [first, second]);
  }

  class AssertionError extends Error {
    constructor(options) {
      if (typeof options !== "object" || options === null) throw invalid.type("options", "of type object", options);
      const { message, operator, actual, expected } = options;
      const isCompared = operator === "strictEqual" || operator === "deepStrictEqual";
      super(message === undefined || isCompared ? describe(operator, actual, expected, message) : String(message));
      this.generatedMessage = message === undefined;
      this.code = "ERR_ASSERTION";
      this.actual = actual;
      this.expected = expected;
      this.operator = operator;
    }

    toString() {
      return `${this.name} [${this.code}]: ${this.message}`;
    }
  }
  defineProperty(AssertionError.prototype, "name", { value: "AssertionError", writable: true, configurable: true });

  function fail(operator, actual, expected, message) {
    if (message instanceof Error) throw message;
    throw new AssertionError({ operator, actual, expected, message });
  }

  function needArguments(given, least) {
    if (given >= least) return;
    throw invalid.coded(new TypeError('The "actual" and "expected" arguments must be specified'), "ERR_MISSING_ARGS");
  }

  function ok(...given) {
    const [value, message] = given;
    if (value) return;
    if (message instanceof Error) throw message;
    const missing = "No value argument passed to `assert.ok()`";
    const text = message ?? (given.length === 0 ? missing : "The expression evaluated to a falsy value");
    const error = new AssertionError({ operator: "==", actual: value, expected: true, message: text });
    error.generatedMessage = message === undefined;
    throw error;
  }

  // eslint-disable-next-line eqeqeq
  const looselyEqual = (a, b) => a == b || (a !== a && b !== b);
  const comparisons = {
    equal: looselyEqual,
    notEqual: (a, b) => !looselyEqual(a, b),
    strictEqual: is,
    notStrictEqual: (a, b) => !is(a, b),
    deepEqual: (a, b) => deepEqual(a, b, false),
    notDeepEqual: (a, b) => !deepEqual(a, b, false),
    deepStrictEqual: (a, b) => deepEqual(a, b, true),
    notDeepStrictEqual: (a, b) => !deepEqual(a, b, true),
  };
  const OPERATORS = { __proto__: null, equal: "==", notEqual: "!=" };
  const methods = {};
  for (const name of Object.keys(comparisons)) {
    const holds = comparisons[name];
    methods[name] = { [name](...given) {
      const [actual, expected, message] = given;
      needArguments(given.length, 2);
      if (!holds(actual, expected)) fail(OPERATORS[name] ?? name, actual, expected, message);
    } }[name];
  }

  /** Whether an error is what was expected: a class, a pattern, a test, or an object to compare with. */
  function checkError(error, expected, message, operator) {
    if (expected === undefined) return;
    if (expected instanceof RegExp) {
      if (expected.test(String(error))) return;
      const text = `The input did not match the regular expression ${inspect(expected)}. Input:\n\n${inspect(String(error))}\n`;
      fail(operator, error, expected, message ?? text);
    }
    if (typeof expected === "function") {
      if (expected.prototype !== undefined && error instanceof expected) return;
      if (Error.isPrototypeOf(expected)  || expected === Error) {
        fail(operator, error, expected, message ?? `The error is expected to be an instance of "${expected.name}". Received "${error?.constructor?.name ?? inspect(error)}"\n\nError message:\n\n${error?.message}`);
      }
      if (expected.call({}, error) === true) return;
      const name = expected.name === "" ? "" : `"${expected.name}" `;
      fail(operator, error, expected, message ?? `The ${name}validation function is expected to return "true". Received false\n\nCaught error:\n\n${inspect(error)}`);
    }
    const names = Object.keys(expected);
    if (expected instanceof Error) names.push("name", "message");
    for (const key of names) {
      const isPattern = expected[key] instanceof RegExp && typeof error?.[key] === "string";
      if (isPattern ? expected[key].test(error[key]) : deepEqual(error?.[key], expected[key], true)) continue;
      const [first, second] = [{}, {}];
      for (const name of names) [first[name], second[name]] = [error?.[name], expected[name]];
      fail(operator, error, expected, message ?? describe("deepStrictEqual", first, second));
    }
  }

  /** `expected` may be left out and the message given in its place. */
  function expectation(expected, message) {
    return typeof expected === "string" ? [undefined, expected] : [expected, message];
  }

  const missing = (what, expected, message) => {
    const name = typeof expected === "function" && expected.name ? ` (${expected.name})` : "";
    return `Missing expected ${what}${name}${message ? `: ${message}` : "."}`;
  };

  function throws(action, expected, message) {
    if (typeof action !== "function") throw invalid.type("fn", "of type function", action);
    const [wanted, text] = expectation(expected, message);
    let error;
    try {
      action();
    } catch (caught) {
      return checkError(caught, wanted, text, "throws");
    }
    return fail("throws", error, wanted, text instanceof Error ? text : missing("exception", wanted, text));
  }

  async function rejects(action, expected, message) {
    const [wanted, text] = expectation(expected, message);
    const promise = typeof action === "function" ? action() : action;
    if (typeof promise?.then !== "function") throw invalid.type("promiseFn", "of type function or an instance of Promise", action);
    try {
      await promise;
    } catch (caught) {
      return checkError(caught, wanted, text, "rejects");
    }
    return fail("rejects", undefined, wanted, text instanceof Error ? text : missing("rejection", wanted, text));
  }

  function unwanted(what, operator, error, expected, message) {
    const [, text] = expectation(expected, message);
    fail(operator, error, undefined, `Got unwanted ${what}${text ? `: ${text}` : "."}\nActual message: "${error?.message}"`);
  }

  function doesNotThrow(action, expected, message) {
    if (typeof action !== "function") throw invalid.type("fn", "of type function", action);
    try {
      action();
    } catch (error) {
      unwanted("exception", "doesNotThrow", error, expected, message);
    }
  }

  async function doesNotReject(action, expected, message) {
    try {
      await (typeof action === "function" ? action() : action);
    } catch (error) {
      unwanted("rejection", "doesNotReject", error, expected, message);
    }
  }

  const matching = (name, wanted) => ({ [name](text, pattern, message) {
    if (!(pattern instanceof RegExp)) throw invalid.type("regexp", "an instance of RegExp", pattern);
    if (typeof text === "string" && pattern.test(text) === wanted) return;
    const sentence = wanted ? "The input did not match the regular expression" : "The input was expected to not match the regular expression";
    fail(name, text, pattern, message ?? `${sentence} ${inspect(pattern)}. Input:\n\n${inspect(text)}\n`);
  } })[name];

  function ifError(value) {
    if (value === null || value === undefined) return;
    fail("ifError", value, null, `ifError got unwanted exception: ${value?.message ?? inspect(value)}`);
  }

  const others = {
    ok, throws, rejects, doesNotThrow, doesNotReject, ifError, AssertionError,
    match: matching("match", true),
    doesNotMatch: matching("doesNotMatch", false),
    fail: function (message) {
      fail("fail", undefined, undefined, message ?? "Failed");
    },
  };

  const assert = Object.assign((...given) => ok(...given), methods, others);
  defineProperty(assert, "name", { value: "assert", configurable: true });
  const strict = Object.assign((...given) => ok(...given), methods, others, {
    equal: methods.strictEqual,
    notEqual: methods.notStrictEqual,
    deepEqual: methods.deepStrictEqual,
    notDeepEqual: methods.notDeepStrictEqual,
  });
  defineProperty(strict, "name", { value: "strict", configurable: true });
  strict.strict = strict;
  assert.strict = strict;
  native.offer("assert", assert);
  native.offer("assert/strict", strict);
});
