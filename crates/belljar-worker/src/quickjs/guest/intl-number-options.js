// The options of Intl.NumberFormat, checked and completed by the rules of ECMA-402. Adds
// `digitLimits` and `numberSettings` to `native.intl`.
(function (native) {
  "use strict";

  const { choice, count } = native.intl;

  const ROUNDING_MODES = [
    "ceil",
    "floor",
    "expand",
    "trunc",
    "halfCeil",
    "halfFloor",
    "halfExpand",
    "halfTrunc",
    "halfEven",
  ];

  /** How many digits to show, by the rules of ECMA-402; `compact` when notation decides. */
  function digitLimits(options, minimumFraction, maximumFraction, notation) {
    const limits = {
      minimumInteger: count(options, "minimumIntegerDigits", 1, 21, 1),
      mode: choice(options, "roundingMode", ROUNDING_MODES, "halfExpand"),
    };
    const minimumSignificant = count(options, "minimumSignificantDigits", 1, 21);
    const maximumSignificant = count(
      options,
      "maximumSignificantDigits",
      minimumSignificant ?? 1,
      21,
    );
    if (minimumSignificant !== undefined || maximumSignificant !== undefined) {
      return {
        ...limits,
        minimumSignificant: minimumSignificant ?? 1,
        maximumSignificant: maximumSignificant ?? 21,
      };
    }
    const least = count(options, "minimumFractionDigits", 0, 100);
    const most = count(options, "maximumFractionDigits", 0, 100);
    if (least === undefined && most === undefined && notation === "compact") {
      return { ...limits, compact: true, minimumFraction: 0, maximumFraction: 0 };
    }
    const from = least ?? Math.min(minimumFraction, most ?? minimumFraction);
    const to = most ?? Math.max(maximumFraction, from);
    if (from > to) throw new RangeError("maximumFractionDigits value is out of range.");
    return { ...limits, minimumFraction: from, maximumFraction: to };
  }

  function groupingOf(options, notation) {
    const value = options.useGrouping;
    const standard = notation === "compact" ? "min2" : "auto";
    if (value === undefined || value === "true" || value === "false") return standard;
    if (value === true) return "always";
    if (!value) return false;
    return choice(options, "useGrouping", ["min2", "auto", "always"], standard);
  }

  function currencyOf(options, style) {
    const code = options.currency;
    if (code === undefined) {
      if (style === "currency")
        throw new TypeError("Currency code is required with currency style.");
      return undefined;
    }
    if (!/^[a-z]{3}$/i.test(`${code}`)) throw new RangeError(`Invalid currency code : ${code}`);
    return `${code}`.toUpperCase();
  }

  function unitOf(options, style) {
    const unit = options.unit;
    if (unit === undefined) {
      if (style === "unit")
        throw new TypeError("Required unit must not be undefined for unit style");
      return undefined;
    }
    if (!native.intl.knownUnit(`${unit}`))
      throw new RangeError(`Invalid unit argument for Intl.NumberFormat() '${unit}'`);
    return `${unit}`;
  }

  function numberSettings(options) {
    const style = choice(options, "style", ["decimal", "percent", "currency", "unit"], "decimal");
    const notation = choice(
      options,
      "notation",
      ["standard", "scientific", "engineering", "compact"],
      "standard",
    );
    const currency = currencyOf(options, style);
    const money = style === "currency" ? native.intl.currencyDigits(currency) : 0;
    const most = style === "currency" ? money : style === "percent" ? 0 : 3;
    return {
      style,
      notation,
      currency,
      unit: unitOf(options, style),
      currencyDisplay: choice(
        options,
        "currencyDisplay",
        ["code", "symbol", "narrowSymbol", "name"],
        "symbol",
      ),
      currencySign: choice(options, "currencySign", ["standard", "accounting"], "standard"),
      unitDisplay: choice(options, "unitDisplay", ["short", "narrow", "long"], "short"),
      compactDisplay: choice(options, "compactDisplay", ["short", "long"], "short"),
      signDisplay: choice(
        options,
        "signDisplay",
        ["auto", "never", "always", "exceptZero", "negative"],
        "auto",
      ),
      stripZeros:
        choice(options, "trailingZeroDisplay", ["auto", "stripIfInteger"], "auto") ===
        "stripIfInteger",
      grouping: groupingOf(options, notation),
      limits: digitLimits(options, money, most, notation),
    };
  }

  native.intl.digitLimits = digitLimits;
  native.intl.numberSettings = numberSettings;
});
