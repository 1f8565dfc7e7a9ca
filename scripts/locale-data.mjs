// Cuts the locale data of CLDR's JSON packages down to what the guest library reads:
// `node locale-data.mjs NODE_MODULES OUT`. Each locale becomes one file of lines `section JSON`; a
// locale with a parent holds what differs from it, and null where the parent has more.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dateRanges, dates } from "./locale-data-dates.mjs";

const [modules, out] = process.argv.slice(2);
const read = (path) => JSON.parse(readFileSync(join(modules, path), "utf8"));
const supplemental = (name) => read(`cldr-core/supplemental/${name}.json`).supplemental;

/** Locales and the one that each is written as a difference from. */
const LOCALES = {
  en: "", "en-001": "en", "en-GB": "en-001", "en-AU": "en-001", "en-NZ": "en-001", "en-IE": "en-001",
  "en-ZA": "en-001", "en-IN": "en-001", "en-SG": "en-001", "en-HK": "en-001", "en-CA": "en",
  de: "", "de-AT": "de", "de-CH": "de", fr: "", "fr-CA": "fr", "fr-CH": "fr", "fr-BE": "fr",
  es: "", "es-419": "es", "es-MX": "es-419", "es-AR": "es-419", "es-CO": "es-419", "es-CL": "es-419",
  "es-PE": "es-419", "es-US": "es-419", it: "", "it-CH": "it", nl: "", "nl-BE": "nl",
  pt: "", "pt-PT": "pt", pl: "", ru: "", uk: "", tr: "", sv: "", da: "", no: "", fi: "", cs: "",
  sk: "", hu: "", ro: "", el: "", bg: "", hr: "", ja: "", ko: "", zh: "", "zh-Hant": "",
  "zh-Hant-HK": "zh-Hant", "zh-Hans-SG": "zh", ar: "", "ar-EG": "ar", "ar-SA": "ar", "ar-AE": "ar",
  he: "", hi: "", vi: "", id: "", ms: "", th: "",
};
/** Locales whose calendar is not the Gregorian one, which is here as well. */
const CALENDARS = { th: "buddhist" };

const fractions = supplemental("currencyData").currencyData.fractions;
const numbering = supplemental("numberingSystems").numberingSystems;
const plurals = supplemental("plurals")["plurals-type-cardinal"];
const ordinals = supplemental("ordinals")["plurals-type-ordinal"];
const ranges = read("cldr-core/supplemental/pluralRanges.json").supplemental.plurals;
const likely = supplemental("likelySubtags").likelySubtags;

/** Currencies that some country uses today. */
function currentCurrencies() {
  const found = new Set();
  for (const uses of Object.values(supplemental("currencyData").currencyData.region)) {
    for (const use of uses) {
      for (const [code, { _to: end, _tender: tender }] of Object.entries(use))
        if (end === undefined && tender !== "false") found.add(code);
    }
  }
  return [...found].sort();
}
const CURRENCIES = currentCurrencies();

const UNITS =
  "acre bit byte celsius centimeter day degree fahrenheit fluid-ounce foot gallon gigabit gigabyte gram hectare hour inch kilobit kilobyte kilogram kilometer liter megabit megabyte meter microsecond mile mile-scandinavian milliliter millimeter millisecond minute month nanosecond ounce percent petabyte pound second stone terabit terabyte week yard year kilometer-per-hour mile-per-hour meter-per-second liter-per-kilometer mile-per-gallon".split(" ");
const RELATIVE = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
const METAZONES =
  "Africa_Central Africa_Eastern Africa_Southern Africa_Western Alaska America_Central America_Eastern America_Mountain America_Pacific Arabian Argentina Atlantic Australia_Central Australia_Eastern Australia_Western Bangladesh Brasilia Chile China Colombia Europe_Central Europe_Eastern Europe_Western GMT Gulf Hawaii_Aleutian Hawaii Hong_Kong India Indochina Indonesia_Central Indonesia_Eastern Indonesia_Western Iran Israel Japan Korea Malaysia Mexico_Pacific Moscow Nepal New_Zealand Newfoundland Pakistan Peru Philippines Singapore Taipei Venezuela".split(" ");

