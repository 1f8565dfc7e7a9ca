// Names of hashes, and `crypto.subtle` as far as hashes go: digest, and HMAC keys.
(function (native) {
  "use strict";

  const { apply } = Reflect;
  const { toHex } = Uint8Array.prototype;
  const NAMES = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"];

  /** The name hashes.rs knows it by: `SHA-256`, `sha256` and `RSA-SHA256` are one. */
  function named(algorithm) {
    const name = algorithm.toLowerCase().replace(/^rsa-/, "").replaceAll("-", "");
    return NAMES.includes(name) ? name : undefined;
  }
  native.hashes = { __proto__: null, names: NAMES, named };

  const HINT = "crypto.subtle has digest, and importKey, generateKey, exportKey, sign and verify for HMAC; node:crypto "
    + "has createHash and createHmac. There are no ciphers and no key pairs.";
  const unsupported = (what) => new DOMException(`${what} is not supported. ${HINT}`, "NotSupportedError");

  function hashNamed(algorithm) {
    const name = typeof algorithm === "string" ? algorithm : algorithm?.name;
    const known = typeof name === "string" && name.includes("-") ? named(name) : undefined;
    if (known === undefined || known === "md5" || known === "sha224") throw unsupported(`The hash ${String(name)}`);
    return known;
  }

  function bytesOf(data) {
    if (data instanceof ArrayBuffer || data instanceof SharedArrayBuffer) return new Uint8Array(data);
    if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    throw new TypeError("The data must be an ArrayBuffer or a view of one, for example new TextEncoder().encode(text)");
  }

  const hexOf = (data) => apply(toHex, bytesOf(data), []);
  const buffer = (hex) => Uint8Array.fromHex(hex).buffer;

  let secretOf;
  class CryptoKey {
    #secret;

    constructor(secret, hash, isExtractable, usages) {
      this.#secret = secret;
      this.type = "secret";
      this.extractable = isExtractable;
      this.algorithm = { name: "HMAC", length: secret.length * 4, hash: { name: `SHA-${hash.slice(3)}` } };
      this.usages = [...usages];
    }

    static {
      secretOf = (key, usage) => {
        if (usage !== undefined && !key.usages.includes(usage)) {
          throw new DOMException(`The key may not be used for: ${usage}`, "InvalidAccessError");
        }
        return key.#secret;
      };
    }
  }

  const requireHmac = (algorithm, what) => {
    const name = typeof algorithm === "string" ? algorithm : algorithm?.name;
    if (`${name}`.toUpperCase() !== "HMAC") throw unsupported(`${what} with ${String(name)}`);
  };
  const authenticate = (key, usage, data) => native.authenticate(hashNamed(key.algorithm.hash), secretOf(key, usage), hexOf(data));

  const methods = {
    digest: async (algorithm, data) => buffer(native.digest(hashNamed(algorithm), hexOf(data))),
    importKey: async (format, data, algorithm, isExtractable, usages) => {
      requireHmac(algorithm, "importKey");
      if (format !== "raw") throw unsupported(`importKey in the format ${String(format)}`);
      return new CryptoKey(hexOf(data), hashNamed(algorithm.hash), isExtractable, usages);
    },
    generateKey: async (algorithm, isExtractable, usages) => {
      requireHmac(algorithm, "generateKey");
      const hash = hashNamed(algorithm.hash);
      const bytes = new Uint8Array(algorithm.length === undefined ? (hash >= "sha384" ? 128 : 64) : algorithm.length / 8);
      native.fillRandom(bytes);
      return new CryptoKey(hexOf(bytes), hash, isExtractable, usages);
    },
    exportKey: async (format, key) => {
      if (format !== "raw") throw unsupported(`exportKey in the format ${String(format)}`);
      if (!key.extractable) throw new DOMException("The key is not extractable", "InvalidAccessError");
      return buffer(secretOf(key));
    },
    sign: async (algorithm, key, data) => {
      requireHmac(algorithm, "sign");
      return buffer(authenticate(key, "sign", data));
    },
    verify: async (algorithm, key, signature, data) => {
      requireHmac(algorithm, "verify");
      return authenticate(key, "verify", data) === hexOf(signature);
    },
  };
  class SubtleCrypto {}
  for (const name of Object.keys(methods)) {
    Object.defineProperty(SubtleCrypto.prototype, name, { value: methods[name], writable: true, enumerable: true, configurable: true });
  }
  for (const name of ["encrypt", "decrypt", "deriveKey", "deriveBits", "wrapKey", "unwrapKey"]) {
    const refused = { [name]: async () => { throw unsupported(`crypto.subtle.${name}`); } };
    Object.defineProperty(SubtleCrypto.prototype, name, { value: refused[name], writable: true, enumerable: true, configurable: true });
  }
  Object.defineProperty(SubtleCrypto.prototype, Symbol.toStringTag, { value: "SubtleCrypto", configurable: true });
  native.subtle = new SubtleCrypto();
  native.expose({ CryptoKey, SubtleCrypto });
});
