// Turns any value into the text Node's console would print: `native.inspect(value, options)`.
//
// Never throws, runs no guest code but a `Symbol.toStringTag`, `name` or `message` getter and an object's own
// way to print itself (`util.inspect.custom`), and stops once MAX_TEXT is reached, for any value. The kind of a value comes from inspect-kinds.js,
// how it is written from inspect-forms.js, line breaks from inspect-text.js.
(function (native) {
  "use strict";

  const { propertyName, joinEntries, BREAK_LENGTH, COMPACT_LEVELS } = native.layout;
  const { describe, plural, primitive } = native;
  const kinds = native.kinds;
  const { prefixOf } = kinds;
  const { apply, getOwnPropertyDescriptor } = Reflect;
  const symbolToString = Symbol.prototype.toString;
  const CUSTOM = Symbol.for("nodejs.util.inspect.custom");

  const MAX_TEXT = 256 * 1024;
  // `depth: Infinity` must not overflow the stack; no reader needs deeper levels.
  const MAX_DEPTH = 100;
  const MAX_ITEMS = 100;

  class Inspection {
    constructor(options) {
      this.depth = limit(options.depth, 2, MAX_DEPTH);
      this.maxItems = limit(options.maxArrayLength, MAX_ITEMS, MAX_TEXT);
      this.showHidden = options.showHidden === true;
      this.isSorted = options.sorted === true;
      this.breakLength = limit(options.breakLength, BREAK_LENGTH, MAX_TEXT);
      this.compact = levels(options.compact);
      this.left = MAX_TEXT;
      this.indentation = 0;
      this.level = 0;
      this.path = [];
      this.circular = new Map();
    }

    /** Counts a piece of the result, with the comma, the line break and the indentation it brings. */
    spend(text) {
      this.left -= text.length + this.indentation + 4;
      return text;
    }

    value(value, level) {
      if (value === null || (typeof value !== "object" && typeof value !== "function")) {
        return this.spend(primitive(value, this.indentation));
      }
      value = native.unwrapProxy(value);
      if (value === null) return this.spend("<Revoked Proxy>");
      if (this.path.includes(value)) {
        if (!this.circular.has(value)) this.circular.set(value, this.circular.size + 1);
        return this.spend(`[Circular *${this.circular.get(value)}]`);
      }
      const custom = kinds.safely(() => value[CUSTOM], undefined);
      if (typeof custom === "function" && !isPrototype(value)) return this.custom(value, custom, level);
      return this.plain(value, level);
    }

    /** The form in which the object itself wants to be printed: text, or another value. */
    custom(value, custom, level) {
      const { depth, maxItems: maxArrayLength, showHidden, breakLength } = this;
      this.path.push(value);
      const options = { depth: depth - level, maxArrayLength, showHidden, breakLength };
      const made = apply(custom, value, [depth - level, options, native.inspect]);
      this.path.pop();
      if (made === value) return this.plain(value, level);
      if (made !== null && typeof made === "object") return this.value(made, level);
      const lines = `${made}`.slice(0, MAX_TEXT).split("\n");
      return this.spend(lines.join("\n" + " ".repeat(this.indentation)));
    }

    plain(value, level) {
      const form = describe(value, this);
      if (form.text !== undefined) return this.spend(form.text);
      if (level > this.depth) return this.spend(tooDeep(form));
      return this.container(value, form, level);
    }

    container(value, form, level) {
      this.path.push(value);
      this.level = level;
      const entries = form.entries === undefined ? [] : form.entries(this, level + 1);
      if (this.isSorted) form.keys.sort();
      for (let i = 0; i < form.keys.length; i++) {
        if (this.left <= 0) {
          entries.push(`... ${plural(form.keys.length - i, "more propert", "y", "ies")}`);
          break;
        }
        entries.push(this.property(value, form.keys[i], level + 1));
      }
      this.path.pop();
      const reference = this.circular.get(value);
      let base = form.base;
      if (reference !== undefined) base = `<ref *${reference}>${base === "" ? "" : " " + base}`;
      const columns =
        form.close === "]" && entries.length > 6
          ? { hasMore: entries.length > this.maxItems, numeric: allNumbers(value, entries.length) }
          : undefined;
      return joinEntries(entries, {
        base,
        open: form.open,
        close: form.close,
        indentation: this.indentation,
        levelsBelow: this.level - level,
        breakLength: this.breakLength,
        compact: this.compact,
        columns,
      });
    }

    /** A value two columns further in. */
    nested(value, level) {
      this.indentation += 2;
      const text = this.value(value, level);
      this.indentation -= 2;
      return text;
    }

    property(owner, key, level) {
      const descriptor = getOwnPropertyDescriptor(owner, key) ?? {
        value: owner[key],
        enumerable: true,
      };
      let text;
      if (descriptor.get !== undefined) {
        text = descriptor.set === undefined ? "[Getter]" : "[Getter/Setter]";
      } else if (descriptor.set !== undefined) {
        text = "[Setter]";
      } else {
        text = this.nested(descriptor.value, level);
      }
      let name;
      if (typeof key === "symbol") name = `[${apply(symbolToString, key, [])}]`;
      else if (key === "__proto__") name = "['__proto__']";
      else if (!descriptor.enumerable) name = `[${key}]`;
      else name = propertyName(key);
      return this.spend(name) + ": " + text;
    }
  }

  /** Whether this is the prototype of a class, which inherits the way its instances are printed. */
  function isPrototype(value) {
    const made = getOwnPropertyDescriptor(value, "constructor")?.value;
    return typeof made === "function" && kinds.safely(() => made.prototype, undefined) === value;
  }

  function limit(given, otherwise, maximum) {
    if (given === null) return maximum;
    return typeof given === "number" && given >= -1 ? Math.min(given, maximum) : otherwise;
  }

  /** `compact`: how many levels go on one line; false for none, true for all. */
  function levels(given) {
    if (given === false) return 0;
    if (given === true) return MAX_DEPTH;
    return limit(given, COMPACT_LEVELS, MAX_DEPTH);
  }

  function tooDeep(form) {
    const name = prefixOf(form.constructor, form.tag, "Object").slice(0, -1);
    return form.constructor === null ? name : `[${name}]`;
  }

  function allNumbers(value, count) {
    for (let i = 0; i < count; i++) {
      const type = typeof getOwnPropertyDescriptor(value, i)?.value;
      if (type !== "number" && type !== "bigint") return false;
    }
    return true;
  }

  /** Text of a value, at most MAX_TEXT long; options as in Node: depth, showHidden, compact … */
  native.inspect = function inspect(value, options = {}) {
    try {
      return new Inspection(options).value(value, 0);
    } catch (error) {
      return `[this value could not be printed: ${kinds.safely(() => `${error.message}`, "unknown reason")}]`;
    }
  };
  native.maxPrint = MAX_TEXT;
});
