// How printed values look as text: quoting, widths, columns and line breaks, the way Node lays
// them out, because agents know that shape by heart. Knows nothing about kinds of values (that is
// inspect.js). Offers `native.layout` to inspect.js and console.js.
(function (native) {
  "use strict";

  const BREAK_LENGTH = 80;
  // Containers nested this deep below one another may still share a line.
  const COMPACT_LEVELS = 3;
  const MAX_COLUMNS = 15;
  const MAX_STRING = 10000;

  const NEEDS_ESCAPE = /[\x00-\x1f'\\\x7f-\x9f]|\p{Surrogate}/u;
  const NAMED_ESCAPES = {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    "\\": "\\\\",
  };
  const IDENTIFIER = /^[a-zA-Z_][a-zA-Z_0-9]*$/;
  const ASCII_ONLY = /^[\x20-\x7e]*$/;
  // Characters two columns wide, by code point; taken apart when the first one is met.
  const WIDE =
    "1100-115f 231a-231b 23e9-23ec 2614-2615 26aa-26ab 26bd-26be 2705 270a-270b 2728 274c " +
    "2753-2755 2757 2795-2797 2b1b-2b1c 2b50 2e80-303e 3041-33ff 3400-4dbf 4e00-9fff " +
    "a000-a4cf a960-a97f ac00-d7a3 f900-faff fe10-fe19 fe30-fe6f ff01-ff60 ffe0-ffe6 1f18e " +
    "1f191-1f19a 1f200-1f320 1f32d-1f335 1f337-1f37c 1f37e-1f393 1f3a0-1f3ca 1f3cf-1f3d3 " +
    "1f3e0-1f3f0 1f3f4 1f3f8-1f43e 1f440 1f442-1f4fc 1f4ff-1f53d 1f54b-1f567 1f5fb-1f64f " +
    "1f680-1f6c5 1f6cc 1f6d0-1f6d2 1f6eb-1f6ec 1f6f4-1f6fc 1f7e0-1f7eb 1f90c-1f9ff " +
    "1fa70-1faff 20000-3fffd";

  function escapeCharacter(character) {
    const named = NAMED_ESCAPES[character];
    if (named !== undefined) return named;
    const code = character.charCodeAt(0);
    if (code >= 0x20 && code < 0x7f) return character;
    const hex = code.toString(16);
    return code < 0x100 ? "\\x" + hex.toUpperCase().padStart(2, "0") : "\\u" + hex;
  }

  /** A string literal, in the quotes that need the fewest escapes. */
  function quote(text) {
    if (!NEEDS_ESCAPE.test(text)) return "'" + text + "'";
    let mark = "'";
    if (text.includes("'")) {
      if (!text.includes('"')) mark = '"';
      else if (!text.includes("`") && !text.includes("${")) mark = "`";
    }
    let body = text.replace(/[\x00-\x1f\\\x7f-\x9f]|\p{Surrogate}/gu, escapeCharacter);
    if (mark === "'") body = body.replace(/'/g, "\\'");
    return mark + body + mark;
  }

  /** A string as a nested value: quoted, split at its own line ends when it is long. */
  function quoteNested(text, indentation) {
    let trailer = "";
    if (text.length > MAX_STRING) {
      const rest = text.length - MAX_STRING;
      text = text.slice(0, MAX_STRING);
      trailer = `... ${rest} more character${rest > 1 ? "s" : ""}`;
    }
    if (text.length > 16 && text.length > BREAK_LENGTH - indentation - 4) {
      const lines = text.match(/[^\n]*\n|[^\n]+$/g);
      if (lines !== null && lines.length > 1) {
        return lines.map(quote).join(" +\n" + " ".repeat(indentation + 2)) + trailer;
      }
    }
    return quote(text) + trailer;
  }

  function propertyName(key) {
    return IDENTIFIER.test(key) ? key : quote(key);
  }

  let wideRanges;
  let zeroWidth;

  function isWide(code) {
    wideRanges ??= WIDE.split(" ").map((range) =>
      range.split("-").map((edge) => parseInt(edge, 16)),
    );
    let low = 0;
    let high = wideRanges.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const [first, last = first] = wideRanges[middle];
      if (code < first) high = middle - 1;
      else if (code > last) low = middle + 1;
      else return true;
    }
    return false;
  }

  /** Columns a text takes on a terminal with a monospaced font. */
  function width(text) {
    if (ASCII_ONLY.test(text)) return text.length;
    zeroWidth ??= new RegExp("^[\\p{Mn}\\p{Me}\\p{Cf}\\p{Cc}]$", "u");
    let columns = 0;
    for (const character of text.normalize("NFC")) {
      const code = character.codePointAt(0);
      if (isWide(code)) columns += 2;
      else if (!zeroWidth.test(character)) columns += 1;
    }
    return columns;
  }

  /** How many columns make a long list roughly 2.5 times as wide as high. */
  function columnCount(shape, indentation) {
    const cell = shape.longest + 2;
    const bias = Math.sqrt(cell - shape.total / shape.entries);
    const typical = Math.max(cell - 3 - bias, 1);
    return Math.min(
      Math.round(Math.sqrt(2.5 * typical * shape.count) / typical),
      Math.floor((BREAK_LENGTH - indentation) / cell),
      COMPACT_LEVELS * 4,
      MAX_COLUMNS,
    );
  }

  /** Puts the entries of a long array side by side in aligned columns. */
  function groupInColumns(entries, hasMoreEntry, indentation, numeric) {
    const count = entries.length - (hasMoreEntry ? 1 : 0);
    const widths = [];
    let total = 0;
    let longest = 0;
    for (let i = 0; i < count; i++) {
      widths[i] = width(entries[i]);
      total += widths[i] + 2;
      if (widths[i] > longest) longest = widths[i];
    }
    const cell = longest + 2;
    const worthIt = cell * 3 + indentation < BREAK_LENGTH && (total / cell > 5 || longest <= 6);
    if (!worthIt) return entries;
    const columns = columnCount({ longest, total, count, entries: entries.length }, indentation);
    if (columns <= 1) return entries;
    const rows = alignColumns(entries, widths, columns, numeric);
    if (hasMoreEntry) rows.push(entries[count]);
    return rows;
  }

  function alignColumns(entries, widths, columns, numeric) {
    const columnWidths = [];
    for (let i = 0; i < columns; i++) {
      let widest = 0;
      for (let j = i; j < widths.length; j += columns) if (widths[j] > widest) widest = widths[j];
      columnWidths[i] = widest + 2;
    }
    const rows = [];
    for (let i = 0; i < widths.length; i += columns) {
      const last = Math.min(i + columns, widths.length) - 1;
      let row = "";
      for (let j = i; j < last; j++) {
        const padding = " ".repeat(columnWidths[j - i] - widths[j] - 2);
        row += numeric ? padding + entries[j] + ", " : entries[j] + ", " + padding;
      }
      const padding = numeric ? " ".repeat(columnWidths[last - i] - widths[last] - 2) : "";
      rows.push(row + padding + entries[last]);
    }
    return rows;
  }

  function fitsOneLine(entries, start, base, breakLength) {
    let total = entries.length + start;
    if (total + entries.length > breakLength) return false;
    for (const entry of entries) {
      total += entry.length;
      if (total > breakLength) return false;
    }
    return base === "" || !base.includes("\n");
  }

  /**
   * Joins the formatted entries of one container.
   *
   * `shape`: base (text before the brace), open, close, indentation, levelsBelow (how deep the
   * last formatted descendant lies), `breakLength`, `compact` (how many levels go on one line), and
   * for arrays `columns: {hasMore, numeric}`.
   */
  function joinEntries(entries, shape) {
    const { base, open, close, indentation, breakLength, compact } = shape;
    const lead = base === "" ? "" : base + " ";
    let rows = entries;
    if (shape.columns !== undefined && entries.length > 6 && compact > 0) {
      rows = groupInColumns(entries, shape.columns.hasMore, indentation, shape.columns.numeric);
    }
    if (shape.levelsBelow < compact && rows.length === entries.length) {
      const start = rows.length + indentation + open.length + base.length + 10;
      if (fitsOneLine(rows, start, base, breakLength)) {
        const joined = rows.join(", ");
        if (!joined.includes("\n")) return lead + open + " " + joined + " " + close;
      }
    }
    const lineBreak = "\n" + " ".repeat(indentation);
    return lead + open + lineBreak + "  " + rows.join("," + lineBreak + "  ") + lineBreak + close;
  }

  native.layout = { BREAK_LENGTH, COMPACT_LEVELS, quote, quoteNested, propertyName, width, joinEntries };
});
