// Node's `crypto`, as far as it needs no keys: hashes, HMAC and randomness. The hashes are
// hashes.rs; bytes travel as hexadecimal text, see encoding.rs.
(function (native) {
  "use strict";

  native.need("node/invalid", "node/buffer", "hashes");
  const { invalid, hashes } = native;
  const { Buffer, textBytes } = native.buffers;
  const { viewOf, isView } = native.fileBytes;
  const { apply } = Reflect;
  const { toHex } = Uint8Array.prototype;
  const later = native.timerFunctions.setImmediate;
  const web = native.global("crypto").crypto;
  const MAX_RANDOM = 2 ** 31 - 1;
  const MAX_RANGE = 2 ** 48;

  function hexOf(data, encoding, name = "data") {
    if (typeof data === "string") return apply(toHex, textBytes(data, encoding), []);
    if (data instanceof ArrayBuffer) return apply(toHex, new Uint8Array(data), []);
    if (isView(data)) return apply(toHex, viewOf(data), []);
    throw invalid.type(name, "of type string or an instance of Buffer, TypedArray, or DataView", data);
  }

  function named(algorithm) {
    if (typeof algorithm !== "string") throw invalid.type("algorithm", "of type string", algorithm);
    const known = hashes.named(algorithm);
    if (known !== undefined) return known;
    const error = new Error(`Digest method not supported: ${algorithm}. There are ${hashes.names.join(", ")}`);
    throw invalid.coded(error, "ERR_CRYPTO_INVALID_DIGEST");
  }

  const answer = (hex, encoding) => {
    const bytes = Buffer.from(hex, "hex");
    return encoding === undefined || encoding === "buffer" ? bytes : bytes.toString(encoding);
  };

  class Digest {
    #parts = [];
    #isDone = false;
    #finish;

    constructor(finish, parts = []) {
      this.#finish = finish;
      this.#parts = parts;
    }

    update(data, encoding) {
      if (this.#isDone) throw invalid.plain("ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
      this.#parts.push(hexOf(data, encoding));
      return this;
    }

    digest(encoding) {
      if (this.#isDone) throw invalid.plain("ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
      this.#isDone = true;
      return answer(this.#finish(this.#parts.join("")), encoding);
    }

    copy() {
      if (this.#isDone) throw invalid.plain("ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
      return new Hash(this.#finish, [...this.#parts]);
    }
  }
  class Hash extends Digest {}
  class Hmac extends Digest {}

  function createHash(algorithm) {
    const name = named(algorithm);
    return new Hash((hex) => native.digest(name, hex));
  }

  function createHmac(algorithm, key) {
    const [name, secret] = [named(algorithm), hexOf(key, "utf8", "key")];
    return new Hmac((hex) => native.authenticate(name, secret, hex));
  }

  /** Gives a value, or hands it to the callback later. */
  function give(make, callback) {
    if (callback === undefined) return make();
    if (typeof callback !== "function") throw invalid.type("callback", "of type function", callback);
    const value = make();
    later(() => callback(null, value));
    return undefined;
  }

  function randomBytes(size, callback) {
    if (typeof size !== "number") throw invalid.type("size", "of type number", size);
    if (!(size >= 0 && size <= MAX_RANDOM)) throw invalid.range("size", `>= 0 && <= ${MAX_RANDOM}`, size);
    return give(() => randomFillSync(Buffer.alloc(Math.trunc(size))), callback);
  }

  function randomFillSync(target, offset = 0, size = target.byteLength - offset) {
    const bytes = target instanceof ArrayBuffer ? new Uint8Array(target) : viewOf(target);
    native.fillRandom(bytes.subarray(offset, offset + size));
    return target;
  }

  function randomInt(low, high, callback) {
    if (high === undefined || typeof high === "function") [low, high, callback] = [0, low, high];
    for (const [name, value] of [["min", low], ["max", high]]) {
      if (!Number.isSafeInteger(value)) throw invalid.type(name, "a safe integer", value);
    }
    if (high <= low) throw invalid.range("max", `greater than the value of "min" (${low})`, high);
    const range = high - low;
    if (range >= MAX_RANGE) throw invalid.range("max - min", `<= ${MAX_RANGE - 1}`, range);
    return give(() => {
      // Numbers above the last whole multiple of the range would favour small results.
      const limit = MAX_RANGE - (MAX_RANGE % range);
      for (;;) {
        const value = randomBytes(6).readUIntBE(0, 6);
        if (value < limit) return low + (value % range);
      }
    }, callback);
  }

  function timingSafeEqual(first, second) {
    const [one, other] = [hexOf(first, "utf8", "buf1"), hexOf(second, "utf8", "buf2")];
    if (one.length !== other.length) {
      throw invalid.coded(new RangeError("Input buffers must have the same byte length"), "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH");
    }
    let difference = 0;
    for (let i = 0; i < one.length; i++) difference |= one.charCodeAt(i) ^ other.charCodeAt(i);
    return difference === 0;
  }

  native.offer("crypto", {
    createHash, createHmac, Hash, Hmac, randomBytes, randomInt, randomFillSync, timingSafeEqual,
    pseudoRandomBytes: randomBytes,
    hash: (algorithm, data, encoding = "hex") => answer(native.digest(named(algorithm), hexOf(data)), encoding),
    randomUUID: web.randomUUID,
    getRandomValues: web.getRandomValues,
    getHashes: () => [...hashes.names],
    subtle: web.subtle,
    webcrypto: web,
    constants: {},
  });
});
