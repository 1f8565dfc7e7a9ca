// Which locales there are, how a request for one is answered, and how options are read: the
// common ground of the intl-*.js files, offered to them on `native.intl`.
//
// The conventions themselves (separators, patterns, names) are facts from CLDR, cut down to what
// agents print. A locale that is not here is answered with en-US, says so when asked, and is told
// in the log, so that nobody takes American dates for those of another country.
(function (native) {
  "use strict";

  /**
   * Numbers. Patterns: `#` the number, `¤` the currency, `-` the sign (in front when absent).
   * compact: `power[/divisor]:suffix[,plural suffix]`, a suffix begins with its own space.
   */
  const NUMBERS = {
    en: {
      decimal: ".",
      group: ",",
      percent: "#%",
      currency: "¤#",
      accounting: "(¤#)",
      short: "3:K|6:M|9:B|12:T",
      long: "3: thousand|6: million|9: billion|12: trillion",
      symbols:
        "USD=$ EUR=€ GBP=£ JPY=¥ CNY=CN¥ INR=₹ KRW=₩ BRL=R$ CAD=CA$ AUD=A$ NZD=NZ$ MXN=MX$ ILS=₪ HKD=HK$ TWD=NT$ VND=₫ PHP=₱ XAF=FCFA XOF=F\u202fCFA XPF=CFPF XCD=EC$",
    },
    "en-GB": { short: "3:k|6:m|9:bn|12:tn", symbols: "USD=US$ JPY=JP¥" },
    "en-CA": { symbols: "USD=US$ CAD=$ JPY=JP¥" },
    sv: {
      decimal: ",",
      group: "\u00a0",
      minus: "\u2212",
      percent: "#\u00a0%",
      currency: "#\u00a0¤",
      accounting: "-#\u00a0¤",
      short: "3:\u00a0tn|6:\u00a0mn|9:\u00a0md|12:\u00a0bn",
      long: "3: tusen|6: miljon, miljoner|9: miljard, miljarder|12: biljon, biljoner",
      symbols:
        "USD=US$ SEK=kr CAD=CA$ JPY=JPY GBP=GBP CNY=CNY INR=INR KRW=KRW BRL=BR$ AUD=AUD NZD=NZD MXN=MX$ ILS=ILS HKD=HKD TWD=TWD VND=VND PHP=PHP XCD=XCD",
    },
    de: {
      decimal: ",",
      group: ".",
      percent: "#\u00a0%",
      currency: "#\u00a0¤",
      accounting: "-#\u00a0¤",
      short: "6:\u00a0Mio.|9:\u00a0Mrd.|12:\u00a0Bio.",
      long: "3: Tausend|6: Million, Millionen|9: Milliarde, Milliarden|12: Billion, Billionen",
      symbols: "AUD=AU$ THB=฿ PHP=PHP",
    },
    fr: {
      decimal: ",",
      group: "\u202f",
      percent: "#\u00a0%",
      currency: "#\u00a0¤",
      accounting: "(#\u00a0¤)",
      short: "3:\u00a0k|6:\u00a0M|9:\u00a0Md|12:\u00a0Bn",
      long: "3: millier, mille|6: million, millions|9: milliard, milliards|12: billion, billions",
      symbols:
        "USD=$US GBP=£GB JPY=JPY CNY=CNY CAD=$CA AUD=$AU NZD=$NZ MXN=$MX SGD=$SG HKD=HKD TWD=TWD PHP=PHP ARS=$AR CLP=$CL COP=$CO XPF=FCFP XCD=XCD",
    },
    es: {
      decimal: ",",
      group: ".",
      minimumGrouping: 2,
      percent: "#\u00a0%",
      currency: "#\u00a0¤",
      accounting: "-#\u00a0¤",
      short: "3:\u00a0mil|6:\u00a0M|10/9:\u00a0mil\u00a0M|12:\u00a0B",
      long: "3: mil|6: millón, millones|9: mil millones|12: billón, billones",
      symbols:
        "USD=US$ GBP=GBP JPY=JPY CNY=CNY INR=INR KRW=KRW BRL=BRL CAD=CAD AUD=AUD NZD=NZD MXN=MXN ILS=ILS HKD=HKD TWD=TWD THB=฿ PHP=PHP XAF=XAF XOF=XOF XCD=XCD",
    },
    it: {
      decimal: ",",
      group: ".",
      minimumGrouping: 2,
      percent: "#%",
      currency: "#\u00a0¤",
      accounting: "-#\u00a0¤",
      short: "3:K|6:\u00a0Mln|9:\u00a0Mld|12:\u00a0Bln",
      long: "3: mila|6: milione, milioni|9: miliardo, miliardi|12: mila miliardi",
      symbols: "USD=USD JPY=JPY INR=INR KRW=KRW BRL=BRL MXN=MXN HKD=HKD TWD=TWD THB=฿ VND=VND",
    },
    nl: {
      decimal: ",",
      group: ".",
      percent: "#%",
      currency: "¤\u00a0-#",
      accounting: "(¤\u00a0#)",
      short: "3:K|6:\u00a0mln.|9:\u00a0mld.|12:\u00a0bln.",
      long: "3: duizend|6: miljoen|9: miljard|12: biljoen",
      symbols: "USD=US$ JPY=JP¥ CAD=C$ AUD=AU$ THB=฿ PHP=PHP XPF=XPF",
    },
    pt: {
      decimal: ",",
      group: ".",
      percent: "#%",
      currency: "¤\u00a0#",
      accounting: "-¤\u00a0#",
      short: "3:\u00a0mil|6:\u00a0mi|9:\u00a0bi|12:\u00a0tri",
      long: "3: mil|6: milhão, milhões|9: bilhão, bilhões|12: trilhão, trilhões",
      symbols: "USD=US$ JPY=JP¥ AUD=AU$ THB=฿ PHP=PHP",
    },
    ja: {
      short: "4:万|8:億|12:兆|16:京",
      long: "4:万|8:億|12:兆|16:京",
      symbols: "JPY=￥ CNY=元 PHP=PHP",
    },
    zh: {
      short: "4:万|8:亿|12:万亿",
      long: "4:万|8:亿|12:万亿",
      symbols: "USD=US$ JPY=JP¥ CNY=¥ AUD=AU$ PHP=PHP",
    },
  };

  // English outside America writes dates the British way.
  const ALIASES = {
    "en-AU": "en-GB",
    "en-NZ": "en-GB",
    "en-IE": "en-GB",
    "en-ZA": "en-GB",
    "en-IN": "en-GB",
  };
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

  /** The name of the data for a tag: "de" for de-AT, undefined for ko-KR. */
  function dataName(tag) {
    const [language, ...rest] = tag.split("-u-")[0].split("-");
    const region = rest.find((part) => /^([A-Z]{2}|\d{3})$/.test(part));
    const name = region === undefined ? language : `${language}-${region}`;
    const found = ALIASES[name] ?? (Object.hasOwn(NUMBERS, name) ? name : language);
    return Object.hasOwn(NUMBERS, found) ? found : undefined;
  }

  const told = new Set();

  /** Told once, however often a loop asks. */
  function tell(tag, written) {
    if (told.has(tag) || told.size > 20) return;
    told.add(tag);
    native.print("log", `[intl] the locale ${tag} is not available: written as ${written}`);
  }

  // Countries whose conventions are those of their language here.
  const HOME = {
    __proto__: null,
    en: "US", sv: "SE", de: "DE", fr: "FR", es: "ES", it: "IT", nl: "NL", pt: "BR", ja: "JP", zh: "CN",
  };

  /** Whether a country is answered with the conventions of another: de-CH with those of Germany. */
  function isForeign(tag, name) {
    const region = tag.split("-u-")[0].split("-").find((part) => /^([A-Z]{2}|\d{3})$/.test(part));
    return region !== undefined && !name.includes("-") && region !== HOME[name];
  }

  /** The first requested locale there is data for: its tag, its data's name, its -u-hc- value. */
  function resolve(locales) {
    const tags = canonicalLocales(locales);
    for (const tag of tags) {
      const name = dataName(tag);
      if (name === undefined) continue;
      if (isForeign(tag, name) || tag.startsWith("en-IN")) tell(tag, name);
      return { tag: tag.split("-u-")[0], name, hourCycle: /-hc-(h1[12]|h2[34])/.exec(tag)?.[1] };
    }
    if (tags.length > 0) tell(tags[0], DEFAULT_TAG);
    return { tag: DEFAULT_TAG, name: "en", hourCycle: undefined };
  }

  const merged = new Map();

  function table(text) {
    return new Map(text.split(" ").map((entry) => entry.split("=")));
  }

  /** Number conventions of a locale, what it does not say taken from English; made on first use. */
  function numberData(name) {
    if (!merged.has(name)) {
      const english = NUMBERS.en;
      const own = NUMBERS[name];
      const symbols = new Map([...table(english.symbols), ...table(own.symbols)]);
      merged.set(name, { minimumGrouping: 1, ...english, ...own, symbols });
    }
    return merged.get(name);
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

  /** What every Intl constructor offers beside its own methods. */
  function finish(type) {
    Object.defineProperty(type, "supportedLocalesOf", {
      value: (locales) => canonicalLocales(locales).filter((tag) => dataName(tag) !== undefined),
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
  intl.numberData = numberData;
  intl.canonicalLocales = canonicalLocales;
  intl.choice = choice;
  intl.count = count;
  intl.optionsObject = optionsObject;
  intl.finish = finish;
  intl.Locale = Locale;
});
