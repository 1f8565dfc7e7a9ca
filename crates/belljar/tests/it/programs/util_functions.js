// A program to run side by side with Node: util functions.
const util = require("util");
console.log(util.inspect({ a: { b: { c: { d: 1 } } } }, { depth: null, compact: false }), util.format("%s=%d", "x", 5, { y: 1 }));
console.log(util.isDeepStrictEqual({ a: [1] }, { a: [1] }), util.types.isDate(new Date()), util.inspect("str"), util.inspect(new Map([[1, 2]]), { showHidden: false }));
const wait = util.promisify((x, cb) => setTimeout(() => cb(null, x * 2), 1)); wait(21).then(console.log);
const back = util.callbackify(async (x) => x + 1); back(1, (e, v) => console.log("callback", e, v));
class Legacy {} ; util.inherits(Legacy, require("events")); console.log(new Legacy() instanceof require("events"));
console.log(util.inspect([1, [2, [3, [4, [5]]]]], false, 1), util.inspect({ long: "x".repeat(50), b: "y".repeat(40) }), util.inspect(Symbol("q")), util.inspect([,"a"]), util.stripVTControlCharacters("\u001b[31mred\u001b[0m"));
console.log(new util.TextEncoder().encode("é"), util.inspect(new Error("shown")).split("\n")[0], util.inspect(class X extends Map {}), util.inspect(Object.create({}, { hidden: { value: 1 } })));
class Money { constructor(n) { this.n = n; } [util.inspect.custom]() { return `Money<${this.n}>`; } }
console.log(new Money(5), [new Money(6)], `${util.inspect(new Money(7))}`);
