// The `data` library, dates: reading, writing, rounding down, adding and subtracting. A date is a
// Date; other forms of a date are converted first. Days and months are those of UTC unless a time
// zone is named.
(function (native) {
  "use strict";

  const { describe } = native.stdlib;

  const SECOND = 1000;
  const MINUTE = 60 * SECOND;
  const HOUR = 60 * MINUTE;
  const DAY = 24 * HOUR;
  const LENGTHS = {
    millisecond: 1,
    second: SECOND,
    minute: MINUTE,
    hour: HOUR,
    day: DAY,
    week: 7 * DAY,
  };
  const MONTHS_IN = { month: 1, quarter: 3, year: 12 };
  const UNITS = [...Object.keys(LENGTHS), ...Object.keys(MONTHS_IN)];
  // Numbers below this are seconds since 1970: as milliseconds they would all lie in early 1973.
  const SECONDS_BELOW = 1e11;
  const ISO =
    /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?(?:Z|[+-]\d{2}:?\d{2}))?)?$/i;
  const TOKENS = /\[[^\]]*\]|YYYY|YY|MMMM|MMM|MM|M|DD|D|dddd|ddd|HH|H|hh|h|mm|m|ss|s|SSS|A|a|Z/g;

  function unitOf(unit, where) {
    const name = `${unit}`.toLowerCase().replace(/s$/, "");
    if (!UNITS.includes(name))
      throw new RangeError(
        `data.${where}: unknown unit ${native.inspect(unit)}, use ${UNITS.join(", ")}`,
      );
    return name;
  }

  function valid(time, value, advice = "") {
    if (Number.isNaN(time))
      throw new RangeError(`data.parseDate: not a date: ${native.inspect(value)}${advice}`);
    return new Date(time);
  }

  /** English names by width, which CLDR's data has as `a|b|…`. */
  function NAMES() {
    native.need("intl-locales");
    const { months, days } = native.intl.localeData("en", "dates");
    const widths = ([long, short]) => ({ long: long.split("|"), short: short.split("|") });
    return { months: widths(months), weekdays: widths(days) };
  }

  function nameIndex(names, text) {
    return names.findIndex((name) => name.toLowerCase() === text.toLowerCase());
  }

  const READERS = {
    YYYY: ["\\d{4}", "year"],
    YY: ["\\d{2}", "year"],
    MM: ["\\d{1,2}", "month"],
    M: ["\\d{1,2}", "month"],
    MMMM: ["[A-Za-z]+", "month"],
    MMM: ["[A-Za-z]+", "month"],
    DD: ["\\d{1,2}", "day"],
    D: ["\\d{1,2}", "day"],
    HH: ["\\d{1,2}", "hour"],
    H: ["\\d{1,2}", "hour"],
    hh: ["\\d{1,2}", "hour"],
    h: ["\\d{1,2}", "hour"],
    mm: ["\\d{1,2}", "minute"],
    m: ["\\d{1,2}", "minute"],
    ss: ["\\d{1,2}", "second"],
    s: ["\\d{1,2}", "second"],
    SSS: ["\\d{1,3}", "millisecond"],
    A: ["[AaPp]\\.?[Mm]\\.?", "half"],
    a: ["[AaPp]\\.?[Mm]\\.?", "half"],
  };

  /** Reads a text by a pattern such as DD/MM/YYYY HH:mm. */
  function parseByPattern(text, pattern) {
    const fields = [];
    let source = "";
    let from = 0;
    const literal = (part) => part.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
    for (const match of pattern.matchAll(TOKENS)) {
      source += literal(pattern.slice(from, match.index));
      from = match.index + match[0].length;
      const reader = READERS[match[0]];
      if (reader === undefined)
        throw new RangeError(`data.parseDate: "${match[0]}" cannot be read`);
      source += `(${reader[0]})`;
      fields.push([reader[1], match[0]]);
    }
    const found = new RegExp(`^\\s*${source}${literal(pattern.slice(from))}\\s*$`).exec(text);
    if (found === null) return valid(NaN, text, ` (expected ${pattern})`);
    const at = {
      year: 1970,
      month: 1,
      day: 1,
      hour: 0,
      minute: 0,
      second: 0,
      millisecond: 0,
      half: "",
    };
    fields.forEach(([name, token], index) => {
      at[name] = fieldValue(name, token, found[index + 1]);
    });
    if (at.half !== "") at.hour = (at.hour % 12) + (/^p/i.test(at.half) ? 12 : 0);
    return dateFromFields(at, text, pattern);
  }

  function fieldValue(name, token, text) {
    if (name === "half") return text;
    if (token === "YY") return 2000 + Number(text) - (Number(text) > 69 ? 100 : 0);
    if (token === "SSS") return Number(text.padEnd(3, "0"));
    if (name !== "month" || /\d/.test(text)) return Number(text);
    const { months } = NAMES();
    const index = nameIndex(months.long, text);
    return (index === -1 ? nameIndex(months.short, text.slice(0, 3)) : index) + 1;
  }

  function dateFromFields(at, text, pattern) {
    const time = Date.UTC(
      at.year,
      at.month - 1,
      at.day,
      at.hour,
      at.minute,
      at.second,
      at.millisecond,
    );
    const made = new Date(time);
    const same =
      made.getUTCMonth() === at.month - 1 &&
      made.getUTCDate() === at.day &&
      made.getUTCHours() === at.hour;
    return same ? made : valid(NaN, text, ` (expected ${pattern})`);
  }

  function parseDate(value, pattern) {
    if (value instanceof Date) return valid(value.getTime(), value);
    if (typeof value === "number" || typeof value === "bigint") {
      const number = Number(value);
      return valid(Math.abs(number) < SECONDS_BELOW ? number * SECOND : number, value);
    }
    if (typeof value !== "string")
      throw new TypeError(
        `data.parseDate: expected a date, a number or a string, got ${describe(value)}`,
      );
    if (pattern !== undefined) return parseByPattern(value, `${pattern}`);
    const text = value.trim();
    if (/^\d{1,2}[/.]\d{1,2}[/.]\d{2,4}/.test(text)) {
      throw new RangeError(
        `data.parseDate: ${native.inspect(value)} may be day or month first; give a pattern, for example "DD/MM/YYYY"`,
      );
    }
    if (/^-?\d{9,13}$/.test(text)) return parseDate(Number(text));
    if (!ISO.test(text)) return valid(Date.parse(text), value);
    // The engine takes the 30th of February for the 1st of March.
    const [year, month, day] = text.slice(0, 10).split("-").map(Number);
    if (new Date(Date.UTC(year, month - 1, day)).getUTCDate() !== day) return valid(NaN, value);
    // Without a zone it is UTC, with or without a time.
    const iso = text.replace(" ", "T").replace(" ", "").replace(/z$/, "Z");
    return valid(
      Date.parse(iso.length > 10 && !/(?:Z|[+-]\d{2}:?\d{2})$/i.test(iso) ? `${iso}Z` : iso),
      value,
    );
  }

  function zoneOffset(time, zone) {
    if (zone === undefined || zone === "UTC") return 0;
    native.need("intl-locales", "intl-zone");
    return native.intl.zoneState(native.intl.canonicalZone(zone), time).offset * SECOND;
  }

  /** The instant at which a zone's clock shows what `wall` shows in UTC. */
  function fromWall(wall, zone) {
    const first = wall - zoneOffset(wall, zone);
    return new Date(wall - zoneOffset(first, zone));
  }

  const two = (number) => `${number}`.padStart(2, "0");

  const WRITERS = {
    YYYY: (at) => `${at.getUTCFullYear()}`.padStart(4, "0"),
    YY: (at) => two(at.getUTCFullYear() % 100),
    MMMM: (at) => NAMES().months.long[at.getUTCMonth()],
    MMM: (at) => NAMES().months.short[at.getUTCMonth()],
    MM: (at) => two(at.getUTCMonth() + 1),
    M: (at) => `${at.getUTCMonth() + 1}`,
    DD: (at) => two(at.getUTCDate()),
    D: (at) => `${at.getUTCDate()}`,
    dddd: (at) => NAMES().weekdays.long[at.getUTCDay()],
    ddd: (at) => NAMES().weekdays.short[at.getUTCDay()],
    HH: (at) => two(at.getUTCHours()),
    H: (at) => `${at.getUTCHours()}`,
    hh: (at) => two(at.getUTCHours() % 12 || 12),
    h: (at) => `${at.getUTCHours() % 12 || 12}`,
    mm: (at) => two(at.getUTCMinutes()),
    m: (at) => `${at.getUTCMinutes()}`,
    ss: (at) => two(at.getUTCSeconds()),
    s: (at) => `${at.getUTCSeconds()}`,
    SSS: (at) => `${at.getUTCMilliseconds()}`.padStart(3, "0"),
    A: (at) => (at.getUTCHours() < 12 ? "AM" : "PM"),
    a: (at) => (at.getUTCHours() < 12 ? "am" : "pm"),
    Z(at, offset) {
      if (offset === 0) return "Z";
      const minutes = Math.abs(offset) / MINUTE;
      return `${offset < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
    },
  };

  function formatDate(value, pattern = "YYYY-MM-DD", zone = undefined) {
    const time = parseDate(value).getTime();
    const offset = zoneOffset(time, zone);
    const at = new Date(time + offset);
    return `${pattern}`.replace(TOKENS, (token) =>
      token.startsWith("[") ? token.slice(1, -1) : WRITERS[token](at, offset),
    );
  }

  function startOf(value, unit, zone) {
    const name = unitOf(unit, "startOf");
    const time = parseDate(value).getTime();
    const wall = new Date(time + zoneOffset(time, zone));
    if (MONTHS_IN[name] !== undefined) {
      const months = MONTHS_IN[name];
      const month = Math.floor(wall.getUTCMonth() / months) * months;
      return fromWall(Date.UTC(wall.getUTCFullYear(), month), zone);
    }
    const days = name === "week" ? (wall.getUTCDay() + 6) % 7 : 0;
    const length = name === "week" ? DAY : LENGTHS[name];
    return fromWall(Math.floor(wall.getTime() / length) * length - days * DAY, zone);
  }

  function addTime(value, amount, unit) {
    const name = unitOf(unit, "addTime");
    if (typeof amount !== "number")
      throw new TypeError(`data.addTime: the amount must be a number, got ${describe(amount)}`);
    const date = parseDate(value);
    if (LENGTHS[name] !== undefined) return new Date(date.getTime() + amount * LENGTHS[name]);
    const day = date.getUTCDate();
    const moved = new Date(date);
    moved.setUTCDate(1);
    moved.setUTCMonth(moved.getUTCMonth() + amount * MONTHS_IN[name]);
    // A month after the 31st of January is the last of February.
    const last = new Date(
      Date.UTC(moved.getUTCFullYear(), moved.getUTCMonth() + 1, 0),
    ).getUTCDate();
    moved.setUTCDate(Math.min(day, last));
    return moved;
  }

  /** From one date to another: fractions up to weeks, whole months, quarters and years. */
  function diffTime(from, to, unit = "day") {
    const name = unitOf(unit, "diffTime");
    const [start, end] = [parseDate(from), parseDate(to)];
    if (LENGTHS[name] !== undefined) return (end - start) / LENGTHS[name];
    let months =
      (end.getUTCFullYear() - start.getUTCFullYear()) * 12 +
      end.getUTCMonth() -
      start.getUTCMonth();
    const reached = addTime(start, months, "month");
    if (months > 0 && reached > end) months -= 1;
    else if (months < 0 && reached < end) months += 1;
    return Math.trunc(months / MONTHS_IN[name]) + 0;
  }

  native.stdlib.dates = { parseDate, formatDate, startOf, addTime, diffTime };
});
