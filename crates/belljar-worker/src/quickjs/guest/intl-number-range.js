// Intl.NumberFormat's formatRange: what both ends share is written once, by the rules of ICU's
// NumberRangeFormatter. Adds `numberRange` to `native.intl`.
(function (native) {
  "use strict";

  const NUMBER = /^(integer|group|decimal|fraction|nan|infinity|exponent.*)$/;
  // These belong to the number; units and names of currencies stand around it.
  const INNER = /^(minusSign|plusSign|percentSign|compact|currency)$/;

  const text = (parts) => parts.map((part) => part.value).join("");
  const count = (...texts) => [...texts.join("")].length;

  /** {core, middle: [before, after], outer: [before, after]} of a formatted number. */
  function layers(parts, isNamed) {
    const isNumber = ({ type }) => NUMBER.test(type);
    const [first, last] = [parts.findIndex(isNumber), parts.findLastIndex(isNumber)];
    const before = parts.slice(0, first);
    const after = parts.slice(last + 1);
    const core = text(parts.slice(first, last + 1));
    const isOuter = ({ type }) => type === "unit" || (isNamed && type === "currency");
    if (![...before, ...after].some(isOuter))
      return { core, middle: [text(before), text(after)], outer: ["", ""] };
    const isInner = (part) => INNER.test(part.type) && !isOuter(part);
    const from = before.findIndex(isInner);
    const start = from < 0 ? before.length : from;
    const end = after.findLastIndex(isInner) + 1;
    return {
      core,
      middle: [text(before.slice(start)), text(after.slice(0, end))],
      outer: [text(before.slice(0, start)), text(after.slice(end))],
    };
  }

  const isSame = (a, b) => a[0] === b[0] && a[1] === b[1];

  /** `pattern` is `{0}–{1}`; a sign of one character, such as %, is written at both ends. */
  native.intl.numberRange = function numberRange(fromParts, toParts, pattern, isNamed) {
    const [from, to] = [layers(fromParts, isNamed), layers(toParts, isNamed)];
    const sharesOuter = isSame(from.outer, to.outer);
    const sharesMiddle =
      sharesOuter && isSame(from.middle, to.middle) && count(...from.middle) > 1;
    const repeats =
      (!sharesMiddle && count(...from.middle) > 0) || (!sharesOuter && count(...from.outer) > 0);
    let infix = pattern.replace("{0}", "").replace("{1}", "");
    if (repeats && infix.trim() === infix) infix = ` ${infix} `;
    const [outerBefore, outerAfter] = from.outer;
    const inner = sharesMiddle
      ? from.middle[0] + from.core + infix + to.core + to.middle[1]
      : from.middle[0] +
        from.core +
        from.middle[1] +
        (sharesOuter ? "" : outerAfter) +
        infix +
        (sharesOuter ? "" : to.outer[0]) +
        to.middle[0] +
        to.core +
        to.middle[1];
    return outerBefore + inner + to.outer[1];
  };
});
