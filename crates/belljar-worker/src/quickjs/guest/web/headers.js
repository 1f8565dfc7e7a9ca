// Headers: names without case, values joined by commas, in the order of names.
(function (native) {
  "use strict";

  const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

  function nameOf(name) {
    const text = `${name}`;
    if (!TOKEN.test(text)) throw new TypeError(`Headers: ${JSON.stringify(text)} is an invalid header name.`);
    return text.toLowerCase();
  }

  function valueOf(value) {
    const text = `${value}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
    if (/[\0\n\r]|[^\0-\xff]/.test(text)) throw new TypeError(`Headers: ${JSON.stringify(text)} is an invalid header value.`);
    return text;
  }

  class Headers {
    #values = new Map();

    constructor(init) {
      if (init === undefined) return;
      if (typeof init !== "object" || init === null) throw new TypeError("Headers: the first argument must be an object or a list of pairs");
      if (typeof init[Symbol.iterator] === "function") {
        for (const pair of init) {
          const [name, value, ...rest] = [...pair];
          if (value === undefined || rest.length > 0) throw new TypeError("Headers: each entry must be a [name, value] pair");
          this.append(name, value);
        }
      } else {
        for (const name of Object.keys(init)) this.append(name, init[name]);
      }
    }

    append(name, value) {
      const key = nameOf(name);
      this.#values.set(key, [...this.#values.get(key) ?? [], valueOf(value)]);
    }

    set(name, value) {
      this.#values.set(nameOf(name), [valueOf(value)]);
    }

    get(name) {
      return this.#values.get(nameOf(name))?.join(", ") ?? null;
    }

    has(name) {
      return this.#values.has(nameOf(name));
    }

    delete(name) {
      this.#values.delete(nameOf(name));
    }

    getSetCookie() {
      return [...this.#values.get("set-cookie") ?? []];
    }

    forEach(callback, self) {
      for (const [name, value] of this) callback.call(self, value, name, this);
    }

    *entries() {
      for (const name of [...this.#values.keys()].sort()) {
        if (name === "set-cookie") for (const value of this.#values.get(name)) yield [name, value];
        else yield [name, this.#values.get(name).join(", ")];
      }
    }

    *keys() {
      for (const [name] of this.entries()) yield name;
    }

    *values() {
      for (const [, value] of this.entries()) yield value;
    }

    [Symbol.iterator]() {
      return this.entries();
    }
  }
  Object.defineProperty(Headers.prototype, Symbol.toStringTag, { value: "Headers", configurable: true });
  native.printAs(Headers, (headers, show) => [...headers].map(([name, value]) => `${/^[a-z_$][\w$]*$/.test(name) ? name : show(name)}: ${show(value)}`));
  native.expose({ Headers });
});
