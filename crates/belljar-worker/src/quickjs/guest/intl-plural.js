// Plural categories: `native.intl.plural(locale name, type, operands)` by CLDR's rules, which are
// text such as `v = 0 and i % 10 = 2..4`, and Intl.PluralRules.
(function (native) {
  "use strict";

  const { resolve, choice, optionsObject, finish, localeData } = native.intl;
  const { decimalOf, round, split } = native.intl.decimal;

  const ORDER = ["few", "many", "one", "two", "zero", "other"];

  /** `n % 100 = 3..10,12` as a function of the operands. */
  function relation(text) {
    const match = /^([a-z])(?: % (\d+))? (!?)= (.+)$/.exec(text.trim());
    const [, operand, modulus, negated, list] = match;
    const ranges = list.split(",").map((range) => range.split("..").map(Number));
    return (operands) => {
      const value = modulus === undefined ? operands[operand] : operands[operand] % Number(modulus);
      const within = ranges.some(([from, to = from]) =>
        from === to ? value === from : Number.isInteger(value) && value >= from && value <= to,
      );
      return within !== (negated === "!");
    };
  }

  function condition(text) {
    const either = text.split(" or ").map((part) => part.split(" and ").map(relation));
    return (operands) => either.some((all) => all.every((test) => test(operands)));
  }

  const compiled = new Map();

  function rulesOf(name, type) {
    const key = `${name} ${type}`;
    if (!compiled.has(key)) {
      const numbers = localeData(name, "numbers");
      const table = type === "ordinal" ? numbers.ordinal : numbers.plural;
      compiled.set(
        key,
        Object.keys(table).map((category) => [category, condition(table[category])]),
      );
    }
    return compiled.get(key);
  }

  function plural(name, type, operands) {
    for (const [category, test] of rulesOf(name, type)) if (test(operands)) return category;
    return "other";
  }

  /**
   * Operands of digits as they are shown: n the value, i whole, v and w lengths, f and t decimals, e the
   * power that compact notation leaves out, which the others are without.
   */
  function operandsOf({ whole, fraction, exponent = 0 }) {
    if (exponent > 0) {
      const all = fraction.padEnd(exponent, "0");
      const full = operandsOf({ whole: whole + all.slice(0, exponent), fraction: all.slice(exponent) });
      return { ...full, c: exponent, e: exponent };
    }
    const trimmed = fraction.replace(/0+$/, "");
    return {
      n: Number(`${whole}.${fraction || "0"}`),
      i: Number(whole),
      v: fraction.length,
      w: trimmed.length,
      f: Number(fraction),
      t: Number(trimmed),
      c: 0,
      e: 0,
    };
  }

  /** The text for a category out of `one|few|…|other`; one text serves all. */
  function pluralText(name, text, category) {
    if (!text.includes("|")) return text;
    const categories = [...Object.keys(localeData(name, "numbers").plural), "other"];
    return text.split("|")[categories.indexOf(category)];
  }

  function select(name, type, value, limits) {
    const decimal = decimalOf(value);
    if (decimal.special !== undefined) return "other";
    return plural(name, type, operandsOf(split(round(decimal, limits), limits)));
  }

  /** The category of a number with up to three decimals, as it is printed. */
  const numberCategory = (name, value) =>
    select(name, "cardinal", value, { minimumInteger: 1, minimumFraction: 0, maximumFraction: 3 });

  class PluralRules {
    #locale;
    #type;
    #limits;

    constructor(locales, options) {
      const given = optionsObject(options);
      this.#locale = resolve(locales);
      this.#type = choice(given, "type", ["cardinal", "ordinal"], "cardinal");
      this.#limits = native.intl.digitLimits(given, 0, 3, "standard");
    }

    select(value) {
      return select(this.#locale.name, this.#type, Number(value), this.#limits);
    }

    selectRange(start, end) {
      if (Number.isNaN(Number(start)) || Number.isNaN(Number(end)))
        throw new RangeError("Invalid number value: NaN");
      // Ranges of places, as in "2nd to 3rd", have no rules.
      if (this.#type === "ordinal") return "other";
      const [from, to] = [this.select(start), this.select(end)];
      return localeData(this.#locale.name, "numbers").pluralRanges[`${from}-${to}`] ?? to;
    }

    resolvedOptions() {
      const { minimumInteger, ...limits } = this.#limits;
      const there = new Set(rulesOf(this.#locale.name, this.#type).map(([category]) => category));
      const resolved = {
        // As V8 names it: rules go by language, apart from those of Portugal.
        locale: this.#locale.name === "pt-PT" ? "pt-PT" : this.#locale.tag.split("-")[0],
        type: this.#type,
        minimumIntegerDigits: minimumInteger,
      };
      if (limits.minimumSignificant !== undefined) {
        resolved.minimumSignificantDigits = limits.minimumSignificant;
        resolved.maximumSignificantDigits = limits.maximumSignificant;
      } else {
        resolved.minimumFractionDigits = limits.minimumFraction;
        resolved.maximumFractionDigits = limits.maximumFraction;
      }
      resolved.pluralCategories = ORDER.filter((name) => name === "other" || there.has(name));
      return resolved;
    }
  }

  native.intl.plural = plural;
  native.intl.numberCategory = numberCategory;
  native.intl.pluralText = pluralText;
  native.intl.operandsOf = operandsOf;
  native.intl.PluralRules = finish(PluralRules);
});
