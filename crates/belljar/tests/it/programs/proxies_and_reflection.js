// A program to run side by side with Node: proxies and reflection.
const log = [];
const watched = new Proxy({ a: 1 }, { get(t, k, r) { log.push(`get ${String(k)}`); return Reflect.get(t, k, r); }, set(t, k, v) { log.push(`set ${k}=${v}`); t[k] = v * 2; return true; }, has: (t, k) => k.startsWith("a"), deleteProperty() { return false; }, ownKeys: () => ["a", "z"], getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 0 }) });
watched.b = 5; console.log(watched.b, "abc" in watched, "x" in watched, Object.keys(watched), log);
const tag = (strings, ...values) => strings.raw.map((s, i) => s + (values[i] !== undefined ? `[${values[i]}]` : "")).join("");
console.log(tag`a${1}\n${"x"}`, Reflect.ownKeys({ [Symbol.iterator]: 1, b: 2 }), Symbol.for("x") === Symbol.for("x"), Symbol("d").description);
const money = { amount: 5, [Symbol.toPrimitive](hint) { return hint === "number" ? this.amount : `$${this.amount}`; } };
console.log(+money, `${money}`, money + 1, [3, 1, 2].toSorted?.() ?? "no", Object.getOwnPropertyDescriptor({ get x() { return 1; } }, "x"));
class Temp { static [Symbol.hasInstance](x) { return typeof x === "number"; } } console.log(5 instanceof Temp);
const held = { a: 1 }, weak = new WeakRef(held); console.log(weak.deref() === held, typeof FinalizationRegistry);
function curry(f) { return function c(...a) { return a.length >= f.length ? f.apply(this, a) : (...b) => c(...a, ...b); }; } console.log(curry((a, b, c) => a + b + c)(1)(2, 3));
