// Intl.Collator and the basis of String.prototype.localeCompare: the order of dictionaries instead
// of that of code points. The root order of CLDR for ASCII, Latin letters and accents, code points
// for the rest; letters that an alphabet has at places of their own are in intl-alphabets.js.
(function (native) {
  "use strict";

  const { resolve, tell, choice, optionsObject, finish } = native.intl;

  // Space, then punctuation and symbols in CLDR's order, digits, letters.
  const ORDER = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789";
  const FIRST_SYMBOL = ORDER.indexOf("`") + 1;
  const FIRST_DIGIT = ORDER.indexOf("0") + 1;
  const FIRST_LETTER = ORDER.length + 1;
  const OTHERS = 1000;
  const PRIMARY = new Uint8Array(128);
  for (let i = 0; i < ORDER.length; i++) PRIMARY[ORDER.charCodeAt(i)] = i + 1;
  for (let i = 0; i < 26; i++) PRIMARY[97 + i] = PRIMARY[65 + i] = FIRST_LETTER + i;
  // Accents in the order of their weights: acute, grave, breve, circumflex, caron, ring, …
  const ACCENTS =
    "\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307\u0338\u0327\u0328\u0304";
  const EXPANSIONS = {
    ß: "ss\u0338",
    æ: "ae\u0338",
    œ: "oe\u0338",
    ø: "o\u0338",
    ł: "l\u0338",
    đ: "d\u0338",
    ð: "d\u0338",
    þ: "th\u0338",
    ı: "i\u0338",
  };

  // Their order is that of readings or of other tables than code points.
  const UNORDERED = ["zh", "ja", "th"];
  const [PRIVATE, UPPER] = [0xe000, 0x100];

  const isDigit = (code) => code >= 48 && code <= 57;

  function digitsFrom(text, start) {
    let end = start;
    while (isDigit(text.charCodeAt(end))) end += 1;
    let from = start;
    while (from < end - 1 && text.charCodeAt(from) === 48) from += 1;
    return { digits: text.slice(from, end), end };
  }

  function compareDigits(a, b) {
    if (a.length !== b.length) return a.length - b.length;
    return a < b ? -1 : a > b ? 1 : 0;
  }

  /** ASCII texts, without making anything: undefined as soon as another character turns up. */
  function compareAscii(a, b, rules) {
    const { numeric } = rules;
    const shared = Math.min(a.length, b.length);
    let i = 0;
    let cased = 0;
    for (; i < shared; i++) {
      const left = a.charCodeAt(i);
      const right = b.charCodeAt(i);
      if (left > 127 || right > 127) return undefined;
      if (numeric && isDigit(left) && isDigit(right))
        return compareFromDigits(a, b, i, cased, rules);
      if (left === right) continue;
      const order = PRIMARY[left] - PRIMARY[right];
      // The accents and scripts of the rest do not matter once the letters differ.
      if (order !== 0) return order;
      if (cased === 0) cased = right - left;
    }
    if (a.length !== b.length) {
      const rest = a.length > i ? a.slice(i) : b.slice(i);
      // Only characters with a weight of their own make a text longer.
      return /[^\x01-\x7f]/.test(rest) ? undefined : a.length - b.length;
    }
    return rules.case ? cased * rules.lowerFirst : 0;
  }

  /** Goes on behind two runs of digits, which may differ in length. */
  function compareFromDigits(a, b, at, cased, rules) {
    const first = digitsFrom(a, at);
    const second = digitsFrom(b, at);
    const order = compareDigits(first.digits, second.digits);
    if (order !== 0) return order;
    const rest = compareAscii(a.slice(first.end), b.slice(second.end), { ...rules, case: false });
    if (rest !== 0 || !rules.case) return rest;
    if (cased !== 0) return cased * rules.lowerFirst;
    return compareAscii(a.slice(first.end), b.slice(second.end), rules);
  }

  const isKatakana = (code) => code >= 0x30a1 && code <= 0x30f6;

  function primaryOf(code, first, last) {
    if (code < 128) return PRIMARY[code];
    // Between the last digit and the first letter.
    if (code >= first && code <= last) return FIRST_LETTER - 1 + code / 0x10000;
    // Katakana sorts with hiragana, after it.
    return OTHERS + (isKatakana(code) ? code - 0x60 : code);
  }

  /** Weights of a text: letters, accents upon them, and case. */
  function weights(text, rules) {
    const result = { letters: [], accents: [], cases: [] };
    native.need("intl-alphabets");
    const alphabet = native.intl.alphabetOf(rules.language);
    const own = text
      .normalize("NFC")
      .replace(alphabet.pattern, (letter) => alphabet.places.get(letter));
    const expanded = own.normalize("NFD").replace(/[ßæœøłđðþı]/gi, (letter) => {
      const plain = EXPANSIONS[letter.toLowerCase()];
      return letter === letter.toLowerCase() ? plain : plain[0].toUpperCase() + plain.slice(1);
    });
    for (const character of expanded) {
      const code = character.codePointAt(0);
      if (code >= 0x300 && code <= 0x36f) {
        const at = result.accents.length - 1;
        if (at >= 0) result.accents[at] = result.accents[at] * 64 + ACCENTS.indexOf(character) + 2;
        continue;
      }
      const place = (code & ~UPPER) - PRIVATE;
      if (place >= 0 && place < alphabet.weights.length) {
        result.letters.push(alphabet.weights[place].primary);
        result.accents.push(alphabet.weights[place].accent);
        result.cases.push((code & UPPER) === 0 ? 0 : 1);
        continue;
      }
      const lower = character.toLowerCase();
      const weight = primaryOf(lower.codePointAt(0), alphabet.first, alphabet.last);
      if (rules.ignorePunctuation && weight < FIRST_SYMBOL) continue;
      result.letters.push(weight);
      result.accents.push(0);
      result.cases.push(lower === character && !isKatakana(code) ? 0 : 1);
    }
    return rules.numeric ? joinDigits(result) : result;
  }

  /** Runs of digits become one weight each, by value. */
  function joinDigits({ letters, accents, cases }) {
    const joined = { letters: [], accents: [], cases: [] };
    for (let i = 0; i < letters.length; i++) {
      let weight = letters[i];
      if (weight >= FIRST_DIGIT && weight < FIRST_LETTER) {
        let value = 0;
        for (; letters[i] >= FIRST_DIGIT && letters[i] < FIRST_LETTER; i++)
          value = value * 10 + letters[i] - FIRST_DIGIT;
        i -= 1;
        // Between the weight of the last symbol and that of the first letter.
        weight = FIRST_DIGIT + value / (value + 1);
      }
      joined.letters.push(weight);
      joined.accents.push(accents[i]);
      joined.cases.push(cases[i]);
    }
    return joined;
  }

  function compareLists(a, b) {
    const shared = Math.min(a.length, b.length);
    for (let i = 0; i < shared; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
    return Math.sign(a.length - b.length);
  }

  function compare(a, b, rules) {
    if (a === b) return 0;
    // In Turkish, I is the capital of ı, which comes before i.
    const isOwn = rules.ignorePunctuation || rules.language === "tr";
    const quick = isOwn ? undefined : compareAscii(a, b, rules);
    if (quick !== undefined) return Math.sign(quick) + 0;
    if (rules.unordered !== undefined)
      tell(`the order of ${rules.unordered} is not available: texts are ordered by code point`);
    const left = weights(a, rules);
    const right = weights(b, rules);
    return (
      compareLists(left.letters, right.letters) ||
      (rules.accent ? compareLists(left.accents, right.accents) : 0) ||
      (rules.case ? compareLists(left.cases, right.cases) * rules.lowerFirst : 0)
    );
  }

  class Collator {
    #locale;
    #settings;
    #rules;
    #compare;

    constructor(locales, options) {
      const given = optionsObject(options);
      this.#locale = resolve(locales, ["kn", "kf"]);
      const { kn, kf } = this.#locale.extension;
      const habit = this.#locale.language === "da" ? "upper" : "false";
      this.#settings = {
        usage: choice(given, "usage", ["sort", "search"], "sort"),
        sensitivity: choice(given, "sensitivity", ["base", "accent", "case", "variant"], "variant"),
        ignorePunctuation: Boolean(given.ignorePunctuation ?? this.#locale.language === "th"),
        numeric: given.numeric === undefined ? kn === "true" : Boolean(given.numeric),
        caseFirst: choice(given, "caseFirst", ["upper", "lower", "false"], kf ?? habit),
      };
      const { sensitivity, ignorePunctuation, numeric, caseFirst } = this.#settings;
      this.#rules = {
        accent: sensitivity === "accent" || sensitivity === "variant",
        case: sensitivity === "case" || sensitivity === "variant",
        lowerFirst: caseFirst === "upper" ? -1 : 1,
        ignorePunctuation,
        numeric,
        language: this.#locale.language,
        unordered: UNORDERED.find((language) => language === this.#locale.language),
      };
    }

    get compare() {
      return (this.#compare ??= (a, b) => compare(`${a}`, `${b}`, this.#rules));
    }

    resolvedOptions() {
      const { usage, sensitivity, ignorePunctuation, numeric, caseFirst } = this.#settings;
      return {
        locale: this.#locale.tag,
        usage,
        sensitivity,
        ignorePunctuation,
        collation: "default",
        numeric,
        caseFirst,
      };
    }
  }

  native.intl.primaryOf = primaryOf;
  native.intl.Collator = finish(Collator);
});
