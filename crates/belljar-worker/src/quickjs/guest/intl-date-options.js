// From the options of Intl.DateTimeFormat to one pattern, and all else they decide. Adds
// `dateSettings` to `native.intl`; patterns are written as in intl-dates.js.
(function (native) {
  "use strict";

  const { resolve, choice, count, dateData, numberData, canonicalZone } = native.intl;

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

  function hourCycleOf(options, locale, data) {
    const standard = data.hourCycle;
    const { hour12 } = options;
    // As V8 does it: a 24-hour clock asked of a 12-hour locale counts to 24, and the reverse from 0.
    if (hour12 !== undefined)
      return hour12 ? (standard === "h23" ? "h11" : "h12") : standard === "h23" ? "h23" : "h24";
    return choice(options, "hourCycle", ["h11", "h12", "h23", "h24"], locale.hourCycle ?? standard);
  }

  /** The pattern for some date fields, by what is known about others when it is not listed. */
  function datePattern(key, data) {
    const listed = data.patterns.get(key);
    if (listed !== undefined) return listed;
    if (key.startsWith("E")) return key === "E" ? "%A" : datePattern("e" + key.slice(1), data);
    if (key.startsWith("e") && key !== "e") {
      const rest = datePattern(key.slice(1), data);
      return key.endsWith("d") ? data.weekday.replace("{}", rest) : `${rest} %A`;
    }
    if (key === "yd") return `${datePattern("y", data)} (day: ${datePattern("d", data)})`;
    if (key.includes("l") && key !== "l") return datePattern(key.replace("l", "s"), data);
    return { e: "%A", y: "%y", n: "%M", s: "%B", l: "%B", d: "%d" }[key];
  }

  function dateKey({ weekday, year, month, day }) {
    const monthKey =
      month === undefined ? "" : DIGITS.includes(month) ? "n" : month === "long" ? "l" : "s";
    const weekdayKey = weekday === undefined ? "" : weekday === "long" ? "E" : "e";
    return weekdayKey + (year === undefined ? "" : "y") + monthKey + (day === undefined ? "" : "d");
  }

  function timePattern(fields, data, twelve) {
    const { hour, minute, second, fractionalSecondDigits: digits } = fields;
    let pattern = "";
    if (hour !== undefined) {
      const key =
        (twelve ? "h" : "H") + (minute === undefined ? "" : second === undefined ? "m" : "ms");
      pattern = data.times.get(key);
      // With a part of the day in words the AM or PM is left out.
      if (fields.dayPeriod !== undefined)
        pattern = pattern.replace("%p", "%P").replace("\u202f", " ");
    } else if (minute !== undefined) {
      pattern = second === undefined ? "%i" : "%I:%S";
    } else if (second !== undefined) {
      pattern = "%s";
    } else if (fields.dayPeriod !== undefined) {
      pattern = "%P";
    }
    if (digits === undefined) return pattern;
    return /%[sS]/.test(pattern)
      ? pattern.replace(/%[sS]/, "$&.%f")
      : pattern + (pattern === "" ? "%f" : "");
  }

  function withZone(time, fields, data) {
    if (fields.timeZoneName === undefined) return time;
    if (time === "") return "%z";
    return data.zoneFirst ? `%z ${time}` : `${time} %z`;
  }

  /** Date and time together: by how wordy the date is. */
  function joinHalves(date, time, fields, data) {
    if (date === "" || time === "") return date + time;
    const { weekday, month, timeZoneName } = fields;
    if (date === "%A" && timeZoneName === undefined) return data.joins[4].replace("{}", time);
    const style = month === "long" ? (weekday === undefined ? 1 : 0) : month === "short" ? 2 : 3;
    return date + data.joins[style] + time;
  }

  /**
   * The width asked for, where it differs from the locale's habit: two digits when asked for, and
   * once a field asks, its neighbours that ask for the plain number get it.
   */
  function adjustWidths(pattern, fields, data) {
    const asks = (...names) => names.some((name) => fields[name] === "2-digit");
    const date = asks("month", "day");
    const loneWeekday =
      fields.weekday !== undefined && fields.month === undefined && fields.day === undefined;
    // Where twelve hours are the habit, the other clock stays padded.
    const time =
      data.hourCycle !== "h12" && (date || (asks("hour", "minute", "second") && !loneWeekday));
    for (const [name, plain, two, explicit] of [
      ["month", "%M", "%N", date],
      ["day", "%d", "%D", date],
      ["hour", "%h", "%H", time],
    ]) {
      if (fields[name] === "2-digit") pattern = pattern.replace(plain, two);
      else if (explicit && fields[name] === "numeric") pattern = pattern.replace(two, plain);
    }
    return fields.year === "2-digit" ? pattern.replace("%y", "%Y") : pattern;
  }

  function fieldsPattern(fields, data, twelve) {
    let date = dateKey(fields) === "" ? "" : datePattern(dateKey(fields), data);
    if (fields.era !== undefined) date = date.includes("%y") ? `${date} %g` : `%g${date}`;
    const time = withZone(timePattern(fields, data, twelve), fields, data);
    return adjustWidths(joinHalves(date, time, fields, data), fields, data);
  }

  function stylePattern({ dateStyle, timeStyle }, data, twelve) {
    const date = dateStyle === undefined ? "" : data.styles[STYLES.indexOf(dateStyle)];
    if (timeStyle === undefined) return date;
    const clock = twelve ? "h" : "H";
    let time = data.times.get(clock + (timeStyle === "short" ? "m" : "ms"));
    if (timeStyle === "full" && data.fullTime !== undefined && !twelve) time = data.fullTime;
    else if (timeStyle === "full" || timeStyle === "long")
      time = data.zoneFirst ? `%z ${time}` : `${time} %z`;
    return date === "" ? time : date + data.joins[STYLES.indexOf(dateStyle)] + time;
  }

  /** Everything decided by the options. */
  function dateSettings(locales, options, required, defaults) {
    const locale = resolve(locales);
    const data = dateData(locale.name);
    const settings = {
      locale,
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
    const twelve = settings.hourCycle === "h11" || settings.hourCycle === "h12";
    settings.pattern = styled
      ? stylePattern(settings, data, twelve)
      : fieldsPattern(settings.fields, data, twelve);
    settings.hasHour = settings.timeStyle !== undefined || settings.fields.hour !== undefined;
    settings.zoneStyle =
      settings.fields.timeZoneName ?? (settings.timeStyle === "full" ? "long" : "short");
    settings.monthStyle =
      settings.dateStyle === undefined
        ? settings.fields.month
        : settings.dateStyle === "medium"
          ? "short"
          : "long";
    settings.weekdayStyle = settings.dateStyle === undefined ? settings.fields.weekday : "long";
    settings.decimal = numberData(locale.name).decimal;
    return settings;
  }

  native.intl.dateSettings = dateSettings;
});
