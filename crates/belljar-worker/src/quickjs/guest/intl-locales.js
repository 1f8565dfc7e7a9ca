// Which locales there are, how a request for one is answered, and how options are read: the
// common ground of the intl-*.js files, offered to them on `native.intl`.
//
// The conventions themselves (separators, patterns, names) are CLDR's, in files that are read when a
// program names their locale. A locale that is not here is answered with en-US, says so when asked,
// and is told in the log, so that nobody takes American dates for those of another country.
(function (native) {
  "use strict";

  const DEFAULT_TAG = "en-US";
  const TAG =
    /^[a-z]{2,3}(-[a-z]{4})?(-([a-z]{2}|\d{3}))?(-([a-z0-9]{5,8}|\d[a-z0-9]{3}))*(-[a-z](-[a-z0-9]{2,8})+)*$/i;

  function canonicalTag(tag) {
    if (typeof tag !== "string" && (typeof tag !== "object" || tag === null)) {
      throw new TypeError("Incorrect locale information provided");
    }
    const text = `${tag}`;
    if (!TAG.test(text)) throw new RangeError("Incorrect locale information provided");
    let extension = false;
    return text
      .split("-")
      .map((part, at) => {
        if (part.length === 1) extension = true;
        if (at === 0 || extension) return part.toLowerCase();
        if (part.length === 2) return part.toUpperCase();
        return part.length === 4 && !/^\d/.test(part)
          ? part[0].toUpperCase() + part.slice(1).toLowerCase()
          : part.toLowerCase();
      })
      .join("-");
  }

  function canonicalLocales(locales) {
    if (locales === undefined) return [];
    if (locales === null) throw new TypeError("Incorrect locale information provided");
    const list =
      typeof locales === "string" || locales instanceof Locale ? [locales] : [...locales];
    return [...new Set(list.map(canonicalTag))];
  }

  const parsed = new Map();

  /** A table of a locale file, parsed on first use; undefined where there is none. */
  function rootTable(section) {
    const key = `root ${section}`;
    if (!parsed.has(key)) parsed.set(key, JSON.parse(native.localeText("root", section)));
    return parsed.get(key);
  }

  /** The data of a locale over that of its parent. */
  function merged(own, parent) {
    if (own === undefined) return parent;
    if (parent === undefined || typeof own !== "object" || Array.isArray(own)) return own;
    const result = { ...parent };
    for (const key of Object.keys(own)) {
      if (own[key] === null) delete result[key];
      else result[key] = merged(own[key], parent[key]);
    }
    return result;
  }

  /** A section of a locale's data, read when it is first needed. */
  function localeData(name, section) {
    const key = `${name} ${section}`;
    if (parsed.has(key)) return parsed.get(key);
    const text = native.localeText(name, section);
    const own = text === undefined ? undefined : JSON.parse(text);
    const parent = parentOf(name);
    const data = parent === "" ? own : merged(own, localeData(parent, section));
    parsed.set(key, data);
    return data;
  }

  /** Entries of the index are `parent region,region`; a locale without parent has regions alone. */
  function parentOf(name) {
    const [first] = rootTable("locales")[name].split(" ");
    return Object.hasOwn(rootTable("locales"), first) ? first : "";
  }

  function isWrittenAlike(name, region) {
    return rootTable("locales")[name].split(" ").at(-1).split(",").includes(region);
  }

  const LANGUAGES = { __proto__: null, nb: "no", iw: "he", in: "id" };
  const CHINESE = {
    __proto__: null,
    TW: "zh-Hant",
    HK: "zh-Hant-HK",
    MO: "zh-Hant-HK",
    SG: "zh-Hans-SG",
    Hant: "zh-Hant",
    Hans: "zh",
  };

  const found = new Map();

  function dataFor(tag) {
    if (!found.has(tag)) {
      if (found.size > 50) found.clear();
      found.set(tag, dataNamed(tag));
    }
    return found.get(tag);
  }

  /** {name: of the data, exact: whether it is that of the tag's country}; undefined for et-EE. */
  function dataNamed(tag) {
    const [given, ...rest] = baseName(tag).split("-");
    const language = LANGUAGES[given] ?? given;
    const region = rest.find((part) => /^([A-Z]{2}|\d{3})$/.test(part));
    const script = rest.find((part) => part.length === 4 && !/^\d/.test(part));
    const locales = rootTable("locales");
    if (!Object.hasOwn(locales, language)) return undefined;
    if (language === "zh") {
      const key = script === "Hans" && region !== "SG" ? "Hans" : (region ?? script);
      const name = CHINESE[key] ?? CHINESE[script] ?? "zh";
      return { name, exact: region === undefined || region === "CN" || CHINESE[region] !== undefined && region !== "MO" };
    }
    const name = `${language}-${region}`;
    if (script !== undefined) return { name: language, exact: false };
    if (region === undefined) return { name: language, exact: true };
    if (Object.hasOwn(locales, name)) return { name, exact: true };
    const alike = isWrittenAlike(language, region);
    // English outside America writes dates the British way.
    return { name: language === "en" && !alike ? "en-001" : language, exact: alike };
  }

  const told = new Set();

  /** Told once, however often a loop asks. */
  function tell(text) {
    if (told.has(text) || told.size > 20) return;
    told.add(text);
    native.print("log", `[intl] ${text}`);
  }

  const baseName = (tag) => (tag.length < 8 ? tag : tag.split(/-[a-z0-9]-/)[0]);

  /** The value of a key of the extension -u-. */
  function keyword(tag, key) {
    if (!tag.includes("-u-")) return undefined;
    const match = new RegExp(`-u-(?:.*-)?${key}(?:-([a-z0-9]{3,8}))?(?=-|$)`).exec(tag);
    // A key without a value is switched on.
    return match === null ? undefined : (match[1] ?? "true");
  }

  /** As V8 names it: the country of Norwegian is not one of its locales. */
  const resolvedTag = (tag) => (tag === "nb-NO" ? "nb" : tag);

  /**
   * The first requested locale there is data for: its tag, its data's name, and what its extension
   * says for `keys`, such as {nu: "arab"}.
   */
  function resolve(locales, keys = []) {
    const tags = canonicalLocales(locales);
    for (const tag of tags) {
      const found = dataFor(tag);
      if (found === undefined) continue;
      const base = baseName(tag);
      if (!found.exact) tell(`the locale ${base} is not available: written as ${found.name}`);
      const extension = {};
      for (const key of keys) extension[key] = keyword(tag, key);
      return { tag: resolvedTag(base), name: found.name, language: found.name.split("-")[0], extension };
    }
    if (tags.length > 0) tell(`the locale ${tags[0]} is not available: written as ${DEFAULT_TAG}`);
    return { tag: DEFAULT_TAG, name: "en", language: "en", extension: {} };
  }

  /** The tag with those keywords of its extension that were followed. */
  function tagWith(locale, used) {
    const pairs = Object.keys(used)
      .filter((key) => used[key] !== undefined && locale.extension[key] === used[key])
      .map((key) => `-${key}-${used[key]}`);
    return pairs.length === 0 ? locale.tag : `${locale.tag}-u${pairs.join("")}`;
  }

  /** The digits to write with: those asked for by option or extension, or the locale's own. */
  function numberSystem(locale, option) {
    if (option !== undefined && !/^[a-z0-9]{3,8}(-[a-z0-9]{3,8})*$/i.test(`${option}`))
      throw new RangeError(`Invalid numberingSystem : ${option}`);
    const numbers = localeData(locale.name, "numbers");
    for (const wanted of [option, locale.extension.nu]) {
      if (wanted === undefined) continue;
      const name = `${wanted}`.toLowerCase();
      if (Object.hasOwn(rootTable("systems"), name)) return name;
      tell(`the numbering system ${name} is not available: written in ${numbers.system}`);
    }
    return numbers.system;
  }

  /** Numbers of a locale: symbols and patterns of a numbering system. */
  function numberData(name, system) {
    const key = `${name} numbers ${system}`;
    if (!parsed.has(key)) {
      const numbers = localeData(name, "numbers");
      // The digits of Arabic have signs of their own in any language.
      const isArabic = system.startsWith("arab") && numbers[system] === undefined;
      const { decimal, group, percentSign, minusSign, plusSign } = isArabic
        ? localeData("ar", "numbers").arab
        : (numbers[system] ?? numbers.latn);
      const own = { decimal, group, percentSign, minusSign, plusSign };
      parsed.set(key, { ...numbers, ...(numbers[system] ?? numbers.latn), ...own });
    }
    return parsed.get(key);
  }

  /** Digits of ASCII in those of a numbering system. */
  function digitsIn(system, text) {
    if (system === "latn") return text;
    const zero = rootTable("systems")[system];
    return text.replace(/[0-9]/g, (digit) => String.fromCodePoint(zero + Number(digit)));
  }

  /** An option that is one of a few words. */
  function choice(options, name, allowed, otherwise) {
    const value = options[name];
    if (value === undefined) return otherwise;
    const text = typeof value === "boolean" ? value : `${value}`;
    if (!allowed.includes(text)) {
      throw new RangeError(`Value ${text} out of range for Intl options property ${name}`);
    }
    return text;
  }

  /** An option that is a whole number within bounds. */
  function count(options, name, minimum, maximum, otherwise) {
    const value = options[name];
    if (value === undefined) return otherwise;
    const number = Number(value);
    if (!(number >= minimum && number <= maximum))
      throw new RangeError(`${name} value is out of range.`);
    return Math.floor(number);
  }

  function optionsObject(options) {
    if (options === null) throw new TypeError("Cannot convert undefined or null to object");
    return options === undefined ? {} : Object(options);
  }

  class Locale {
    #tag;

    constructor(tag, options = {}) {
      const text = canonicalTag(tag);
      const region = options.region === undefined ? "" : `-${options.region}`;
      this.#tag = canonicalTag(region === "" ? text : text.split("-")[0] + region);
    }

    get baseName() {
      return this.#tag.split("-u-")[0];
    }
    get language() {
      return this.#tag.split("-")[0];
    }
    get script() {
      return this.baseName.split("-").find((part) => /^[A-Z][a-z]{3}$/.test(part));
    }
    get region() {
      return this.baseName
        .split("-")
        .slice(1)
        .find((part) => /^([A-Z]{2}|\d{3})$/.test(part));
    }
    toString() {
      return this.#tag;
    }
  }

  /** Members of every Intl constructor beside its own methods. */
  function finish(type) {
    Object.defineProperty(type, "supportedLocalesOf", {
      value: (locales) => canonicalLocales(locales).filter((tag) => dataFor(tag) !== undefined),
      writable: true,
      configurable: true,
    });
    Object.defineProperty(type.prototype, Symbol.toStringTag, {
      value: `Intl.${type.name}`,
      configurable: true,
    });
    return type;
  }

  const { intl } = native;
  intl.resolve = resolve;
  intl.tagWith = tagWith;
  intl.tell = tell;
  intl.localeData = localeData;
  intl.rootTable = rootTable;
  intl.numberSystem = numberSystem;
  intl.numberData = numberData;
  intl.digitsIn = digitsIn;
  intl.canonicalLocales = canonicalLocales;
  intl.choice = choice;
  intl.count = count;
  intl.optionsObject = optionsObject;
  intl.finish = finish;
  intl.Locale = Locale;
});
