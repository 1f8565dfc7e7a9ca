// The `data` library, tables: rows are plain objects. Joining, pivoting, CSV in and out, and a
// table as text.
(function (native) {
  "use strict";

  const { listOf, keyOf, put, describe, isMissing, wholeNumber } = native.stdlib;

  /** "id", ["userId", "id"] or a function, for the left and the right side. */
  function joinKeys(on) {
    const [left, right = left] = Array.isArray(on) ? on : [on];
    return [
      keyOf(left, "join"),
      keyOf(right, "join"),
      typeof right === "string" ? right : undefined,
    ];
  }

  /** The left row with the right row's columns; a name both have gets "_right". */
  function mergeRows(left, right, columns, rightKey) {
    const row = { ...left };
    for (const name of columns) {
      if (name === rightKey && Object.hasOwn(left, name)) continue;
      put(
        row,
        Object.hasOwn(left, name) ? `${name}_right` : name,
        right === undefined ? null : (right[name] ?? null),
      );
    }
    return row;
  }

  function columnNames(rows) {
    const names = new Set();
    for (const row of rows) for (const name of Object.keys(row)) names.add(name);
    return [...names];
  }

  function join(left, right, on, how = "inner") {
    if (how !== "inner" && how !== "left")
      throw new RangeError(`data.join: expected "inner" or "left", got ${native.inspect(how)}`);
    const [leftKey, rightKey, rightName] = joinKeys(on);
    const rightRows = listOf(right, "join");
    const columns = columnNames(rightRows);
    const matches = new Map();
    for (const row of rightRows) {
      const key = rightKey(row);
      if (matches.has(key)) matches.get(key).push(row);
      else matches.set(key, [row]);
    }
    const result = [];
    for (const row of listOf(left, "join")) {
      const found = matches.get(leftKey(row)) ?? (how === "left" ? [undefined] : []);
      for (const match of found) result.push(mergeRows(row, match, columns, rightName));
    }
    return result;
  }

  function aggregateOf(aggregate) {
    if (typeof aggregate === "function") return aggregate;
    const known = native.stdlib.aggregates;
    if (!Object.hasOwn(known, aggregate)) {
      throw new RangeError(
        `data.pivot: unknown aggregate ${native.inspect(aggregate)}, use ${Object.keys(known).join(", ")} or a function`,
      );
    }
    return known[aggregate];
  }

  /** One row for each value of `row`, one column for each value of `column`. */
  function pivot(items, row, column, value, aggregate = "sum") {
    const [readRow, readColumn, readValue] = [
      keyOf(row, "pivot"),
      keyOf(column, "pivot"),
      keyOf(value, "pivot"),
    ];
    const calculate = aggregateOf(aggregate);
    const cells = new Map();
    const columns = new Set();
    for (const item of listOf(items, "pivot")) {
      const name = readRow(item);
      if (!cells.has(name)) cells.set(name, new Map());
      const cell = `${readColumn(item)}`;
      columns.add(cell);
      const values = cells.get(name).get(cell) ?? [];
      const found = readValue(item);
      if (!isMissing(found)) values.push(found);
      cells.get(name).set(cell, values);
    }
    const rowName = typeof row === "string" ? row : "row";
    const empty = aggregate === "sum" || aggregate === "count" ? 0 : null;
    return [...cells].map(([name, line]) => {
      const result = {};
      put(result, rowName, name);
      for (const cell of columns)
        put(result, cell, line.has(cell) ? calculate(line.get(cell)) : empty);
      return result;
    });
  }

  const NUMBER = /^-?(?:0|[1-9]\d{0,14})(?:\.\d+)?(?:e[+-]?\d+)?$/i;

  /** Numbers and booleans as such, nothing as null; codes like 007 stay text. */
  function typed(text) {
    if (text === "") return null;
    if (text === "true" || text === "false") return text === "true";
    return NUMBER.test(text) ? Number(text) : text;
  }

  /** Cells of one CSV text, by RFC 4180; also tells which cells were quoted, they stay text. */
  function cellsOf(text, delimiter) {
    const rows = [];
    let row = [];
    let at = 0;
    while (at <= text.length) {
      let cell = "";
      const quoted = text[at] === '"';
      if (quoted) {
        const parts = quotedCell(text, at);
        cell = parts.value;
        at = parts.end;
      }
      let end = at;
      while (
        end < text.length &&
        text[end] !== delimiter &&
        text[end] !== "\n" &&
        text[end] !== "\r"
      )
        end += 1;
      row.push({ text: cell + text.slice(at, end), quoted });
      at = end + 1;
      if (text[end] === delimiter) continue;
      if (text[end] === "\r" && text[end + 1] === "\n") at += 1;
      rows.push(row);
      row = [];
      if (at >= text.length) break;
    }
    return rows;
  }

  function quotedCell(text, start) {
    let value = "";
    let from = start + 1;
    for (;;) {
      const end = text.indexOf('"', from);
      if (end === -1)
        throw new SyntaxError(`data.parseCsv: the quote at character ${start} is not closed`);
      value += text.slice(from, end);
      if (text[end + 1] !== '"') return { value, end: end + 1 };
      value += '"';
      from = end + 2;
    }
  }

  function parseCsv(source, options = {}) {
    if (typeof source !== "string")
      throw new TypeError(`data.parseCsv: expected a string, got ${describe(source)}`);
    const { delimiter = ",", header = true, types = true } = options;
    const text = source.startsWith("\ufeff") ? source.slice(1) : source;
    if (text === "") return [];
    const rows = cellsOf(text, delimiter).filter((row) => row.length > 1 || row[0].text !== "");
    const convert = (cell) => (types && !cell.quoted ? typed(cell.text.trim()) : cell.text);
    if (header === false) return rows.map((row) => row.map(convert));
    const names = Array.isArray(header)
      ? header
      : (rows.shift() ?? []).map((cell) => cell.text.trim());
    return rows.map((row) => {
      const result = {};
      names.forEach((name, at) => put(result, name, at < row.length ? convert(row[at]) : null));
      return result;
    });
  }

  function cellText(value) {
    if (isMissing(value)) return "";
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "" : value.toISOString();
    return typeof value === "object" ? JSON.stringify(value) : `${value}`;
  }

  function toCsv(items, options = {}) {
    const rows = listOf(items, "toCsv");
    const { delimiter = ",", columns = columnNames(rows) } = options;
    const escape = (text) =>
      /["\r\n]/.test(text) || text.includes(delimiter) ? `"${text.replaceAll('"', '""')}"` : text;
    const line = (values) => values.map((value) => escape(cellText(value))).join(delimiter);
    return [line(columns), ...rows.map((row) => line(columns.map((name) => row[name])))].join("\n");
  }

  /** Rows as aligned text, numbers to the right; at most `maxRows` rows of `maxWidth` wide cells. */
  function table(items, options = {}) {
    const all = listOf(items, "table");
    const maxRows = wholeNumber(options.maxRows ?? 50, "table", "maxRows");
    const maxWidth = wholeNumber(options.maxWidth ?? 40, "table", "maxWidth");
    const rows = all.slice(0, maxRows);
    const { columns = columnNames(rows) } = options;
    const short = (text) =>
      text.length > maxWidth ? `${text.slice(0, Math.max(0, maxWidth - 1))}…` : text;
    const cells = columns.map((name) => [
      name,
      ...rows.map((row) => short(cellText(row[name]).replace(/\s+/g, " "))),
    ]);
    const numeric = columns.map((name) =>
      rows.every((row) => isMissing(row[name]) || typeof row[name] === "number"),
    );
    const widths = cells.map((column) =>
      column.reduce((widest, text) => Math.max(widest, native.layout.width(text)), 0),
    );
    const pad = (text, at) => {
      const space = " ".repeat(Math.max(0, widths[at] - native.layout.width(text)));
      return numeric[at] ? space + text : text + space;
    };
    const line = (row) =>
      columns
        .map((_, at) => pad(cells[at][row], at))
        .join("  ")
        .trimEnd();
    const lines = [line(0), widths.map((width) => "-".repeat(width)).join("  ")];
    for (let row = 1; row <= rows.length; row++) lines.push(line(row));
    if (all.length > rows.length) lines.push(`... ${all.length - rows.length} more rows`);
    return lines.join("\n");
  }

  native.stdlib.tables = { join, pivot, parseCsv, toCsv, table };
});