const without = (object, test) => Object.fromEntries(Object.entries(object).filter(([key]) => !test(key)));
const rule = (text) => text.split("@")[0].trim();

function rulesOf(table) {
  const rules = {};
  for (const [key, text] of Object.entries(table ?? {})) {
    const name = key.replace("pluralRule-count-", "");
    if (name !== "other") rules[name] = rule(text);
  }
  return rules;
}

/** `text|text` for the categories of a language, each left out when it is like the last one. */
function counted(table, prefix, categories) {
  const texts = categories.map((name) => table[prefix + name] ?? table[`${prefix}other`]);
  if (texts.every((text) => text === texts.at(-1))) return texts.at(-1);
  return texts.join("|");
}

/** A pattern for each power of ten from 3; empty when it is the one before with one more zero. */
function compact(table, categories) {
  const list = [];
  let last = "";
  for (let power = 3; power < 20; power += 1) {
    const prefix = `1${"0".repeat(power)}-count-`;
    if (table[`${prefix}other`] === undefined) break;
    // Some languages leave the digit out when it is 1: `mille`.
    const one = table[`${prefix}1`];
    const text = (one === undefined ? "" : `=${one}=`) + counted(table, prefix, categories);
    const longer = (pattern) => pattern.replace(/0+/g, "$&0");
    const next = last.split("|").map(longer).join("|");
    list.push(text === next ? "" : text);
    last = text;
  }
  return list;
}

function numberSystem(numbers, system, categories) {
  const symbols = numbers[`symbols-numberSystem-${system}`];
  const money = numbers[`currencyFormats-numberSystem-${system}`];
  const decimal = numbers[`decimalFormats-numberSystem-${system}`];
  if (symbols === undefined) return undefined;
  const names = "decimal group minusSign plusSign percentSign exponential infinity nan superscriptingExponent";
  const result = Object.fromEntries(names.split(" ").map((name) => [name, symbols[name]]));
  if (symbols.currencyDecimal !== undefined) result.moneyDecimal = symbols["currencyDecimal"];
  if (symbols.currencyGroup !== undefined) result.moneyGroup = symbols["currencyGroup"];
  const misc = numbers[`miscPatterns-numberSystem-${system}`];
  Object.assign(result, {
    standard: decimal.standard,
    percent: numbers[`percentFormats-numberSystem-${system}`].standard,
    currency: money.standard,
    accounting: money.accounting,
    short: compact(decimal.short.decimalFormat, categories),
    long: compact(decimal.long.decimalFormat, categories),
    shortMoney: compact((money.short ?? numbers["currencyFormats-numberSystem-latn"].short)?.standard ?? {}, categories),
    named: counted(money, "unitPattern-count-", categories),
    range: misc.range,
    approximately: symbols.approximatelySign,
  });
  return result;
}

function numbersOf(locale, language) {
  const { numbers } = read(`cldr-numbers-full/main/${locale}/numbers.json`).main[locale];
  const plural = rulesOf(plurals[locale] ?? plurals[language]);
  const categories = [...Object.keys(plural), "other"];
  const system = numbers.defaultNumberingSystem;
  const result = { system, minimumGrouping: Number(numbers.minimumGroupingDigits), plural, ordinal: rulesOf(ordinals[locale] ?? ordinals[language]) };
  const pairs = {};
  for (const [key, end] of Object.entries(ranges[language] ?? {})) {
    const [, from, to] = /start-(\w+)-end-(\w+)/.exec(key);
    if (to !== end) pairs[`${from}-${to}`] = end;
  }
  result.pluralRanges = pairs;
  for (const name of new Set(["latn", system, numbers.otherNumberingSystems.native])) {
    const found = numberSystem(numbers, name, categories);
    if (found !== undefined) result[name] = found;
  }
  return { result, categories };
}

