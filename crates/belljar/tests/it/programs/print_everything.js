// A program to run side by side with Node: print everything.
const circular = { name: "loop" }; circular.self = circular;
console.log(circular);
console.log([1, "two", null, undefined, true, 4n, Symbol("s"), () => 1, function named() {}, class A {}, class B extends Array {}]);
console.log({ nested: { deep: { deeper: { deepest: 1 } } }, arr: [[1, [2, [3, [4]]]]], "key with space": 1, 2: "n" });
console.log(new Map([["a", { b: 1 }], [1, [2]]]), new Set([1, "1", [1]]), new WeakMap(), new Date(0), /re+/gi);
console.log(new Error("oops").message, [new Uint8Array([1, 2]), new ArrayBuffer(3), Buffer.from("hé")]);
console.log(Array.from({ length: 120 }, (_, i) => i));
console.log("%s is %d years and %i, %f, %j %o %O %%", "Bob", 42.5, 42.9, "3.1", { a: 1 }, [1], { b: 2 }, "extra");
console.log(-0, [-0], NaN, [undefined, , 3], [,], Object.create(null), Object.create({ x: 1 }), new (class Foo { a = 1; #b = 2; })());
console.log("a\nb", ["a\nb", 'it\'s', "\"q\"", `b\`t`], "x".repeat(3), ["x".repeat(120)]);
console.log({ get a() { return 1; }, set a(v) {}, get b() { return 2; }, set c(v) {} }, process.argv.length);
console.log([1.0, 1e21, 1e-7, 0.1 + 0.2, 123456789012345680000], Number.MAX_SAFE_INTEGER, [true, [false]], new Number(3), new String("s"), Object(1n));
console.log({ a: "short", list: ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"], more: { one: 1111111111, two: 2222222222, three: 3333333333, four: 44444444 } });
console.group("group"); console.log("inside\nlines"); console.group(); console.info({ a: 1 }); console.groupEnd(); console.groupEnd(); console.log("outside");
console.log(Object.assign(() => {}, { x: 1 }), Object.assign([1], { x: 1 }), Promise.resolve([1]), globalThis === global);
console.count(); console.count("x"); console.count(); console.countReset(); console.count(); console.dir({ a: { b: { c: { d: 1 } } } }, { depth: 0 });
console.table([[1, 2], [3, 4]]); console.table([{ a: 1, b: "x" }, { a: 2, c: true }], ["a", "c"]); console.table("no table");
