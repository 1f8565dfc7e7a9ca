// CLDR's number patterns, such as `#,##0.00 ¤;(#,##0.00 ¤)`: what stands before and after the digits,
// and how digits are grouped. Adds `numberPattern` and `affixed` to `native.intl`.
(function (native) {
  "use strict";

  const known = new Map();

  /** Pieces of an affix: {type, value} of a literal, or {type} of a sign or currency. */
  function affix(text) {
    const types = { "-": "minusSign", "+": "plusSign", "%": "percentSign", "¤": "currency" };
    const pieces = [];
    let literal = "";
    let quoted = false;
    for (const character of text) {
      if (character === "'") quoted = !quoted;
      else if (!quoted && types[character] !== undefined) {
        if (literal !== "") pieces.push({ type: "literal", value: literal });
        literal = "";
        pieces.push({ type: types[character] });
      } else literal += character;
    }
    if (literal !== "") pieces.push({ type: "literal", value: literal });
    return pieces;
  }

  function half(text) {
    const [, before, digits, after] = /^((?:'[^']*'|[^#0'])*)([#0,.]*)(.*)$/.exec(text);
    return { before: affix(before), digits, after: affix(after) };
  }

  /** {before, after, negative: {before, after}, primary, secondary, zeros}; sizes of groups. */
  function numberPattern(text) {
    if (known.has(text)) return known.get(text);
    const [positive, negative] = text.split(/;(?=(?:[^']*'[^']*')*[^']*$)/).map(half);
    const [whole] = positive.digits.split(".");
    const groups = whole.split(",").slice(1);
    const primary = groups.at(-1)?.length;
    const pattern = {
      before: positive.before,
      after: positive.after,
      negative,
      primary,
      secondary: groups.length > 1 ? groups.at(-2).length : primary,
      zeros: positive.digits.length,
    };
    known.set(text, pattern);
    return pattern;
  }

  const hasMinus = (side) =>
    side !== undefined && [...side.before, ...side.after].some(({ type }) => type === "minusSign");

  /** A currency that ends or begins with a letter must not run into the digits. */
  const isApart = (text, at) => text !== "" && !/[\p{S}\p{Z}]/u.test([...text].at(at));

  function spaced(before, after, number) {
    const digitAt = (part) => part !== undefined && (part.type === "integer" || part.type === "fraction");
    const gap = { type: "literal", value: "\u00a0" };
    const last = before.at(-1);
    if (last?.type === "currency" && digitAt(number[0]) && isApart(last.value, -1)) before.push(gap);
    const first = after[0];
    if (first?.type === "currency" && digitAt(number.at(-1)) && isApart(first.value, 0))
      after.unshift(gap);
  }

  /**
   * The parts of a number between those of its pattern. `sign` is "", "-" or "+"; `texts` says what is
   * written for minusSign, plusSign, percentSign and currency, and `compact` for literals.
   */
  function affixed(pattern, sign, number, texts, literal = "literal") {
    const { negative } = pattern;
    const own = sign === "-" ? negative !== undefined : sign === "+" && hasMinus(negative);
    const side = own ? negative : pattern;
    const fill = (pieces) =>
      pieces.flatMap(({ type, value }) => {
        if (type === "literal") return literalParts(value, literal);
        const name = type === "minusSign" && sign === "+" ? "plusSign" : type;
        return [{ type: name, value: texts[name] }];
      });
    const before = fill(side.before);
    const after = fill(side.after);
    spaced(before, after, number);
    if (sign !== "" && !own) {
      const type = sign === "-" ? "minusSign" : "plusSign";
      before.unshift({ type, value: texts[type] });
    }
    return [...before, ...number, ...after];
  }

  /** Words of compact notation, the spaces around them being literals. */
  function literalParts(value, type) {
    if (type === "literal" || /^[\s\u200e\u200f]*$/.test(value)) return [{ type: "literal", value }];
    const [, before, word, after] = /^([\s\u200e\u200f]*)(.*?)([\s\u200e\u200f]*)$/s.exec(value);
    const parts = [];
    if (before !== "") parts.push({ type: "literal", value: before });
    parts.push({ type, value: word });
    if (after !== "") parts.push({ type: "literal", value: after });
    return parts;
  }

  native.intl.numberPattern = numberPattern;
  native.intl.affixed = affixed;
});
