// Node's `querystring`.
(function (native) {
  "use strict";

  const MAX_KEYS = 1000;

  function escape(text) {
    return encodeURIComponent(String(text).toWellFormed());
  }

  /** Unescapes a text. An invalid escape stays as it is. */
  function unescape(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => native.decodeText("utf-8", run.replaceAll("%", ""), false, false)[0]);
    }
  }

  const written = (value) => {
    const isPlain = ["string", "boolean", "bigint"].includes(typeof value) || Number.isFinite(value);
    return isPlain ? `${value}` : "";
  };

  function stringify(object, separator = "&", equals = "=", options = {}) {
    if (typeof object !== "object" || object === null) return "";
    const encode = options?.encodeURIComponent ?? querystring.escape;
    return Object.keys(object).flatMap((key) => {
      const name = encode(key) + (equals || "=");
      const value = object[key];
      return Array.isArray(value) ? value.map((one) => name + encode(written(one))) : name + encode(written(value));
    }).join(separator || "&");
  }

  function parse(text, separator = "&", equals = "=", options = {}) {
    const parsed = { __proto__: null };
    if (typeof text !== "string" || text === "") return parsed;
    const decode = options?.decodeURIComponent ?? querystring.unescape;
    const most = options?.maxKeys ?? MAX_KEYS;
    const parts = text.split(separator || "&").filter((part) => part !== "");
    for (const part of most > 0 ? parts.slice(0, most) : parts) {
      const at = part.indexOf(equals || "=");
      const name = decode((at < 0 ? part : part.slice(0, at)).replaceAll("+", " "));
      const value = at < 0 ? "" : decode(part.slice(at + (equals || "=").length).replaceAll("+", " "));
      if (!(name in parsed)) parsed[name] = value;
      else if (Array.isArray(parsed[name])) parsed[name].push(value);
      else parsed[name] = [parsed[name], value];
    }
    return parsed;
  }

  const querystring = { escape, unescape, stringify, parse, encode: stringify, decode: parse };
  native.offer("querystring", querystring);
});
