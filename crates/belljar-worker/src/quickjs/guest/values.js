// The content of built-in objects, which the encoder in Rust cannot read by itself.
//
// Offers `native.values`. Every function here works on the intrinsics as they are before guest
// code exists, so nothing the guest overrides changes what a value becomes. `kinds` pairs a
// prototype with what its instances are; `open(kind, value)` gives what to encode in its place,
// or undefined when the value only pretends to be of that kind.
(function (native) {
  "use strict";

  const { apply, getPrototypeOf } = Reflect;
  const getter = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name).get;

  const TypedArray = getPrototypeOf(Uint8Array);
  const IteratorPrototype = getPrototypeOf(getPrototypeOf([][Symbol.iterator]()));
  const AsyncGeneratorPrototype = getPrototypeOf(async function* () {}).prototype;

  const dateToISO = Date.prototype.toISOString;
  const dateToTime = Date.prototype.getTime;
  const eachOfMap = Map.prototype.forEach;
  const setInMap = Map.prototype.set;
  const sizeOfMap = getter(Map.prototype, "size");
  const eachOfSet = Set.prototype.forEach;
  const sourceOf = getter(RegExp.prototype, "source");
  const flagsOf = getter(RegExp.prototype, "flags");
  const lengthOf = getter(TypedArray.prototype, "length");
  const bufferOf = getter(DataView.prototype, "buffer");
  const offsetOf = getter(DataView.prototype, "byteOffset");
  const byteLengthOf = getter(DataView.prototype, "byteLength");
  const bufferLengthOf = getter(ArrayBuffer.prototype, "byteLength");
  const { toBase64 } = Uint8Array.prototype;
  const toText = String;
  // The text of objects without a text of their own.
  const isNoText = RegExp.prototype.test.bind(/^\[object [^\]]*\]$/);

  const openers = {
    date(value) {
      // NaN tells the encoder that there is nothing to show.
      return Number.isNaN(apply(dateToTime, value, [])) ? NaN : apply(dateToISO, value, []);
    },
    map(value) {
      apply(sizeOfMap, value, []);
      // Two keys may have one text: the later entry wins, as in an object, and the value is marked.
      return () => {
        const entries = new Map();
        let isText = true;
        // Text that is not read back as what it was.
        let isOther = false;
        apply(eachOfMap, value, [(item, key) => {
          const text = dateText(key) ?? toText(key);
          if (typeof key === "object" && key !== null && isNoText(text)) isText = false;
          isOther ||= typeof key === "symbol" || isArray(key);
          apply(setInMap, entries, [text, item]);
        }]);
        if (!isText) return null;
        const flat = [isOther || apply(sizeOfMap, entries, []) < apply(sizeOfMap, value, [])];
        const add = (item) => { flat[flat.length] = item; };
        apply(eachOfMap, entries, [(item, key) => { add(key); add(item); }]);
        return flat;
      };
    },
    set(value) {
      const items = [];
      apply(eachOfSet, value, [(item) => { items[items.length] = item; }]);
      return items;
    },
    regexp: (value) => `/${apply(sourceOf, value, [])}/${apply(flagsOf, value, [])}`,
    typedArray: (value) => apply(lengthOf, value, []),
    buffer(value) {
      const length = apply(bufferLengthOf, value, []);
      return apply(toBase64, new Uint8Array(value, 0, length), []);
    },
    dataView(value) {
      const offset = apply(offsetOf, value, []);
      const length = apply(byteLengthOf, value, []);
      return apply(toBase64, new Uint8Array(apply(bufferOf, value, []), offset, length), []);
    },
    boxed: (value) => unbox(value),
  };

  const { isArray } = Array;
  /** A date as text, as it is where it is a value. */
  function dateText(key) {
    try {
      return apply(dateToISO, key, []);
    } catch {
      return undefined;
    }
  }

  const unboxers = [Number, String, Boolean, Symbol, BigInt].map((box) => box.prototype.valueOf);
  function unbox(value) {
    for (const valueOf of unboxers) {
      try {
        return apply(valueOf, value, []);
      } catch {
        // Not in that box.
      }
    }
    return undefined;
  }

  function open(kind, value) {
    let opened;
    try {
      opened = openers[kind](value);
    } catch {
      // `Object.create(Map.prototype)` has the looks and no insides.
      return undefined;
    }
    // Keys of maps become text outside of the `try`, so that errors of their toString are seen.
    return typeof opened === "function" ? opened() : opened;
  }

  const kinds = [
    [Date.prototype, "date"],
    [Map.prototype, "map"],
    [Set.prototype, "set"],
    [RegExp.prototype, "regexp"],
    [TypedArray.prototype, "typedArray"],
    [DataView.prototype, "dataView"],
    [ArrayBuffer.prototype, "buffer"],
    [Number.prototype, "boxed"],
    [String.prototype, "boxed"],
    [Boolean.prototype, "boxed"],
    [Symbol.prototype, "boxed"],
    [BigInt.prototype, "boxed"],
    [WeakMap.prototype, "WeakMap"],
    [WeakSet.prototype, "WeakSet"],
    [WeakRef.prototype, "WeakRef"],
    [FinalizationRegistry.prototype, "FinalizationRegistry"],
    [native.loop.Timeout.prototype, "timer"],
    [native.loop.Immediate.prototype, "timer"],
    [IteratorPrototype, "iterator"],
    [getPrototypeOf(AsyncGeneratorPrototype), "asyncIterator"],
  ];

  native.values = {
    kinds, open,
    isArray: Array.isArray,
    dateToJSON: Date.prototype.toJSON,
    // Set by node/buffer.js.
    bufferToJSON: undefined,
    objectPrototype: Object.prototype,
    bigIntPrototype: BigInt.prototype,
    permissionPrototype: native.errors.PermissionError.prototype,
  };
})
