// The functions of `fs` that answer at once; the operations themselves are files.rs.
//
// Offers `native.fileFunctions`, and `native.artifact`.
(function (native) {
  "use strict";

  const files = native.openFiles();
  const { encodingOf, decode, encode, viewOf, isView, asBuffer } = native.fileBytes;
  const { failure, pathText } = native.fileErrors;
  const { invalid } = native;
  const { apply } = Reflect;
  const { toHex } = Uint8Array.prototype;

  const NATIVE_TEXT = ["utf8", "latin1", "ascii", "utf16le"];
  const WRITE_FLAGS = /^(?:r\+|rs\+|sr\+|w|wx|xw|w\+|wx\+|xw\+|a|ax|xa|a\+|ax\+|xa\+|as|as\+)$/;
  const TEXT_CHUNK = 1 << 18;
  const BYTE_CHUNK = 1 << 20;
  const constants = {
    __proto__: null, F_OK: 0, X_OK: 1, W_OK: 2, R_OK: 4, COPYFILE_EXCL: 1,
    S_IFMT: 0o170000, S_IFREG: 0o100000, S_IFDIR: 0o040000, S_IFLNK: 0o120000,
  };

  /** Options are an object, or just the encoding. */
  function optionsOf(options) {
    if (options === undefined || options === null || typeof options === "function") return {};
    if (typeof options === "string") return { encoding: options };
    if (typeof options === "object") return options;
    throw invalid.type("options", "of type string or an instance of Object", options);
  }

  function readFileSync(path, options) {
    const name = pathText(path);
    const encoding = encodingOf(optionsOf(options).encoding);
    const fail = failure(name, undefined, "read");
    if (NATIVE_TEXT.includes(encoding)) return files.read(fail, name, encoding);
    const bytes = files.read(fail, name, undefined);
    return encoding === undefined ? asBuffer(bytes) : decode(bytes, encoding);
  }

  function putText(fail, text) {
    for (let at = 0; at < text.length;) {
      let end = at + TEXT_CHUNK;
      // A pair of surrogates is one character, and stays together.
      if (end < text.length && text.charCodeAt(end) >>> 10 === 0x37) end += 1;
      files.putText(fail, text.slice(at, end));
      at = end;
    }
  }

  function putBytes(fail, bytes) {
    for (let at = 0; at < bytes.length; at += BYTE_CHUNK) {
      files.putHex(fail, apply(toHex, bytes.subarray(at, at + BYTE_CHUNK), []));
    }
  }

  function write(path, data, options, standardFlag) {
    const name = pathText(path);
    const { encoding, flag = standardFlag, mode = 0o666 } = optionsOf(options);
    if (typeof data !== "string" && !isView(data)) {
      const expected = "of type string or an instance of Buffer, TypedArray, or DataView";
      throw invalid.type("data", expected, data);
    }
    if (!WRITE_FLAGS.test(flag)) throw invalid.value("flags", "is not a flag for writing", flag);
    const kind = encodingOf(encoding) ?? "utf8";
    const fail = failure(name, undefined, "write");
    files.begin(fail, name, flag, mode);
    try {
      if (typeof data === "string" && kind === "utf8") putText(fail, data);
      else putBytes(fail, typeof data === "string" ? encode(data, kind) : viewOf(data));
    } finally {
      files.end();
    }
  }

  const writeFileSync = (path, data, options) => write(path, data, options, "w");
  const appendFileSync = (path, data, options) => write(path, data, options, "a");

  const FIELDS = [
    "dev", "mode", "nlink", "uid", "gid", "rdev", "blksize", "ino", "size", "blocks",
    "atimeMs", "mtimeMs", "ctimeMs", "birthtimeMs",
  ];

  class Stats {
    constructor(numbers) {
      for (let i = 0; i < FIELDS.length; i++) this[FIELDS[i]] = numbers[i];
      this.atime = new Date(this.atimeMs);
      this.mtime = new Date(this.mtimeMs);
      this.ctime = new Date(this.ctimeMs);
      this.birthtime = new Date(this.birthtimeMs);
    }

    isFile() { return (this.mode & constants.S_IFMT) === constants.S_IFREG; }
    isDirectory() { return (this.mode & constants.S_IFMT) === constants.S_IFDIR; }
    isSymbolicLink() { return (this.mode & constants.S_IFMT) === constants.S_IFLNK; }
    isBlockDevice() { return false; }
    isCharacterDevice() { return false; }
    isFIFO() { return false; }
    isSocket() { return false; }
  }

  function status(path, options, follows) {
    const name = pathText(path);
    try {
      return new Stats(files.stat(failure(name, undefined, "read"), name, follows));
    } catch (error) {
      const absent = error.code === "ENOENT" || error.code === "ENOTDIR";
      if (absent && options?.throwIfNoEntry === false) return undefined;
      throw error;
    }
  }

  const statSync = (path, options) => status(path, options, true);
  const lstatSync = (path, options) => status(path, options, false);

  function existsSync(path) {
    try {
      return files.exists(pathText(path));
    } catch {
      return false;
    }
  }

  function accessSync(path, mode = constants.F_OK) {
    const name = pathText(path);
    const intent = mode & constants.W_OK ? "write" : "read";
    files.access(failure(name, undefined, intent), name, mode);
  }

  class Dirent {
    #kind;

    constructor(name, parentPath, kind) {
      this.name = name;
      this.parentPath = parentPath;
      this.path = parentPath;
      this.#kind = kind;
    }

    isFile() { return this.#kind === 1; }
    isDirectory() { return this.#kind === 2; }
    isSymbolicLink() { return this.#kind === 3; }
    isBlockDevice() { return false; }
    isCharacterDevice() { return false; }
    isFIFO() { return false; }
    isSocket() { return false; }
  }

  const joined = (directory, name) => (directory.endsWith("/") ? directory + name : `${directory}/${name}`);

  function readdirSync(path, options) {
    const top = pathText(path);
    const { withFileTypes = false, recursive = false } = optionsOf(options);
    const found = [];
    const walk = (directory, prefix) => {
      const [names, kinds] = files.list(failure(directory, undefined, "read"), directory);
      for (let i = 0; i < names.length; i++) {
        const entry = withFileTypes ? new Dirent(names[i], directory, kinds[i]) : prefix + names[i];
        found[found.length] = entry;
        if (recursive && kinds[i] === 2) walk(joined(directory, names[i]), `${prefix}${names[i]}/`);
      }
    };
    walk(top, "");
    return found;
  }

  function mkdirSync(path, options) {
    const name = pathText(path);
    const { recursive = false, mode = 0o777 } = typeof options === "number" ? { mode: options } : optionsOf(options);
    return files.makeDirectory(failure(name, undefined, "write"), name, mode, Boolean(recursive));
  }

  function mkdtempSync(prefix) {
    const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let name = pathText(prefix, "prefix");
    for (let i = 0; i < 6; i++) name += letters[Math.floor(native.random() * letters.length)];
    files.makeDirectory(failure(name, undefined, "write"), name, 0o700, false);
    return name;
  }

  function unlinkSync(path) {
    const name = pathText(path);
    files.removeFile(failure(name, undefined, "write"), name);
  }

  function rmdirSync(path, options) {
    const name = pathText(path);
    if (options?.recursive) rmSync(name, { recursive: true });
    else files.removeDirectory(failure(name, undefined, "write"), name);
  }

  function rmSync(path, options) {
    const name = pathText(path);
    const { recursive = false, force = false } = optionsOf(options);
    const found = status(name, { throwIfNoEntry: !force }, false);
    if (found === undefined) return;
    if (!found.isDirectory()) {
      files.removeFile(failure(name, undefined, "write"), name);
    } else if (recursive) {
      files.removeTree(failure(name, undefined, "write"), name);
    } else {
      throw invalid.plain(
        "ERR_FS_EISDIR",
        `Path is a directory: rm returned EISDIR (is a directory) ${name}; use { recursive: true }`,
      );
    }
  }

  function renameSync(from, to) {
    const [source, target] = [pathText(from, "oldPath"), pathText(to, "newPath")];
    files.rename(failure(source, target, "write"), source, target);
  }

  function copyFileSync(from, to, mode = 0) {
    const [source, target] = [pathText(from, "src"), pathText(to, "dest")];
    // The message depends on which of the two is missing.
    files.access(failure(source, undefined, "read"), source, constants.F_OK);
    const exclusive = (mode & constants.COPYFILE_EXCL) !== 0;
    files.copy(failure(source, target, "write"), source, target, exclusive);
  }

  function cpSync(from, to, options) {
    const [source, target] = [pathText(from, "src"), pathText(to, "dest")];
    if (!statSync(source).isDirectory()) return copyFileSync(source, target);
    if (!options?.recursive) {
      throw invalid.plain(
        "ERR_FS_EISDIR",
        `Path is a directory: cp ${source}; use { recursive: true }`,
      );
    }
    const names = readdirSync(source);
    mkdirSync(target, { recursive: true });
    for (const name of names) cpSync(joined(source, name), joined(target, name), options);
    return undefined;
  }

  function truncateSync(path, length = 0) {
    const name = pathText(path);
    files.truncate(failure(name, undefined, "write"), name, length);
  }

  /** Has a file come back beside the value. */
  function artifact(path) {
    const name = pathText(path);
    const found = statSync(name);
    if (!found.isFile()) {
      throw invalid.plain(
        "ERR_FS_EISDIR",
        `artifact('${name}') is not a file: name files one by one, or write them to /work/out`,
      );
    }
    return files.artifact(name);
  }

  native.artifact = artifact;
  native.fileFunctions = {
    __proto__: null,
    constants, Stats, Dirent,
    sync: {
      __proto__: null,
      readFileSync, writeFileSync, appendFileSync, existsSync, statSync, lstatSync, accessSync,
      readdirSync, mkdirSync, mkdtempSync, unlinkSync, rmdirSync, rmSync, renameSync, copyFileSync,
      cpSync, truncateSync,
    },
  };
});
