// A program to run side by side with Node: word frequency.
const text = `It was the best of times, it was the worst of times, it was the age of wisdom...
It was the age of foolishness — naïve café-goers said "déjà vu" (it's 100% true).`;
const words = text.toLowerCase().match(/\p{L}+(?:['’-]\p{L}+)*/gu);
const counts = new Map();
for (const word of words) counts.set(word, (counts.get(word) || 0) + 1);
const top = [...counts].sort(([a, n], [b, m]) => m - n || a.localeCompare(b)).slice(0, 8);
top.forEach(([word, n], i) => console.log(`${(i + 1 + ".").padEnd(4)}${word.padEnd(8, "·")}${"█".repeat(n)} ${n}`));
console.log(counts.size, words.length, counts);
console.log(text.replace(/\b(\p{Lu})(\p{L}*)/gu, (_, first, rest) => `${first.toLowerCase()}${rest.toUpperCase()}`).slice(0, 30));
console.log("a-b_c d".split(/[-_ ]/), "2024-05-06".match(/(?<y>\d{4})-(?<m>\d\d)/).groups, [..."x1y22".matchAll(/\d+/g)].map((m) => [m[0], m.index]));
console.log("naïve".normalize("NFD").replace(/\p{M}/gu, ""), "ß".toUpperCase(), "İ".toLowerCase().length, [..."👩‍👩‍👧é"].length);
