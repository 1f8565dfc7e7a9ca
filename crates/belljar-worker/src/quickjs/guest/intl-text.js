// Intl.ListFormat, Intl.RelativeTimeFormat (English) and Intl.Segmenter (a simple one: no
// dictionaries, so Chinese and Japanese words are single characters).
(function (native) {
  "use strict";

  const { resolve, choice, optionsObject, finish } = native.intl;

  /** The word between the last two; by locale: and, or. English also has a comma before it. */
  const WORDS = {
    en: [" and ", " or "],
    de: [" und ", " oder "],
    fr: [" et ", " ou "],
    es: [" y ", " o "],
    it: [" e ", " o "],
    nl: [" en ", " of "],
    sv: [" och ", " eller "],
    pt: [" e ", " ou "],
    ja: ["、", "または"],
    zh: ["和", "或"],
  };

  /** {between, pair, last}: what joins the elements of a list. */
  function listJoins(name, type, style) {
    const language = name.split("-")[0];
    const asian = language === "ja" || language === "zh";
    const comma = asian ? "、" : ", ";
    const wordy = style === "long" && !asian && language !== "en" && language !== "de";
    if (type === "unit" && !wordy) {
      const space =
        style === "narrow" || asian
          ? asian && (style === "narrow" || language === "zh")
            ? ""
            : " "
          : ", ";
      return { between: space, pair: space, last: space };
    }
    let [word, or] = WORDS[language];
    if (type === "disjunction") word = or;
    else if (style === "narrow" && language !== "de" && language !== "es" && language !== "it")
      word = comma;
    else if (style === "short" && (name === "en" || language === "nl")) word = " & ";
    const serial =
      (name === "en" && word !== comma) || (language === "ja" && type === "disjunction");
    return { between: comma, pair: word, last: serial ? comma.trimEnd() + word : word };
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
      const { between, pair, last } = listJoins(this.#locale.name, this.#type, this.#style);
      const parts = [];
      items.forEach((value, at) => {
        const join = items.length === 2 ? pair : at === items.length - 1 ? last : between;
        if (at > 0) parts.push({ type: "literal", value: join });
        parts.push({ type: "element", value });
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
  const SHORT = {
    second: "sec.",
    minute: "min.",
    hour: "hr.",
    week: "wk.",
    month: "mo.",
    quarter: "qtr.",
    year: "yr.",
  };
  const NARROW = {
    second: "s",
    minute: "m",
    hour: "h",
    day: "d",
    week: "w",
    month: "mo",
    quarter: "q",
    year: "y",
  };

  /** Said without a number: yesterday, next week, now. */
  function relativeWord(value, unit, style) {
    if (unit === "second") return value === 0 ? "now" : undefined;
    if (unit === "day") return { "-1": "yesterday", 0: "today", 1: "tomorrow" }[value];
    if (value === 0 && (unit === "hour" || unit === "minute")) return `this ${unit}`;
    if (unit === "hour" || unit === "minute") return undefined;
    const word = { "-1": "last", 0: "this", 1: "next" }[value];
    return word && `${word} ${style === "long" ? unit : SHORT[unit]}`;
  }

  function unitWord(unit, style, one) {
    if (style === "narrow") return NARROW[unit];
    if (style === "short" && unit === "quarter") return one ? " qtr." : " qtrs.";
    if (style === "short" && SHORT[unit] !== undefined) return ` ${SHORT[unit]}`;
    return ` ${unit}${one ? "" : "s"}`;
  }

  class RelativeTimeFormat {
    #locale;
    #style;
    #numeric;
    #numbers;

    constructor(locales, options) {
      const given = optionsObject(options);
      this.#locale = resolve(locales);
      this.#style = choice(given, "style", ["long", "short", "narrow"], "long");
      this.#numeric = choice(given, "numeric", ["always", "auto"], "always");
      this.#numbers = new native.intl.NumberFormat(this.#locale.tag);
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
      const word = this.#numeric === "auto" ? relativeWord(number, name, this.#style) : undefined;
      if (word !== undefined) return [{ type: "literal", value: word }];
      const past = number < 0 || Object.is(number, -0);
      const digits = this.#numbers
        .formatToParts(Math.abs(number))
        .map((part) => ({ ...part, unit: name }));
      const text = unitWord(name, this.#style, Math.abs(number) === 1);
      if (past) return [...digits, { type: "literal", value: `${text} ago` }];
      return [{ type: "literal", value: "in " }, ...digits, { type: "literal", value: text }];
    }

    format(value, unit) {
      return this.formatToParts(value, unit)
        .map((part) => part.value)
        .join("");
    }

    resolvedOptions() {
      return {
        locale: this.#locale.tag,
        style: this.#style,
        numeric: this.#numeric,
        numberingSystem: "latn",
      };
    }
  }

  // As text, because compiling them costs more than everything else here: see `pattern`.
  const EXTEND = "[\\p{M}\\u200c\\ufe0f\\u{1f3fb}-\\u{1f3ff}\\u{e0020}-\\u{e007f}]*";
  const WORD = "[[\\p{L}\\p{M}\\p{N}_]--[\\p{Ideographic}\\p{Script=Hiragana}]]";
  const PATTERNS = {
    grapheme: [
      "u",
      `\\r\\n|\\p{RI}\\p{RI}|[^\\p{M}\\r\\n]${EXTEND}(?:\\u200d\\p{Extended_Pictographic}${EXTEND})*\\u200d?|[\\s\\S]`,
    ],
    word: [
      "v",
      `${WORD}+(?:(?:(?<=\\p{L})['’.:·](?=\\p{L})|(?<=\\p{N})[.,'](?=\\p{N}))${WORD}+)*|\\r\\n| +|\\p{RI}\\p{RI}|[^\\p{M}]${EXTEND}(?:\\u200d\\p{Extended_Pictographic}${EXTEND})*|[\\s\\S]`,
    ],
    sentence: [
      "u",
      "[^\\n]*?(?:[。！？]+|[.!?]+[\"'”’)\\]]*(?:[ \\t]+(?![ \\t\\p{Ll}])|(?=\\n)|$))\\n?|[^\\n]+\\n?|\\n",
    ],
  };
  const compiled = new Map();

  function pattern(granularity) {
    if (!compiled.has(granularity)) {
      const [flags, source] = PATTERNS[granularity];
      compiled.set(granularity, new RegExp(source, `g${flags}`));
    }
    return compiled.get(granularity);
  }

  class Segments {
    #text;
    #granularity;

    constructor(text, granularity) {
      this.#text = text;
      this.#granularity = granularity;
    }

    *[Symbol.iterator]() {
      for (const match of this.#text.matchAll(pattern(this.#granularity))) {
        if (match[0] === "") continue;
        const data = { segment: match[0], index: match.index, input: this.#text };
        if (this.#granularity === "word") data.isWordLike = /[\p{L}\p{N}]/u.test(match[0]);
        yield data;
      }
    }

    containing(index = 0) {
      for (const data of this)
        if (index >= data.index && index < data.index + data.segment.length) return data;
      return undefined;
    }
  }

  class Segmenter {
    #locale;
    #granularity;

    constructor(locales, options) {
      this.#locale = resolve(locales);
      this.#granularity = choice(
        optionsObject(options),
        "granularity",
        ["grapheme", "word", "sentence"],
        "grapheme",
      );
    }

    segment(text) {
      return new Segments(`${text}`, this.#granularity);
    }

    resolvedOptions() {
      return { locale: this.#locale.tag, granularity: this.#granularity };
    }
  }

  native.intl.ListFormat = finish(ListFormat);
  native.intl.RelativeTimeFormat = finish(RelativeTimeFormat);
  native.intl.Segmenter = finish(Segmenter);
});
