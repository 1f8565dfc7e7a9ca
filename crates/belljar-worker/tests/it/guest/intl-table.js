// The program that intl_table.rs runs in Node and in a cell: for each locale, each format with a few
// values. It is the body of a function and returns {locale: {format: [text, …]}}.
const CURRENCIES = {
  "en-US": "USD", "en-GB": "GBP", "en-CA": "CAD", "en-AU": "AUD", "en-IN": "INR", "en-NZ": "NZD",
  "en-IE": "EUR", "en-ZA": "ZAR", "de-DE": "EUR", "de-CH": "CHF", "de-AT": "EUR", "fr-FR": "EUR",
  "fr-CA": "CAD", "fr-CH": "CHF", "es-ES": "EUR", "es-MX": "MXN", "es-AR": "ARS", "it-IT": "EUR",
  "nl-NL": "EUR", "nl-BE": "EUR", "pt-BR": "BRL", "pt-PT": "EUR", "pl-PL": "PLN", "ru-RU": "RUB",
  "uk-UA": "UAH", "tr-TR": "TRY", "sv-SE": "SEK", "da-DK": "DKK", "nb-NO": "NOK", "fi-FI": "EUR",
  "cs-CZ": "CZK", "sk-SK": "EUR", "hu-HU": "HUF", "ro-RO": "RON", "el-GR": "EUR", "bg-BG": "EUR",
  "hr-HR": "EUR", "ja-JP": "JPY", "ko-KR": "KRW", "zh-CN": "CNY", "zh-TW": "TWD", "zh-HK": "HKD",
  "ar-EG": "EGP", "ar-SA": "SAR", "ar-AE": "AED", "he-IL": "ILS", "hi-IN": "INR", "vi-VN": "VND",
  "id-ID": "IDR", "ms-MY": "MYR", "th-TH": "THB",
};
const NUMBERS = [0, -1, 5, 21, 1234.5, 12345, 1234567.891, -0.256];
const TIMES = [0, Date.UTC(2024, 2, 5, 15, 4, 9), Date.UTC(2025, 11, 31, 0, 0, 0), Date.UTC(2023, 4, 14, 9, 30)];
const DAY = { year: "numeric", month: "numeric", day: "numeric" };

function numbers(locale, options) {
  return NUMBERS.map((value) => value.toLocaleString(locale, options));
}

function times(locale, ...options) {
  return options.flatMap((each) => TIMES.map((time) => new Date(time).toLocaleString(locale, each)));
}

function relative(locale) {
  const auto = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });
  const short = new Intl.RelativeTimeFormat(locale, { style: "short" });
  const texts = [];
  for (const unit of ["second", "minute", "hour", "day", "week", "month", "year"])
    for (const value of [-5, -1, 0, 1, 2, 21]) texts.push(auto.format(value, unit), short.format(value, unit));
  return texts;
}

function lists(locale) {
  const words = ["a", "b", "c", "d"];
  return ["conjunction", "disjunction", "unit"].flatMap((type) =>
    ["long", "narrow"].flatMap((style) =>
      [1, 2, 3, 4].map((count) => new Intl.ListFormat(locale, { type, style }).format(words.slice(0, count))),
    ),
  );
}

function plurals(locale) {
  return ["cardinal", "ordinal"].flatMap((type) => {
    const rules = new Intl.PluralRules(locale, { type });
    return [0, 1, 2, 3, 5, 8, 11, 12, 21, 22, 100, 101, 1.5, 1e6].map((value) => rules.select(value));
  });
}

function names(locale) {
  const texts = [];
  for (let at = 0; at < 12; at++) {
    const time = Date.UTC(2024, at, at + 1);
    for (const width of ["long", "short", "narrow"]) {
      texts.push(new Intl.DateTimeFormat(locale, { month: width }).format(time));
      texts.push(new Intl.DateTimeFormat(locale, { weekday: width }).format(time));
    }
  }
  return texts;
}

function resolved(locale) {
  const number = new Intl.NumberFormat(locale).resolvedOptions();
  const date = new Intl.DateTimeFormat(locale, { hour: "numeric", minute: "numeric" }).resolvedOptions();
  const { hourCycle, hour12, calendar } = date;
  return [number.locale, number.numberingSystem, date.locale, calendar, hourCycle, `${hour12}`];
}

const FORMATS = {
  number: (locale) => [...numbers(locale), ...numbers(locale, { maximumFractionDigits: 1 })],
  currency: (locale) =>
    [CURRENCIES[locale], "USD", "EUR"].flatMap((currency) => numbers(locale, { style: "currency", currency })),
  percent: (locale) => numbers(locale, { style: "percent", maximumFractionDigits: 1 }),
  compact: (locale) => [
    ...numbers(locale, { notation: "compact" }),
    ...numbers(locale, { notation: "compact", compactDisplay: "long" }),
  ],
  unit: (locale) =>
    ["kilometer", "liter", "megabyte", "celsius", "kilometer-per-hour", "day"].flatMap((unit) =>
      ["short", "long"].flatMap((unitDisplay) => numbers(locale, { style: "unit", unit, unitDisplay })),
    ),
  "short date": (locale) => times(locale, DAY, { dateStyle: "short" }, { ...DAY, month: "2-digit", day: "2-digit" }),
  "long date": (locale) =>
    times(locale, { dateStyle: "medium" }, { dateStyle: "long" }, { ...DAY, month: "long" }, { month: "short", day: "numeric" }),
  "full date": (locale) => times(locale, { dateStyle: "full" }, { ...DAY, weekday: "long", month: "long" }),
  time: (locale) =>
    times(locale, { timeStyle: "short" }, { timeStyle: "medium" }, { hour: "2-digit", minute: "2-digit" }, { hour: "numeric" }),
  "date and time": (locale) =>
    times(locale, undefined, { dateStyle: "medium", timeStyle: "short" }, { dateStyle: "full", timeStyle: "long" }),
  "relative time": relative,
  list: lists,
  plural: plurals,
  names,
  resolved,
};

const table = {};
for (const locale of Object.keys(CURRENCIES)) {
  table[locale] = {};
  for (const format of Object.keys(FORMATS)) table[locale][format] = FORMATS[format](locale);
}
return table;
