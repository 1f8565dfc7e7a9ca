// Node's `url`: the classes of the web, and the older functions.
(function (native) {
  "use strict";

  native.need("node/invalid", "node/querystring");
  const { invalid } = native;
  const { URL, URLSearchParams } = native.global("URL", "URLSearchParams");
  const querystring = native.nodeModules.querystring;
  const SLASHED = ["http:", "https:", "ftp:", "file:", "ws:", "wss:"];

  class Url {
    constructor() {
      for (const key of ["protocol", "slashes", "auth", "host", "port", "hostname", "hash", "search", "query", "pathname", "path", "href"]) this[key] = null;
    }

    parse(text, parsesQuery, slashesDenoteHost) {
      return Object.assign(this, parse(text, parsesQuery, slashesDenoteHost));
    }

    format() {
      return format(this);
    }

    resolve(to) {
      return resolve(this.format(), to);
    }
  }

  function parse(text, parsesQuery = false, slashesDenoteHost = false) {
    if (text instanceof Url) return text;
    if (typeof text !== "string") throw invalid.type("url", "of type string", text);
    const url = new Url();
    let rest = text.trim();
    const hash = rest.indexOf("#");
    if (hash >= 0) [url.hash, rest] = [rest.slice(hash), rest.slice(0, hash)];
    const question = rest.indexOf("?");
    if (question >= 0) [url.search, rest] = [rest.slice(question), rest.slice(0, question)];
    url.query = url.search === null ? (parsesQuery ? "" : null) : url.search.slice(1);
    if (parsesQuery) url.query = querystring.parse(url.query);
    const protocol = /^[a-z][a-z0-9+.-]*:/i.exec(rest)?.[0];
    if (protocol !== undefined) [url.protocol, rest] = [protocol.toLowerCase(), rest.slice(protocol.length)];
    const isSlashed = rest.startsWith("//") && (protocol !== undefined || slashesDenoteHost);
    const isOther = protocol !== undefined && !SLASHED.includes(url.protocol) && url.protocol !== "javascript:";
    if (isSlashed || isOther) {
      if (isSlashed) [url.slashes, rest] = [true, rest.slice(2)];
      const end = rest.indexOf("/") < 0 ? rest.length : rest.indexOf("/");
      setHost(url, rest.slice(0, end));
      rest = rest.slice(end);
    }
    if (rest === "" && SLASHED.includes(url.protocol) && url.slashes) rest = "/";
    url.pathname = rest === "" ? null : rest.replaceAll(" ", "%20");
    if (url.pathname !== null || url.search !== null) url.path = (url.pathname ?? "") + (url.search ?? "");
    url.href = format(url);
    return url;
  }

  function setHost(url, text) {
    const at = text.lastIndexOf("@");
    if (at >= 0) url.auth = decodeURIComponent(text.slice(0, at));
    const host = text.slice(at + 1).toLowerCase();
    const port = /:(\d*)$/.exec(host);
    url.port = port === null || port[1] === "" ? null : port[1];
    const name = port === null ? host : host.slice(0, port.index);
    url.hostname = name.startsWith("[") ? name.slice(1, -1) : name;
    url.host = url.port === null ? name : host;
  }

  function format(url, options = {}) {
    if (typeof url === "string") return format(parse(url));
    if (url instanceof URL) {
      const copy = new URL(url.href);
      if (options.fragment === false) copy.hash = "";
      if (options.search === false) copy.search = "";
      if (options.auth === false) [copy.username, copy.password] = ["", ""];
      return copy.href;
    }
    if (typeof url !== "object" || url === null) throw invalid.type("urlObject", "one of type object or string", url);
    let protocol = url.protocol ?? "";
    if (protocol !== "" && !protocol.endsWith(":")) protocol += ":";
    const auth = url.auth ? `${encodeURIComponent(url.auth).replace(/%3A/i, ":")}@` : "";
    const name = url.hostname?.includes(":") ? `[${url.hostname}]` : url.hostname;
    const host = url.host ? auth + url.host : name ? auth + name + (url.port ? `:${url.port}` : "") : "";
    const isSlashed = url.slashes || ((protocol === "" || SLASHED.includes(protocol)) && host !== "");
    let path = url.pathname ?? "";
    if (isSlashed && path !== "" && !path.startsWith("/")) path = `/${path}`;
    const query = typeof url.query === "object" && url.query !== null ? querystring.stringify(url.query) : "";
    let search = url.search ?? (query === "" ? "" : `?${query}`);
    if (search !== "" && !search.startsWith("?")) search = `?${search}`;
    let hash = url.hash ?? "";
    if (hash !== "" && !hash.startsWith("#")) hash = `#${hash}`;
    return protocol + (isSlashed ? "//" : "") + host + path.replace(/[?#]/g, encodeURIComponent) + search.replace("#", "%23") + hash;
  }

  function resolve(from, to) {
    const base = new URL(from, "resolve://");
    const resolved = new URL(to, base);
    if (resolved.protocol !== "resolve:") return resolved.href;
    const { pathname, search, hash } = resolved;
    return (from.startsWith("/") || to.startsWith("/") ? pathname : pathname.slice(1)) + search + hash;
  }

  function fileURLToPath(url) {
    const parsed = typeof url === "string" ? new URL(url) : url;
    if (!(parsed instanceof URL)) throw invalid.type("path", "of type string or an instance of URL", url);
    if (parsed.protocol !== "file:") {
      throw invalid.coded(new TypeError("The URL must be of scheme file"), "ERR_INVALID_URL_SCHEME");
    }
    return decodeURIComponent(parsed.pathname);
  }

  function pathToFileURL(path) {
    native.need("node/path");
    const whole = native.nodeModules.path.resolve(path) + (path.length > 1 && path.endsWith("/") ? "/" : "");
    const url = new URL("file:///");
    url.pathname = whole.replaceAll("%", "%25").replaceAll("\\", "%5C").replaceAll("\n", "%0A").replaceAll("\r", "%0D").replaceAll("\t", "%09");
    return url;
  }

  function urlToHttpOptions(url) {
    const { protocol, hostname, hash, search, pathname, href, port, username, password } = url;
    const options = { __proto__: null, protocol, hostname, hash, search, pathname, path: pathname + search, href };
    if (port !== "") options.port = Number(port);
    if (username || password) options.auth = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    return options;
  }

  const domainToASCII = (name) => (URL.canParse(`ws://${name}`) ? new URL(`ws://${name}`).hostname : "");
  native.offer("url", { URL, URLSearchParams, Url, parse, format, resolve, fileURLToPath, pathToFileURL, urlToHttpOptions, domainToASCII });
});
