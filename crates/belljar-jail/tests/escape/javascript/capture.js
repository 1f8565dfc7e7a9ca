// Gets hold of whatever the guest library passes to anything guest code can replace, then makes
// the library load every part that is loaded late, and looks for its way into Rust.
const seen = new Set();
const { apply, construct, ownKeys, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
const setAdd = Set.prototype.add;
const setHas = Set.prototype.has;

function replace(holder, key) {
  const property = getOwnPropertyDescriptor(holder, key);
  if (!property || !property.configurable || typeof property.value !== "function") return;
  const original = property.value;
  const wrapper = function (...values) {
    apply(setAdd, seen, [this]);
    for (let at = 0; at < values.length; at += 1) apply(setAdd, seen, [values[at]]);
    return new.target ? construct(original, values, new.target) : apply(original, this, values);
  };
  try {
    for (const name of ownKeys(original)) {
      if (name !== "prototype" && name !== "name" && name !== "length") wrapper[name] = original[name];
    }
    wrapper.prototype = original.prototype;
    Object.defineProperty(holder, key, { ...property, value: wrapper });
  } catch {}
}

const holders = [
  Function.prototype, Object.prototype, Array.prototype, String.prototype, Promise.prototype,
  Map.prototype, Set.prototype, RegExp.prototype, Date.prototype, Number.prototype,
  getPrototypeOf(Uint8Array.prototype), Error.prototype, Object, Array, Reflect, JSON, Math,
  Promise, String, Number, Symbol, globalThis,
];
const keep = new Set(["eval", "Function", "Proxy", "globalThis", "Reflect", "Object", "Set"]);
for (const holder of holders) {
  for (const key of ownKeys(holder)) {
    if (!keep.has(key) && key !== "constructor") {
      try { replace(holder, key); } catch {}
    }
  }
}
for (const key of ["print", "denied", "libraryFile", "fillRandom", "mapFrames"]) {
  Object.defineProperty(Object.prototype, key, {
    configurable: true,
    get() { apply(setAdd, seen, [this]); },
    set(value) { apply(setAdd, seen, [this]); apply(setAdd, seen, [value]); },
  });
}
Error.prepareStackTrace = (error, sites) => {
  for (const site of sites) {
    for (const ask of ["getThis", "getFunction", "getEvalOrigin"]) {
      try { apply(setAdd, seen, [site[ask]()]); } catch {}
    }
  }
  return "";
};

// A decoy, to show that what is passed on is seen.
[].push({ libraryFile() {} });

const touch = [
  () => crypto.randomUUID(),
  () => crypto.getRandomValues(new Uint8Array(8)),
  () => new URL("https://a.example/?b=c").searchParams.get("b"),
  () => structuredClone({ a: [new Map([[1, 2]])] }),
  () => new TextEncoder().encode("x"),
  () => new TextDecoder().decode(new Uint8Array([65])),
  () => atob(btoa("x")),
  () => new Intl.NumberFormat("en-US").format(1234.5),
  () => (1234.5).toLocaleString(),
  () => new Date(0).toLocaleDateString("en-US"),
  () => "a".localeCompare("b"),
  () => console.table([{ a: 1 }]),
  () => console.log({ a: new Map([[1, new Error("x")]]) }, "%s", {}),
  () => new Event("x"),
  () => new EventTarget().dispatchEvent(new Event("x")),
  () => performance.mark("x"),
  () => setTimeout(() => {}, 0),
  () => queueMicrotask(() => {}),
  () => output({ a: 1 }),
  () => debug({ a: 1 }),
  () => fetch("https://example.org").catch(() => {}),
  () => require("net"),
  () => process.env,
  () => ({ ...process.env }),
  () => process.stdout.write(""),
  () => Buffer.concat([Buffer.from("x"), Buffer.alloc(2)]).toString("hex"),
  () => new Response(new FormData()).text(),
  () => new Request("http://a").headers.get("x"),
  () => new ReadableStream({ pull() {} }).tee(),
  () => new URLPattern({ pathname: "/:a" }).exec("http://a/b"),
  () => new Blob(["x"]).stream(),
  ...["assert", "buffer", "crypto", "events", "os", "path", "querystring", "string_decoder", "timers", "url", "util"]
    .map((name) => () => require(name)),
  () => require("crypto").createHash("sha256").update("x").digest("hex"),
  () => require("util").inspect({ a: Buffer.from("x") }),
  () => require("assert").deepStrictEqual({ a: [1] }, { a: [2] }),
  () => new (require("events"))().on("x", () => {}).emit("x"),
  () => import("node:util"),
  () => new Error("x").stack,
];
for (const act of touch) {
  try { act(); } catch {}
}
await new Promise((resolve) => setTimeout(resolve, 1));

// Members that only the library's own object has, looked for a few steps deep.
const marks = ["libraryFile", "fillRandom", "mapFrames"];
let found = 0;
let looked = 0;
const visited = new Set();
const queue = [...seen].map((value) => [value, 0]);
while (queue.length > 0 && looked < 20000) {
  const [value, depth] = queue.pop();
  if (value === null || (typeof value !== "object" && typeof value !== "function")) continue;
  if (apply(setHas, visited, [value])) continue;
  apply(setAdd, visited, [value]);
  looked += 1;
  let keys = [];
  try { keys = ownKeys(value); } catch {}
  if (value !== Object.prototype) {
    for (const mark of marks) {
      try { if (typeof getOwnPropertyDescriptor(value, mark)?.value === "function") found += 1; } catch {}
    }
  }
  if (depth < 3) {
    for (const key of keys) {
      try {
        const property = getOwnPropertyDescriptor(value, key);
        if (property && "value" in property) queue.push([property.value, depth + 1]);
      } catch {}
    }
  }
}
return { found, looked: looked > 100 };
