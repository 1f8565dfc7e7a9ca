// structuredClone: a deep copy by the HTML standard's rules, cycles and shared parts kept.
(function (native) {
  "use strict";

  const { kinds, inspect } = native;
  const ERROR_TYPES = new Map(
    [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((type) => [
      type.name,
      type,
    ]),
  );
  const VIEWS = new Map(
    [
      Int8Array,
      Uint8Array,
      Uint8ClampedArray,
      Int16Array,
      Uint16Array,
      Int32Array,
      Uint32Array,
      Float16Array,
      Float32Array,
      Float64Array,
      BigInt64Array,
      BigUint64Array,
      DataView,
    ].map((type) => [type.name, type]),
  );

  function refuse(value) {
    const label =
      typeof value === "object"
        ? `#<${kinds.constructorName(value) ?? "Object"}>`
        : typeof value === "function"
          ? `${value}`.slice(0, 100)
          : inspect(value);
    throw new DOMException(`${label} could not be cloned.`, "DataCloneError");
  }

  function copyProperties(source, target, copy) {
    for (const key of Object.keys(source)) {
      // defineProperty, so that a key named __proto__ is a key.
      Object.defineProperty(target, key, {
        value: copy(source[key]),
        writable: true,
        enumerable: true,
        configurable: true,
      });
    }
    return target;
  }

  function copyError(error, remember, copy) {
    const type = ERROR_TYPES.get(error.name) ?? Error;
    const message = Object.hasOwn(error, "message") ? `${error.message}` : undefined;
    const clone = remember(
      error instanceof DOMException
        ? new DOMException(error.message, error.name)
        : new type(message),
    );
    if (typeof error.stack === "string") {
      Object.defineProperty(clone, "stack", {
        value: error.stack,
        writable: true,
        enumerable: false,
        configurable: true,
      });
    }
    if (Object.hasOwn(error, "cause")) {
      Object.defineProperty(clone, "cause", {
        value: copy(error.cause),
        writable: true,
        enumerable: false,
        configurable: true,
      });
    }
    return clone;
  }

  function copyView(view, copy) {
    const name = view instanceof DataView ? "DataView" : kinds.typedArrayName(view);
    const length = name === "DataView" ? view.byteLength : view.length;
    return new (VIEWS.get(name))(copy(view.buffer), view.byteOffset, length);
  }

  /** How each kind is copied; `remember` must be told the copy before its parts are made. */
  const COPIES = {
    Object: (value, remember, copy) => copyProperties(value, remember({}), copy),
    Arguments: (value, remember, copy) => copyProperties(value, remember({}), copy),
    Array: (value, remember, copy) =>
      copyProperties(value, remember(new Array(value.length)), copy),
    Map(value, remember, copy) {
      const clone = remember(new Map());
      for (const [key, item] of kinds.mapItems(value, Infinity)) clone.set(copy(key), copy(item));
      return clone;
    },
    Set(value, remember, copy) {
      const clone = remember(new Set());
      for (const item of kinds.setItems(value, Infinity)) clone.add(copy(item));
      return clone;
    },
    Date: (value, remember) => remember(new Date(kinds.boxedValue(value, "Date"))),
    RegExp: (value, remember) => remember(new RegExp(value.source, value.flags)),
    Error: copyError,
    ArrayBuffer: (value, remember) => remember(value.slice(0)),
    TypedArray: (value, remember, copy) => remember(copyView(value, copy)),
    DataView: (value, remember, copy) => remember(copyView(value, copy)),
    Number: copyBoxed,
    String: copyBoxed,
    Boolean: copyBoxed,
    BigInt: copyBoxed,
  };

  function copyBoxed(value, remember) {
    return remember(Object(kinds.boxedValue(value, kinds.kindOf(value))));
  }

  function transferList(options) {
    const list = options?.transfer ?? [];
    if (typeof list[Symbol.iterator] !== "function")
      throw new TypeError("structuredClone: transfer must be a list");
    const buffers = [...list];
    for (const buffer of buffers) {
      if (!(buffer instanceof ArrayBuffer) || buffer.detached) {
        throw new DOMException(
          "Value could not be transferred: only an ArrayBuffer can, once",
          "DataCloneError",
        );
      }
    }
    return new Set(buffers);
  }

  function structuredClone(value, options) {
    if (arguments.length === 0) throw new TypeError("structuredClone needs the value to copy");
    const transfer = transferList(options);
    const copies = new Map();
    function copy(original) {
      if (typeof original === "symbol" || typeof original === "function") refuse(original);
      if (typeof original !== "object" || original === null) return original;
      if (copies.has(original)) return copies.get(original);
      const copier =
        native.unwrapProxy(original) === original ? COPIES[kinds.kindOf(original)] : undefined;
      if (copier === undefined) refuse(original);
      return copier(
        original,
        (clone) => {
          copies.set(original, clone);
          return clone;
        },
        copy,
      );
    }
    if (transfer.size === 0) return copy(value);
    return withTransfer(value, transfer, copies, copy);
  }

  /** Copies first and detaches last, so that a refusal leaves the caller's buffers alone. */
  function withTransfer(value, transfer, copies, copy) {
    for (const buffer of transfer) copies.set(buffer, buffer.slice(0));
    const clone = copy(value);
    for (const buffer of transfer) buffer.transfer();
    return clone;
  }

  native.expose({ structuredClone });
});
