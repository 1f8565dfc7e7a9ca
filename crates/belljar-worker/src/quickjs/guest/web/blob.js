// Blob and File: bytes that stay as they are.
(function (native) {
  "use strict";

  const { toWellFormed } = String.prototype;
  const { apply } = Reflect;
  let bytesOf;

  function partBytes(part) {
    if (part instanceof Blob) return bytesOf(part);
    if (part instanceof ArrayBuffer || part instanceof SharedArrayBuffer) return new Uint8Array(part.slice(0));
    if (ArrayBuffer.isView(part)) return new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
    return native.encodeUtf8(apply(toWellFormed, `${part}`, []));
  }

  function joined(parts) {
    const total = parts.reduce((sum, part) => sum + part.length, 0);
    const bytes = new Uint8Array(total);
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }

  const typeOf = (type = "") => (/[^\x20-\x7e]/.test(`${type}`) ? "" : `${type}`.toLowerCase());

  class Blob {
    #bytes;
    #type;

    constructor(parts = [], options = {}) {
      if (typeof parts !== "object" || parts === null || typeof parts[Symbol.iterator] !== "function") {
        native.need("node/invalid");
        throw native.invalid.type("sources", "a sequence", parts);
      }
      this.#bytes = joined([...parts].map(partBytes));
      this.#type = typeOf(options?.type);
    }

    static {
      bytesOf = (blob) => blob.#bytes;
    }

    get size() {
      return this.#bytes.length;
    }

    get type() {
      return this.#type;
    }

    slice(start = 0, end = this.size, type = "") {
      return new Blob([this.#bytes.slice(start, end)], { type });
    }

    async arrayBuffer() {
      return this.#bytes.slice().buffer;
    }

    async bytes() {
      return this.#bytes.slice();
    }

    async text() {
      const { TextDecoder } = native.global("TextDecoder");
      return new TextDecoder().decode(this.#bytes);
    }

    stream() {
      const { ReadableStream } = native.global("ReadableStream");
      const bytes = this.#bytes;
      return new ReadableStream({
        start(controller) {
          if (bytes.length > 0) controller.enqueue(bytes.slice());
          controller.close();
        },
      });
    }
  }

  class File extends Blob {
    #name;
    #lastModified;

    constructor(parts, name, options = {}) {
      if (arguments.length < 2) throw new TypeError('The "fileBits" and "fileName" arguments must be specified');
      super(parts, options);
      this.#name = `${name}`;
      this.#lastModified = options?.lastModified === undefined ? Date.now() : Number(options.lastModified);
    }

    get name() {
      return this.#name;
    }

    get lastModified() {
      return this.#lastModified;
    }

    get webkitRelativePath() {
      return "";
    }
  }

  for (const type of [Blob, File]) {
    Object.defineProperty(type.prototype, Symbol.toStringTag, { value: type.name, configurable: true });
  }
  const shown = (blob, show) => [`size: ${show(blob.size)}`, `type: ${show(blob.type)}`];
  native.printAs(Blob, shown);
  native.printAs(File, (file, show) => [...shown(file, show), `name: ${show(file.name)}`, `lastModified: ${show(file.lastModified)}`]);
  native.blobBytes = { __proto__: null, bytesOf, partBytes, joined };
  native.expose({ Blob, File });
});
