// Numbers in a Buffer: readInt16LE, writeDoubleBE and similar functions, from one table.
(function (native) {
  "use strict";

  const { invalid, buffers } = native;
  const { Buffer } = buffers;
  const { apply, defineProperty } = Reflect;
  const view = new DataView(new ArrayBuffer(8));
  const bytes = new Uint8Array(view.buffer);

  function checkOffset(buffer, offset, size) {
    if (typeof offset !== "number") throw invalid.type("offset", "of type number", offset);
    if (!Number.isInteger(offset)) throw invalid.range("offset", "an integer", offset);
    const most = buffer.length - size;
    if (most < 0) {
      throw invalid.coded(new RangeError("Attempt to access memory outside buffer bounds"), "ERR_BUFFER_OUT_OF_BOUNDS");
    }
    if (offset < 0 || offset > most) throw invalid.range("offset", `>= 0 and <= ${most}`, offset);
  }

  function checkValue(value, low, high) {
    if (value < low || value > high) throw invalid.range("value", `>= ${low} and <= ${high}`, value);
  }

  function define(name, method) {
    defineProperty(method, "name", { value: name, configurable: true });
    for (const alias of new Set([name, name.replace("UInt", "Uint")])) {
      defineProperty(Buffer.prototype, alias, { value: method, writable: true, enumerable: false, configurable: true });
    }
  }

  // [name, kind of DataView, bytes, least, most]
  const KINDS = [
    ["UInt8", "Uint8", 1, 0, 2 ** 8 - 1],
    ["Int8", "Int8", 1, -(2 ** 7), 2 ** 7 - 1],
    ["UInt16", "Uint16", 2, 0, 2 ** 16 - 1],
    ["Int16", "Int16", 2, -(2 ** 15), 2 ** 15 - 1],
    ["UInt32", "Uint32", 4, 0, 2 ** 32 - 1],
    ["Int32", "Int32", 4, -(2 ** 31), 2 ** 31 - 1],
    ["BigUInt64", "BigUint64", 8, 0n, 2n ** 64n - 1n],
    ["BigInt64", "BigInt64", 8, -(2n ** 63n), 2n ** 63n - 1n],
    ["Float", "Float32", 4, undefined, undefined],
    ["Double", "Float64", 8, undefined, undefined],
  ];
  for (const [name, kind, size, low, high] of KINDS) {
    const get = DataView.prototype[`get${kind}`];
    const set = DataView.prototype[`set${kind}`];
    for (const order of size === 1 ? [""] : ["LE", "BE"]) {
      const isLittle = order === "LE";
      define(`read${name}${order}`, function (offset = 0) {
        checkOffset(this, offset, size);
        for (let i = 0; i < size; i++) bytes[i] = this[offset + i];
        return apply(get, view, [0, isLittle]);
      });
      define(`write${name}${order}`, function (value, offset = 0) {
        const number = typeof low === "bigint" ? value : Number(value);
        if (low !== undefined) checkValue(number, low, high);
        checkOffset(this, offset, size);
        apply(set, view, [0, number, isLittle]);
        for (let i = 0; i < size; i++) this[offset + i] = bytes[i];
        return offset + size;
      });
    }
  }

  // Integers of one to six bytes.
  for (const order of ["LE", "BE"]) {
    const place = (i, size) => (order === "LE" ? i : size - 1 - i);
    const read = (buffer, offset, size) => {
      if (!(Number.isInteger(size) && size >= 1 && size <= 6)) throw invalid.range("byteLength", ">= 1 and <= 6", size);
      checkOffset(buffer, offset, size);
      let value = 0;
      for (let i = size - 1; i >= 0; i--) value = value * 256 + buffer[offset + place(i, size)];
      return value;
    };
    const write = (buffer, value, offset, size, low, high) => {
      if (!(Number.isInteger(size) && size >= 1 && size <= 6)) throw invalid.range("byteLength", ">= 1 and <= 6", size);
      checkValue(value, low, high);
      checkOffset(buffer, offset, size);
      let rest = value < 0 ? value + 2 ** (8 * size) : value;
      for (let i = 0; i < size; i++) {
        buffer[offset + place(i, size)] = rest % 256;
        rest = Math.floor(rest / 256);
      }
      return offset + size;
    };
    define(`readUInt${order}`, function (offset, size) {
      return read(this, offset, size);
    });
    define(`readInt${order}`, function (offset, size) {
      const value = read(this, offset, size);
      return value >= 2 ** (8 * size - 1) ? value - 2 ** (8 * size) : value;
    });
    define(`writeUInt${order}`, function (value, offset, size) {
      return write(this, value, offset, size, 0, 2 ** (8 * size) - 1);
    });
    define(`writeInt${order}`, function (value, offset, size) {
      return write(this, value, offset, size, -(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1);
    });
  }
});
