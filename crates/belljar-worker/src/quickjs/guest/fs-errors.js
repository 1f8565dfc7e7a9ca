// Errors of `fs`: Node's words, and a hint about the grants of the cell.
//
// Offers `native.fileErrors`: `failure(path, dest, intent)` makes the function that throws for one
// operation, `pathText(path)` checks an argument that names a file.
// The engine reads the hint, and the grant that was missing, when the error is not caught.
(function (native) {
  "use strict";

  native.need("node/invalid");
  const { invalid } = native;
  const { defineProperty } = Reflect;
  const quote = (path) => `'${path}'`;

  const isBelow = (path, directory) => path === directory || path.startsWith(`${directory}/`);
  /** Whether only a grant would bring this path into the cell. */
  const isOutside = (path) => path.startsWith("/") && !isBelow(path, "/work")
    && !isBelow(path, "/tmp") && !native.grantedPaths().some((one) => isBelow(path, one));
  const parentOf = (path) => path.replace(/\/+[^/]*\/*$/, "");

  const REFUSALS = ["EACCES", "EPERM", "EROFS"];

  /** Where a file is that was granted and is looked for in /work. */
  function grantedAt(path) {
    const relative = isBelow(path, "/work") ? path.slice("/work/".length) : path.replace(/^\.\//, "");
    if (relative === "" || relative.startsWith("/")) return undefined;
    const granted = native.grantedPaths();
    for (let i = 0; i < granted.length; i++) {
      const parent = parentOf(granted[i]);
      if (isBelow(`${parent}/${relative}`, granted[i])) return `${parent}/${relative}`;
    }
    return undefined;
  }

  function hintForMissing(path, intent) {
    if (isOutside(path)) return "Only /work, /tmp and granted paths exist here.";
    const granted = grantedAt(path);
    if (granted !== undefined) return `It is granted under its host path: ${granted}`;
    const isHosts = isBelow(path, "/tmp") ? ". /tmp belongs to this run, not to the host." : "";
    if (intent === "write" && path.includes("/")) {
      const parent = JSON.stringify(parentOf(path));
      return `Make the directory first: fs.mkdirSync(${parent}, { recursive: true })${isHosts}`;
    }
    const look = "See what is there with fs.readdirSync(\"/work\"); relative paths begin at /work";
    return look + (isHosts === "" ? "." : isHosts);
  }

  function hintFor(code, path, intent) {
    if (code === "ENOENT") return hintForMissing(path, intent);
    if (REFUSALS.includes(code) && path === "/") {
      return "Look in /work, /tmp and the paths that were granted.";
    }
    if (REFUSALS.includes(code)) {
      return intent === "write"
        ? "Only /work, /tmp and paths granted for writing can be changed."
        : "Only /work, /tmp and granted paths can be read.";
    }
    if (code === "ENOSPC" || code === "EDQUOT" || code === "EFBIG") {
      return "Files in /work and /tmp are at the limit: write less, or remove some.";
    }
    if (code === "EMFILE") return "Close files that are no longer needed.";
    return code === "EISDIR" ? "That is a directory: fs.readdirSync lists it." : undefined;
  }

  /** The grant that would help. Each reader asks for it in other words, so the host writes the sentence. */
  function missingGrant(code, path, intent) {
    const would = REFUSALS.includes(code)
      ? path !== "/"
      : code === "ENOENT" && (isOutside(path) || isBelow(path, "/tmp"));
    return would ? { __proto__: null, kind: intent === "write" ? "write" : "read", name: path } : undefined;
  }

  /** The function by which one operation fails. */
  function failure(path, dest, intent) {
    return (code, words, errno, syscall) => {
      // As in Node: once a file is open, errors do not say which.
      const named = syscall !== "read" && syscall !== "write";
      let message = `${code}: ${words}, ${syscall}`;
      if (named) message += ` ${quote(path)}`;
      if (named && dest !== undefined) message += ` -> ${quote(dest)}`;
      const error = new Error(message);
      error.errno = errno;
      error.code = code;
      error.syscall = syscall;
      if (named) error.path = path;
      if (named && dest !== undefined) error.dest = dest;
      const hint = hintFor(code, dest ?? path, intent);
      if (hint !== undefined) defineProperty(error, "hint", { value: hint, configurable: true });
      const missing = missingGrant(code, dest ?? path, intent);
      if (missing !== undefined) defineProperty(error, "missing", { value: missing, configurable: true });
      const isRefused = REFUSALS.includes(code) || (code === "ENOENT" && isOutside(dest ?? path));
      if (isRefused) native.denied(`${syscall} ${quote(dest ?? path)}`);
      throw error;
    };
  }

  /** A path as text: a string, a `file:` URL, or bytes. */
  function pathText(path, name = "path") {
    let text = path;
    if (native.fileBytes.isView(path)) {
      text = native.fileBytes.decode(native.fileBytes.viewOf(path), "utf8");
    } else if (typeof path === "object" && path !== null && typeof path.href === "string") {
      if (path.protocol !== "file:") {
        throw invalid.coded(new TypeError("The URL must be of scheme file"), "ERR_INVALID_URL_SCHEME");
      }
      text = decodeURIComponent(path.pathname);
    }
    if (typeof text !== "string") {
      throw invalid.type(name, "of type string or an instance of Buffer or URL", path);
    }
    if (text.includes("\0")) {
      throw invalid.value(name, "must be a string without null bytes", text);
    }
    return text;
  }

  native.fileErrors = { __proto__: null, failure, isOutside, pathText };
});
