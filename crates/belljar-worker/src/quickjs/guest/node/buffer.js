// Node's Buffer: a Uint8Array that can be made from text and read as text. Its numbers are in
// buffer-numbers.js, the encodings in fs-bytes.js.
//
// A Buffer is the value of a run as any typed array is, see values.js; `toJSON` is for the code.
(function (native) {
  "use strict";

  native.need("node/invalid", "fs-bytes");
  const { invalid } = native;
  const { encodingOf, decode, encode, viewOf, isView } = native.fileBytes;
  const { apply, defineProperty } = Reflect;
  const { toWellFormed } = String.prototype;
  const { subarray, toHex, fill, set, indexOf, lastIndexOf } = Uint8Array.prototype;
  const MAX_LENGTH = 2 ** 31 - 1;
  const SHOWN = 50;

  const bytesOf = (text, encoding = "utf8") => {
    const name = encodingOf(encoding) ?? "utf8";
    return name === "utf8" ? native.encodeUtf8(apply(toWellFormed, text, [])) : encode(text, name);
  };

  function unknownEncoding(name) {
    return invalid.coded(new TypeError(`Unknown encoding: ${name}`), "ERR_UNKNOWN_ENCODING");
  }

  function isEncoding(name) {
    if (typeof name !== "string") return false;
    try {
      return encodingOf(name) !== undefined;
    } catch {
      return false;
    }
  }

  function textBytes(text, encoding) {
    if (typeof encoding === "string" && !isEncoding(encoding)) throw unknownEncoding(encoding);
    return bytesOf(text, typeof encoding === "string" ? encoding : "utf8");
  }

  function requireBytes(value, name) {
    if (!(value instanceof Uint8Array)) {
      throw invalid.type(name, "an instance of Buffer or Uint8Array", value);
    }
    return value;
  }

  function sizeOf(size) {
    if (typeof size !== "number") throw invalid.type("size", "of type number", size);
    if (!(size >= 0 && size <= MAX_LENGTH)) throw invalid.range("size", `>= 0 && <= ${MAX_LENGTH}`, size);
    return size;
  }

  /** A position as Node reads it: negative ones count from the end, all are brought into range. */
  function clamp(position, length, otherwise) {
    const number = position === undefined ? otherwise : Math.trunc(Number(position)) || 0;
    return Math.min(Math.max(number < 0 ? number + length : number, 0), length);
  }

  class Buffer extends Uint8Array {
    constructor(value, second, length) {
      if (typeof value === "string") super(textBytes(value, second));
      else super(value, second, length);
    }

    static from(value, second, length) {
      if (typeof value === "string") return asBuffer(textBytes(value, second));
      if (typeof value !== "object" || value === null) {
        throw invalid.type("first argument", "of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object", value);
      }
      if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) {
        return new Buffer(value, second, length);
      }
      if (isView(value)) return asBuffer(Uint8Array.from(value));
      if (value.type === "Buffer" && Array.isArray(value.data)) return asBuffer(Uint8Array.from(value.data));
      const primitive = value.valueOf?.();
      if (primitive !== value && primitive !== null && primitive !== undefined) {
        return Buffer.from(primitive, second, length);
      }
      if (typeof value.length === "number" || typeof value[Symbol.iterator] === "function") {
        return asBuffer(Uint8Array.from(value));
      }
      throw invalid.type("first argument", "of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object", value);
    }

    static alloc(size, filling, encoding) {
      const made = new Buffer(sizeOf(size));
      return filling === undefined ? made : made.fill(filling, encoding);
    }

    static allocUnsafe(size) {
      return new Buffer(sizeOf(size));
    }

    static allocUnsafeSlow(size) {
      return new Buffer(sizeOf(size));
    }

    static isBuffer(value) {
      return value instanceof Buffer;
    }

    static isEncoding(name) {
      return isEncoding(name);
    }

    static byteLength(value, encoding) {
      if (typeof value === "string") return textBytes(value, encoding).length;
      if (isView(value) || value instanceof ArrayBuffer) return value.byteLength;
      throw invalid.type("string", "of type string or an instance of Buffer or ArrayBuffer", value);
    }

    static concat(list, total) {
      if (!Array.isArray(list)) throw invalid.type("list", "an instance of Array", list);
      const parts = list.map((part, index) => requireBytes(part, `list[${index}]`));
      const length = total ?? parts.reduce((sum, part) => sum + part.length, 0);
      const made = Buffer.alloc(length);
      let at = 0;
      for (const part of parts) {
        if (at >= length) break;
        apply(set, made, [part.length > length - at ? apply(subarray, part, [0, length - at]) : part, at]);
        at += part.length;
      }
      return made;
    }

    static compare(first, second) {
      requireBytes(first, "buf1");
      requireBytes(second, "buf2");
      const most = Math.min(first.length, second.length);
      for (let i = 0; i < most; i++) {
        if (first[i] !== second[i]) return first[i] < second[i] ? -1 : 1;
      }
      return Math.sign(first.length - second.length);
    }

    get parent() {
      return this.buffer;
    }

    get offset() {
      return this.byteOffset;
    }

    toString(encoding = "utf8", start = 0, end = this.length) {
      if (typeof encoding === "string" && !isEncoding(encoding)) throw unknownEncoding(encoding);
      const [from, to] = [Math.max(0, Math.trunc(start) || 0), Math.min(end, this.length)];
      const whole = from === 0 && to === this.length;
      const part = whole ? this : apply(subarray, this, [from, Math.max(from, to)]);
      return decode(part, encodingOf(encoding) ?? "utf8");
    }

    toLocaleString(encoding, start, end) {
      return this.toString(encoding, start, end);
    }

    toJSON() {
      return { type: "Buffer", data: Array.from(this) };
    }

    equals(other) {
      return this === other || apply(toHex, this, []) === apply(toHex, viewOf(requireBytes(other, "otherBuffer")), []);
    }

    compare(target, from, to, ownFrom, ownTo) {
      requireBytes(target, "target");
      const cut = (bytes, start, end) => apply(subarray, viewOf(bytes), [start ?? 0, end ?? bytes.length]);
      return Buffer.compare(cut(this, ownFrom, ownTo), cut(target, from, to));
    }

    /** Shares its bytes with this one, as `subarray` does. */
    slice(start, end) {
      return this.subarray(start, end);
    }

    copy(target, targetStart = 0, start = 0, end = this.length) {
      requireBytes(target, "target");
      const length = Math.min(Math.max(end - start, 0), this.length - start, target.length - targetStart);
      if (length <= 0) return 0;
      apply(set, target, [apply(subarray, this, [start, start + length]), targetStart]);
      return length;
    }

    write(text, offset, length, encoding) {
      if (typeof text !== "string") throw invalid.type("argument", "of type string", text);
      if (typeof offset === "string") [encoding, offset, length] = [offset, 0, undefined];
      else if (typeof length === "string") [encoding, length] = [length, undefined];
      const at = offset ?? 0;
      if (at < 0 || at > this.length) throw invalid.range("offset", `>= 0 && <= ${this.length}`, at);
      let bytes = textBytes(text, encoding);
      const most = Math.min(length ?? this.length, this.length - at);
      if (bytes.length > most) bytes = apply(subarray, bytes, [0, wholeCharacters(bytes, most, encoding)]);
      apply(set, this, [bytes, at]);
      return bytes.length;
    }

    fill(value, start, end, encoding) {
      if (typeof start === "string") [encoding, start] = [start, undefined];
      else if (typeof end === "string") [encoding, end] = [end, undefined];
      const [from, to] = [clamp(start, this.length, 0), clamp(end, this.length, this.length)];
      if (typeof value === "string" || isView(value)) {
        const bytes = typeof value === "string" ? textBytes(value, encoding) : viewOf(value);
        if (bytes.length === 0) return apply(fill, this, [0, from, to]);
        for (let i = from; i < to; i++) this[i] = bytes[(i - from) % bytes.length];
        return this;
      }
      return apply(fill, this, [Number(value) & 0xff, from, to]);
    }

    indexOf(value, from, encoding) {
      return find(this, value, from, encoding, true);
    }

    lastIndexOf(value, from, encoding) {
      return find(this, value, from, encoding, false);
    }

    includes(value, from, encoding) {
      return this.indexOf(value, from, encoding) !== -1;
    }

    swap16() {
      return swap(this, 2);
    }

    swap32() {
      return swap(this, 4);
    }

    swap64() {
      return swap(this, 8);
    }
  }

  /** Only whole characters are written. */
  function wholeCharacters(bytes, most, encoding = "utf8") {
    let end = most;
    if (encodingOf(encoding) === "utf16le") return end - (end % 2);
    if (encodingOf(encoding) !== "utf8") return end;
    while (end > 0 && (bytes[end] & 0xc0) === 0x80) end -= 1;
    return end;
  }

  function find(buffer, value, from, encoding, isFirst) {
    if (typeof from === "string") [encoding, from] = [from, undefined];
    if (typeof value === "number") {
      const position = clamp(from, buffer.length, isFirst ? 0 : buffer.length);
      return isFirst
        ? apply(indexOf, buffer, [value & 0xff, position])
        : apply(lastIndexOf, buffer, [value & 0xff, position]);
    }
    if (typeof value !== "string" && !isView(value)) {
      throw invalid.type("value", "one of type number or string or an instance of Buffer or Uint8Array", value);
    }
    const bytes = typeof value === "string" ? textBytes(value, encoding) : viewOf(value);
    const matches = (at) => {
      for (let i = 0; i < bytes.length; i++) if (buffer[at + i] !== bytes[i]) return false;
      return true;
    };
    const last = buffer.length - bytes.length;
    const start = clamp(from, buffer.length, isFirst ? 0 : last);
    if (isFirst) {
      for (let at = start; at <= last; at++) if (matches(at)) return at;
    } else {
      for (let at = Math.min(start, last); at >= 0; at--) if (matches(at)) return at;
    }
    return -1;
  }

  function swap(buffer, size) {
    if (buffer.length % size !== 0) {
      throw invalid.coded(new RangeError(`Buffer size must be a multiple of ${size * 8}-bits`), "ERR_INVALID_BUFFER_SIZE");
    }
    for (let at = 0; at < buffer.length; at += size) apply(subarray, buffer, [at, at + size]).reverse();
    return buffer;
  }

  const { setPrototypeOf } = Reflect;
  const asBuffer = (bytes) => {
    setPrototypeOf(bytes, Buffer.prototype);
    return bytes;
  };

  for (const name of ["toString", "toLocaleString", "slice", "fill", "indexOf", "includes"]) {
    defineProperty(Buffer.prototype, name, { enumerable: true });
  }
  defineProperty(Buffer, "poolSize", { value: 8192, writable: true, configurable: true });

  const hex = (byte) => byte.toString(16).padStart(2, "0");
  native.bufferText = (value) => {
    if (!(value instanceof Buffer)) return undefined;
    const shown = Array.from(apply(subarray, value, [0, SHOWN]), hex);
    const rest = value.length - SHOWN;
    if (rest > 0) shown.push(`... ${native.plural(rest, "more byte")}`);
    return `<Buffer${shown.map((text) => ` ${text}`).join("")}>`;
  };
  native.values.bufferToJSON = Buffer.prototype.toJSON;
  native.buffers = { __proto__: null, Buffer, asBuffer, textBytes };
  native.need("node/buffer-numbers");
  native.expose({ Buffer });
  const constants = { MAX_LENGTH, MAX_STRING_LENGTH: 2 ** 30 - 1 };
  const module = {
    Buffer, constants, kMaxLength: MAX_LENGTH, kStringMaxLength: constants.MAX_STRING_LENGTH,
    atob: globalThis.atob, btoa: globalThis.btoa,
    isUtf8: (bytes) => decode(viewOf(bytes), "utf8").indexOf("\ufffd") < 0,
    isAscii: (bytes) => viewOf(bytes).every((byte) => byte < 0x80),
  };
  for (const name of ["Blob", "File"]) native.forward(module, name);
  native.offer("buffer", module);
});
