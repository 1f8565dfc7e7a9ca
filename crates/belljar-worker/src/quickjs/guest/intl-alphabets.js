// Letters that an alphabet has at places of their own, for texts beyond ASCII in Intl.Collator. Adds
// `alphabetOf` to `native.intl`.
(function (native) {
  "use strict";

  // Letters of an alphabet that come after another: `o<ö` is o, then ö as a letter of its own.
  const SCANDINAVIAN = "z<æä<øöő<å d<đ";
  // Letters that decompose, and stay letters: for any language.
  const CYRILLIC = "г<ґ е<є и<і<ї<й";
  // Languages put their own script in front of Latin.
  const SCRIPTS = {
    __proto__: null,
    el: [0x370, 0x3ff],
    bg: [0x400, 0x52f],
    ru: [0x400, 0x52f],
    uk: [0x400, 0x52f],
    he: [0x590, 0x5ff],
    ar: [0x600, 0x6ff],
    hi: [0x900, 0x97f],
    th: [0xe00, 0xe7f],
    ko: [0xac00, 0xd7a3],
  };
  const ALPHABETS = {
    __proto__: null,
    cs: "c<č r<ř s<š z<ž",
    da: SCANDINAVIAN,
    es: "n<ñ",
    fi: "z<å<äæ<öø",
    hr: "c<č<ć d<đ s<š z<ž",
    hu: "o<öő u<üű",
    no: SCANDINAVIAN,
    pl: "a<ą c<ć e<ę l<ł n<ń o<ó s<ś z<ź<ż",
    ro: "a<ă<â i<î s<șş t<țţ",
    sk: "a<ä c<č o<ô r<ř s<š z<ž",
    sv: "z<å<äæ<öø",
    tr: "c<ç g<ğ h<ı o<ö s<ş u<ü",
    vi: "a<ă<â d<đ e<ê o<ô<ơ u<ư",
  };
  const [PRIVATE, UPPER] = [0xe000, 0x100];
  const alphabets = new Map();

  /** {pattern, places, weights}: letters become private characters, which have weights. */
  native.intl.alphabetOf = function alphabetOf(language) {
    if (alphabets.has(language)) return alphabets.get(language);
    const text = [ALPHABETS[language], CYRILLIC].filter(Boolean).join(" ");
    const [first, last] = SCRIPTS[language] ?? [];
    const places = new Map();
    const weights = [];
    for (const row of text.split(" ")) {
      const [base, ...rest] = row.split("<");
      rest.forEach((letters, at) => {
        const step = (at + 1) / (base > "z" ? 1 << 20 : 16);
        const primary = native.intl.primaryOf(base.codePointAt(0), first, last) + step;
        // Letters of one place, such as ä and æ in Swedish, differ as accents do.
        for (const [accent, letter] of [...letters].entries()) {
          const place = PRIVATE + weights.length;
          weights.push({ primary, accent });
          places.set(letter, String.fromCharCode(place));
          places.set(letter.toUpperCase(), String.fromCharCode(place + UPPER));
        }
      });
    }
    const pattern = new RegExp(`[${[...places.keys()].join("")}]`, "g");
    const alphabet = { pattern, places, weights, first, last };
    alphabets.set(language, alphabet);
    return alphabet;
  };
});
