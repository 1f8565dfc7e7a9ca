// URLPattern: matches URLs by their parts, with `:names`, `*`, `(expressions)`, `{groups}` and
// the modifiers `?`, `+` and `*`.
(function (native) {
  "use strict";

  const { URL } = native.global("URL");
  const PARTS = ["protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"];
  const PORTS = { __proto__: null, http: "80", https: "443", ws: "80", wss: "443", ftp: "21" };

  const quote = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  const wrong = (text) => new TypeError(`Failed to construct 'URLPattern': ${JSON.stringify(text)} is not a valid pattern`);

  /** The end of a bracket that begins at `start`. */
  function closing(text, start, open, close) {
    let depth = 0;
    for (let i = start; i < text.length; i++) {
      if (text[i] === "\\") i += 1;
      else if (text[i] === open) depth += 1;
      else if (text[i] === close && --depth === 0) return i;
    }
    throw wrong(text);
  }

  /** One part of a pattern as a regular expression, and the names of its groups. */
  function compile(text, part, isCaseless) {
    const names = [];
    const segment = part === "pathname" ? "[^\\/]+?" : part === "hostname" ? "[^.]+?" : ".+?";
    // In a path, a slash before an optional group is optional with it.
    const prefixed = part === "pathname" ? "\\/" : "";
    let [source, i, unnamed] = ["", 0, 0];
    const modifierAt = (at) => ("?*+".includes(text[at]) && at < text.length ? text[at] : "");
    const group = (inner, name) => {
      names.push(name);
      const modifier = modifierAt(i);
      i += modifier.length;
      if (modifier === "") return `(${inner})`;
      const isSlashed = prefixed !== "" && source.endsWith(prefixed);
      if (isSlashed) source = source.slice(0, -prefixed.length);
      const before = isSlashed ? prefixed : "";
      if (modifier === "?") return `(?:${before}(${inner}))?`;
      const many = `(?:${inner})(?:${before}(?:${inner}))*`;
      return `(?:${before}(${many}))${modifier === "*" ? "?" : ""}`;
    };
    while (i < text.length) {
      const character = text[i];
      if (character === "\\") {
        source += quote(text[i + 1] ?? "");
        i += 2;
      } else if (character === "*") {
        i += 1;
        source += group(".*", `${unnamed++}`);
      } else if (character === ":" && /[\p{ID_Start}_$]/u.test(text[i + 1] ?? "")) {
        const [name] = /^[\p{ID_Continue}_$]+/u.exec(text.slice(i + 1));
        i += 1 + name.length;
        let inner = segment;
        if (text[i] === "(") {
          const end = closing(text, i, "(", ")");
          [inner, i] = [text.slice(i + 1, end), end + 1];
        }
        source += group(inner, name);
      } else if (character === "(") {
        const end = closing(text, i, "(", ")");
        const inner = text.slice(i + 1, end);
        i = end + 1;
        source += group(inner, `${unnamed++}`);
      } else if (character === "{") {
        const end = closing(text, i, "{", "}");
        const inner = compile(text.slice(i + 1, end), part, isCaseless);
        i = end + 1;
        const modifier = modifierAt(i);
        i += modifier.length;
        names.push(...inner.names);
        source += `(?:${inner.source})${modifier}`;
      } else {
        source += quote(character);
        i += 1;
      }
    }
    return { source, names, test: new RegExp(`^${source}$`, isCaseless ? "iu" : "u") };
  }

  /** A pattern that is written as one URL, in its parts. */
  function split(text) {
    const given = { __proto__: null };
    const match = /^(?:((?:[^:/?#{(]|\{[^}]*\}|\([^)]*\))*?):(?=\/\/|[a-z*]))?/i.exec(text);
    let rest = text;
    if (match[1] !== undefined && /^[a-z*(){}?+.:|-]+$/i.test(match[1])) {
      given.protocol = match[1];
      rest = text.slice(match[0].length);
    }
    const hash = rest.indexOf("#");
    if (hash >= 0) [given.hash, rest] = [rest.slice(hash + 1), rest.slice(0, hash)];
    const question = /(?<![*+)}\w])\?|(?<=\/[\w.-]*)\?(?=[\w*:]+=)/.exec(rest);
    if (question !== null) [given.search, rest] = [rest.slice(question.index + 1), rest.slice(0, question.index)];
    if (rest.startsWith("//")) {
      const end = rest.indexOf("/", 2) < 0 ? rest.length : rest.indexOf("/", 2);
      const [, user, password, host, port] = /^(?:([^:@]*)(?::([^@]*))?@)?(.*?)(?::(\d+|\*|\([^)]*\)))?$/.exec(rest.slice(2, end));
      Object.assign(given, { hostname: host, port: port ?? "", pathname: rest.slice(end) || "*" });
      if (user !== undefined) Object.assign(given, { username: user, password: password ?? "*" });
    } else if (rest !== "") {
      given.pathname = rest;
    }
    return given;
  }

  let patternOf;
  class URLPattern {
    #parts = { __proto__: null };
    #patterns = { __proto__: null };

    static {
      patternOf = (pattern, part) => pattern.#patterns[part];
    }

    constructor(input = {}, base, options) {
      if (typeof base === "object" && base !== null) [options, base] = [base, undefined];
      const given = typeof input === "string" ? split(input) : { __proto__: null, ...input };
      if (typeof input === "string" && given.protocol === undefined && base === undefined) {
        throw new TypeError("Failed to construct 'URLPattern': a relative pattern needs a base URL: new URLPattern(pattern, base), or new URLPattern({ pathname })");
      }
      const from = base ?? given.baseURL;
      if (from !== undefined) {
        const url = new URL(from);
        for (const part of ["protocol", "hostname", "port"]) given[part] ??= url[part].replace(/:$/, "");
        if (given.pathname !== undefined && !/^[/*{(:]/.test(given.pathname)) {
          given.pathname = url.pathname.replace(/[^/]*$/, "") + given.pathname;
        }
      }
      for (const part of PARTS) {
        let text = given[part] === undefined ? "*" : `${given[part]}`;
        if (part === "protocol") text = text.replace(/:$/, "");
        if (part === "search") text = text.replace(/^\?/, "");
        if (part === "hash") text = text.replace(/^#/, "");
        if (part === "port" && text === PORTS[this.#patterns.protocol]) text = "";
        this.#patterns[part] = text;
        this.#parts[part] = compile(text, part, options?.ignoreCase === true);
      }
    }

    #inputs(input, base) {
      if (typeof input === "object" && input !== null && !(input instanceof URL)) {
        const given = {};
        for (const part of PARTS) given[part] = `${input[part] ?? ""}`;
        return given;
      }
      if (!URL.canParse(input, base)) return undefined;
      const url = new URL(input, base);
      const given = {};
      for (const part of PARTS) given[part] = url[part];
      given.protocol = given.protocol.replace(/:$/, "");
      given.search = given.search.replace(/^\?/, "");
      given.hash = given.hash.replace(/^#/, "");
      return given;
    }

    test(input = {}, base) {
      return this.exec(input, base) !== null;
    }

    exec(input = {}, base) {
      const given = this.#inputs(input, base);
      if (given === undefined) return null;
      const result = { inputs: base === undefined ? [input] : [input, base] };
      for (const part of PARTS) {
        const { test, names } = this.#parts[part];
        const match = test.exec(given[part]);
        if (match === null) return null;
        const groups = {};
        names.forEach((name, at) => { groups[name] = match[at + 1]; });
        result[part] = { input: given[part], groups };
      }
      return result;
    }
  }
  for (const part of PARTS) {
    Object.defineProperty(URLPattern.prototype, part, {
      get() {
        return patternOf(this, part);
      },
      enumerable: true, configurable: true,
    });
  }
  Object.defineProperty(URLPattern.prototype, Symbol.toStringTag, { value: "URLPattern", configurable: true });
  native.expose({ URLPattern });
});
