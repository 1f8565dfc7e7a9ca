// Plural categories: `native.intl.plural(locale name, type, operands)` and Intl.PluralRules.
(function (native) {
  "use strict";

  const { resolve, choice, optionsObject, finish } = native.intl;
  const { decimalOf, round, split } = native.intl.decimal;

  // n: the value, v: how many decimals are shown (CLDR's operands).
  const oneWhenWhole = ({ n, v }) => (n === 1 && v === 0 ? "one" : "other");
  const millions = ({ n, v }) => n !== 0 && v === 0 && n % 1e6 === 0;
  const romance = (one) => (operands) =>
    one(operands) ? "one" : millions(operands) ? "many" : "other";
  const single = ({ n }) => n === 1;
  const CARDINAL = {
    en: oneWhenWhole,
    de: oneWhenWhole,
    nl: oneWhenWhole,
    sv: oneWhenWhole,
    it: romance(({ n, v }) => n === 1 && v === 0),
    es: romance(single),
    fr: romance(({ n }) => n < 2),
    pt: romance(({ n }) => n < 2),
    ja: () => "other",
    zh: () => "other",
  };
  const ORDINAL = {
    en({ n }) {
      const tens = n % 100;
      if (n % 10 === 1 && tens !== 11) return "one";
      if (n % 10 === 2 && tens !== 12) return "two";
      return n % 10 === 3 && tens !== 13 ? "few" : "other";
    },
    fr: oneWhenWhole,
    sv: ({ n }) => ([1, 2].includes(n % 10) && ![11, 12].includes(n % 100) ? "one" : "other"),
    it: ({ n }) => ([8, 11, 80, 800].includes(n) ? "many" : "other"),
  };
  const ORDER = ["few", "many", "one", "two", "zero", "other"];

  function plural(name, type, operands) {
    const language = name.split("-")[0];
    if (type === "ordinal") return (ORDINAL[language] ?? (() => "other"))(operands);
    return CARDINAL[language](operands);
  }

  /** Operands of digits as they are shown. */
  function operandsOf({ whole, fraction }) {
    return { n: Number(`${whole}.${fraction || "0"}`), v: fraction.length };
  }

  function select(name, type, value, limits) {
    const decimal = decimalOf(value);
    if (decimal.special !== undefined) return "other";
    return plural(name, type, operandsOf(split(round(decimal, limits), limits)));
  }

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
      return this.select(end);
    }

    resolvedOptions() {
      const limits = this.#limits;
      const seen = new Set();
      for (const value of [0, 1, 2, 3, 5, 8, 11, 1e6, 1.5])
        seen.add(select(this.#locale.name, this.#type, value, limits));
      return {
        locale: this.#locale.tag,
        type: this.#type,
        minimumIntegerDigits: limits.minimumInteger,
        minimumFractionDigits: limits.minimumFraction,
        maximumFractionDigits: limits.maximumFraction,
        pluralCategories: ORDER.filter((category) => seen.has(category)),
      };
    }
  }

  native.intl.plural = plural;
  native.intl.operandsOf = operandsOf;
  native.intl.PluralRules = finish(PluralRules);
});
