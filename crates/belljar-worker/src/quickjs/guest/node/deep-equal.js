// Whether two values are equal all the way down, as `assert` and `util` mean it:
// `native.deepEqual(first, second, isStrict)`.
(function (native) {
  "use strict";

  const { kinds } = native;
  const { getPrototypeOf, ownKeys } = Reflect;
  const { is, keys } = Object;
  const isEnumerable = (object, key) => Reflect.apply(Object.prototype.propertyIsEnumerable, object, [key]);

  class Comparison {
    constructor(isStrict) {
      this.isStrict = isStrict;
      // Pairs that are being compared further up.
      this.pairs = new Map();
    }

    values(first, second) {
      if (first === second) return first !== 0 || !this.isStrict || is(first, second);
      const isObject = (value) => typeof value === "object" && value !== null;
      if (!isObject(first) || !isObject(second)) {
        if (typeof first === "function" || typeof second === "function") return false;
        if (this.isStrict || isObject(first) || isObject(second)) return is(first, second);
        // eslint-disable-next-line eqeqeq
        return first == second || (first !== first && second !== second);
      }
      return this.objects(first, second);
    }

    objects(first, second) {
      if (this.isStrict && getPrototypeOf(first) !== getPrototypeOf(second)) return false;
      const kind = kinds.kindOf(first);
      if (kind !== kinds.kindOf(second)) return false;
      if (this.pairs.get(first) === second) return true;
      this.pairs.set(first, second);
      const same = this.insides(kind, first, second) && this.properties(first, second);
      this.pairs.delete(first);
      return same;
    }

    insides(kind, first, second) {
      switch (kind) {
        case "Array": return first.length === second.length;
        case "Date": case "Number": case "String": case "Boolean": case "BigInt": case "Symbol":
          return is(kinds.boxedValue(first, kind), kinds.boxedValue(second, kind));
        case "RegExp":
          return first.source === second.source && first.flags === second.flags && first.lastIndex === second.lastIndex;
        case "Error":
          return first.message === second.message && first.name === second.name
            && this.values(first.cause, second.cause) && this.values(first.errors, second.errors);
        case "TypedArray": return this.bytes(first, second);
        case "ArrayBuffer": case "SharedArrayBuffer":
          return this.bytes(new Uint8Array(first), new Uint8Array(second));
        case "Map": return this.maps(first, second);
        case "Set": return this.sets(first, second);
        case "Promise": case "WeakMap": case "WeakSet": return false;
        default: return true;
      }
    }

    bytes(first, second) {
      if (first.length !== second.length) return false;
      for (let i = 0; i < first.length; i++) {
        if (!(this.isStrict ? is(first[i], second[i]) : first[i] === second[i])) return false;
      }
      return true;
    }

    maps(first, second) {
      if (kinds.mapSize(first) !== kinds.mapSize(second)) return false;
      const others = kinds.mapItems(second, Infinity);
      return kinds.mapItems(first, Infinity).every(([key, value]) => {
        const at = others.findIndex(([otherKey, other]) => this.values(key, otherKey) && this.values(value, other));
        if (at >= 0) others.splice(at, 1);
        return at >= 0;
      });
    }

    sets(first, second) {
      if (kinds.setSize(first) !== kinds.setSize(second)) return false;
      const others = new Set(kinds.setItems(second, Infinity));
      const left = kinds.setItems(first, Infinity).filter((item) => !others.delete(item));
      const rest = [...others];
      return left.every((item) => {
        const at = rest.findIndex((other) => this.values(item, other));
        if (at >= 0) rest.splice(at, 1);
        return at >= 0;
      });
    }

    properties(first, second) {
      const [own, others] = [this.keysOf(first), this.keysOf(second)];
      if (own.length !== others.length) return false;
      return own.every((key) => isEnumerable(second, key) && this.values(first[key], second[key]));
    }

    keysOf(object) {
      if (!this.isStrict) return keys(object);
      return ownKeys(object).filter((key) => isEnumerable(object, key));
    }
  }

  native.deepEqual = (first, second, isStrict) => new Comparison(isStrict).values(first, second);
});
