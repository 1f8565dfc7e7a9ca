// Intl.DateTimeFormat: a time fills a pattern with parts. Which pattern is intl-date-options.js,
// names are intl-dates.js, time zones intl-zone.js. The calendar is Gregorian.
(function (native) {
  "use strict";

  const { optionsObject, finish, zoneState, zoneText, dateSettings } = native.intl;

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

  function nameOf(names, style, index, alone) {
    return (style === "short" && alone ? names.alone : (names[style] ?? names.long))[index];
  }

  function eraName(year, style) {
    const before = year <= 0;
    if (style === "long") return before ? "Before Christ" : "Anno Domini";
    return before ? (style === "narrow" ? "B" : "BC") : style === "narrow" ? "A" : "AD";
  }

  function dayPeriodText(hour) {
    if (hour === 12) return "noon";
    if (hour >= 21) return "at night";
    return hour < 12 ? "in the morning" : hour < 18 ? "in the afternoon" : "in the evening";
  }

  /** What each letter of a pattern becomes: [type of the part, its text]. */
  const LETTERS = {
    y: (at, { fields }) => [
      "year",
      `${fields.era !== undefined && at.year <= 0 ? 1 - at.year : at.year}`,
    ],
    Y: (at) => ["year", padded(Math.abs(at.year) % 100)],
    M: (at) => ["month", `${at.month + 1}`],
    N: (at) => ["month", padded(at.month + 1)],
    B: (at, { data, monthStyle, pattern }) => [
      "month",
      nameOf(data.months, monthStyle, at.month, pattern === "%B"),
    ],
    d: (at) => ["day", `${at.day}`],
    D: (at) => ["day", padded(at.day)],
    A: (at, { data, weekdayStyle, pattern }) => [
      "weekday",
      nameOf(data.weekdays, weekdayStyle, at.weekday, pattern === "%A"),
    ],
    h: (at, { hourCycle }) => ["hour", `${hourNumber(at.hour, hourCycle)}`],
    H: (at, { hourCycle }) => ["hour", padded(hourNumber(at.hour, hourCycle))],
    i: (at) => ["minute", `${at.minute}`],
    I: (at) => ["minute", padded(at.minute)],
    s: (at) => ["second", `${at.second}`],
    S: (at) => ["second", padded(at.second)],
    f: (at, { fields }) => [
      "fractionalSecond",
      padded(at.millisecond, 3).slice(0, fields.fractionalSecondDigits),
    ],
    p: (at, { data }) => ["dayPeriod", data.periods[at.hour < 12 ? 0 : 1]],
    P: (at) => ["dayPeriod", dayPeriodText(at.hour)],
    g: (at, { fields }) => ["era", eraName(at.year, fields.era)],
    z: (at, { timeZone, zoneStyle, locale, data }) => [
      "timeZoneName",
      zoneText(timeZone, at.time, zoneStyle, locale, data.zone ?? "GMT"),
    ],
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

  function partsOf(settings, pattern, time) {
    const at = wallTime(time, settings.timeZone);
    const parts = [];
    let literal = "";
    for (const piece of pattern.match(/%[a-zA-Z]|[^%]+/g) ?? []) {
      if (!piece.startsWith("%")) {
        literal +=
          piece === "." && settings.decimal !== "." && parts.at(-1)?.type === "second"
            ? settings.decimal
            : piece;
        continue;
      }
      if (literal !== "") parts.push({ type: "literal", value: literal });
      literal = "";
      const [type, value] = LETTERS[piece[1]](at, settings);
      parts.push({ type, value });
    }
    if (literal !== "") parts.push({ type: "literal", value: literal });
    return parts;
  }

  const joined = (parts) => parts.map((part) => part.value).join("");

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
        joined(partsOf(this.#settings, this.#settings.pattern, timeValue(date))).replaceAll(
          "\u202f",
          " ",
        ));
    }

    formatToParts(date) {
      return partsOf(this.#settings, this.#settings.pattern, timeValue(date));
    }

    formatRange(start, end) {
      if (start === undefined || end === undefined)
        throw new TypeError("startDate or endDate cannot be undefined");
      return native.intl.rangeText(
        this.#settings,
        partsOf,
        wallTime,
        timeValue(start),
        timeValue(end),
      );
    }

    resolvedOptions() {
      const { locale, timeZone, fields, hourCycle, hasHour, dateStyle, timeStyle } = this.#settings;
      const resolved = {
        locale: locale.tag,
        calendar: "gregory",
        numberingSystem: "latn",
        timeZone,
      };
      if (hasHour)
        Object.assign(resolved, { hourCycle, hour12: hourCycle === "h11" || hourCycle === "h12" });
      for (const name of Object.keys(fields))
        if (fields[name] !== undefined) resolved[name] = fields[name];
      if (resolved.minute !== undefined && hasHour) resolved.minute = "2-digit";
      if (resolved.second !== undefined && resolved.minute !== undefined)
        resolved.second = "2-digit";
      if (dateStyle !== undefined) resolved.dateStyle = dateStyle;
      if (timeStyle !== undefined) resolved.timeStyle = timeStyle;
      return resolved;
    }
  }

  native.intl.DateTimeFormat = finish(DateTimeFormat);
});