function currenciesOf(locale, categories) {
  const { currencies } = read(`cldr-numbers-full/main/${locale}/currencies.json`).main[locale].numbers;
  const symbols = {};
  const names = {};
  for (const code of CURRENCIES) {
    const entry = currencies[code];
    if (entry === undefined) continue;
    const symbol = entry.symbol ?? code;
    const narrow = entry["symbol-alt-narrow"] ?? symbol;
    if (symbol !== code || narrow !== code) symbols[code] = symbol === narrow ? symbol : `${symbol}|${narrow}`;
    const digits = fractions[code]?._digits;
    const name = entry.displayName;
    if (name === undefined) continue;
    names[code] = counted({ "displayName-count-other": name, ...entry }, "displayName-count-", categories);
    if (digits === undefined) continue;
  }
  return { symbols, names };
}

function unitsOf(locale, categories) {
  const { units } = read(`cldr-units-full/main/${locale}/units.json`).main[locale];
  const result = {};
  for (const width of ["long", "short", "narrow"]) {
    const table = units[width];
    result[width] = { per: table.per.compoundUnitPattern };
    for (const unit of UNITS) {
      const key = Object.keys(table).find((name) => name.endsWith(`-${unit}`) && name.split("-").length === unit.split("-").length + 1);
      const entry = table[key];
      if (entry?.["unitPattern-count-other"] === undefined) continue;
      const text = counted(entry, "unitPattern-count-", categories);
      const per = entry.perUnitPattern;
      result[width][unit] = per === undefined ? text : `${text}/|${per}`;
    }
  }
  return result;
}

function relativeOf(locale, categories) {
  const { fields } = read(`cldr-dates-full/main/${locale}/dateFields.json`).main[locale].dates;
  const result = {};
  for (const unit of RELATIVE) {
    for (const style of ["", "-short", "-narrow"]) {
      const field = fields[unit + style];
      const entry = {};
      for (const key of Object.keys(field))
        if (key.startsWith("relative-type-")) entry[key.replace("relative-type-", "")] = field[key];
      const times = (name) => counted(field[`relativeTime-type-${name}`] ?? {}, "relativeTimePattern-count-", categories);
      Object.assign(entry, { past: times("past"), future: times("future") });
      if (style === "" || JSON.stringify(entry) !== JSON.stringify(result[unit])) result[unit + style] = entry;
    }
  }
  return result;
}

function listsOf(locale) {
  const { listPatterns } = read(`cldr-misc-full/main/${locale}/listPatterns.json`).main[locale];
  const result = {};
  for (const [key, table] of Object.entries(listPatterns)) {
    const name = key.replace("listPattern-type-", "");
    result[name] = ["start", "middle", "end", "2"].map((part) => table[part]).join("|");
  }
  return result;
}

function zonesOf(locale) {
  const names = read(`cldr-dates-full/main/${locale}/timeZoneNames.json`).main[locale].dates.timeZoneNames;
  const result = { gmt: names.gmtFormat, hour: names.hourFormat, meta: {}, zone: {} };
  const six = (entry) => {
    const texts = ["long", "short"].flatMap((width) => ["generic", "standard", "daylight"].map((kind) => entry[width]?.[kind] ?? ""));
    return texts.join("|").replace(/\|+$/, "");
  };
  for (const name of METAZONES) {
    const entry = names.metazone?.[name];
    if (entry !== undefined && six(entry) !== "") result.meta[name] = six(entry);
  }
  const zones = { UTC: names.zone.Etc?.UTC, "Europe/London": names.zone.Europe?.London, "Europe/Dublin": names.zone.Europe?.Dublin, "Pacific/Honolulu": names.zone.Pacific?.Honolulu };
  for (const [name, entry] of Object.entries(zones)) if (entry !== undefined && six(entry) !== "") result.zone[name] = six(entry);
  return result;
}

/** The data of a locale that differ from its parent; undefined when none do. */
function difference(own, parent) {
  if (own === null || typeof own !== "object" || Array.isArray(own) || typeof parent !== "object") {
    return JSON.stringify(own) === JSON.stringify(parent) ? undefined : own;
  }
  const result = {};
  for (const key of Object.keys(own)) {
    const other = parent[key] === undefined ? own[key] : difference(own[key], parent[key]);
    if (other !== undefined) result[key] = other;
  }
  for (const key of Object.keys(parent)) if (own[key] === undefined) result[key] = null;
  return Object.keys(result).length === 0 ? undefined : result;
}

