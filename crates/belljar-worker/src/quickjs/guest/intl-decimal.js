// Decimal numbers as text: rounding and digits for Intl, exact for any double, BigInt or numeric
// string. A number is rounded as it is written in JavaScript (1.005 is a tie), as ICU does it.
//
// A decimal is {negative, digits, point}: 0.DIGITS times ten to the POINT; zero has no digits.
(function (native) {
  "use strict";

  const NUMERIC = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i;

  function fromText(text) {
    const match = NUMERIC.exec(text);
    if (match === null || (match[2] === "" && !match[3])) return undefined;
    const [, sign, whole, fraction = "", exponent = "0"] = match;
    // Writing such a number out would fill the memory; as a double it is zero or infinite.
    if (exponent.length > 4) return undefined;
    const all = whole + fraction;
    const digits = all.replace(/^0+/, "");
    const point = whole.length + Number(exponent) - (all.length - digits.length);
    return {
      negative: sign === "-",
      digits: digits.replace(/0+$/, ""),
      point: digits === "" ? 0 : point,
    };
  }

  /** A decimal, or {special: "nan" | "infinity", negative}. */
  function decimalOf(value) {
    if (typeof value === "string" && value.length < 1000) {
      const exact = fromText(value.trim());
      if (exact !== undefined) return exact;
    }
    if (typeof value === "bigint") return fromText(`${value}`);
    const number = Number(value);
    if (Number.isNaN(number)) return { special: "nan", negative: false };
    const negative = number < 0 || Object.is(number, -0);
    if (!Number.isFinite(number)) return { special: "infinity", negative };
    return { ...fromText(`${Math.abs(number)}`), negative };
  }

  /** Whether the part cut off makes the rest one bigger; `half` is its order against one half. */
  function roundsAway(mode, negative, half, lastDigitOdd) {
    switch (mode) {
      case "expand":
        return true;
      case "trunc":
        return false;
      case "ceil":
        return !negative;
      case "floor":
        return negative;
      default:
        break;
    }
    if (half !== 0) return half > 0;
    switch (mode) {
      case "halfTrunc":
        return false;
      case "halfCeil":
        return !negative;
      case "halfFloor":
        return negative;
      case "halfEven":
        return lastDigitOdd;
      default:
        return true;
    }
  }

  function increment(digits) {
    let at = digits.length - 1;
    while (at >= 0 && digits[at] === "9") at -= 1;
    const zeros = "0".repeat(digits.length - 1 - at);
    if (at < 0) return "1" + zeros;
    return digits.slice(0, at) + (Number(digits[at]) + 1) + zeros;
  }

  /** Keeps `kept` digits (0 or fewer keeps none). */
  function roundTo(decimal, kept, mode) {
    const { negative, digits, point } = decimal;
    if (kept >= digits.length) return decimal;
    const rest = kept < 0 ? "0".repeat(Math.min(-kept, 2)) + digits : digits.slice(kept);
    const half = rest[0] !== "5" ? (rest[0] > "5" ? 1 : -1) : /^50*$/.test(rest) ? 0 : 1;
    const head = digits.slice(0, Math.max(kept, 0));
    const odd = head !== "" && Number(head[head.length - 1]) % 2 === 1;
    if (!roundsAway(mode, negative, half, odd)) {
      const shorter = head.replace(/0+$/, "");
      return { negative, digits: shorter, point: shorter === "" ? 0 : point };
    }
    const bigger = head === "" ? "1" : increment(head);
    // One digit more than before, or a digit where there was none: the point moves.
    const shift = head === "" ? 1 - Math.min(kept, 0) : bigger.length - head.length;
    return { negative, digits: bigger.replace(/0+$/, ""), point: point + shift };
  }

  /** Rounds by `{maximumFraction}` or `{maximumSignificant}`. */
  function round(decimal, limits) {
    if (decimal.digits === "") return decimal;
    const mode = limits.mode ?? "halfExpand";
    if (limits.maximumSignificant !== undefined)
      return roundTo(decimal, limits.maximumSignificant, mode);
    return roundTo(decimal, decimal.point + limits.maximumFraction, mode);
  }

  /** Whole and fraction as digit strings, filled up to the minima asked for. */
  function split(decimal, limits) {
    const { digits, point } = decimal;
    const whole = point > 0 ? digits.slice(0, point).padEnd(point, "0") : "";
    let fraction = point >= 0 ? digits.slice(point) : "0".repeat(-point) + digits;
    if (digits === "") fraction = "";
    let minimum = limits.minimumFraction ?? 0;
    if (limits.minimumSignificant !== undefined) {
      minimum = Math.max(0, limits.minimumSignificant - (digits === "" ? 1 : point));
    }
    return {
      whole: whole.padStart(limits.minimumInteger ?? 1, "0"),
      fraction: fraction.padEnd(minimum, "0"),
    };
  }

  /** Times ten to the power. */
  function scale(decimal, power) {
    return decimal.digits === "" ? decimal : { ...decimal, point: decimal.point + power };
  }

  native.intl.decimal = { decimalOf, round, split, scale };
});
