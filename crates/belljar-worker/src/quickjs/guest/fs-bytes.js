// Text and bytes, in Node's encodings: for files and for Buffer, which is node/buffer.js.
//
// Offers `native.fileBytes`: `encodingOf(options)`, `decode(bytes, encoding)`,
// `encode(text, encoding)`, `asBuffer(bytes)` and `viewOf(data)`.
(function (native) {
  "use strict";

  const { apply } = Reflect;
  const { toHex, toBase64 } = Uint8Array.prototype;
  const { fromCharCode } = String;
  const { isView } = ArrayBuffer;
  const CHUNK = 8192;

  const ENCODINGS = {
    __proto__: null,
    "utf8": "utf8", "utf-8": "utf8",
    "utf16le": "utf16le", "utf-16le": "utf16le", "ucs2": "utf16le", "ucs-2": "utf16le",
    "latin1": "latin1", "binary": "latin1", "ascii": "ascii",
    "hex": "hex", "base64": "base64", "base64url": "base64url",
  };

  /** The encoding by its one name; undefined when none is asked for. */
  function encodingOf(name) {
    if (name === undefined || name === null || name === "buffer") return undefined;
    const known = typeof name === "string" ? ENCODINGS[name.toLowerCase()] : undefined;
    if (known !== undefined) return known;
    const error = new TypeError(`The argument 'encoding' is invalid encoding. Received ${native.inspect(name)}`);
    error.code = "ERR_INVALID_ARG_VALUE";
    throw error;
  }

  function fromBytes(bytes, mask) {
    let text = "";
    for (let at = 0; at < bytes.length; at += CHUNK) {
      const codes = [];
      const end = Math.min(at + CHUNK, bytes.length);
      for (let i = at; i < end; i++) codes[codes.length] = bytes[i] & mask;
      text += apply(fromCharCode, null, codes);
    }
    return text;
  }

  function toBytes(text) {
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  }

  function toUtf16(text) {
    const bytes = new Uint8Array(text.length * 2);
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      bytes[2 * i] = unit;
      bytes[2 * i + 1] = unit >> 8;
    }
    return bytes;
  }

  /** Text that is not quite base64 is read as far as it is, as in Node. */
  function fromBase64(text) {
    const clean = text.replace(/=[^]*$/, "").replace(/-/g, "+").replace(/_/g, "/")
      .replace(/[^A-Za-z0-9+/]/g, "");
    const whole = clean.length % 4 === 1 ? clean.slice(0, -1) : clean;
    return Uint8Array.fromBase64(whole);
  }

  function fromHex(text) {
    const whole = /^(?:[0-9a-f]{2})*/i.exec(text)[0];
    return Uint8Array.fromHex(whole);
  }

  function decode(bytes, encoding) {
    switch (encoding) {
      case "hex": return apply(toHex, bytes, []);
      case "base64": return apply(toBase64, bytes, []);
      case "base64url": return apply(toBase64, bytes, [{ alphabet: "base64url", omitPadding: true }]);
      case "latin1": return fromBytes(bytes, 0xff);
      case "ascii": return fromBytes(bytes, 0x7f);
      // An odd last byte is no character.
      case "utf16le": return native.decodeText("utf-16le", apply(toHex, bytes, []).slice(0, bytes.length >> 1 << 2), false, false)[0];
      default: return native.decodeText("utf-8", apply(toHex, bytes, []), false, false)[0];
    }
  }

  /** Bytes of a text in any encoding but UTF-8, which is written as it is. */
  function encode(text, encoding) {
    switch (encoding) {
      case "hex": return fromHex(text);
      case "base64": case "base64url": return fromBase64(text);
      case "utf16le": return toUtf16(text);
      default: return toBytes(text);
    }
  }

  function viewOf(data) {
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  }

  native.fileBytes = {
    __proto__: null,
    encodingOf,
    decode,
    encode,
    viewOf,
    isView,
    asBuffer: (bytes) => {
      native.need("node/buffer");
      return native.buffers.asBuffer(bytes);
    },
  };
});
