type Person = { name: string; age: number; city?: string };
const people: Person[] = [{ name: "Zoë", age: 31, city: "Bern" }, { name: "adam", age: 25 }, { name: "Bob", age: 31, city: "Aix" }];
const by = <T,>(...keys: ((x: T) => string | number)[]) => (a: T, b: T) => {
  for (const key of keys) { const [x, y] = [key(a), key(b)]; if (x !== y) return x < y ? -1 : 1; }
  return 0;
};
console.log([...people].sort(by((p) => -p.age, (p) => p.city ?? "")).map((p) => p.name), people.map((p) => p.name).sort());
console.log(people.map((p) => p.name).sort((a, b) => a.localeCompare(b)), ["b10", "b9", "a"].sort(new Intl.Collator(undefined, { numeric: true }).compare));
function search(list: readonly number[], wanted: number): number {
  let [low, high] = [0, list.length - 1];
  while (low <= high) { const middle = (low + high) >>> 1; if (list[middle] === wanted) return middle; if (list[middle] < wanted) low = middle + 1; else high = middle - 1; }
  return ~low;
}
console.log(search([1, 3, 5, 9], 9), search([1, 3, 5, 9], 4), [3, 1, 2].includes(2), [1, 2, 3].indexOf(4), people.find((p) => !p.city)?.name, people.some((p) => p.age > 30), people.findIndex((p) => p.name === "Bob"));
const permutations = <T,>(xs: T[]): T[][] => xs.length < 2 ? [xs] : xs.flatMap((x, i) => permutations([...xs.slice(0, i), ...xs.slice(i + 1)]).map((p) => [x, ...p]));
console.log(permutations([1, 2, 3]).map((p) => p.join("")), new Set("mississippi"), [..."hello"].reverse().join(""), Object.fromEntries(people.map((p, i) => [p.name, i])));
