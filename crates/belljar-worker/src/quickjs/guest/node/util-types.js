// Node's `util/types`: what a value is, whatever it claims to be.
(function (native) {
  "use strict";

  const { kinds } = native;
  const { getPrototypeOf } = Reflect;
  const isObject = (value) => typeof value === "object" && value !== null;
  const isKind = (...names) => (value) => isObject(value) && names.includes(kinds.kindOf(value));
  const types = {};
  for (const name of [
    "Map", "Set", "Date", "RegExp", "Promise", "TypedArray", "ArrayBuffer", "SharedArrayBuffer", "DataView", "WeakMap", "WeakSet",
  ]) types[`is${name}`] = isKind(name);
  for (const name of [
    "Uint8Array", "Uint8ClampedArray", "Uint16Array", "Uint32Array", "Int8Array", "Int16Array", "Int32Array",
    "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array",
  ]) types[`is${name}`] = (value) => types.isTypedArray(value) && kinds.typedArrayName(value) === name;
  for (const name of ["Number", "String", "Boolean", "Symbol", "BigInt"]) types[`is${name}Object`] = isKind(name);
  const AsyncFunction = getPrototypeOf(async function () {});
  const AsyncGeneratorFunction = getPrototypeOf(async function* () {});
  const GeneratorFunction = getPrototypeOf(function* () {});
  const madeBy = (...prototypes) => (value) => typeof value === "function" && prototypes.includes(getPrototypeOf(value));
  native.offer("util/types", Object.assign(types, {
    isAnyArrayBuffer: isKind("ArrayBuffer", "SharedArrayBuffer"),
    isArrayBufferView: (value) => ArrayBuffer.isView(value),
    isBoxedPrimitive: isKind("Number", "String", "Boolean", "Symbol", "BigInt"),
    isNativeError: isKind("Error"),
    isArgumentsObject: isKind("Arguments"),
    isAsyncFunction: madeBy(AsyncFunction, AsyncGeneratorFunction),
    isGeneratorFunction: madeBy(GeneratorFunction, AsyncGeneratorFunction),
    isGeneratorObject: (value) => isObject(value) && Object.prototype.toString.call(value) === "[object Generator]",
    isProxy: (value) => (isObject(value) || typeof value === "function") && native.unwrapProxy(value) !== value,
  }));
});
