// Intl.DateTimeFormat: a time fills a pattern with parts. Which pattern
// is intl-date-options.js, time zones are intl-zone.js. The calendar is Gregorian or, in Thai, Buddhist.
(function (native) {
  "use strict";

  const { optionsObject, finish, tagWith, digitsIn } = native.intl;
  const { zoneState, zoneText, dateSettings } = native.intl;

  const MAX_TIME = 8.64e15;

  function hourNumber(hour, cycle) {
    switch (cycle) {
      case "h11":
        return hour % 12;
      case "h12":
        return hour % 12 || 12;
      case "h24":
        return hour || 24;
      default:
        return hour;
    }
  }

  const padded = (number, length = 2) => `${number}`.padStart(length, "0");

  /** Names come as `a|b|…` by width, in a date and then alone, empty when they are the same. */
  function nameOf(names, length, index, alone) {
    const width = length === 4 ? 0 : length === 5 ? 2 : 1;
    const list = (alone && names[width + 3]) || names[width];
    return list.split("|")[index];
  }

  function eraName({ data, calendar }, year, length) {
    const names = data.eras[length === 4 ? 0 : length === 5 ? 2 : 1].split("|");
    return calendar === "gregory" ? names[year <= 0 ? 0 : 1] : names[0];
  }

  function yearOf({ calendar }, year) {
    if (calendar === "buddhist") return year + 543;
    return year <= 0 ? 1 - year : year;
  }

  /** Parts of the day in words; noon is that minute alone, when minutes are shown. */
  function dayPeriod({ data, items }, at, letter, length) {
    const width = length === 4 ? 0 : length === 5 ? 2 : 1;
    const text = (name) => {
      const names = data.periods[name]?.split("|");
      return names && (names[width] ?? names[0]);
    };
    const half = text(at.hour < 12 ? "am" : "pm");
    if (letter === "a") return half;
    const shows = (unit) => items.some((item) => item.letter === unit);
    const isSharp = !(shows("m") && at.minute !== 0) && !(shows("s") && at.second !== 0);
    const named = isSharp && at.hour === 12 && data.rules.noon ? text("noon") : undefined;
    if (named !== undefined || letter === "b") return named ?? half;
    const within = ([from, before]) =>
      before !== undefined &&
      (from < before ? at.hour >= from && at.hour < before : at.hour >= from || at.hour < before);
    const name = Object.keys(data.rules).find((key) => within(data.rules[key]));
    return text(name) ?? half;
  }

  const ZONE_STYLES = { z: "short", zzzz: "long", O: "shortOffset", OOOO: "longOffset" };
  Object.assign(ZONE_STYLES, { v: "shortGeneric", vvvv: "longGeneric" });

  const year = (at, settings, length) => {
    const number = yearOf(settings, at.year);
    return ["year", length === 2 ? padded(number % 100) : padded(number, length)];
  };
  const month = (alone) => (at, { data }, length) => [
    "month",
    length < 3 ? padded(at.month + 1, length) : nameOf(data.months, length, at.month, alone),
  ];
  const weekday = (alone) => (at, { data }, length) => [
    "weekday",
    nameOf(data.days, length, at.weekday, alone),
  ];
  const hour = (cycle) => (at, _settings, length) => [
    "hour",
    padded(hourNumber(at.hour, cycle), length),
  ];
  const period = (letter) => (at, settings, length) => [
    "dayPeriod",
    dayPeriod(settings, at, letter, length),
  ];
  const zone = (letter) => (at, settings, length) => [
    "timeZoneName",
    zoneText(settings.timeZone, at.time, ZONE_STYLES[letter.repeat(length)], settings.locale),
  ];

  /** The meaning of each letter of a pattern: [type of the part, its text]. */
  const LETTERS = {
    __proto__: null,
    G: (at, settings, length) => ["era", eraName(settings, at.year, length)],
    y: year,
    u: year,
    M: month(false),
    L: month(true),
    d: (at, _settings, length) => ["day", padded(at.day, length)],
    E: weekday(false),
    c: weekday(true),
    K: hour("h11"),
    h: hour("h12"),
    H: hour("h23"),
    k: hour("h24"),
    m: (at, _settings, length) => ["minute", padded(at.minute, length)],
    s: (at, _settings, length) => ["second", padded(at.second, length)],
    S: (at, _settings, length) => [
      "fractionalSecond",
      padded(at.millisecond, 3).slice(0, length),
    ],
    a: period("a"),
    b: period("b"),
    B: period("B"),
    z: zone("z"),
    O: zone("O"),
    v: zone("v"),
  };

  /** The clock and calendar of a zone at a time. */
  function wallTime(time, zone) {
    // At the ends of what a Date can hold, the zone has to give way.
    const local = time + zoneState(zone, time).offset * 1000;
    const shifted = new Date(Math.abs(local) > MAX_TIME ? time : local);
    return {
      time,
      year: shifted.getUTCFullYear(),
      month: shifted.getUTCMonth(),
      day: shifted.getUTCDate(),
      weekday: shifted.getUTCDay(),
      hour: shifted.getUTCHours(),
      minute: shifted.getUTCMinutes(),
      second: shifted.getUTCSeconds(),
      millisecond: shifted.getUTCMilliseconds(),
    };
  }

  function timeValue(date) {
    const now = () => (native.isDurable() ? native.clock() : Date.now());
    const time = date === undefined ? now() : Number(date);
    if (!(Math.abs(time) <= MAX_TIME)) throw new RangeError("Invalid time value");
    return time;
  }

  /** A time as parts of some items of a pattern. */
  function partsOf(settings, items, time) {
    const at = wallTime(time, settings.timeZone);
    return items.map(({ literal, letter, length }) => {
      if (literal !== undefined) return { type: "literal", value: literal };
      const [type, value] = LETTERS[letter](at, settings, length);
      return { type, value: digitsIn(settings.system, value) };
    });
  }

  const joined = (parts) => parts.map((part) => part.value).join("");

  const SHOWN = {
    weekday: "Ec",
    era: "G",
    year: "yu",
    month: "ML",
    day: "d",
    dayPeriod: "B",
    hour: "hHkK",
    minute: "m",
    second: "s",
    fractionalSecondDigits: "S",
    timeZoneName: "zOv",
  };
  const LENGTHS = { 1: "numeric", 2: "2-digit", 3: "short", 4: "long", 5: "narrow" };

  /** How the fields of a pattern are written, in the words of the options. */
  function shownFields(items) {
    const shown = {};
    for (const name of Object.keys(SHOWN)) {
      const item = items.find(({ letter }) => letter !== undefined && SHOWN[name].includes(letter));
      if (item === undefined) continue;
      const { letter, length } = item;
      if (name === "fractionalSecondDigits") shown[name] = length;
      else if (name === "timeZoneName") shown[name] = ZONE_STYLES[letter.repeat(length)];
      else if (/[EcGB]/.test(letter)) shown[name] = LENGTHS[Math.max(length, 3)];
      else shown[name] = LENGTHS[length];
    }
    return shown;
  }

  class DateTimeFormat {
    #settings;
    #format;

    constructor(locales, options, ...internal) {
      const [required = "any", defaults = "date"] = internal;
      this.#settings = dateSettings(locales, optionsObject(options), required, defaults);
    }

    get format() {
      // Like V8, a plain space before AM and PM here, the narrow one in formatToParts.
      return (this.#format ??= (date) =>
        joined(partsOf(this.#settings, this.#settings.items, timeValue(date))).replaceAll(
          "\u202f",
          " ",
        ));
    }

    formatToParts(date) {
      return partsOf(this.#settings, this.#settings.items, timeValue(date));
    }

    formatRange(start, end) {
      if (start === undefined || end === undefined)
        throw new TypeError("startDate or endDate cannot be undefined");
      native.need("intl-range");
      return native.intl.rangeText(
        this.#settings,
        partsOf,
        wallTime,
        timeValue(start),
        timeValue(end),
      );
    }

    resolvedOptions() {
      const { locale, timeZone, calendar, system, hourCycle, hasHour } = this.#settings;
      const { dateStyle, timeStyle, items } = this.#settings;
      const used = { ca: calendar, hc: hasHour ? hourCycle : undefined, nu: system };
      const resolved = { locale: tagWith(locale, used), calendar, numberingSystem: system, timeZone };
      if (hasHour)
        Object.assign(resolved, { hourCycle, hour12: hourCycle === "h11" || hourCycle === "h12" });
      if (dateStyle === undefined && timeStyle === undefined)
        Object.assign(resolved, shownFields(items));
      if (dateStyle !== undefined) resolved.dateStyle = dateStyle;
      if (timeStyle !== undefined) resolved.timeStyle = timeStyle;
      return resolved;
    }
  }

  native.intl.DateTimeFormat = finish(DateTimeFormat);
});
