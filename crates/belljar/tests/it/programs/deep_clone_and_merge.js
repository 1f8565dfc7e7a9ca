// A program to run side by side with Node: deep clone and merge.
const isObject = (x) => x !== null && typeof x === "object" && !Array.isArray(x);
const merge = (a, b) => Object.fromEntries([...new Set([...Object.keys(a), ...Object.keys(b)])].map((k) => [k, isObject(a[k]) && isObject(b[k]) ? merge(a[k], b[k]) : k in b ? b[k] : a[k]]));
console.log(merge({ a: { x: 1, y: [1] }, k: 0 }, { a: { y: [2], z: null }, n: undefined }));
const original = { d: new Date(5), m: new Map([[{ k: 1 }, new Set([1])]]), r: /x/g, n: { deep: [1, { two: 2 }] }, e: new RangeError("r"), b: new Uint8Array([1]) };
const copy = structuredClone(original);
console.log(copy.d instanceof Date, copy.d !== original.d, [...copy.m][0], copy.r, copy.n.deep[1] !== original.n.deep[1], copy.e.name, copy.b);
try { structuredClone({ f() {} }); } catch (e) { console.log(e.name, e.message); }
const frozen = Object.freeze({ a: { b: 1 } }); frozen.a.b = 2; frozen.c = 1;
console.log(frozen, Object.isFrozen(frozen), JSON.parse(JSON.stringify({ u: undefined, f() {}, n: NaN, d: new Date(0), i: [undefined] })));
console.log(Object.entries({ b: 1, a: 2, 1: 0 }), JSON.stringify({ a: [1, { b: 2 }] }, null, "--"), JSON.stringify({ a: 1, b: 2 }, ["b"]));
