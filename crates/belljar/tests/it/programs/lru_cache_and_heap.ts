class LRU<K, V> {
  #map = new Map<K, V>();
  constructor(private capacity: number) {}
  get(key: K): V | undefined { const v = this.#map.get(key); if (v !== undefined) { this.#map.delete(key); this.#map.set(key, v); } return v; }
  set(key: K, value: V) { this.#map.delete(key); this.#map.set(key, value); if (this.#map.size > this.capacity) this.#map.delete(this.#map.keys().next().value!); return this; }
  get keys() { return [...this.#map.keys()]; }
}
const cache = new LRU<string, number>(2).set("a", 1).set("b", 2);
cache.get("a"); cache.set("c", 3);
console.log(cache.keys, cache.get("b"), cache);
class Heap { private h: [number, string][] = [];
  push(p: number, v: string) { this.h.push([p, v]); let i = this.h.length - 1; while (i > 0) { const q = (i - 1) >> 1; if (this.h[q][0] <= this.h[i][0]) break; [this.h[q], this.h[i]] = [this.h[i], this.h[q]]; i = q; } }
  pop() { const top = this.h[0], last = this.h.pop()!; if (this.h.length) { this.h[0] = last; let i = 0; for (;;) { let m = i; for (const c of [2 * i + 1, 2 * i + 2]) if (c < this.h.length && this.h[c][0] < this.h[m][0]) m = c; if (m === i) break; [this.h[m], this.h[i]] = [this.h[i], this.h[m]]; i = m; } } return top; }
  get size() { return this.h.length; } }
const heap = new Heap(); for (const [p, v] of [[5, "e"], [1, "a"], [3, "c"], [2, "b"]] as [number, string][]) heap.push(p, v);
const order: string[] = []; while (heap.size) order.push(heap.pop()[1]);
console.log(order.join(""));
const graph: Record<string, Record<string, number>> = { A: { B: 7, C: 3 }, B: { D: 2 }, C: { B: 1, D: 8 }, D: {} };
const dist: Record<string, number> = { A: 0 }; const todo = new Set(Object.keys(graph));
while (todo.size) { const at = [...todo].reduce((a, b) => ((dist[a] ?? Infinity) <= (dist[b] ?? Infinity) ? a : b)); todo.delete(at); for (const [to, w] of Object.entries(graph[at])) dist[to] = Math.min(dist[to] ?? Infinity, dist[at] + w); }
console.log(dist);
