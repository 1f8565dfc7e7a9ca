// A program to run side by side with Node: promise combinators.
const later = (value, ms, fail = false) => new Promise((ok, no) => setTimeout(() => (fail ? no(new Error(value)) : ok(value)), ms));
process.nextTick(() => console.log("tick"));
Promise.resolve().then(() => console.log("then"));
async function main() {
  console.log(await Promise.all([later("a", 4), later("b", 1), 3]));
  console.log((await Promise.allSettled([later("x", 1), later("boom", 2, true)])).map((r) => r.value ?? r.reason.message));
  console.log(await Promise.race([later("slow", 40), later("fast", 1)]));
  console.log(await Promise.any([later("no", 1, true), later("yes", 3)]));
  try { await Promise.any([Promise.reject(new Error("1")), Promise.reject(new Error("2"))]); } catch (e) { console.log(e.constructor.name, e.message, e.errors.length); }
  const { promise, resolve } = (() => { let resolve; const promise = new Promise((r) => (resolve = r)); return { promise, resolve }; })();
  queueMicrotask(() => { console.log("micro"); resolve("done"); });
  setImmediate(() => console.log("immediate"));
  console.log(await promise);
  await later(0, 5);
  console.log(promise, Promise.reject(1).catch(() => 0), (async () => {})());
}
main().catch(console.error).finally(() => console.log("finally"));
