// Two texts side by side, as `assert` shows them: `native.lineDiff(actual, expected)`.
(function (native) {
  "use strict";

  // Longer texts are shown one after the other: nobody reads such a diff.
  const MOST = 400;
  const CONTEXT = 2;

  /** The last entry of a list has no comma. */
  const isSame = (one, other) => one === other || `${one},` === other || one === `${other},`;

  /** For each pair of beginnings, how many lines they share; from the end. */
  function lengths(first, second) {
    const table = Array.from({ length: first.length + 1 }, () => new Uint16Array(second.length + 1));
    for (let i = first.length - 1; i >= 0; i--) {
      for (let j = second.length - 1; j >= 0; j--) {
        table[i][j] = isSame(first[i], second[j])
          ? table[i + 1][j + 1] + 1
          : Math.max(table[i + 1][j], table[i][j + 1]);
      }
    }
    return table;
  }

  function marked(first, second) {
    const table = lengths(first, second);
    const lines = [];
    let [i, j] = [0, 0];
    while (i < first.length || j < second.length) {
      if (i < first.length && j < second.length && isSame(first[i], second[j])) {
        lines.push(`  ${first[i].length > second[j].length ? first[i] : second[j]}`);
        i += 1;
        j += 1;
      } else if (j >= second.length || (i < first.length && table[i + 1][j] >= table[i][j + 1])) {
        lines.push(`+ ${first[i]}`);
        i += 1;
      } else {
        lines.push(`- ${second[j]}`);
        j += 1;
      }
    }
    return lines;
  }

  /** Long stretches that are the same are left out. */
  function shortened(lines) {
    const isSameLine = (line) => line.startsWith("  ");
    const kept = [];
    for (let at = 0; at < lines.length;) {
      let end = at;
      while (end < lines.length && isSameLine(lines[end])) end += 1;
      const before = at === 0 ? 2 : CONTEXT;
      const after = end === lines.length ? 1 : CONTEXT;
      if (end - at > before + after + 1) {
        kept.push(...lines.slice(at, at + before), "...", ...lines.slice(end - after, end));
      } else {
        kept.push(...lines.slice(at, end));
      }
      if (end < lines.length) kept.push(lines[end]);
      at = end + 1;
    }
    return kept;
  }

  native.lineDiff = (actual, expected) => {
    const [first, second] = [actual.split("\n"), expected.split("\n")];
    if (first.length > MOST || second.length > MOST) {
      const text = [...first.slice(0, MOST).map((line) => `+ ${line}`), ...second.slice(0, MOST).map((line) => `- ${line}`)].join("\n");
      return { text, isCut: true };
    }
    const lines = marked(first, second);
    const kept = shortened(lines);
    return { text: kept.join("\n"), isCut: kept.length < lines.length };
  };
});
