// Node's `string_decoder`: text from pieces of bytes that may end in the middle of a character.
(function (native) {
  "use strict";

  native.need("node/buffer");
  const { encodingOf, viewOf, decode } = native.fileBytes;
  const { textBytes, Buffer } = native.buffers;
  // How many bytes make a whole, for encodings whose pieces have one size.
  const WHOLE = { __proto__: null, base64: 3, base64url: 3, utf16le: 2 };
  const WEB = { __proto__: null, utf8: "utf-8", utf16le: "utf-16le" };

  class StringDecoder {
    #pending = new Uint8Array(0);

    constructor(encoding = "utf8") {
      this.encoding = encodingOf(encoding) ?? "utf8";
    }

    write(chunk) {
      if (typeof chunk === "string") return chunk;
      const bytes = Buffer.concat([this.#pending, viewOf(chunk)]);
      const kept = this.#keep(bytes);
      this.#pending = bytes.subarray(bytes.length - kept);
      return decode(bytes.subarray(0, bytes.length - kept), this.encoding);
    }

    #keep(bytes) {
      if (WEB[this.encoding] !== undefined) {
        return native.decodeText(WEB[this.encoding], bytes.toString("hex"), false, true)[1];
      }
      return bytes.length % (WHOLE[this.encoding] ?? 1);
    }

    end(chunk) {
      const text = chunk === undefined ? "" : this.write(chunk);
      const rest = decode(this.#pending, this.encoding);
      this.#pending = textBytes("", "utf8");
      return text + rest;
    }
  }

  native.offer("string_decoder", { StringDecoder });
});
