// A program to run side by side with Node: asserts.
const assert = require("node:assert");
const check = (name, f) => { try { f(); console.log("ok", name); } catch (e) { console.log(e.name, e.code, e.message.split("\n")[0]); } };
check("equal", () => assert.equal(1, "1"));
check("strict", () => assert.strictEqual(1, "1"));
check("deep", () => assert.deepStrictEqual({ a: [1, { b: new Map([[1, 2]]) }] }, { a: [1, { b: new Map([[1, 2]]) }] }));
check("deep fails", () => assert.deepStrictEqual([1, 2], [1, 3]));
check("not", () => assert.notStrictEqual(1, 1));
check("throws", () => assert.throws(() => { throw new TypeError("bad thing"); }, { name: "TypeError", message: /bad/ }));
check("throws nothing", () => assert.throws(() => {}));
check("ok", () => assert(0, "zero is falsy"));
check("match", () => assert.match("abc", /x/));
check("fail", () => assert.fail("on purpose"));
check("deepEqual dates", () => assert.deepEqual(new Date(0), new Date(0)));
assert.rejects(Promise.reject(new RangeError("async")), RangeError).then(() => {
  console.log("rejected");
  assert.strictEqual(0.1 + 0.2, 0.3);
});
