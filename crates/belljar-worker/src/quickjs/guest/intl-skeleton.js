// From the fields that a program asks for, such as `yMMMd`, to a locale's pattern, `d. MMM y`: the
// choice that ICU's DateTimePatternGenerator makes among the patterns CLDR lists, so that dates come
// out as in other engines. Adds `dateData`, `patternItems` and `bestPattern` to `native.intl`. Fields
// that no pattern is listed for are looked for by intl-skeleton-search.js.
(function (native) {
  "use strict";

  const { localeData } = native.intl;

  // How far apart two ways to write a field are is the difference of these numbers.
  const [NARROW, SHORT, LONG, NUMERIC, DELTA] = [-0x101, -0x103, -0x104, 0x100, 0x10];
  const NAMES =
    "Era Year Quarter Month Week WeekOfMonth Day-Of-Week DayOfYear DayOfWeekInMonth Day DayPeriod Hour Minute Second Fraction Timezone".split(
      " ",
    );
  const [YEAR, MONTH, WEEKDAY, PERIOD, HOUR, MINUTE, SECOND, FRACTION] = [1, 3, 6, 10, 11, 12, 13, 14];
  const IS_DATE = (field) => field < PERIOD;

  /** By letter: [field, type, least length] for each length from which a type holds. */
  const text = (field, shift = 0) => [
    [field, SHORT + shift, 1],
    [field, LONG + shift, 4],
    [field, NARROW + shift, 5],
  ];
  const number = (field, shift = 0) => [[field, NUMERIC + shift, 1]];
  const name = (field, shift) => [
    [field, NUMERIC + Math.abs(shift), 1],
    [field, SHORT - shift, 3],
    [field, LONG - shift, 4],
    [field, NARROW - shift, 5],
  ];
  const LETTERS = {
    __proto__: null,
    G: text(0),
    y: number(YEAR),
    Y: number(YEAR, DELTA),
    u: number(YEAR, 2 * DELTA),
    Q: name(2, 0),
    q: name(2, DELTA),
    M: name(MONTH, 0),
    L: name(MONTH, DELTA),
    w: number(4),
    W: number(5),
    E: text(WEEKDAY),
    c: name(WEEKDAY, 2 * DELTA),
    e: name(WEEKDAY, DELTA),
    D: number(7),
    F: number(8),
    d: number(9),
    a: text(PERIOD),
    b: text(PERIOD, -DELTA),
    B: text(PERIOD, -3 * DELTA),
    H: number(HOUR, 10 * DELTA),
    k: number(HOUR, 11 * DELTA),
    h: number(HOUR),
    K: number(HOUR, DELTA),
    m: number(MINUTE),
    s: number(SECOND),
    S: number(FRACTION),
    v: text(15, -2 * DELTA),
    z: text(15),
    O: text(15, -DELTA),
  };

  function rowOf(letter, length) {
    const rows = LETTERS[letter];
    return rows?.findLast(([, , least]) => length >= least);
  }

  /** Fields and literals of a pattern: {letter, length} or {literal}. */
  function patternItems(pattern) {
    const items = [];
    const pieces = pattern.match(/'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+/g) ?? [];
    for (const piece of pieces) {
      const isField = /^[A-Za-z]/.test(piece);
      const literal = piece === "''" ? "'" : piece.replace(/^'|'$/g, "").replaceAll("''", "'");
      if (isField) items.push({ letter: piece[0], length: piece.length });
      else if (items.at(-1)?.literal !== undefined) items.at(-1).literal += literal;
      else items.push({ literal });
    }
    return items;
  }

  const quoted = (literal) =>
    literal.replaceAll("'", "''").replace(/[A-Za-z]+(?:[^]*[A-Za-z])?/, "'$&'");

  const written = (items) =>
    items
      .map(({ literal, letter, length }) => (letter ? letter.repeat(length) : quoted(literal)))
      .join("");

  /** {letters, lengths, types} by field; what is not there has no type. */
  function skeletonOf(pattern) {
    const [letters, lengths, types] = [[], [], new Array(NAMES.length).fill(0)];
    const put = (letter, length) => {
      const row = rowOf(letter, length);
      if (row === undefined) return;
      const [field, type] = row;
      letters[field] = letter;
      lengths[field] = length;
      types[field] = type > 0 ? type + length : type;
    };
    for (const { letter, length } of patternItems(pattern)) if (letter) put(letter, length);
    if (types[MINUTE] !== 0 && types[FRACTION] !== 0 && types[SECOND] === 0) put("s", 1);
    const twelve = letters[HOUR] === "h" || letters[HOUR] === "K";
    if (types[HOUR] !== 0 && twelve && types[PERIOD] === 0) put("a", 1);
    if (types[HOUR] !== 0 && !twelve) types[PERIOD] = 0;
    return { letters, lengths, types };
  }

  const known = new Map();

  /** Dates of a locale in one of its calendars. */
  function dateData(locale, calendar) {
    const own = localeData(locale, "dates");
    const isOther = calendar === "gregory" && own.calendar !== undefined;
    const data = isOther ? localeData(locale, "gregory") : own;
    if (!known.has(data)) known.set(data, { ...data, items: new Map() });
    return known.get(data);
  }

  /** The candidate listed for just these fields; the usual ones are, and need no search. */
  function listedFor(wanted, data, fields) {
    let key = "";
    for (const field of [...fields].sort((a, b) => a - b)) {
      const letter = wanted.letters[field];
      if (field === PERIOD && letter === "a") continue;
      const length = wanted.lengths[field];
      key += letter.repeat(letter === "E" && length < 4 ? 1 : length);
    }
    if (!Object.hasOwn(data.formats, key)) return undefined;
    const candidate = { pattern: data.formats[key], skeleton: skeletonOf(key), listed: true };
    return { sum: 0, missing: [], hasExtra: false, candidate };
  }

  function nearest(wanted, data, fields) {
    const listed = listedFor(wanted, data, fields);
    if (listed !== undefined) return listed;
    native.need("intl-skeleton-search");
    return native.intl.searchPattern(wanted, data, fields);
  }

  /** A field's length as asked for, unless the candidate was listed for just this length. */
  function adjustedLength(wanted, candidate, field, item) {
    const letter = wanted.letters[field];
    let asked = wanted.lengths[field];
    if (letter === "E" && asked < 3) asked = 3;
    if (field === MINUTE || field === SECOND) return item.length;
    if (field === HOUR && wanted.isLoose) return item.length;
    if (!candidate.listed || letter === "c" || letter === "e") return asked;
    const isNumber = rowOf(item.letter, item.length)[1] > 0;
    const wantsNumber = wanted.types[field] > 0;
    const isListed = candidate.skeleton.lengths[field] === asked;
    return isListed || isNumber !== wantsNumber ? item.length : asked;
  }

  /** A candidate's pattern with the fields as they were asked for. */
  function adjusted(wanted, candidate, data, pattern = candidate.pattern, fraction = false) {
    const items = [];
    for (const item of patternItems(pattern)) {
      const field = item.letter && rowOf(item.letter, item.length)?.[0];
      if (field === undefined || wanted.types[field] === 0) {
        items.push(item);
        continue;
      }
      if (fraction && field === SECOND) {
        items.push(item, { literal: data.decimal }, { letter: "S", length: wanted.lengths[FRACTION] });
        continue;
      }
      const length = fraction ? item.length : adjustedLength(wanted, candidate, field, item);
      const keeps = field === HOUR || field === MONTH || field === WEEKDAY || field === YEAR;
      const letter = keeps ? item.letter : wanted.letters[field];
      items.push({ letter: letter === "E" && length < 3 ? "e" : letter, length });
    }
    return written(items);
  }

  /** The pattern for some fields; those that no candidate has are appended one after another. */
  function appended(wanted, data, fields) {
    if (fields.size === 0) return "";
    let found = nearest(wanted, data, fields);
    let pattern = adjusted(wanted, found.candidate, data);
    let missing = new Set(found.missing);
    while (missing.size > 0) {
      if (missing.has(FRACTION) && !missing.has(SECOND) && fields.has(SECOND)) {
        pattern = adjusted(wanted, found.candidate, data, pattern, true);
        missing.delete(FRACTION);
        continue;
      }
      found = nearest(wanted, data, missing);
      const next = new Set(found.missing);
      const covered = [...missing].filter((field) => !next.has(field));
      if (covered.length === 0) break;
      const more = adjusted(wanted, found.candidate, data);
      const append = data.append[NAMES[Math.max(...covered)]] ?? "{0} {1}";
      pattern = append.replace("{0}", () => pattern).replace("{1}", () => more);
      missing = next;
    }
    return pattern;
  }

  function joinStyle({ types, lengths }) {
    if (lengths[MONTH] === 4) return types[WEEKDAY] === 0 ? 1 : 0;
    return lengths[MONTH] === 3 ? 2 : 3;
  }

  /** The locale's pattern for a skeleton; when loose, hours are as wide as the locale has them. */
  function bestPattern(data, skeleton, isLoose = false) {
    const wanted = { ...skeletonOf(skeleton), isLoose };
    const fields = new Set([...NAMES.keys()].filter((field) => wanted.types[field] !== 0));
    const dates = new Set([...fields].filter(IS_DATE));
    const times = new Set([...fields].filter((field) => !IS_DATE(field)));
    // No locale lists a pattern with a time and more of a date than its weekday.
    if (times.size === 0 || dates.size === 0 || (dates.size === 1 && dates.has(WEEKDAY))) {
      const whole = nearest(wanted, data, fields);
      if (whole.missing.length === 0 && !whole.hasExtra)
        return adjusted(wanted, whole.candidate, data);
    }
    const date = appended(wanted, data, dates);
    const time = appended(wanted, data, times);
    if (date === "" || time === "") return date + time;
    const join = data.at[joinStyle(wanted)];
    return join.replace("{1}", () => date).replace("{0}", () => time);
  }

  native.intl.dateData = dateData;
  native.intl.skeletonOf = skeletonOf;
  native.intl.fieldRow = rowOf;
  native.intl.patternItems = patternItems;
  native.intl.writtenPattern = written;
  native.intl.bestPattern = bestPattern;
});
