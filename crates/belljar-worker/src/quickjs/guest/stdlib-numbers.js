// The `data` library, numbers: sums, means, percentiles, histograms and summaries.
(function (native) {
  "use strict";

  const {
    listOf,
    keyOf,
    keyOr,
    numberOf,
    groups,
    objectFrom,
    compareValues,
    isMissing,
    describe,
    put,
  } = native.stdlib;

  const MAX_BINS = 1000;
  const TOP_VALUES = 5;

  const sum = (numbers) => Math.sumPrecise(numbers);
  const mean = (numbers) => (numbers.length === 0 ? null : sum(numbers) / numbers.length);

  /** Numbers of a list, read by a key; what is missing is left out. */
  function numbersOf(items, key, where) {
    const read = keyOr(key, where);
    const numbers = [];
    for (const item of listOf(items, where)) {
      const value = read(item);
      if (!isMissing(value)) numbers.push(numberOf(value, where));
    }
    return numbers;
  }

  /** For the whole list, or for each group when there is a `by`. */
  function perGroup(items, value, by, where, calculate) {
    const read = keyOr(value, where);
    if (by === undefined) return calculate(numbersOf(items, read, where));
    return objectFrom(groups(items, by, where), (group) =>
      calculate(numbersOf(group, read, where)),
    );
  }

  /** Between the two nearest ranks, as spreadsheets do it. */
  function percentileOf(ascending, percent) {
    if (ascending.length === 0) return null;
    const rank = (percent / 100) * (ascending.length - 1);
    const low = Math.floor(rank);
    const high = Math.ceil(rank);
    return ascending[low] + (ascending[high] - ascending[low]) * (rank - low);
  }

  function checkPercent(percent) {
    if (typeof percent !== "number" || !(percent >= 0 && percent <= 100)) {
      throw new RangeError(
        `data.percentile: the percentile must be between 0 and 100, got ${native.inspect(percent)}`,
      );
    }
    return percent;
  }

  const ascendingOrder = (numbers) => Float64Array.from(numbers).sort();

  function deviation(numbers) {
    if (numbers.length < 2) return 0;
    const middle = mean(numbers);
    return Math.sqrt(sum(numbers.map((number) => (number - middle) ** 2)) / (numbers.length - 1));
  }

  function summariseNumbers(numbers) {
    const ascending = ascendingOrder(numbers);
    return {
      count: numbers.length,
      min: ascending[0] ?? null,
      max: ascending.at(-1) ?? null,
      mean: mean(numbers),
      median: percentileOf(ascending, 50),
      p95: percentileOf(ascending, 95),
      sum: sum(numbers),
      stdev: deviation(numbers),
    };
  }

  function typeOf(value) {
    if (value instanceof Date) return "date";
    if (Array.isArray(value)) return "array";
    return typeof value === "bigint" ? "number" : typeof value;
  }

  function topValues(values) {
    const counts = new Map();
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
    const ranked = [...counts].sort((a, b) => b[1] - a[1] || compareValues(a[0], b[0]));
    return {
      distinct: counts.size,
      top: ranked.slice(0, TOP_VALUES).map(([value, count]) => ({ value, count })),
    };
  }

  function summariseColumn(values, total) {
    const present = values.filter((value) => !isMissing(value));
    const types = [...new Set(present.map(typeOf))].sort();
    const column = {
      type: types.length === 0 ? "null" : types.join("|"),
      count: present.length,
      nulls: total - present.length,
    };
    if (types.length !== 1) return column;
    switch (types[0]) {
      case "number": {
        const { count, ...statistics } = summariseNumbers(present.map(Number));
        return { ...column, count, ...statistics };
      }
      case "date": {
        const times = present.map(Number);
        const edge = (pick) => new Date(times.reduce((a, b) => pick(a, b))).toISOString();
        return { ...column, min: edge(Math.min), max: edge(Math.max) };
      }
      case "string":
      case "boolean":
        return { ...column, ...topValues(present) };
      default:
        return column;
    }
  }

  function summariseRows(rows) {
    const names = new Set();
    for (const row of rows) for (const name of Object.keys(row)) names.add(name);
    const columns = {};
    for (const name of names)
      put(
        columns,
        name,
        summariseColumn(
          rows.map((row) => row[name]),
          rows.length,
        ),
      );
    return { count: rows.length, columns };
  }

  function summarise(items, key) {
    const list = listOf(items, "summarise");
    if (key !== undefined) return summariseNumbers(numbersOf(list, key, "summarise"));
    const present = list.filter((item) => !isMissing(item));
    const isRow = (item) => typeof item === "object" && !(item instanceof Date);
    if (present.length > 0 && present.every(isRow)) return summariseRows(present);
    if (present.every((item) => typeof item === "number" || typeof item === "bigint")) {
      return summariseNumbers(present.map(Number));
    }
    const odd = present.find((item) => typeof item !== "number");
    throw new TypeError(
      `data.summarise: expected numbers or rows, got ${describe(odd)} among them`,
    );
  }

  function bounds(numbers, options) {
    const ascending = ascendingOrder(numbers);
    const from = options.min ?? ascending[0] ?? 0;
    const to = options.max ?? ascending.at(-1) ?? 0;
    if (!(to >= from)) throw new RangeError("data.histogram: max is below min");
    return [from, to];
  }

  function histogram(items, options = {}) {
    const { bins = 10, key } = typeof options === "number" ? { bins: options } : options;
    if (!Number.isInteger(bins) || bins < 1 || bins > MAX_BINS) {
      throw new RangeError(
        `data.histogram: bins must be between 1 and ${MAX_BINS}, got ${native.inspect(bins)}`,
      );
    }
    const numbers = numbersOf(items, key, "histogram");
    if (numbers.length === 0) return [];
    const [from, to] = bounds(numbers, options);
    const width = (to - from) / bins || 1;
    const edge = (at) => (at === bins && to > from ? to : from + at * width);
    const result = Array.from({ length: to > from ? bins : 1 }, (_, at) => ({
      from: edge(at),
      to: edge(at + 1),
      count: 0,
    }));
    for (const number of numbers) {
      if (number < from || number > to) continue;
      result[Math.min(Math.floor((number - from) / width), result.length - 1)].count += 1;
    }
    return result;
  }

  native.stdlib.numbers = {
    sumBy: (items, value, by) => perGroup(items, value, by, "sumBy", sum),
    meanBy: (items, value, by) => perGroup(items, value, by, "meanBy", mean),
    percentile: (items, percent, key) =>
      percentileOf(ascendingOrder(numbersOf(items, key, "percentile")), checkPercent(percent)),
    histogram,
    summarise,
  };
  native.stdlib.aggregates = {
    sum,
    mean,
    count: (values) => values.length,
    min: (values) =>
      values.length === 0 ? null : values.reduce((a, b) => (compareValues(a, b) <= 0 ? a : b)),
    max: (values) =>
      values.length === 0 ? null : values.reduce((a, b) => (compareValues(a, b) >= 0 ? a : b)),
    first: (values) => values[0] ?? null,
    last: (values) => values.at(-1) ?? null,
  };
});
