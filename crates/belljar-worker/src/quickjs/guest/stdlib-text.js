// The `data` library, small answers: reading one place of a big value, and cutting a value down to
// a size for a model.
(function (native) {
  "use strict";

  const { readPath, pathParts, put, describe, wholeNumber } = native.stdlib;

  /** The part at a path: a.b[0].c; [*] takes every element of a list. Undefined when there is none. */
  function select(value, path) {
    if (typeof path !== "string")
      throw new TypeError(`data.select: the path must be a string, got ${describe(path)}`);
    if (!/\[\*?\]/.test(path)) return readPath(value, path);
    const walk = (holder, parts) => {
      if (parts.length === 0 || holder === null || holder === undefined) return holder;
      const [part, ...rest] = parts;
      if (part !== "[*]" && part !== "[]") return walk(holder[part], rest);
      return Array.isArray(holder) ? holder.map((item) => walk(item, rest)) : undefined;
    };
    return walk(value, pathParts(path));
  }

  function cutText(text, length) {
    if (text.length <= length) return text;
    const kept = Math.max(0, length);
    return `${text.slice(0, kept)}… (${text.length - kept} more characters)`;
  }

  /** A copy with at most `items` elements a list, `length` characters a text, `depth` levels. */
  function shrink(value, limits, depth) {
    if (typeof value === "string") return cutText(value, limits.length);
    if (typeof value !== "object" || value === null) return value;
    if (typeof value.toJSON === "function") return shrink(value.toJSON(), limits, depth);
    if (depth === 0) return Array.isArray(value) ? `[… ${value.length} items]` : "{…}";
    if (Array.isArray(value)) {
      const kept = value.slice(0, limits.items).map((item) => shrink(item, limits, depth - 1));
      if (value.length > limits.items) kept.push(`… ${value.length - limits.items} more items`);
      return kept;
    }
    const result = {};
    const names = Object.keys(value);
    for (const name of names.slice(0, limits.items))
      put(result, name, shrink(value[name], limits, depth - 1));
    if (names.length > limits.items)
      put(result, "…", `${names.length - limits.items} more properties`);
    return result;
  }

  // From generous to stingy: the first that fits is taken.
  const STEPS = [
    [200, 1000, 8],
    [100, 500, 8],
    [50, 300, 8],
    [25, 200, 7],
    [12, 120, 6],
    [8, 80, 6],
    [5, 60, 5],
    [4, 40, 5],
    [3, 30, 4],
    [2, 30, 4],
    [1, 20, 3],
    [1, 20, 1],
  ];

  /** The value itself when its JSON has at most `maxChars` characters, else a shortened copy. */
  function truncate(value, maxChars = 2000) {
    const limit = wholeNumber(maxChars, "truncate", "maxChars");
    const size = (candidate) => (JSON.stringify(candidate) ?? "").length;
    if (typeof value === "string") {
      if (size(value) <= limit) return value;
      return cutText(value, Math.max(0, limit - `… (${value.length} more characters)`.length - 2));
    }
    if (size(value) <= limit) return value;
    for (const [items, length, depth] of STEPS) {
      const shorter = shrink(value, { items, length }, depth);
      if (size(shorter) <= limit) return shorter;
    }
    return cutText(JSON.stringify(value), Math.max(0, limit - 40));
  }

  native.stdlib.text = { select, truncate };
});
