// The box that console.table draws: `native.tableText(data, columns)`. No reader needs more rows
// than MAX_ROWS, so no more are drawn.
(function (native) {
  "use strict";

  const { inspect, kinds, layout } = native;
  const MAX_ROWS = 1000;

  function draw(columns) {
    const widths = columns.map((column) => Math.max(...column.map(layout.width)) + 2);
    const bar = (left, middle, right) =>
      left + widths.map((width) => "─".repeat(width)).join(middle) + right;
    const cell = (text, width) => " " + text + " ".repeat(width - layout.width(text) - 1);
    const row = (at) => `│${columns.map((column, i) => cell(column[at], widths[i])).join("│")}│`;
    const lines = [bar("┌", "┬", "┐"), row(0), bar("├", "┼", "┤")];
    for (let at = 1; at < columns[0].length; at++) lines.push(row(at));
    lines.push(bar("└", "┴", "┘"));
    return lines.join("\n");
  }

  /** The name of the index column, and for each row its index and what it holds. */
  function rowsOf(data) {
    const kind = kinds.kindOf(data);
    const numbered = (items, row) => items.map((item, at) => [`${at}`, row(item)]);
    if (kind === "Map") {
      const pairs = kinds.mapItems(data, MAX_ROWS);
      return ["(iteration index)", numbered(pairs, ([Key, Values]) => ({ Key, Values }))];
    }
    if (kind === "Set") {
      return [
        "(iteration index)",
        numbered(kinds.setItems(data, MAX_ROWS), (Values) => ({ Values })),
      ];
    }
    const names = Object.keys(data).slice(0, MAX_ROWS);
    return ["(index)", names.map((name) => [name, data[name]])];
  }

  const isObject = (value) => typeof value === "object" && value !== null;

  /** Objects with more than two properties would not fit a cell. */
  function cellText(value) {
    const large = isObject(value) && !Array.isArray(value) && Object.keys(value).length > 2;
    return inspect(value, { depth: large ? -1 : 0, maxArrayLength: 3 }).replace(/\s*\n\s*/g, " ");
  }

  native.tableText = function tableText(data, wanted) {
    const [index, rows] = rowsOf(data);
    const columns = new Map();
    const indices = [index];
    const primitives = ["Values"];
    for (const [name, row] of rows) {
      const at = indices.push(name) - 1;
      if (!isObject(row) && typeof row !== "function") {
        primitives[at] = cellText(row);
        continue;
      }
      for (const key of wanted ?? Object.keys(row)) {
        if (!columns.has(key)) columns.set(key, [key]);
        if (Object.hasOwn(row, key)) columns.get(key)[at] = cellText(row[key]);
      }
    }
    const all = [indices, ...columns.values()];
    if (primitives.length > 1) all.push(primitives);
    return draw(all.map((column) => Array.from(indices, (_, at) => column[at] ?? "")));
  };
});
