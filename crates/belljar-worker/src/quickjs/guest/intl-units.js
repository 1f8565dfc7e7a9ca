// Texts for currencies and units in each locale. Adds `currencyDigits`, `currencyText`,
// `knownUnit` and `unitPattern` to `native.intl`.
(function (native) {
  "use strict";

  const { localeData, rootTable, pluralText } = native.intl;

  const SIMPLE =
    "acre bit byte celsius centimeter day degree fahrenheit fluid-ounce foot gallon gigabit gigabyte gram hectare hour inch kilobit kilobyte kilogram kilometer liter megabit megabyte meter microsecond mile mile-scandinavian milliliter millimeter millisecond minute month nanosecond ounce percent petabyte pound second stone terabit terabyte week yard year".split(
      " ",
    );

  function currencyDigits(code) {
    const digits = rootTable("digits");
    for (const count of Object.keys(digits)) if (digits[count].includes(code)) return Number(count);
    return 2;
  }

  /** The text for a currency: its code, its symbol, or its name for a plural category. */
  function currencyText(name, code, display, category) {
    if (display === "code") return code;
    if (display === "name") {
      const text = localeData(name, "currencies")[code];
      return text === undefined ? code : pluralText(name, text, category);
    }
    const text = localeData(name, "symbols")[code];
    if (text === undefined) return code;
    const [symbol, narrow = symbol] = text.split("|");
    return display === "narrowSymbol" ? narrow : symbol;
  }

  function known(unit) {
    const [base, per, ...more] = unit.split("-per-");
    const has = (name) => name === undefined || SIMPLE.includes(name);
    return more.length === 0 && has(base) && has(per);
  }

  /** [pattern by category, pattern of `per this unit`]. */
  function entryOf(name, unit, display) {
    const units = localeData(name, "units");
    const text = units[display][unit] ?? units.short[unit] ?? units.long[unit];
    return text === undefined ? [undefined] : text.split("/|");
  }

  /** Where the number goes: `{0} km`. */
  function unitPattern(name, unit, display, category) {
    const [direct] = entryOf(name, unit, display);
    if (direct !== undefined) return pluralText(name, direct, category);
    const [base, per] = unit.split("-per-");
    const pattern = pluralText(name, entryOf(name, base, display)[0], category);
    const [single, joined] = entryOf(name, per, display);
    if (joined !== undefined) return joined.replace("{0}", pattern);
    const word = pluralText(name, single, "one").replace("{0}", "").trim();
    return localeData(name, "units")[display].per.replace("{0}", pattern).replace("{1}", word);
  }

  native.intl.currencyDigits = currencyDigits;
  native.intl.currencyText = currencyText;
  native.intl.knownUnit = known;
  native.intl.unitPattern = unitPattern;
});
