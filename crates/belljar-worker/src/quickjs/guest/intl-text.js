// Intl.ListFormat and Intl.RelativeTimeFormat, by the patterns of CLDR.
(function (native) {
  "use strict";

  const { resolve, tagWith, choice, optionsObject, finish, localeData } = native.intl;

  const LISTS = { conjunction: "standard", disjunction: "or", unit: "unit" };

  /** {start, middle, end, pair}: patterns such as `{0}, {1}`. */
  function listPatterns(name, type, style) {
    const lists = localeData(name, "lists");
    const key = LISTS[type];
    const text = (style === "long" ? undefined : lists[`${key}-${style}`]) ?? lists[key];
    const [start, middle, end, pair] = text.split("|");
    return { start, middle, end, pair };
  }

  /** Spanish and Hebrew join by the sound that follows. */
  function bySound(language, pattern, next) {
    if (language === "es") {
      if (pattern.includes(" y ") && /^(i|hi(?![ae]))/i.test(next))
        return pattern.replace(" y ", " e ");
      if (pattern.includes(" o ") && /^(o|ho|8|11(\D|$))/i.test(next))
        return pattern.replace(" o ", " u ");
    }
    if (language === "he" && pattern.includes("\u05d5{1}") && !/^[\u0590-\u05ff]/.test(next))
      return pattern.replace("\u05d5{1}", "\u05d5-{1}");
    return pattern;
  }

  function strings(list) {
    return Array.from(list, (item) => {
      if (typeof item !== "string")
        throw new TypeError(`Iterable yielded ${native.inspect(item)} which is not a string`);
      return item;
    });
  }

  class ListFormat {
    #locale;
    #type;
    #style;

    constructor(locales, options) {
      const given = optionsObject(options);
      this.#locale = resolve(locales);
      this.#type = choice(given, "type", ["conjunction", "disjunction", "unit"], "conjunction");
      this.#style = choice(given, "style", ["long", "short", "narrow"], "long");
    }

    formatToParts(list) {
      const items = strings(list ?? []);
      const { start, middle, end, pair } = listPatterns(this.#locale.name, this.#type, this.#style);
      let parts = [];
      items.forEach((value, at) => {
        const element = { type: "element", value };
        if (at === 0) {
          parts = [element];
          return;
        }
        const isLast = at === items.length - 1;
        const pattern = isLast ? (at === 1 ? pair : end) : at === 1 ? start : middle;
        const text = bySound(this.#locale.language, pattern, value);
        parts = text
          .split(/(\{[01]\})/)
          .flatMap((piece) =>
            piece === "{0}"
              ? parts
              : piece === "{1}"
                ? [element]
                : piece === ""
                  ? []
                  : [{ type: "literal", value: piece }],
          );
      });
      return parts;
    }

    format(list) {
      return this.formatToParts(list)
        .map((part) => part.value)
        .join("");
    }

    resolvedOptions() {
      return { locale: this.#locale.tag, type: this.#type, style: this.#style };
    }
  }

  const UNITS = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];

  class RelativeTimeFormat {
    #locale;
    #style;
    #numeric;
    #system;
    #numbers;

    constructor(locales, options) {
      const given = optionsObject(options);
      this.#locale = resolve(locales, ["nu"]);
      this.#system = native.intl.numberSystem(this.#locale, given.numberingSystem);
      this.#style = choice(given, "style", ["long", "short", "narrow"], "long");
      this.#numeric = choice(given, "numeric", ["always", "auto"], "always");
      this.#numbers = new native.intl.NumberFormat(locales, { numberingSystem: this.#system });
    }

    /** Patterns of a unit: `past` and `future` by category, and words such as yesterday at -1. */
    #entry(unit) {
      const relative = localeData(this.#locale.name, "relative");
      return (this.#style === "long" ? undefined : relative[`${unit}-${this.#style}`]) ?? relative[unit];
    }

    formatToParts(value, unit) {
      const number = Number(value);
      const name = `${unit}`.replace(/s$/, "");
      if (!UNITS.includes(name)) {
        throw new RangeError(
          `Invalid unit argument for Intl.RelativeTimeFormat.prototype.format() '${unit}'`,
        );
      }
      if (!Number.isFinite(number))
        throw new RangeError("Invalid number value: the value must be finite");
      const entry = this.#entry(name);
      const past = number < 0 || Object.is(number, -0);
      const word = this.#numeric === "auto" ? entry[`${number}`] : undefined;
      if (word !== undefined) return [{ type: "literal", value: word }];
      const digits = this.#numbers
        .formatToParts(Math.abs(number))
        .map((part) => ({ ...part, unit: name }));
      const category = native.intl.numberCategory(this.#locale.name, Math.abs(number));
      const text = past ? entry.past : entry.future;
      const [before, after] = native.intl
        .pluralText(this.#locale.name, text, category)
        .split("{0}");
      const literal = (piece) => (piece ? [{ type: "literal", value: piece }] : []);
      // Some languages say it without the number: in a day, in two days.
      if (after === undefined) return literal(before);
      return [...literal(before), ...digits, ...literal(after)];
    }

    format(value, unit) {
      return this.formatToParts(value, unit)
        .map((part) => part.value)
        .join("");
    }

    resolvedOptions() {
      return {
        locale: tagWith(this.#locale, { nu: this.#system }),
        style: this.#style,
        numeric: this.#numeric,
        numberingSystem: this.#system,
      };
    }
  }

  native.intl.ListFormat = finish(ListFormat);
  native.intl.RelativeTimeFormat = finish(RelativeTimeFormat);
});
