// A program to run side by side with Node: json transform.
const data = { users: [{ id: 1, name: "Ana", tags: ["x", "y"], address: { city: "Rome" } }, { id: 2, name: "Bo", tags: [], address: null }], meta: { "page-size": 2 } };
const pick = (o, ...ks) => Object.fromEntries(ks.filter((k) => k in o).map((k) => [k, o[k]]));
console.log(data.users.map(({ name, address, ...rest }) => ({ ...pick(rest, "id"), name, city: address?.city ?? "?", n: rest.tags?.length })));
const flatten = (o, p = "") => Object.entries(o ?? {}).flatMap(([k, v]) => (v && typeof v === "object" ? flatten(v, `${p}${k}.`) : [[p + k, v]]));
console.log(Object.fromEntries(flatten(data)));
console.log(JSON.stringify(data, (k, v) => (k === "tags" ? undefined : typeof v === "string" ? v.toUpperCase() : v), 1));
console.log(JSON.parse('{"d":"2024-01-01T00:00:00Z","n":"5"}', (k, v) => (k === "d" ? new Date(v) : k === "n" ? +v : v)));
for (const bad of ["{a:1}", "[1,]", "", "{\"a\":1"]) { try { JSON.parse(bad); } catch (e) { console.log(e.name); } }
console.log([3, 1, 2].toSorted((a, b) => b - a), [1, 2, 3].with(1, 9), [1, 2, 3, 4].findLast((n) => n % 2), ["a", "b"].toReversed(), [1, [2, [3]]].flat(Infinity), Array.from("abc", (c) => c + c), [..."ab"].entries().next(), new Array(3).fill().map((_, i) => i));
