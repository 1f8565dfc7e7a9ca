// Capitals that depend on the language: Turkish and Azeri have i with and without a dot, each with its
// capital. Adds `dotted` to `native.intl`.
(function (native) {
  "use strict";

  function isDotted(locales) {
    const [tag] = typeof locales === "string" ? [locales] : (locales ?? []);
    return typeof tag === "string" && /^(tr|az)(-|$)/i.test(tag);
  }

  /** A text whose letters i are those that the other case is to be made of. */
  native.intl.dotted = function dotted(text, method, locales) {
    if (text === null || text === undefined || !isDotted(locales)) return text;
    if (method === "toLocaleUpperCase") return `${text}`.replaceAll("i", "İ");
    return `${text}`.replaceAll("İ", "i").replaceAll("I", "ı");
  };
});
