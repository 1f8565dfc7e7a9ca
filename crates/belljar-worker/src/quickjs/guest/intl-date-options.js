// From the options of Intl.DateTimeFormat to one pattern, and all else they decide. Adds
// `dateSettings` to `native.intl`; patterns are chosen by intl-skeleton.js.
(function (native) {
  "use strict";

  const { resolve, tell, choice, count, localeData, numberData, numberSystem } = native.intl;
  const { dateData, patternItems, writtenPattern, bestPattern, canonicalZone } = native.intl;

  const DATE_FIELDS = ["weekday", "year", "month", "day"];
  const TIME_FIELDS = ["dayPeriod", "hour", "minute", "second", "fractionalSecondDigits"];
  const STYLES = ["full", "long", "medium", "short"];
  const TEXT = ["narrow", "short", "long"];
  const DIGITS = ["2-digit", "numeric"];
  const ZONE_NAMES = ["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"];

  function readFields(options) {
    return {
      weekday: choice(options, "weekday", TEXT),
      era: choice(options, "era", TEXT),
      year: choice(options, "year", DIGITS),
      month: choice(options, "month", [...DIGITS, ...TEXT]),
      day: choice(options, "day", DIGITS),
      dayPeriod: choice(options, "dayPeriod", TEXT),
      hour: choice(options, "hour", DIGITS),
      minute: choice(options, "minute", DIGITS),
      second: choice(options, "second", DIGITS),
      fractionalSecondDigits: count(options, "fractionalSecondDigits", 1, 3),
      timeZoneName: choice(options, "timeZoneName", ZONE_NAMES),
    };
  }

  /** Which fields are shown when none was asked for: `defaults` is "date", "time" or "all". */
  function addDefaults(fields, required, defaults) {
    const has = (names) => names.some((name) => fields[name] !== undefined);
    const asked =
      (required !== "time" && has(DATE_FIELDS)) || (required !== "date" && has(TIME_FIELDS));
    if (asked) return;
    if (defaults !== "time") for (const name of ["year", "month", "day"]) fields[name] = "numeric";
    if (defaults !== "date")
      for (const name of ["hour", "minute", "second"]) fields[name] = "numeric";
  }

  function checkStyles(options, settings, required) {
    const { dateStyle, timeStyle, fields } = settings;
    if (dateStyle === undefined && timeStyle === undefined) return;
    const explicit = Object.keys(fields).find((name) => fields[name] !== undefined);
    if (explicit !== undefined) {
      throw new TypeError(
        `Can't set option ${explicit} when ${dateStyle !== undefined ? "dateStyle" : "timeStyle"} is used`,
      );
    }
    if (required === "date" && timeStyle !== undefined)
      throw new TypeError("Invalid option : timeStyle");
    if (required === "time" && dateStyle !== undefined)
      throw new TypeError("Invalid option : dateStyle");
  }

  const CYCLES = { h11: "K", h12: "h", h23: "H", h24: "k" };
  const cycleOf = (letter) => Object.keys(CYCLES).find((cycle) => CYCLES[cycle] === letter);

  function hourCycleOf(options, locale, data) {
    const standard = cycleOf(data.hour);
    const { hour12 } = options;
    const asked = choice(options, "hourCycle", Object.keys(CYCLES));
    // As V8 does it: a 24-hour clock asked of a 12-hour locale counts to 24, and the reverse from 0.
    if (hour12 !== undefined)
      return hour12 ? (standard === "h23" ? "h11" : "h12") : standard === "h23" ? "h23" : "h24";
    const { hc } = locale.extension;
    return asked ?? (Object.hasOwn(CYCLES, hc ?? "") ? hc : standard);
  }

  const WIDTHS = { narrow: 5, short: 3, long: 4, "2-digit": 2, numeric: 1 };
  const ZONE_LETTERS = {
    short: "z",
    long: "zzzz",
    shortOffset: "O",
    longOffset: "OOOO",
    shortGeneric: "v",
    longGeneric: "vvvv",
  };

  /** The fields as letters of a skeleton. */
  function skeletonFor(fields, cycle) {
    const letters = { weekday: "E", era: "G", year: "y", month: "M", day: "d", hour: CYCLES[cycle] };
    Object.assign(letters, { minute: "m", second: "s" });
    let skeleton = "";
    for (const name of Object.keys(letters))
      if (fields[name] !== undefined) skeleton += letters[name].repeat(WIDTHS[fields[name]]);
    const { dayPeriod, fractionalSecondDigits: digits, timeZoneName: zone } = fields;
    if (dayPeriod !== undefined) skeleton += { short: "B", long: "BBBB", narrow: "BBBBB" }[dayPeriod];
    if (digits !== undefined) skeleton += "S".repeat(digits);
    return skeleton + (zone === undefined ? "" : ZONE_LETTERS[zone]);
  }

  /** A pattern with another clock; which one it has does not change what else is shown. */
  function withCycle(pattern, cycle) {
    const items = patternItems(pattern).map((item) =>
      /[hHkK]/.test(item.letter ?? "") ? { ...item, letter: CYCLES[cycle] } : item,
    );
    return writtenPattern(items);
  }

  function stylePattern({ dateStyle, timeStyle, hourCycle }, data) {
    const date = data.date[STYLES.indexOf(dateStyle)];
    if (timeStyle === undefined) return date;
    const time = data.time[STYLES.indexOf(timeStyle)];
    const join = data.at[STYLES.indexOf(dateStyle)];
    const pattern =
      dateStyle === undefined ? time : join.replace("{1}", () => date).replace("{0}", () => time);
    const items = patternItems(pattern);
    const clock = items.find(({ letter }) => /[hHkK]/.test(letter ?? ""));
    if (clock.letter === CYCLES[hourCycle]) return pattern;
    const fields = items.filter(({ letter }) => letter !== undefined && !/[abB]/.test(letter));
    const skeleton = fields.map((item) =>
      item === clock ? { ...item, letter: CYCLES[hourCycle] } : item,
    );
    return withCycle(bestPattern(data, writtenPattern(skeleton)), hourCycle);
  }

  /** The items of the pattern; programs ask for the same few again and again. */
  function itemsFor(settings, styled) {
    const { data, fields, dateStyle, timeStyle, hourCycle } = settings;
    const skeleton = styled ? "" : skeletonFor(fields, hourCycle);
    const key = styled ? `${dateStyle} ${timeStyle} ${hourCycle}` : `${skeleton} ${data.decimal}`;
    const kept = data.items.get(key);
    if (kept !== undefined) return kept;
    const pattern = styled
      ? stylePattern(settings, data)
      : withCycle(bestPattern(data, skeleton), hourCycle);
    if (data.items.size >= 64) data.items.clear();
    const items = patternItems(pattern);
    data.items.set(key, items);
    return items;
  }

  const CALENDARS = { __proto__: null, gregory: true, gregorian: true, iso8601: true };

  /** The locale's calendar, or the Gregorian one when it is asked for; no other is here. */
  function calendarOf(options, locale) {
    const own = localeData(locale.name, "dates").calendar ?? "gregory";
    if (options.calendar !== undefined && !/^[a-z0-9]{3,8}(-[a-z0-9]{3,8})*$/i.test(`${options.calendar}`))
      throw new RangeError(`Invalid calendar : ${options.calendar}`);
    for (const wanted of [options.calendar, locale.extension.ca]) {
      if (wanted === undefined) continue;
      const name = `${wanted}`.toLowerCase();
      if (name === own || CALENDARS[name]) return name === own ? own : "gregory";
      tell(`the calendar ${name} is not available: written in ${own}`);
    }
    return own;
  }

  /** Everything decided by the options. */
  function dateSettings(locales, options, required, defaults) {
    const locale = resolve(locales, ["ca", "hc", "nu"]);
    const calendar = calendarOf(options, locale);
    const system = numberSystem(locale, options.numberingSystem);
    const data = dateData(locale.name, calendar);
    const numbers = numberData(locale.name, system);
    data.decimal = numbers.decimal;
    const settings = {
      locale,
      calendar,
      system,
      data,
      timeZone: canonicalZone(options.timeZone),
      fields: readFields(options),
      dateStyle: choice(options, "dateStyle", STYLES),
      timeStyle: choice(options, "timeStyle", STYLES),
      hourCycle: hourCycleOf(options, locale, data),
    };
    checkStyles(options, settings, required);
    const styled = settings.dateStyle !== undefined || settings.timeStyle !== undefined;
    if (!styled) addDefaults(settings.fields, required, defaults);
    settings.items = itemsFor(settings, styled);
    settings.hasHour = settings.timeStyle !== undefined || settings.fields.hour !== undefined;
    return settings;
  }

  native.intl.dateSettings = dateSettings;
});
