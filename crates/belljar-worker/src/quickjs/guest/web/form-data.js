// FormData, and its two forms on the wire: `native.formData.encode` and `native.formData.decode`.
(function (native) {
  "use strict";

  native.need("web/blob");
  const { Blob, File } = native.global("Blob", "File");

  function entryOf(value, fileName) {
    if (!(value instanceof Blob)) return `${value}`.toWellFormed();
    if (value instanceof File && fileName === undefined) return value;
    return new File([value], fileName ?? "blob", { type: value.type });
  }

  class FormData {
    #entries = [];

    append(name, value, fileName) {
      this.#entries.push([`${name}`, entryOf(value, fileName)]);
    }

    set(name, value, fileName) {
      const entry = [`${name}`, entryOf(value, fileName)];
      const at = this.#entries.findIndex(([known]) => known === entry[0]);
      if (at < 0) this.#entries.push(entry);
      else this.#entries = this.#entries.flatMap((one, i) => (i === at ? [entry] : one[0] === entry[0] ? [] : [one]));
    }

    get(name) {
      return this.#entries.find(([known]) => known === `${name}`)?.[1] ?? null;
    }

    getAll(name) {
      return this.#entries.filter(([known]) => known === `${name}`).map(([, value]) => value);
    }

    has(name) {
      return this.#entries.some(([known]) => known === `${name}`);
    }

    delete(name) {
      this.#entries = this.#entries.filter(([known]) => known !== `${name}`);
    }

    forEach(callback, self) {
      for (const [name, value] of this) callback.call(self, value, name, this);
    }

    *entries() {
      yield* this.#entries;
    }

    *keys() {
      for (const [name] of this.#entries) yield name;
    }

    *values() {
      for (const [, value] of this.#entries) yield value;
    }

    [Symbol.iterator]() {
      return this.entries();
    }
  }
  Object.defineProperty(FormData.prototype, Symbol.toStringTag, { value: "FormData", configurable: true });

  const escaped = (text) => text.replace(/\r?\n|\r/g, "%0D%0A").replaceAll('"', "%22");

  /** A body of `multipart/form-data`, with its type. */
  function encode(form) {
    const random = new Uint8Array(12);
    native.fillRandom(random);
    const boundary = `----formdata-${random.toHex()}`;
    const parts = [...form].flatMap(([name, value]) => {
      const head = `--${boundary}\r\nContent-Disposition: form-data; name="${escaped(name)}"`;
      if (typeof value === "string") return [`${head}\r\n\r\n${value.replace(/\r?\n|\r/g, "\r\n")}\r\n`];
      return [`${head}; filename="${escaped(value.name)}"\r\nContent-Type: ${value.type || "application/octet-stream"}\r\n\r\n`, value, "\r\n"];
    });
    return [new Blob([...parts, `--${boundary}--\r\n`]), `multipart/form-data; boundary=${boundary}`];
  }

  const unescaped = (text) => text.replaceAll("%22", '"').replaceAll("%0D%0A", "\r\n");

  /** The form in bytes of either type. */
  function decode(bytes, type) {
    const form = new FormData();
    const { TextDecoder, URLSearchParams } = native.global("TextDecoder", "URLSearchParams");
    if (type.startsWith("application/x-www-form-urlencoded")) {
      for (const [name, value] of new URLSearchParams(new TextDecoder().decode(bytes))) form.append(name, value);
      return form;
    }
    const boundary = /boundary="?([^";]+)"?/i.exec(type)?.[1];
    if (!type.startsWith("multipart/form-data") || boundary === undefined) {
      throw new TypeError(`Response.formData: the content type is ${JSON.stringify(type)}, which is no form`);
    }
    native.need("fs-bytes");
    const { decode: read, encode: write } = native.fileBytes;
    for (const part of read(bytes, "latin1").split(`--${boundary}`).slice(1, -1)) {
      const at = part.indexOf("\r\n\r\n");
      const [head, body] = [new TextDecoder().decode(write(part.slice(0, at), "latin1")), write(part.slice(at + 4, -2), "latin1")];
      const name = /[; ]name="([^"]*)"/i.exec(head)?.[1] ?? "";
      const fileName = /filename="([^"]*)"/i.exec(head)?.[1];
      const kind = /content-type:\s*([^\r\n]+)/i.exec(head)?.[1] ?? "";
      form.append(unescaped(name), fileName === undefined ? new TextDecoder().decode(body) : new File([body], unescaped(fileName), { type: kind }));
    }
    return form;
  }

  native.formData = { __proto__: null, encode, decode };
  native.expose({ FormData });
});
