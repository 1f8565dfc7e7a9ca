// Node's `path`, for the paths there are here: those of POSIX.
(function (native) {
  "use strict";

  native.need("node/invalid");
  const { invalid } = native;

  function check(path, name = "path") {
    if (typeof path !== "string") throw invalid.type(name, "of type string", path);
    return path;
  }

  function normalize(path) {
    if (check(path) === "") return ".";
    const absolute = path.startsWith("/");
    const parts = [];
    for (const part of path.split("/")) {
      if (part === "" || part === ".") continue;
      if (part !== "..") parts.push(part);
      else if (parts.length > 0 && parts.at(-1) !== "..") parts.pop();
      else if (!absolute) parts.push("..");
    }
    let text = parts.join("/");
    if (text !== "" && path.endsWith("/")) text += "/";
    if (absolute) return `/${text}`;
    return text === "" ? (path.endsWith("/") ? "./" : ".") : text;
  }

  function join(...paths) {
    const text = paths.map((path) => check(path)).filter((path) => path !== "").join("/");
    return text === "" ? "." : normalize(text);
  }

  function resolve(...paths) {
    let text = "";
    for (let i = paths.length - 1; i >= -1 && !text.startsWith("/"); i--) {
      const path = i >= 0 ? check(paths[i], `paths[${i}]`) : "/work";
      if (path !== "") text = text === "" ? path : `${path}/${text}`;
    }
    const whole = normalize(text);
    return whole.length > 1 && whole.endsWith("/") ? whole.slice(0, -1) : whole;
  }

  const trimmed = (path) => path.replace(/([^/])\/+$/, "$1");

  function dirname(path) {
    if (check(path) === "") return ".";
    const text = trimmed(path);
    const at = text.lastIndexOf("/");
    if (at < 0) return ".";
    const parent = text.slice(0, at).replace(/\/+$/, "");
    return parent === "" ? "/" : parent;
  }

  function basename(path, suffix) {
    const text = trimmed(check(path));
    const base = text.slice(text.lastIndexOf("/") + 1);
    const cut = suffix !== undefined && base !== suffix && base.endsWith(suffix);
    return cut ? base.slice(0, base.length - suffix.length) : base;
  }

  function extname(path) {
    const base = basename(path);
    const at = base.lastIndexOf(".");
    return at <= 0 || base === ".." ? "" : base.slice(at);
  }

  function relative(from, to) {
    const [start, end] = [resolve(check(from, "from")), resolve(check(to, "to"))]
      .map((path) => path.split("/").filter((part) => part !== ""));
    let same = 0;
    while (same < start.length && same < end.length && start[same] === end[same]) same += 1;
    return [...start.slice(same).map(() => ".."), ...end.slice(same)].join("/");
  }

  function parse(path) {
    const base = basename(path);
    const ext = extname(path);
    const root = path.startsWith("/") ? "/" : "";
    const dir = path.includes("/") ? dirname(path) : "";
    return { root, dir, base, ext, name: base.slice(0, base.length - ext.length) };
  }

  function format({ root = "", dir, base, name = "", ext = "" }) {
    const dot = ext !== "" && !ext.startsWith(".") ? "." : "";
    const last = base ?? name + dot + ext;
    const parent = dir ?? root;
    return parent === "" || parent === root ? parent + last : `${parent}/${last}`;
  }

  const isAbsolute = (path) => check(path).startsWith("/");
  const path = {
    sep: "/", delimiter: ":",
    normalize, join, resolve, dirname, basename, extname, relative, parse, format, isAbsolute,
  };
  path.posix = path;
  native.offer("path", path);
  native.offer("path/posix", path);
});
