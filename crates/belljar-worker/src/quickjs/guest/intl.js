// Intl, and the methods of numbers, dates and strings that follow a locale. Only the doors are
// here: the code behind them is compiled on first use.
(function (native) {
  "use strict";

  const { apply } = Reflect;
  const LOCALES = ["intl-locales"];
  const NUMBERS = [
    ...LOCALES,
    "intl-decimal",
    "intl-plural",
    "intl-units",
    "intl-number-options",
    "intl-number-pattern",
    "intl-number",
  ];
  const DATES = [
    ...LOCALES,
    "intl-skeleton",
    "intl-zone",
    "intl-date-options",
    "intl-date",
  ];
  const FILES = {
    NumberFormat: NUMBERS,
    PluralRules: NUMBERS,
    DateTimeFormat: DATES,
    Locale: LOCALES,
    Collator: [...LOCALES, "intl-collate"],
    ListFormat: [...LOCALES, "intl-text"],
    RelativeTimeFormat: [...NUMBERS, "intl-text"],
    Segmenter: [...LOCALES, "intl-segments"],
  };
  native.intl = { __proto__: null };

  function method(target, name, value) {
    Object.defineProperty(target, name, {
      value,
      writable: true,
      enumerable: false,
      configurable: true,
    });
  }

  /** NumberFormat, DateTimeFormat and Collator may be called without `new`, as in every engine. */
  function callable(type) {
    const open = new Proxy(type, { apply: (target, _receiver, args) => new target(...args) });
    method(type.prototype, "constructor", open);
    return open;
  }

  const Intl = {};
  for (const name of Object.keys(FILES)) {
    const open = name === "NumberFormat" || name === "DateTimeFormat" || name === "Collator";
    native.lazy(Intl, name, FILES[name], () =>
      open ? callable(native.intl[name]) : native.intl[name],
    );
  }
  method(Intl, "getCanonicalLocales", function getCanonicalLocales(locales) {
    native.need("intl-locales");
    return native.intl.canonicalLocales(locales);
  });
  Object.defineProperty(Intl, Symbol.toStringTag, { value: "Intl", configurable: true });
  method(globalThis, "Intl", Intl);

  const recent = { __proto__: null };

  /** A formatter; each door remembers its last one without options, because loops ask again. */
  function formatter(name, locales, options, required, defaults) {
    const door = required ?? name;
    const last = recent[door];
    if (options === undefined && last !== undefined && last.locales === locales)
      return last.formatter;
    native.need(...FILES[name]);
    const made = new native.intl[name](locales, options, required, defaults);
    if (options === undefined && typeof locales !== "object") {
      recent[door] = { locales, formatter: made };
    }
    return made;
  }

  for (const type of [Number, BigInt]) {
    const { valueOf } = type.prototype;
    method(type.prototype, "toLocaleString", function toLocaleString(locales, options) {
      return formatter("NumberFormat", locales, options).format(apply(valueOf, this, []));
    });
  }

  const dateValue = Date.prototype.valueOf;
  const dateMethods = {
    toLocaleString: ["any", "all"],
    toLocaleDateString: ["date", "date"],
    toLocaleTimeString: ["time", "time"],
  };
  for (const [name, [required, defaults]] of Object.entries(dateMethods)) {
    const methods = {
      [name](locales, options) {
        const time = apply(dateValue, this, []);
        if (time !== time) return "Invalid Date";
        return formatter("DateTimeFormat", locales, options, required, defaults).format(time);
      },
    };
    method(Date.prototype, name, methods[name]);
  }

  method(String.prototype, "localeCompare", function localeCompare(that, locales, options) {
    return formatter("Collator", locales, options).compare(this, that);
  });

  for (const name of ["toLocaleUpperCase", "toLocaleLowerCase"]) {
    const plain = String.prototype[name];
    const methods = {
      [name](locales) {
        if (locales === undefined) return apply(plain, this, []);
        native.need("intl-case");
        return apply(plain, native.intl.dotted(this, name, locales), []);
      },
    };
    method(String.prototype, name, methods[name]);
  }

  const elementText = (value, locales, options) =>
    value === null || value === undefined ? "" : value.toLocaleString(locales, options);
  for (const prototype of [Array.prototype, Object.getPrototypeOf(Uint8Array.prototype)]) {
    method(prototype, "toLocaleString", function toLocaleString(locales, options) {
      return Array.from(this, (value) => elementText(value, locales, options)).join(",");
    });
  }
});
