// URL and URLSearchParams as the WHATWG standard has them; the parser is url.rs.
(function (native) {
  "use strict";

  // The order in which url.rs hands over the parts of an URL.
  const PARTS = [
    "href",
    "origin",
    "protocol",
    "username",
    "password",
    "host",
    "hostname",
    "port",
    "pathname",
    "search",
    "hash",
  ];
  const HREF = PARTS.indexOf("href");
  const SEARCH = PARTS.indexOf("search");

  const text = (value) => `${value}`.toWellFormed();

  function pairOf(entry) {
    if (
      typeof entry !== "object" ||
      entry === null ||
      typeof entry[Symbol.iterator] !== "function"
    ) {
      throw new TypeError("URLSearchParams: each entry must be a [name, value] pair");
    }
    const pair = [...entry];
    if (pair.length !== 2)
      throw new TypeError("URLSearchParams: each entry must be a [name, value] pair");
    return pair.map(text);
  }

  function parsePairs(query) {
    const flat = native.parseQuery(query.startsWith("?") ? query.slice(1) : query);
    const pairs = [];
    for (let i = 0; i < flat.length; i += 2) pairs.push([flat[i], flat[i + 1]]);
    return pairs;
  }

  function pairsFrom(init) {
    if (init === undefined || init === null) return [];
    if (typeof init !== "object" && typeof init !== "function") return parsePairs(text(init));
    if (typeof init[Symbol.iterator] === "function") return Array.from(init, pairOf);
    return Object.keys(init).map((name) => [text(name), text(init[name])]);
  }

  function needArguments(method, given, wanted) {
    if (given < wanted) {
      throw new TypeError(
        `${method} needs ${wanted} argument${wanted > 1 ? "s" : ""}, got ${given}`,
      );
    }
  }

  // Set by URLSearchParams below: how its URL makes one and refills it.
  let attachedParams;
  let refill;

  class URLSearchParams {
    #pairs;
    #changed = () => {};

    static {
      attachedParams = (query, changed) => {
        const params = new URLSearchParams(query);
        params.#changed = changed;
        return params;
      };
      refill = (params, query) => {
        params.#pairs = parsePairs(query);
      };
    }

    constructor(init = "") {
      this.#pairs = pairsFrom(init);
    }

    get size() {
      return this.#pairs.length;
    }

    append(name, value) {
      needArguments("URLSearchParams.append", arguments.length, 2);
      this.#pairs.push([text(name), text(value)]);
      this.#changed(this);
    }

    delete(name, value) {
      needArguments("URLSearchParams.delete", arguments.length, 1);
      const matches = matcher(name, value);
      this.#pairs = this.#pairs.filter((pair) => !matches(pair));
      this.#changed(this);
    }

    get(name) {
      needArguments("URLSearchParams.get", arguments.length, 1);
      return this.#pairs.find(matcher(name))?.[1] ?? null;
    }

    getAll(name) {
      needArguments("URLSearchParams.getAll", arguments.length, 1);
      return this.#pairs.filter(matcher(name)).map((pair) => pair[1]);
    }

    has(name, value) {
      needArguments("URLSearchParams.has", arguments.length, 1);
      return this.#pairs.some(matcher(name, value));
    }

    set(name, value) {
      needArguments("URLSearchParams.set", arguments.length, 2);
      const matches = matcher(name);
      const first = this.#pairs.findIndex(matches);
      if (first === -1) {
        this.#pairs.push([text(name), text(value)]);
      } else {
        this.#pairs[first][1] = text(value);
        this.#pairs = this.#pairs.filter((pair, at) => at === first || !matches(pair));
      }
      this.#changed(this);
    }

    sort() {
      this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      this.#changed(this);
    }

    forEach(callback, receiver) {
      if (typeof callback !== "function")
        throw new TypeError("URLSearchParams.forEach needs a function");
      for (const [name, value] of this) callback.call(receiver, value, name, this);
    }

    *entries() {
      // By index, because the list may change under the loop.
      for (let i = 0; i < this.#pairs.length; i++) yield [...this.#pairs[i]];
    }

    *keys() {
      for (let i = 0; i < this.#pairs.length; i++) yield this.#pairs[i][0];
    }

    *values() {
      for (let i = 0; i < this.#pairs.length; i++) yield this.#pairs[i][1];
    }

    toString() {
      return native.formatQuery(this.#pairs.flat());
    }
  }

  function matcher(name, value) {
    const wanted = text(name);
    if (value === undefined) return (pair) => pair[0] === wanted;
    const wantedValue = text(value);
    return (pair) => pair[0] === wanted && pair[1] === wantedValue;
  }

  function parse(input, base) {
    return native.parseUrl(text(input), base === undefined ? undefined : text(base)) ?? null;
  }

  function invalid(input, base) {
    const error = new TypeError("Invalid URL");
    error.code = "ERR_INVALID_URL";
    error.input = text(input);
    if (base !== undefined) error.base = text(base);
    return error;
  }

  class URL {
    #parts;
    #params = null;

    constructor(input, base) {
      needArguments("new URL", arguments.length, 1);
      this.#parts = parse(input, base);
      if (this.#parts === null) throw invalid(input, base);
    }

    static canParse(input, base) {
      needArguments("URL.canParse", arguments.length, 1);
      return parse(input, base) !== null;
    }

    static parse(input, base) {
      needArguments("URL.parse", arguments.length, 1);
      return parse(input, base) === null ? null : new URL(input, base);
    }

    static {
      for (const [at, name] of PARTS.entries()) {
        const property = {
          get: {
            [name]() {
              return this.#parts[at];
            },
          }[name],
          enumerable: true,
          configurable: true,
        };
        if (name === "href")
          property.set = function href(value) {
            this.#setHref(value);
          };
        else if (name !== "origin")
          property.set = {
            [name](value) {
              this.#setPart(name, value);
            },
          }[name];
        Object.defineProperty(URL.prototype, name, property);
      }
    }

    #setHref(value) {
      const parts = parse(value);
      if (parts === null) throw invalid(value);
      this.#take(parts);
    }

    /** A value the standard refuses changes nothing. */
    #setPart(name, value) {
      const parts = native.changeUrl(this.#parts[HREF], name, text(value));
      if (parts) this.#take(parts);
    }

    #take(parts) {
      this.#parts = parts;
      if (this.#params !== null) refill(this.#params, parts[SEARCH]);
    }

    get searchParams() {
      this.#params ??= attachedParams(this.#parts[SEARCH], (params) => {
        this.#parts = native.changeUrl(this.#parts[HREF], "search", `${params}`) ?? this.#parts;
      });
      return this.#params;
    }

    toString() {
      return this.#parts[HREF];
    }

    toJSON() {
      return this.#parts[HREF];
    }
  }

  for (const type of [URL, URLSearchParams]) {
    Object.defineProperty(type.prototype, Symbol.toStringTag, {
      value: type.name,
      configurable: true,
    });
    for (const name of Object.getOwnPropertyNames(type.prototype)) {
      if (name !== "constructor") Object.defineProperty(type.prototype, name, { enumerable: true });
    }
  }
  Object.defineProperty(URLSearchParams.prototype, Symbol.iterator, {
    value: URLSearchParams.prototype.entries,
    writable: true,
    configurable: true,
  });

  const shown = [...PARTS.slice(0, -1), "searchParams", "hash"];
  native.printAs(URL, (url, show) => shown.map((name) => `${name}: ${show(url[name])}`));
  native.printAs(URLSearchParams, (params, show) =>
    [...params].map(([name, value]) => `${show(name)} => ${show(value)}`),
  );
  native.expose({ URL, URLSearchParams });
});
