// Intl.DateTimeFormat's formatRange: from one date to another, saying once what both share, by the
// patterns that CLDR lists for it. Which one is chosen follows ICU's DateIntervalFormat.
(function (native) {
  "use strict";

  const { localeData, patternItems, writtenPattern, bestPattern } = native.intl;

  const DATE_LETTERS = "GyMLEcd";
  const letterOf = (letter) => ({ k: "H", K: "h", z: "v", O: "v" })[letter] ?? letter;

  /** The largest unit in which two wall times differ, as a letter; undefined when they are the same. */
  function difference(from, to) {
    if (from.year <= 0 !== to.year <= 0) return "G";
    if (from.year !== to.year) return "y";
    if (from.month !== to.month) return "M";
    if (from.day !== to.day) return "d";
    if (from.hour < 12 !== to.hour < 12) return "a";
    if (from.hour !== to.hour) return "h";
    if (from.minute !== to.minute) return "m";
    return from.second !== to.second || from.millisecond !== to.millisecond ? "s" : undefined;
  }

  /** Widths of the fields by letter, those of numbers left out; AM and PM follow from the hour. */
  function widthsOf(items) {
    const widths = {};
    for (const { letter, length } of items) {
      if (letter === undefined || letter === "a") continue;
      const name = letterOf(letter);
      const isNumber = "dhHm".includes(name) || (name === "M" && length < 3);
      widths[name] = isNumber || (name === "E" && length < 4) ? 1 : length;
    }
    return widths;
  }

  function distance(wanted, listed) {
    let sum = 0;
    let isSame = true;
    for (const letter of new Set([...Object.keys(wanted), ...Object.keys(listed)])) {
      const [own, other] = [wanted[letter], listed[letter]];
      if (own === undefined || other === undefined) {
        sum += 0x1000;
        isSame = false;
      } else if (letter === "M" && own <= 2 !== other <= 2) sum += 0x100;
      else sum += Math.abs(own - other);
    }
    return { sum, isSame };
  }

  /** The listed ranges nearest to some fields, if they have the same ones. */
  function nearest(wanted, ranges) {
    let best;
    for (const key of Object.keys(ranges)) {
      if (key === "intervalFormatFallback") continue;
      const listed = widthsOf(patternItems(key));
      const found = { ...distance(wanted, listed), listed, patterns: ranges[key] };
      if (best === undefined || found.sum < best.sum) best = found;
    }
    return best?.isSame ? best : undefined;
  }

  /** Entries are by letter; letters with the same pattern share one. */
  function patternFor({ patterns }, letter) {
    const key = Object.keys(patterns).find((letters) => letters.includes(letter));
    return key && patterns[key];
  }

  /** Fields as wide as asked for, where the pattern has them as wide as it was listed. */
  function widened(pattern, wanted, listed) {
    return patternItems(pattern).map((item) => {
      const letter = item.letter && letterOf(item.letter);
      const isListed = listed[letter] === item.length && wanted[letter] > item.length;
      return isListed ? { ...item, length: wanted[letter] } : item;
    });
  }

  /** Two halves: the second begins where a field comes again. */
  function halves(items) {
    const seen = new Set();
    const at = items.findIndex(({ letter }) => {
      if (letter === undefined) return false;
      const name = letterOf(letter);
      if (seen.has(name)) return true;
      seen.add(name);
      return false;
    });
    return at < 0 ? [items, []] : [items.slice(0, at), items.slice(at)];
  }

  /** The items of a range of dates or of times, or undefined to write both ends out. */
  function rangeItems(wanted, ranges, letter) {
    const found = nearest(wanted, ranges);
    if (found === undefined) return undefined;
    const clock = letter === "h" && wanted.H !== undefined ? "H" : letter;
    let pattern = patternFor(found, clock);
    if (pattern === undefined && letter === "a") pattern = patternFor(found, wanted.h ? "h" : "H");
    let { listed } = found;
    if (pattern === undefined && "My".includes(letter) && wanted.d && wanted[letter] === undefined) {
      const extended = nearest({ ...wanted, [letter]: 1 }, ranges);
      pattern = extended && patternFor(extended, letter);
      listed = extended?.listed;
    }
    return pattern === undefined ? undefined : halves(widened(pattern, wanted, listed));
  }

  const text = (parts) => parts.map((part) => part.value).join("");
  const glued = (pattern, first, second) => pattern.replace(/\{([01])\}/g, (_, at) => (at === "0" ? first : second));
  const skeleton = (items) => writtenPattern(items.filter(({ letter }) => letter !== undefined && letter !== "a"));
  const only = (items, test) => items.filter(({ letter }) => letter !== undefined && test(letter));

  native.intl.rangeText = function rangeText(settings, partsOf, wallTime, start, end) {
    const { timeZone, data } = settings;
    const fill = (list, time) => text(partsOf(settings, list, time));
    const ranges = localeData(settings.locale.name, "ranges");
    const fallback = ranges.intervalFormatFallback;
    const both = (list) => glued(fallback, fill(list, start), fill(list, end));
    const best = (list) => patternItems(bestPattern(data, skeleton(list), true));
    const items = best(settings.items);
    const letter = difference(wallTime(start, timeZone), wallTime(end, timeZone));
    const isDate = (name) => DATE_LETTERS.includes(name);
    const dates = only(items, isDate);
    const times = only(items, (name) => !isDate(name));
    if (letter === undefined || fill(items, start) === fill(items, end))
      if (times.length === 0 || letter === undefined || !isDate(letter))
        return fill(settings.items, start).replaceAll("\u202f", " ");
    const range = (list) => {
      const found = rangeItems(widthsOf(list), ranges, letter);
      return found && fill(found[0], start) + fill(found[1], end);
    };
    if (times.length === 0) return range(dates) ?? both(items);
    if (isDate(letter)) {
      // Times of different days mean nothing without the days.
      const dated = ["y", "M", "d"].map((name) => ({ letter: name, length: 1 }));
      return both(dates.length === 0 ? best([...dated, ...times]) : items);
    }
    const clock = range(times) ?? both(dates.length === 0 ? items : best(times));
    if (dates.length === 0) return clock;
    return glued(data.at[2], clock, fill(best(dates), start));
  };
});