function sectionsOf(locale) {
  const [language] = locale.split("-");
  const { result: numbers, categories } = numbersOf(locale, language);
  const { symbols, names } = currenciesOf(locale, categories);
  const calendar = CALENDARS[locale];
  const sections = { numbers, symbols, currencies: names, dates: dates(read, locale, calendar) };
  if (calendar !== undefined) sections.gregory = dates(read, locale);
  return Object.assign(sections, {
    ranges: dateRanges(read, locale),
    units: unitsOf(locale, categories),
    relative: relativeOf(locale, categories),
    lists: listsOf(locale),
    zones: zonesOf(locale),
  });
}

/** Regions of CLDR that are written like a locale: its own and those without a difference. */
function sameRegions(locale, sections, regionLocales) {
  const home = /-([A-Z]{2})$/.exec(likely[locale] ?? "")?.[1];
  const same = new Set(home === undefined ? [] : [home]);
  for (const other of regionLocales) {
    const own = sectionsOf(other);
    if (Object.keys(own).every((name) => difference(own[name], sections[name]) === undefined)) same.add(other.split("-").at(-1));
  }
  return [...same];
}

/** One line each: locale, parent, regions. */
function write() {
  mkdirSync(out, { recursive: true });
  for (const name of readdirSync(out)) if (name.endsWith(".txt")) rmSync(join(out, name));
  const there = readdirSync(join(modules, "cldr-dates-full/main"));
  const done = {};
  const index = {};
  for (const [locale, parent] of Object.entries(LOCALES)) {
    done[locale] = sectionsOf(locale);
    const lines = Object.entries(done[locale]).flatMap(([name, section]) => {
      const own = parent === "" ? section : difference(section, done[parent][name]);
      return own === undefined ? [] : [`${name} ${JSON.stringify(own)}\n`];
    });
    writeFileSync(join(out, `${locale}.txt`), lines.join(""));
    const regions = there.filter((name) => new RegExp(`^${locale}-[A-Z]{2}$`).test(name) && LOCALES[name] === undefined);
    index[locale] = `${parent} ${sameRegions(locale, done[locale], regions).join(",")}`.trim();
  }
  const digits = {};
  for (const code of CURRENCIES) {
    const found = fractions[code]?._digits;
    if (found !== undefined && found !== "2") (digits[found] ??= []).push(code);
  }
  const systems = Object.fromEntries(
    Object.entries(numbering).filter(([, system]) => system._type === "numeric").map(([name, system]) => [name, system._digits.codePointAt(0)]),
  );
  delete systems.hanidec;
  writeFileSync(join(out, "root.txt"), `locales ${JSON.stringify(index)}\ndigits ${JSON.stringify(digits)}\nsystems ${JSON.stringify(systems)}\nmetazones ${JSON.stringify(metazones())}\n`);
}

// Zones that CLDR has by the name they had first.
const RENAMED = {
  "Asia/Calcutta": "Asia/Kolkata",
  "Asia/Saigon": "Asia/Ho_Chi_Minh",
  "Asia/Katmandu": "Asia/Kathmandu",
  "Asia/Rangoon": "Asia/Yangon",
  "America/Buenos_Aires": "America/Argentina/Buenos_Aires",
  "America/Indianapolis": "America/Indiana/Indianapolis",
  "Europe/Kiev": "Europe/Kyiv",
};

/** The zones of each metazone of today. */
function metazones() {
  const result = {};
  const walk = (table, path) => {
    if (Array.isArray(table)) {
      const name = table.at(-1).usesMetazone;
      if (name !== undefined && name._to === undefined && METAZONES.includes(name._mzone)) (result[name._mzone] ??= []).push(path);
      return;
    }
    for (const [key, value] of Object.entries(table)) walk(value, path === "" ? key : `${path}/${key}`);
  };
  walk(supplemental("metaZones").metaZones.metazoneInfo.timezone, "");
  for (const zones of Object.values(result))
    for (const zone of [...zones]) if (RENAMED[zone] !== undefined) zones.push(RENAMED[zone]);
  return Object.fromEntries(Object.entries(result).map(([name, zones]) => [name, zones.join(" ")]));
}

write();
