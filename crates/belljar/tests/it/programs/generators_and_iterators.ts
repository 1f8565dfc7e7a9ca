function* fibonacci(): Generator<number, string, boolean | undefined> {
  let [a, b] = [0, 1];
  while (true) {
    const reset = yield a;
    [a, b] = reset ? [0, 1] : [b, a + b];
    if (a > 50) return "overflow";
  }
}
function* take<T>(n: number, source: Iterable<T>) { let i = 0; for (const x of source) { if (i++ >= n) return; yield x; } }
const it = fibonacci();
console.log(it.next(), it.next(), it.next(true), [...take(5, fibonacci())]);
console.log(Array.from(fibonacci()).length, [...it].at(-1));
class Tree<T> implements Iterable<T> {
  constructor(private value: T, private left?: Tree<T>, private right?: Tree<T>) {}
  *[Symbol.iterator](): Iterator<T> { if (this.left) yield* this.left; yield this.value; if (this.right) yield* this.right; }
}
console.log(Math.max(...new Tree(2, new Tree(1), new Tree(3))), new Tree("root"));
async function* pages() { for (let page = 1; page <= 3; page++) { await Promise.resolve(); yield { page, items: Array.from({ length: page }, (_, i) => i) }; } }
for await (const { page, items } of pages()) console.log(page, items);
console.log(it[Symbol.toStringTag], typeof it.return, fibonacci.constructor.name, it);
export {};
