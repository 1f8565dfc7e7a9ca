// Intl.NumberFormat: numbers become parts, parts become text. Options are intl-number-options.js,
// rounding is intl-decimal.js, names are intl-units.js.
(function (native) {
  "use strict";

  const { resolve, tagWith, numberData, digitsIn, optionsObject, finish } = native.intl;
  const { plural, pluralText, operandsOf, numberSettings, numberPattern, affixed } = native.intl;
  const { decimalOf, round, split, scale } = native.intl.decimal;

  /** Where groups begin, from the right: 3, 6, 9 or, in India, 3, 5, 7. */
  function groupedParts(whole, data, { grouping, notation, style, currencySign }) {
    const money = currencySign === "accounting" ? data.accounting : data.currency;
    const { primary, secondary } = numberPattern(style === "currency" ? money : data.standard);
    const late = grouping === "min2" || (grouping === "auto" && notation === "compact");
    const minimum = grouping === "always" ? 1 : late ? 2 : data.minimumGrouping;
    if (grouping === false || whole.length < primary + minimum)
      return [{ type: "integer", value: whole }];
    const group = (style === "currency" ? data.moneyGroup : undefined) ?? data.group;
    const parts = [];
    let size = primary;
    for (let end = whole.length; end > 0; end -= size) {
      if (parts.length > 0) {
        parts.unshift({ type: "group", value: group });
        size = secondary;
      }
      const from = Math.max(0, end - size);
      parts.unshift({ type: "integer", value: whole.slice(from, end) });
    }
    return parts;
  }

  function digitParts(digits, data, settings) {
    const parts = groupedParts(digits.whole, data, settings);
    if (digits.fraction === "" || (settings.stripZeros && /^0+$/.test(digits.fraction)))
      return parts;
    const money = settings.style === "currency" ? data.moneyDecimal : undefined;
    return [
      ...parts,
      { type: "decimal", value: money ?? data.decimal },
      { type: "fraction", value: digits.fraction },
    ];
  }

  /** Compact numbers keep two digits unless that would round the whole part. */
  function roundCompact(decimal, limits) {
    if (!limits.compact) return round(decimal, limits);
    const precise = decimal.point >= 2 ? { maximumFraction: 0 } : { maximumSignificant: 2 };
    return round(decimal, { ...precise, mode: limits.mode });
  }

  /** The pattern of a power of ten, and by how many powers the number is divided. */
  function compactEntry(table, magnitude) {
    let at = Math.min(magnitude - 3, table.length - 1);
    if (at < 0) return { divisor: 0, text: "0" };
    let more = magnitude - 3 - at;
    // An empty entry is the one before with one more zero.
    for (; table[at] === ""; at -= 1) more += 1;
    const text = table[at];
    if (text.startsWith("=") && more === 0) {
      const [, alone, rest] = text.split("=");
      return { ...compactEntry([rest], 3), divisor: at + 3, text: rest, alone };
    }
    const zeros = numberPattern(text.split("|").at(-1)).zeros;
    return { divisor: text === "0" ? 0 : at + 3 - (zeros - 1), text };
  }

  function compactTable(data, settings) {
    // Amounts with a currency's sign are always abbreviated.
    if (settings.style === "currency" && settings.currencyDisplay !== "name") return data.shortMoney;
    return settings.compactDisplay === "long" ? data.long : data.short;
  }

  /** {parts, digits, pattern}: the pattern has the name of the power. */
  function compactParts(decimal, locale, data, settings) {
    const table = compactTable(data, settings);
    let entry = compactEntry(table, decimal.point - 1);
    let rounded = roundCompact(scale(decimal, -entry.divisor), settings.limits);
    // 999,999 rounds up to the next name.
    const next = compactEntry(table, rounded.point - 1 + entry.divisor);
    if (next.divisor > entry.divisor) {
      entry = next;
      rounded = roundCompact(scale(decimal, -entry.divisor), settings.limits);
    }
    const digits = split(rounded, settings.limits);
    const parts = digitParts(digits, data, settings);
    if (entry.divisor === 0) return { parts, digits };
    digits.exponent = entry.divisor;
    if (entry.alone !== undefined && digits.whole === "1" && digits.fraction === "")
      return {
        parts: numberPattern(entry.alone).zeros === 0 ? [] : parts,
        digits,
        pattern: entry.alone,
      };
    const category = plural(locale.name, "cardinal", operandsOf({ ...digits, exponent: 0 }));
    const pattern = pluralText(locale.name, entry.text, category);
    return { parts: numberPattern(pattern).zeros === 0 ? [] : parts, digits, pattern };
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
    parts.push({ type: "exponentSeparator", value: data.exponential });
    if (exponent < 0) parts.push({ type: "exponentMinusSign", value: data.minusSign });
    parts.push({ type: "exponentInteger", value: `${Math.abs(exponent)}` });
    return { parts, digits: { whole: digits.whole + "0", fraction: digits.fraction } };
  }

  /** The number itself, without sign, currency or unit. */
  function numberParts(decimal, locale, data, settings) {
    if (decimal.special === "nan")
      return { parts: [{ type: "nan", value: data.nan }], digits: { whole: "9", fraction: "" } };
    if (decimal.special !== undefined)
      return { parts: [{ type: "infinity", value: data.infinity }], digits: { whole: "9", fraction: "" } };
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

  /** A pattern with the name of a power: its currency and its sign are those of the number. */
  function compactPattern(pattern, settings, data, sign, parts, texts) {
    const isMoney = settings.style === "currency" && settings.currencyDisplay !== "name";
    const accounting = isMoney && settings.currencySign === "accounting" && sign === "-";
    // Parentheses of accounting are put around what compact notation writes.
    const outer = accounting ? numberPattern(data.accounting).negative : undefined;
    const inner = affixed(numberPattern(pattern), outer === undefined ? sign : "", parts, texts, "compact");
    if (outer === undefined || !outer.before.some(({ value }) => value === "("))
      return outer === undefined ? inner : affixed(numberPattern(pattern), sign, parts, texts, "compact");
    return [{ type: "literal", value: "(" }, ...inner, { type: "literal", value: ")" }];
  }

  /** A pattern `{0} km` around parts; the number in it has its own sign. */
  function around(pattern, parts, type) {
    const [before, after] = pattern.split("{0}");
    const side = (text) => {
      if (text === "") return [];
      const [, left, word, right] = /^([\s\u200e\u200f]*)(.*?)([\s\u200e\u200f]*)$/s.exec(text);
      return [
        { type: "literal", value: left },
        { type, value: word },
        { type: "literal", value: right },
      ].filter(({ value }) => value !== "");
    };
    // Some languages say it without the number: one day, two days.
    return after === undefined ? side(before) : [...side(before), ...parts, ...side(after)];
  }

  function moneyParts(sign, number, categoryOf, { locale, data, settings, texts }) {
    const { parts, pattern } = number;
    const named = settings.currencyDisplay === "name";
    const category = named ? categoryOf() : undefined;
    const currency = native.intl.currencyText(
      locale.name,
      settings.currency,
      settings.currencyDisplay,
      category,
    );
    const all = { ...texts, currency };
    if (named) {
      const standard = pattern ?? data.standard;
      const amount = affixed(numberPattern(standard), sign, parts, texts, pattern && "compact");
      const [first, ...rest] = pluralText(locale.name, data.named, category).split(/(\{[01]\})/);
      return [first, ...rest].flatMap((piece) => {
        if (piece === "{0}") return amount;
        if (piece === "") return [];
        return piece === "{1}"
          ? [{ type: "currency", value: currency }]
          : [{ type: "literal", value: piece }];
      });
    }
    if (pattern !== undefined) return compactPattern(pattern, settings, data, sign, parts, all);
    const accounting = settings.currencySign === "accounting";
    return affixed(numberPattern(accounting ? data.accounting : data.currency), sign, parts, all);
  }

  function styledParts(decimal, locale, data, settings) {
    const number = numberParts(decimal, locale, data, settings);
    const { parts, digits, pattern } = number;
    const sign = signOf(decimal, digits, settings.signDisplay);
    const category = () => plural(locale.name, "cardinal", operandsOf(digits));
    const texts = {
      minusSign: data.minusSign,
      plusSign: data.plusSign,
      percentSign: data.percentSign,
    };
    const plain = () =>
      affixed(numberPattern(pattern ?? data.standard), sign, parts, texts, pattern && "compact");
    const percent = settings.style === "percent";
    if (settings.style === "currency")
      return moneyParts(sign, number, category, { locale, data, settings, texts });
    const compact = settings.notation === "compact";
    if (settings.unit === "percent" && !compact)
      return affixed(numberPattern(data.percent), sign, parts, texts).map((part) =>
        part.type === "percentSign" ? { ...part, type: "unit" } : part,
      );
    if (settings.style === "unit" || (percent && compact)) {
      const unit = percent ? "percent" : settings.unit;
      const text = native.intl.unitPattern(locale.name, unit, settings.unitDisplay, category());
      return around(text, plain(), "unit");
    }
    if (!percent) return plain();
    return affixed(numberPattern(data.percent), sign, parts, texts);
  }

  /** Marks of direction are no part of a sign. */
  function withoutMarks(parts) {
    if (!parts.some(({ type, value }) => type.endsWith("Sign") && value.length > 1)) return parts;
    const result = [];
    const add = (type, value) => {
      if (type === "literal" && result.at(-1)?.type === "literal") result.at(-1).value += value;
      else result.push({ type, value });
    };
    for (const { type, value } of parts) {
      if (!type.endsWith("Sign")) add(type, value);
      else
        for (const piece of value.match(/[\u061c\u200e\u200f]+|[^\u061c\u200e\u200f]+/g))
          add(/[\u061c\u200e\u200f]/.test(piece) ? "literal" : type, piece);
    }
    return result;
  }

  const joined = (parts) => {
    let text = "";
    for (const part of parts) text += part.value;
    return text;
  };

  class NumberFormat {
    #locale;
    #system;
    #data;
    #settings;
    #format;

    constructor(locales, options) {
      const given = optionsObject(options);
      this.#locale = resolve(locales, ["nu"]);
      this.#system = native.intl.numberSystem(this.#locale, given.numberingSystem);
      this.#data = numberData(this.#locale.name, this.#system);
      this.#settings = numberSettings(given);
    }

    #parts(value) {
      let decimal = decimalOf(value);
      if (this.#settings.style === "percent" && decimal.special === undefined)
        decimal = scale(decimal, 2);
      const parts = withoutMarks(styledParts(decimal, this.#locale, this.#data, this.#settings));
      if (this.#system === "latn") return parts;
      return parts.map((part) =>
        /^(integer|fraction|exponentInteger)$/.test(part.type)
          ? { ...part, value: digitsIn(this.#system, part.value) }
          : part,
      );
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
      const [from, to] = [this.#parts(start), this.#parts(end)];
      const { range, approximately } = this.#data;
      if (joined(from) === joined(to)) return `${approximately}${joined(from)}`;
      native.need("intl-number-range");
      const isNamed = this.#settings.currencyDisplay === "name";
      return native.intl.numberRange(from, to, range, isNamed);
    }

    resolvedOptions() {
      const { style, notation, limits, grouping, stripZeros, ...rest } = this.#settings;
      const resolved = {
        locale: tagWith(this.#locale, { nu: this.#system }),
        numberingSystem: this.#system,
        style,
      };
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
