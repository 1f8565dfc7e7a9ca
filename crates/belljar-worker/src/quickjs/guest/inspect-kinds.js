// The real kind of a value, whatever it claims: its kind, its constructor's name, its tag, and the
// labels made of them. Offers `native.kinds` to inspect.js and clone.js.
//
// Guest code may have patched any prototype by the time something is printed, so everything used
// here is captured first, and a kind counts only when the engine's own accessor confirms it.
(function (native) {
  "use strict";

  const { apply, getPrototypeOf, getOwnPropertyDescriptor } = Reflect;
  const isArray = Array.isArray;
  const isError = Error.isError;
  const isPrototypeOf = Function.prototype[Symbol.hasInstance];
  const isEnumerable = Object.prototype.propertyIsEnumerable;
  const objectToString = Object.prototype.toString;
  const functionToString = Function.prototype.toString;
  const errorToString = Error.prototype.toString;
  const TypedArray = getPrototypeOf(Uint8Array);
  // A prototype chain may contain proxies, and then it may be endless.
  const MAX_CHAIN = 64;

  const getter = (prototype, name) => getOwnPropertyDescriptor(prototype, name).get;
  const typedArrayTag = getter(TypedArray.prototype, Symbol.toStringTag);
  const typedArraySize = getter(TypedArray.prototype, "length");
  const mapSize = getter(Map.prototype, "size");
  const setSize = getter(Set.prototype, "size");
  const { entries: mapEntries } = Map.prototype;
  const { values: setValues } = Set.prototype;
  const mapNext = getPrototypeOf(new Map().entries()).next;
  const setNext = getPrototypeOf(new Set().values()).next;

  /** Known prototypes, and the call that throws unless the value really is of that kind. */
  const KINDS = new Map([
    [Map.prototype, ["Map", (value) => apply(mapSize, value, [])]],
    [Set.prototype, ["Set", (value) => apply(setSize, value, [])]],
    [Date.prototype, ["Date", (value) => apply(valueOfs.Date, value, [])]],
    [RegExp.prototype, ["RegExp", (value) => apply(regExpSource, value, [])]],
    [Promise.prototype, ["Promise", (value) => requirePromise(value)]],
    [TypedArray.prototype, ["TypedArray", (value) => requireTyped(value)]],
    [ArrayBuffer.prototype, ["ArrayBuffer", (value) => apply(bufferLength, value, [])]],
    [SharedArrayBuffer.prototype, ["SharedArrayBuffer", (value) => apply(sharedLength, value, [])]],
    [DataView.prototype, ["DataView", (value) => apply(viewBuffer, value, [])]],
    [WeakMap.prototype, ["WeakMap", (value) => apply(weakMapHas, value, [value])]],
    [WeakSet.prototype, ["WeakSet", (value) => apply(weakSetHas, value, [value])]],
    [Number.prototype, ["Number", (value) => apply(valueOfs.Number, value, [])]],
    [String.prototype, ["String", (value) => apply(valueOfs.String, value, [])]],
    [Boolean.prototype, ["Boolean", (value) => apply(valueOfs.Boolean, value, [])]],
    [BigInt.prototype, ["BigInt", (value) => apply(valueOfs.BigInt, value, [])]],
    [Symbol.prototype, ["Symbol", (value) => apply(valueOfs.Symbol, value, [])]],
  ]);
  // Only their tests fail for every other object; those of the library's classes need their prototype.
  const BUILT_IN = [...KINDS.values()];
  const valueOfs = {
    Number: Number.prototype.valueOf,
    String: String.prototype.valueOf,
    Boolean: Boolean.prototype.valueOf,
    BigInt: BigInt.prototype.valueOf,
    Symbol: Symbol.prototype.valueOf,
    Date: Date.prototype.valueOf,
  };
  const regExpSource = getter(RegExp.prototype, "source");
  const bufferLength = getter(ArrayBuffer.prototype, "byteLength");
  const sharedLength = getter(SharedArrayBuffer.prototype, "byteLength");
  const viewBuffer = getter(DataView.prototype, "buffer");
  const weakMapHas = WeakMap.prototype.has;
  const weakSetHas = WeakSet.prototype.has;

  function requirePromise(value) {
    if (native.promiseState(value) === undefined) throw new TypeError("not a promise");
  }

  function requireTyped(value) {
    if (apply(typedArrayTag, value, []) === undefined) throw new TypeError("not a typed array");
  }

  function confirms(test, value) {
    try {
      test(value);
      return true;
    } catch {
      return false;
    }
  }

  /** The kind of an object that is not a proxy: "Array", "Map", …, or "Object". */
  function kindOf(value) {
    if (typeof value === "function") return "Function";
    if (isArray(value)) return "Array";
    if (isError(value)) return "Error";
    let prototype = getPrototypeOf(value);
    for (let step = 0; prototype !== null && step < MAX_CHAIN; step++) {
      const known = KINDS.get(prototype);
      if (known !== undefined && confirms(known[1], value)) return known[0];
      prototype = safely(() => getPrototypeOf(prototype), null);
    }
    if (getPrototypeOf(value) === null) {
      for (const [kind, test] of BUILT_IN) if (confirms(test, value)) return kind;
    }
    const label = safely(() => apply(objectToString, value, []), "");
    return label === "[object Arguments]" ? "Arguments" : "Object";
  }

  /** Runs what guest code may interfere with. */
  function safely(read, otherwise) {
    try {
      return read();
    } catch {
      return otherwise;
    }
  }

  /** The name of the class a value is an instance of, or null when it has no prototype. */
  function constructorName(value) {
    return safely(() => findConstructorName(value), "Object");
  }

  function findConstructorName(value) {
    let holder = value;
    for (let step = 0; holder !== null && step < MAX_CHAIN; step++) {
      const descriptor = getOwnPropertyDescriptor(holder, "constructor");
      const found = descriptor?.value;
      if (typeof found === "function" && apply(isPrototypeOf, found, [value])) {
        const name = found.name;
        if (typeof name === "string" && name !== "") return name;
      }
      holder = getPrototypeOf(holder);
    }
    const prototype = getPrototypeOf(value);
    if (prototype === null) return null;
    const bare = getPrototypeOf(prototype) === null && Reflect.ownKeys(prototype).length === 0;
    return bare ? "Object <[Object: null prototype] {}>" : "Object <Complex prototype>";
  }

  /** `Symbol.toStringTag`, unless it is printed anyway as a property. */
  function tagOf(value, showHidden) {
    const tag = safely(() => value[Symbol.toStringTag], "");
    if (typeof tag !== "string" || tag === "") return "";
    const own = showHidden
      ? getOwnPropertyDescriptor(value, Symbol.toStringTag) !== undefined
      : apply(isEnumerable, value, [Symbol.toStringTag]);
    return own ? "" : tag;
  }

  /** `Foo(2) [Tag] `: what stands before the bracket, with its trailing space. */
  function prefixOf(constructor, tag, fallback, size = "") {
    if (constructor === null) {
      const shown = tag !== "" && fallback !== tag ? `[${tag}] ` : "";
      return `[${fallback}${size}: null prototype] ${shown}`;
    }
    return tag !== "" && constructor !== tag
      ? `${constructor}${size} [${tag}] `
      : `${constructor}${size} `;
  }

  const FUNCTION_TYPES = new Map([
    [getPrototypeOf(async function () {}), "AsyncFunction"],
    [getPrototypeOf(function* () {}), "GeneratorFunction"],
    [getPrototypeOf(async function* () {}), "AsyncGeneratorFunction"],
  ]);

  function textOf(value) {
    return typeof value === "string" ? value : "";
  }

  function functionLabel(value, constructor, tag) {
    const source = apply(functionToString, value, []);
    const extra = tag !== "" && constructor !== tag ? ` [${tag}]` : "";
    if (/^class[\s{]/.test(source)) return classLabel(value, constructor, extra);
    const type = safely(() => FUNCTION_TYPES.get(getPrototypeOf(value)), undefined) ?? "Function";
    const name = textOf(safely(() => value.name, ""));
    let label = `[${type}${constructor === null ? " (null prototype)" : ""}`;
    label += name === "" ? " (anonymous)]" : `: ${name}]`;
    if (constructor !== null && constructor !== type && constructor !== "Function")
      label += ` ${constructor}`;
    return label + extra;
  }

  function classLabel(value, constructor, extra) {
    const own = getOwnPropertyDescriptor(value, "name") !== undefined;
    let label = `class ${(own && textOf(safely(() => value.name, ""))) || "(anonymous)"}`;
    if (constructor !== null && constructor !== "Function") label += ` [${constructor}]`;
    label += extra;
    if (constructor === null) return `[${label} extends null]`;
    const parent = textOf(safely(() => getPrototypeOf(value).name, ""));
    return parent === "" ? `[${label}]` : `[${label} extends ${parent}]`;
  }

  /** `Name: message`, naming the class too when the error's own name hides it. */
  function errorHeader(error, constructor) {
    const plain = safely(() => apply(errorToString, error, []), "Error");
    const name = textOf(safely(() => error.name, "Error")) || "Error";
    const rest = plain.startsWith(name) ? plain.slice(name.length) : undefined;
    if (rest === undefined || (rest !== "" && !rest.startsWith(":"))) return plain;
    if (constructor === null) return `[${name}: null prototype]${rest}`;
    if (!name.endsWith("Error") || name.includes(constructor)) return plain;
    return (constructor.includes(name) ? constructor : `${constructor} [${name}]`) + rest;
  }

  /** The lines of a stack that are the agent's, not this library's. */
  function agentFrames(error) {
    const stack = textOf(safely(() => error.stack, ""));
    return stack
      .split("\n")
      .filter((line) => /^\s+at /.test(line) && !line.includes("belljar:"))
      .join("\n");
  }

  native.agentFrames ??= agentFrames;

  /** Header and the agent's own lines of the stack; in brackets when there are none. */
  function errorText(error, constructor) {
    const header = errorHeader(error, constructor);
    const frames = native.agentFrames(error);
    return frames === "" ? `[${header}]` : `${header}\n${frames}`;
  }

  function takeFrom(iterator, next, limit) {
    const items = [];
    while (items.length < limit) {
      const step = apply(next, iterator, []);
      if (step.done) break;
      items.push(step.value);
    }
    return items;
  }

  native.kinds = {
    register: (prototype, kind, test) => KINDS.set(prototype, [kind, test]),
    kindOf,
    constructorName,
    tagOf,
    prefixOf,
    functionLabel,
    errorText,
    safely,
    boxedValue: (value, kind) => apply(valueOfs[kind], value, []),
    typedArrayName: (value) => apply(typedArrayTag, value, []),
    typedArrayLength: (value) => apply(typedArraySize, value, []),
    mapSize: (map) => apply(mapSize, map, []),
    setSize: (set) => apply(setSize, set, []),
    mapItems: (map, limit) => takeFrom(apply(mapEntries, map, []), mapNext, limit),
    setItems: (set, limit) => takeFrom(apply(setValues, set, []), setNext, limit),
  };
});
