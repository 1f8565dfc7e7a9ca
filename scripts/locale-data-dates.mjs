// The dates of a locale, for locale-data.mjs: names, and patterns by skeleton in the order in which
// ICU's pattern generator would have them, so that the guest library chooses the same ones.

const WIDTHS = ["wide", "abbreviated", "narrow"];
const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const STYLES = ["full", "long", "medium", "short"];

/** Names by width, in a date and alone; empty when they are those in a date. */
function namesOf(table, keys) {
  const texts = ["format", "stand-alone"].map((context) =>
    WIDTHS.map((width) => keys.map((key) => table[context][width][key]).join("|")),
  );
  return [...texts[0], ...texts[1].map((text, at) => (text === texts[0][at] ? "" : text))];
}

function periodsOf(table) {
  const result = {};
  for (const key of Object.keys(table.format.wide)) {
    if (key.includes("-alt-")) continue;
    const texts = WIDTHS.map((width) => table.format[width][key] ?? table.format.abbreviated[key]);
    result[key] = texts.every((text) => text === texts[0]) ? texts[0] : texts.join("|");
  }
  return result;
}

/** When each part of the day begins, in hours. */
function dayRules(read, locale) {
  const rules = read("cldr-core/supplemental/dayPeriods.json").supplemental.dayPeriodRuleSet;
  const table = rules[locale] ?? rules[locale.split("-")[0]] ?? {};
  const result = {};
  for (const [name, { _from: from, _before: before, _at: at }] of Object.entries(table)) {
    result[name] = at !== undefined ? [parseInt(at, 10)] : [parseInt(from, 10), parseInt(before, 10)];
  }
  return result;
}

function preferredHour(read, locale) {
  const table = read("cldr-core/supplemental/timeData.json").supplemental.timeData;
  const likely = read("cldr-core/supplemental/likelySubtags.json").supplemental.likelySubtags;
  const region = /-([A-Z]{2}|\d{3})$/.exec(locale)?.[1] ?? likely[locale].split("-").at(-1);
  const language = locale.split("-")[0];
  const found = table[`${language}-${region}`] ?? table[region] ?? table["001"];
  return found._preferred;
}

const text = (value) => (typeof value === "string" ? value : value._value);

/** Patterns by skeleton as CLDR lists them, those for plural forms left out. */
function availableOf(formats) {
  const result = {};
  for (const key of Object.keys(formats).filter((name) => !name.includes("-")).sort()) result[key] = text(formats[key]);
  return result;
}

/** Patterns from one date to another by skeleton and the letter of the field that differs. */
export function dateRanges(read, locale) {
  const all = read(`cldr-dates-full/main/${locale}/ca-gregorian.json`).main[locale].dates.calendars.gregorian;
  const table = all.dateTimeFormats.intervalFormats;
  const result = {};
  for (const [key, value] of Object.entries(table)) {
    if (key.includes("-")) continue;
    if (typeof value === "string") result[key] = value;
    else {
      const entry = {};
      for (const [letter, pattern] of Object.entries(value)) if (!letter.includes("-")) entry[letter] = text(pattern);
      const all = Object.values(entry);
      result[key] = all.every((pattern) => pattern === all[0]) ? { [Object.keys(entry).join("")]: all[0] } : entry;
    }
  }
  return result;
}

const KINDS = ["Era", "Year", "Quarter", "Month", "Week", "Day-Of-Week", "Day", "Hour", "Minute", "Second", "Timezone"];
const FIELDS = { Day: "day", Hour: "hour", Minute: "minute", Second: "second", Month: "month" };

function appendOf(items, fields) {
  const result = {};
  for (const kind of KINDS) {
    const pattern = items[kind];
    if (pattern !== "{0} {1}") result[kind] = pattern.replace("{2}", FIELDS[kind] === undefined ? "" : `'${fields[FIELDS[kind]].displayName}'`);
  }
  return result;
}

// As ICU has them; the JSON of this version leaves the spaces out.
const HAN = ["{1} {0}", "{1} {0}", "{1} {0}", "{1}\u2009{0}"];
const AT = { "zh-Hant": HAN, "zh-Hant-HK": HAN };

export function dates(read, locale, calendar) {
  const all = read(`cldr-dates-full/main/${locale}/ca-gregorian.json`).main[locale].dates.calendars.gregorian;
  const { fields } = read(`cldr-dates-full/main/${locale}/dateFields.json`).main[locale].dates;
  const { dateTimeFormats: joins } = all;
  const styles = (table) => STYLES.map((style) => text(table[style]));
  const result = {
    months: namesOf(all.months, Array.from({ length: 12 }, (_, at) => `${at + 1}`)),
    days: namesOf(all.days, DAYS),
    periods: periodsOf(all.dayPeriods),
    rules: dayRules(read, locale),
    eras: ["eraNames", "eraAbbr", "eraNarrow"].map((width) => `${all.eras[width]["0"]}|${all.eras[width]["1"]}`),
    hour: preferredHour(read, locale),
    date: styles(all.dateFormats),
    time: styles(all.timeFormats),
    at: AT[locale] ?? styles(all["dateTimeFormats-atTime"].standard),
    formats: availableOf(joins.availableFormats),
    append: appendOf(joins.appendItems, fields),
  };
  if (calendar === "buddhist") {
    result.calendar = calendar;
    // The package of this calendar is no longer published: the patterns are the Gregorian ones, with
    // its only era.
    result.eras = ["พุทธศักราช", "พ.ศ.", "พ.ศ."];
    result.date[1] = result.date[1].replace("G ", "");
    result.formats.y = `G ${result.formats.y}`;
  }
  return result;
}
