// TextEncoder and TextDecoder; the conversions are encoding.rs. `atob`, `btoa` and base64 on
// Uint8Array are the engine's own.
(function (native) {
  "use strict";

  const { apply } = Reflect;
  const { toHex } = Uint8Array.prototype;
  const { toWellFormed } = String.prototype;

  const LABELS = new Map(
    [
      [
        "utf-8",
        ["utf-8", "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8"],
      ],
      [
        "utf-16le",
        ["utf-16le", "utf-16", "ucs-2", "unicode", "iso-10646-ucs-2", "csunicode", "unicodefeff"],
      ],
      ["utf-16be", ["utf-16be", "unicodefffe"]],
      [
        "windows-1252",
        [
          "windows-1252",
          "cp1252",
          "x-cp1252",
          "latin1",
          "l1",
          "iso-8859-1",
          "iso8859-1",
          "iso88591",
          "iso_8859-1",
          "ascii",
          "us-ascii",
          "ansi_x3.4-1968",
          "cp819",
          "ibm819",
          "iso-ir-100",
          "csisolatin1",
        ],
      ],
    ].flatMap(([encoding, labels]) => labels.map((label) => [label, encoding])),
  );

  class TextEncoder {
    get encoding() {
      return "utf-8";
    }

    encode(input = "") {
      return native.encodeUtf8(apply(toWellFormed, `${input}`, []));
    }

    /** Writes whole characters only; says how much was read (UTF-16 units) and written (bytes). */
    encodeInto(source, destination) {
      if (!(destination instanceof Uint8Array)) {
        throw new TypeError("TextEncoder.encodeInto: the destination must be a Uint8Array");
      }
      const text = apply(toWellFormed, `${source}`, []);
      const bytes = native.encodeUtf8(text);
      if (bytes.length <= destination.length) {
        destination.set(bytes);
        return { read: text.length, written: bytes.length };
      }
      let end = destination.length;
      while (end > 0 && (bytes[end] & 0xc0) === 0x80) end -= 1;
      const fitting = bytes.subarray(0, end);
      destination.set(fitting);
      return { read: decodeBytes("utf-8", fitting, false, false)[0].length, written: end };
    }
  }

  function decodeBytes(encoding, bytes, fatal, stream) {
    return native.decodeText(encoding, apply(toHex, bytes, []), fatal, stream);
  }

  function viewOf(input) {
    if (input === undefined) return new Uint8Array(0);
    if (ArrayBuffer.isView(input))
      return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
    if (input instanceof ArrayBuffer || input instanceof SharedArrayBuffer)
      return new Uint8Array(input);
    throw new TypeError("TextDecoder.decode: the input must be an ArrayBuffer or a view of one");
  }

  function join(first, second) {
    if (first.length === 0) return second;
    const bytes = new Uint8Array(first.length + second.length);
    bytes.set(first);
    bytes.set(second, first.length);
    return bytes;
  }

  class TextDecoder {
    #encoding;
    #fatal;
    #ignoreBom;
    #pending = new Uint8Array(0);
    #bomSeen = false;

    constructor(label = "utf-8", options = {}) {
      this.#encoding = LABELS.get(`${label}`.trim().toLowerCase());
      if (this.#encoding === undefined) {
        throw new RangeError(
          `The "${label}" encoding is not supported: use utf-8, utf-16le, utf-16be or latin1`,
        );
      }
      this.#fatal = Boolean(options?.fatal);
      this.#ignoreBom = Boolean(options?.ignoreBOM);
    }

    get encoding() {
      return this.#encoding;
    }

    get fatal() {
      return this.#fatal;
    }

    get ignoreBOM() {
      return this.#ignoreBom;
    }

    decode(input, options = {}) {
      const stream = Boolean(options?.stream);
      const bytes = join(this.#pending, viewOf(input));
      const decoded = decodeBytes(this.#encoding, bytes, this.#fatal, stream);
      this.#pending = new Uint8Array(0);
      if (!decoded) {
        this.#bomSeen = false;
        throw new TypeError(`The encoded data was not valid for encoding ${this.#encoding}`);
      }
      let [text, leftOver] = decoded;
      if (leftOver > 0) this.#pending = bytes.slice(bytes.length - leftOver);
      if (!this.#bomSeen && text !== "") {
        this.#bomSeen = true;
        if (!this.#ignoreBom && text.charCodeAt(0) === 0xfeff) text = text.slice(1);
      }
      if (!stream) this.#bomSeen = false;
      return text;
    }
  }

  for (const type of [TextEncoder, TextDecoder]) {
    Object.defineProperty(type.prototype, Symbol.toStringTag, {
      value: type.name,
      configurable: true,
    });
  }
  native.expose({ TextEncoder, TextDecoder });
});
