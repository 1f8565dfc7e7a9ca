// The `data` library, lists: grouping, counting, sorting, picking. Also the parts that its other
// files share: reading keys and lists, and errors about other arguments.
(function (native) {
  "use strict";

  const shared = { __proto__: null };
  native.stdlib = shared;

  function describe(value) {
    if (value === null || value === undefined) return `${value}`;
    if (Array.isArray(value)) return "an array";
    return typeof value === "object"
      ? "an object"
      : `${/^[aeiou]/.test(typeof value) ? "an" : "a"} ${typeof value}`;
  }

  /** An array from any list; an object gets advice instead. */
  function listOf(items, where) {
    if (Array.isArray(items)) return items;
    if (typeof items === "object" && items !== null && typeof items[Symbol.iterator] === "function")
      return [...items];
    const advice = describe(items) === "an object" ? " (use Object.values or Object.entries)" : "";
    throw new TypeError(`data.${where}: expected an array, got ${describe(items)}${advice}`);
  }

  function pathParts(path) {
    return path.match(/[^.[\]]+|\[\*?\]/g) ?? [];
  }

  /** Reads a property, or a path like a.b[0].c when there is no property of that name. */
  function readPath(value, path) {
    if (value === null || value === undefined) return undefined;
    if (typeof path !== "string" || Object.hasOwn(Object(value), path) || !/[.[]/.test(path))
      return value[path];
    return pathParts(path).reduce(
      (holder, part) => (holder === null || holder === undefined ? undefined : holder[part]),
      value,
    );
  }

  /** A key is a function, or the name of a property. */
  function keyOf(key, where) {
    if (typeof key === "function") return key;
    if (typeof key === "string" || typeof key === "number" || typeof key === "symbol")
      return (item) => readPath(item, key);
    throw new TypeError(
      `data.${where}: a key must be a function or a property name, got ${describe(key)}`,
    );
  }

  const identity = (item) => item;
  const keyOr = (key, where) => (key === undefined ? identity : keyOf(key, where));

  function numberOf(value, where) {
    const number =
      value instanceof Date ? value.getTime() : typeof value === "bigint" ? Number(value) : value;
    if (typeof number !== "number")
      throw new TypeError(`data.${where}: expected a number, got ${describe(value)}`);
    return number;
  }

  /** A key named __proto__ is a key like any other. */
  function put(object, key, value) {
    Object.defineProperty(object, key, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }

  function groups(items, key, where) {
    const read = keyOf(key, where);
    const found = new Map();
    listOf(items, where).forEach((item, index) => {
      const name = `${read(item, index)}`;
      const group = found.get(name);
      if (group === undefined) found.set(name, [item]);
      else group.push(item);
    });
    return found;
  }

  function objectFrom(map, convert) {
    const result = {};
    for (const [name, value] of map) put(result, name, convert(value));
    return result;
  }

  /** Null, undefined and NaN. */
  function isMissing(value) {
    return value === null || value === undefined || value !== value;
  }

  const RANKS = { number: 0, bigint: 0, boolean: 1, string: 2 };

  /** Numbers, then booleans, then texts, each in their order; dates by time; nothing comes last. */
  function compareValues(a, b) {
    if (a instanceof Date) a = a.getTime();
    if (b instanceof Date) b = b.getTime();
    if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
    const order = (RANKS[typeof a] ?? 3) - (RANKS[typeof b] ?? 3);
    if (order !== 0) return order;
    return a < b ? -1 : a > b ? 1 : 0;
  }

  /** Keys as given: "age", "desc" or ["age", "desc"] or "age", "name". */
  function sortKeys(keys) {
    const orders = [];
    for (const key of keys) {
      if (key === "desc" || key === "asc") {
        if (orders.length === 0) throw new TypeError(`data.sortBy: "${key}" must follow a key`);
        orders.at(-1).sign = key === "desc" ? -1 : 1;
      } else if (Array.isArray(key)) {
        orders.push({ read: keyOf(key[0], "sortBy"), sign: key[1] === "desc" ? -1 : 1 });
      } else {
        orders.push({ read: keyOf(key, "sortBy"), sign: 1 });
      }
    }
    return orders.length === 0 ? [{ read: identity, sign: 1 }] : orders;
  }

  function sorted(items, orders) {
    const rows = items.map((item) => ({ item, values: orders.map(({ read }) => read(item)) }));
    rows.sort((left, right) => {
      for (let i = 0; i < orders.length; i++) {
        const [a, b] = [left.values[i], right.values[i]];
        // Missing values stay at the end in either direction.
        const sign = isMissing(a) || isMissing(b) ? 1 : orders[i].sign;
        const order = compareValues(a, b) * sign;
        if (order !== 0) return order;
      }
      return 0;
    });
    return rows.map(({ item }) => item);
  }

  function extreme(items, key, where, sign) {
    const read = keyOr(key, where);
    let best;
    let bestValue;
    for (const item of listOf(items, where)) {
      const value = read(item);
      if (isMissing(value)) continue;
      if (bestValue === undefined || compareValues(value, bestValue) * sign > 0)
        [best, bestValue] = [item, value];
    }
    return best ?? null;
  }

  function matcher(test, where) {
    if (typeof test === "function") return test;
    if (typeof test === "string") return (item) => Boolean(readPath(item, test));
    if (typeof test !== "object" || test === null) {
      throw new TypeError(
        `data.${where}: a test must be a function, a property name or an object, got ${describe(test)}`,
      );
    }
    return (item) => Object.keys(test).every((name) => readPath(item, name) === test[name]);
  }

  function eachRow(value, where, change) {
    if (typeof value !== "object" || value === null) {
      throw new TypeError(
        `data.${where}: expected an object or an array of them, got ${describe(value)}`,
      );
    }
    return Array.isArray(value) ? value.map(change) : change(value);
  }

  const namesOf = (keys) => new Set(keys.flat().map(String));

  function wholeNumber(value, where, name) {
    if (!Number.isInteger(value) || value < 0)
      throw new RangeError(
        `data.${where}: ${name} must be a whole number, got ${native.inspect(value)}`,
      );
    return value;
  }

  shared.items = {
    filter: (items, test) => listOf(items, "filter").filter(matcher(test, "filter")),
    map: (items, key) => listOf(items, "map").map(keyOf(key, "map")),
    groupBy: (items, key) => objectFrom(groups(items, key, "groupBy"), identity),
    countBy: (items, key) => objectFrom(groups(items, key, "countBy"), (group) => group.length),
    sortBy: (items, ...keys) => sorted(listOf(items, "sortBy"), sortKeys(keys)),
    topK(items, k, key) {
      const orders = [{ read: keyOr(key, "topK"), sign: -1 }];
      return sorted(listOf(items, "topK"), orders).slice(0, wholeNumber(k, "topK", "k"));
    },
    minBy: (items, key) => extreme(items, key, "minBy", -1),
    maxBy: (items, key) => extreme(items, key, "maxBy", 1),
    uniqueBy(items, key) {
      const read = keyOr(key, "uniqueBy");
      const seen = new Set();
      return listOf(items, "uniqueBy").filter((item) => {
        const value = read(item);
        const isNew = !seen.has(value);
        seen.add(value);
        return isNew;
      });
    },
    indexBy: (items, key) => objectFrom(groups(items, key, "indexBy"), (group) => group.at(-1)),
    pick(value, ...keys) {
      const names = namesOf(keys);
      return eachRow(value, "pick", (row) => {
        const result = {};
        for (const name of names) if (Object.hasOwn(row, name)) put(result, name, row[name]);
        return result;
      });
    },
    omit(value, ...keys) {
      const names = namesOf(keys);
      return eachRow(value, "omit", (row) => {
        const result = {};
        for (const name of Object.keys(row)) if (!names.has(name)) put(result, name, row[name]);
        return result;
      });
    },
    chunk(items, size) {
      if (wholeNumber(size, "chunk", "size") === 0)
        throw new RangeError("data.chunk: size must be at least 1");
      const list = listOf(items, "chunk");
      return Array.from({ length: Math.ceil(list.length / size) }, (_, at) =>
        list.slice(at * size, (at + 1) * size),
      );
    },
    flatten: (items, depth = 1) => listOf(items, "flatten").flat(depth),
    partition(items, test) {
      const matches = matcher(test, "partition");
      const halves = [[], []];
      for (const item of listOf(items, "partition")) halves[matches(item) ? 0 : 1].push(item);
      return halves;
    },
    zip(...lists) {
      const columns = lists.map((list) => listOf(list, "zip"));
      const length = columns.reduce((longest, column) => Math.max(longest, column.length), 0);
      return Array.from({ length }, (_, at) => columns.map((column) => column[at]));
    },
  };
  shared.describe = describe;
  shared.listOf = listOf;
  shared.keyOf = keyOf;
  shared.keyOr = keyOr;
  shared.readPath = readPath;
  shared.pathParts = pathParts;
  shared.numberOf = numberOf;
  shared.put = put;
  shared.groups = groups;
  shared.objectFrom = objectFrom;
  shared.compareValues = compareValues;
  shared.isMissing = isMissing;
  shared.wholeNumber = wholeNumber;
});
