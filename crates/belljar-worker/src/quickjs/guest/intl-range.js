// Intl.DateTimeFormat's formatRange: from one date to another, saying once what both share. English
// shortens ("January 2 – 5, 2024"), the other locales write both ends out.
(function (native) {
  "use strict";

  // Thin spaces around the dash, as CLDR has them.
  const DASH = "\u2009–\u2009";
  const DATE_LETTERS = "yYMNBdDAg";

  /** The largest unit in which two wall times differ; undefined when they are the same. */
  function difference(from, to) {
    if (from.year !== to.year) return "year";
    if (from.month !== to.month) return "month";
    if (from.day !== to.day) return "day";
    if (from.hour < 12 !== to.hour < 12) return "half";
    return from.hour !== to.hour || from.minute !== to.minute || from.second !== to.second
      ? "time"
      : undefined;
  }

  function letters(pattern) {
    return (pattern.match(/%[a-zA-Z]/g) ?? []).map((piece) => piece[1]);
  }

  /** Splits "date, time" at the join; either half may be empty. */
  function halves(pattern) {
    const isDate = (letter) => DATE_LETTERS.includes(letter);
    const all = letters(pattern);
    if (!all.some(isDate)) return ["", pattern];
    if (all.every(isDate)) return [pattern, ""];
    const first = all.find((letter) => !isDate(letter));
    const at = pattern.indexOf(`%${first}`);
    return [pattern.slice(0, at), pattern.slice(at)];
  }

  /** Two patterns for a range of dates without time in English, or undefined to write both out. */
  function shortened(pattern, unit) {
    const wordy = pattern.includes("%B");
    if (!wordy || unit === "year") return undefined;
    const upToYear = pattern.replace(/,? %[yY]$/, "");
    if (unit === "day" && !pattern.includes("%A")) {
      const rest = pattern.slice(pattern.search(/%[dD]/));
      return [upToYear, rest];
    }
    return [upToYear, pattern];
  }

  const text = (parts) => parts.map((part) => part.value).join("");

  native.intl.rangeText = function rangeText(settings, partsOf, wallTime, start, end) {
    const { pattern, timeZone, locale } = settings;
    const fill = (piece, time) => text(partsOf(settings, piece, time));
    const whole = fill(pattern, start);
    const unit = difference(wallTime(start, timeZone), wallTime(end, timeZone));
    const [date, time] = halves(pattern);
    if (date === "" && (unit === "year" || unit === "month" || unit === "day")) {
      // Times of different days mean nothing without the days.
      const dated = settings.data.patterns.get("ynd") + settings.data.joins[3] + pattern;
      return fill(dated, start) + DASH + fill(dated, end);
    }
    if (unit === undefined || (whole === fill(pattern, end) && time === ""))
      return whole.replaceAll("\u202f", " ");
    if (locale.name === "ja") return `${whole}～${fill(pattern, end)}`;
    if (time !== "" && (unit === "half" || unit === "time")) {
      const from = unit === "time" ? time.replace("\u202f%p", "") : time;
      return fill(date + from, start) + DASH + fill(time, end);
    }
    const english = locale.name === "en" && time === "";
    const [from, to] = (english ? shortened(pattern, unit) : undefined) ?? [pattern, pattern];
    return fill(from, start) + DASH + fill(to, end);
  };
});
