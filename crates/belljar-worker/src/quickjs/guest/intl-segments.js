// Intl.Segmenter: a simple one, without dictionaries, so Chinese and Japanese words are single characters.
(function (native) {
  "use strict";

  const { resolve, choice, optionsObject, finish } = native.intl;

  // As text, because compiling them costs more than everything else here: see `pattern`.
  const EXTEND = "[\\p{M}\\u200c\\ufe0f\\u{1f3fb}-\\u{1f3ff}\\u{e0020}-\\u{e007f}]*";
  const WORD = "[[\\p{L}\\p{M}\\p{N}_]--[\\p{Ideographic}\\p{Script=Hiragana}]]";
  const PATTERNS = {
    grapheme: [
      "u",
      `\\r\\n|\\p{RI}\\p{RI}|[^\\p{M}\\r\\n]${EXTEND}(?:\\u200d\\p{Extended_Pictographic}${EXTEND})*\\u200d?|[\\s\\S]`,
    ],
    word: [
      "v",
      `${WORD}+(?:(?:(?<=\\p{L})['’.:·](?=\\p{L})|(?<=\\p{N})[.,'](?=\\p{N}))${WORD}+)*|\\r\\n| +|\\p{RI}\\p{RI}|[^\\p{M}]${EXTEND}(?:\\u200d\\p{Extended_Pictographic}${EXTEND})*|[\\s\\S]`,
    ],
    sentence: [
      "u",
      "[^\\n]*?(?:[。！？]+|[.!?]+[\"'”’)\\]]*(?:[ \\t]+(?![ \\t\\p{Ll}])|(?=\\n)|$))\\n?|[^\\n]+\\n?|\\n",
    ],
  };
  const compiled = new Map();

  function pattern(granularity) {
    if (!compiled.has(granularity)) {
      const [flags, source] = PATTERNS[granularity];
      compiled.set(granularity, new RegExp(source, `g${flags}`));
    }
    return compiled.get(granularity);
  }

  class Segments {
    #text;
    #granularity;

    constructor(text, granularity) {
      this.#text = text;
      this.#granularity = granularity;
    }

    *[Symbol.iterator]() {
      for (const match of this.#text.matchAll(pattern(this.#granularity))) {
        if (match[0] === "") continue;
        const data = { segment: match[0], index: match.index, input: this.#text };
        if (this.#granularity === "word") data.isWordLike = /[\p{L}\p{N}]/u.test(match[0]);
        yield data;
      }
    }

    containing(index = 0) {
      for (const data of this)
        if (index >= data.index && index < data.index + data.segment.length) return data;
      return undefined;
    }
  }

  class Segmenter {
    #locale;
    #granularity;

    constructor(locales, options) {
      this.#locale = resolve(locales);
      this.#granularity = choice(
        optionsObject(options),
        "granularity",
        ["grapheme", "word", "sentence"],
        "grapheme",
      );
    }

    segment(text) {
      return new Segments(`${text}`, this.#granularity);
    }

    resolvedOptions() {
      return { locale: this.#locale.tag, granularity: this.#granularity };
    }
  }

  native.intl.Segmenter = finish(Segmenter);
});
