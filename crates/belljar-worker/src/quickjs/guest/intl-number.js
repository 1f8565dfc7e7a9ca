// Intl.NumberFormat: numbers become parts, parts become text. Options are intl-number-options.js,
// rounding is intl-decimal.js, names are intl-units.js.
(function (native) {
  "use strict";

  const { resolve, numberData, optionsObject, finish, plural, operandsOf, numberSettings } =
    native.intl;
  const { decimalOf, round, split, scale } = native.intl.decimal;

  function groupedParts(whole, data, { grouping, notation }) {
    const late = grouping === "min2" || (grouping === "auto" && notation === "compact");
    const minimum = grouping === "always" ? 1 : late ? 2 : data.minimumGrouping;
    if (grouping === false || whole.length < 3 + minimum)
      return [{ type: "integer", value: whole }];
    const parts = [];
    for (let end = whole.length; end > 0; end -= 3) {
      parts.unshift({ type: "integer", value: whole.slice(Math.max(0, end - 3), end) });
      if (end > 3) parts.unshift({ type: "group", value: data.group });
    }
    return parts;
  }

  function digitParts(digits, data, settings) {
    const parts = groupedParts(digits.whole, data, settings);
    if (digits.fraction === "" || (settings.stripZeros && /^0+$/.test(digits.fraction)))
      return parts;
    return [
      ...parts,
      { type: "decimal", value: data.decimal },
      { type: "fraction", value: digits.fraction },
    ];
  }

  /** Compact numbers keep two digits unless that would round the whole part. */
  function roundCompact(decimal, limits) {
    if (!limits.compact) return round(decimal, limits);
    const precise = decimal.point >= 2 ? { maximumFraction: 0 } : { maximumSignificant: 2 };
    return round(decimal, { ...precise, mode: limits.mode });
  }

  function compactEntry(text, magnitude) {
    let found;
    for (const entry of text.split("|")) {
      const [powers, suffix] = entry.split(":");
      const [threshold, divisor = threshold] = powers.split("/").map(Number);
      if (threshold <= magnitude) found = { divisor, suffix };
    }
    return found ?? { divisor: 0, suffix: "" };
  }

  function compactParts(decimal, locale, data, settings) {
    // Amounts with a currency's sign are always abbreviated.
    const signed = settings.style === "currency" && settings.currencyDisplay !== "name";
    const table = settings.compactDisplay === "long" && !signed ? data.long : data.short;
    let entry = compactEntry(table, decimal.point - 1);
    let rounded = roundCompact(scale(decimal, -entry.divisor), settings.limits);
    // 999,999 rounds up to the next name.
    const next = compactEntry(table, rounded.point - 1 + entry.divisor);
    if (next.divisor > entry.divisor) {
      entry = next;
      rounded = roundCompact(scale(decimal, -entry.divisor), settings.limits);
    }
    const digits = split(rounded, settings.limits);
    const [one, many = one] = entry.suffix.split(",");
    const suffix = plural(locale.name, "cardinal", operandsOf(digits)) === "one" ? one : many;
    const parts = digitParts(digits, data, settings);
    const word = suffix.trimStart();
    if (word !== suffix)
      parts.push({ type: "literal", value: suffix.slice(0, suffix.length - word.length) });
    if (word !== "") parts.push({ type: "compact", value: word });
    return { parts, digits };
  }

  function scientificParts(decimal, data, settings) {
    const step = settings.notation === "engineering" ? 3 : 1;
    const exponentOf = (value) =>
      value.digits === "" ? 0 : Math.floor((value.point - 1) / step) * step;
    let exponent = exponentOf(decimal);
    let rounded = round(scale(decimal, -exponent), settings.limits);
    if (exponentOf(rounded) !== 0) {
      exponent += exponentOf(rounded);
      rounded = round(scale(decimal, -exponent), settings.limits);
    }
    const digits = split(rounded, settings.limits);
    const parts = digitParts(digits, data, { ...settings, grouping: false });
    parts.push({ type: "exponentSeparator", value: "E" });
    if (exponent < 0) parts.push({ type: "exponentMinusSign", value: "-" });
    parts.push({ type: "exponentInteger", value: `${Math.abs(exponent)}` });
    return { parts, digits: { whole: digits.whole + "0", fraction: digits.fraction } };
  }

  /** The number itself, without sign, currency or unit. */
  function numberParts(decimal, locale, data, settings) {
    if (decimal.special === "nan")
      return { parts: [{ type: "nan", value: "NaN" }], digits: { whole: "9", fraction: "" } };
    if (decimal.special !== undefined)
      return { parts: [{ type: "infinity", value: "∞" }], digits: { whole: "9", fraction: "" } };
    if (settings.notation === "compact") return compactParts(decimal, locale, data, settings);
    if (settings.notation !== "standard") return scientificParts(decimal, data, settings);
    const digits = split(round(decimal, settings.limits), settings.limits);
    return { parts: digitParts(digits, data, settings), digits };
  }

  function signOf(decimal, digits, display) {
    const zero = decimal.special === undefined && /^0*$/.test(digits.whole + digits.fraction);
    const { negative } = decimal;
    switch (display) {
      case "never":
        return "";
      case "always":
        return negative ? "-" : "+";
      case "exceptZero":
        return zero || decimal.special === "nan" ? "" : negative ? "-" : "+";
      case "negative":
        return negative && !zero ? "-" : "";
      default:
        return negative ? "-" : "";
    }
  }

  const SIGN_TYPES = { "-": "minusSign", "+": "plusSign" };

  /** Fills a pattern: `#` number, `¤` currency, `-` sign, `%` percent sign, the rest as it is. */
  function fill(pattern, sign, number, currency) {
    const parts = [];
    if (sign !== "" && !pattern.includes("-")) parts.push({ type: SIGN_TYPES[sign], value: sign });
    for (const character of pattern) {
      if (character === "#") parts.push(...number);
      else if (character === "-") {
        if (sign !== "") parts.push({ type: SIGN_TYPES[sign], value: sign });
      } else if (character === "%") parts.push({ type: "percentSign", value: "%" });
      else if (character === "¤") {
        parts.push({ type: "currency", value: currency });
        // A symbol that ends in a letter must not run into the digits.
        if (pattern.includes("¤#") && !/\p{S}$/u.test(currency))
          parts.push({ type: "literal", value: "\u00a0" });
      } else parts.push({ type: "literal", value: character });
    }
    return parts;
  }

  function styledParts(decimal, locale, data, settings) {
    const { parts, digits } = numberParts(decimal, locale, data, settings);
    const sign = signOf(decimal, digits, settings.signDisplay);
    const category = () => plural(locale.name, "cardinal", operandsOf(digits));
    const compact = settings.notation === "compact";
    switch (settings.style) {
      case "percent":
        return fill(compact ? data.percent.replace("\u00a0", " ") : data.percent, sign, parts);
      case "currency": {
        if (settings.currencyDisplay === "name") {
          const name = native.intl.currencyText(
            settings.currency,
            "name",
            data.symbols,
            category(),
          );
          return [
            ...fill("#", sign, parts),
            { type: "literal", value: " " },
            { type: "currency", value: name },
          ];
        }
        const symbol = native.intl.currencyText(
          settings.currency,
          settings.currencyDisplay,
          data.symbols,
        );
        const accounting = settings.currencySign === "accounting" && sign === "-";
        let pattern = accounting ? data.accounting : data.currency;
        if (!accounting && parts.some((part) => part.type === "compact"))
          pattern = pattern.replace("-", "");
        return fill(pattern, accounting && !pattern.includes("-") ? "" : sign, parts, symbol);
      }
      case "unit": {
        const text = native.intl.unitText(settings.unit, settings.unitDisplay, category());
        const number = fill("#", sign, parts);
        if (text.startsWith(" ")) number.push({ type: "literal", value: " " });
        return [
          ...number,
          { type: settings.unit === "percent" ? "percentSign" : "unit", value: text.trimStart() },
        ];
      }
      default:
        return fill("#", sign, parts);
    }
  }

  const joined = (parts) => {
    let text = "";
    for (const part of parts) text += part.value;
    return text;
  };

  class NumberFormat {
    #locale;
    #data;
    #settings;
    #format;

    constructor(locales, options) {
      this.#locale = resolve(locales);
      this.#data = numberData(this.#locale.name);
      this.#settings = numberSettings(optionsObject(options));
    }

    #parts(value) {
      let decimal = decimalOf(value);
      if (this.#settings.style === "percent" && decimal.special === undefined)
        decimal = scale(decimal, 2);
      const parts = styledParts(decimal, this.#locale, this.#data, this.#settings);
      const { minus } = this.#data;
      if (minus === undefined) return parts;
      return parts.map((part) => (part.type === "minusSign" ? { ...part, value: minus } : part));
    }

    get format() {
      return (this.#format ??= (value) => joined(this.#parts(value)));
    }

    formatToParts(value) {
      return this.#parts(value);
    }

    formatRange(start, end) {
      if (Number.isNaN(Number(start)) || Number.isNaN(Number(end)))
        throw new RangeError("Invalid number value: NaN");
      const [from, to] = [joined(this.#parts(start)), joined(this.#parts(end))];
      if (from === to) return `~${from}`;
      return this.#settings.style === "decimal" ? `${from}–${to}` : `${from} – ${to}`;
    }

    resolvedOptions() {
      const { style, notation, limits, grouping, stripZeros, ...rest } = this.#settings;
      const resolved = { locale: this.#locale.tag, numberingSystem: "latn", style };
      if (style === "currency") {
        Object.assign(resolved, {
          currency: rest.currency,
          currencyDisplay: rest.currencyDisplay,
          currencySign: rest.currencySign,
        });
      }
      if (style === "unit")
        Object.assign(resolved, { unit: rest.unit, unitDisplay: rest.unitDisplay });
      resolved.minimumIntegerDigits = limits.minimumInteger;
      if (limits.minimumSignificant !== undefined || limits.compact) {
        resolved.minimumSignificantDigits = limits.minimumSignificant ?? 1;
        resolved.maximumSignificantDigits = limits.maximumSignificant ?? 2;
      }
      if (limits.minimumSignificant === undefined) {
        resolved.minimumFractionDigits = limits.minimumFraction;
        resolved.maximumFractionDigits = limits.maximumFraction;
      }
      Object.assign(resolved, { useGrouping: grouping, notation });
      if (notation === "compact") resolved.compactDisplay = rest.compactDisplay;
      return Object.assign(resolved, {
        signDisplay: rest.signDisplay,
        roundingMode: limits.mode,
        roundingIncrement: 1,
        trailingZeroDisplay: stripZeros ? "stripIfInteger" : "auto",
        roundingPriority: limits.compact ? "morePrecision" : "auto",
      });
    }
  }

  native.intl.NumberFormat = finish(NumberFormat);
});
