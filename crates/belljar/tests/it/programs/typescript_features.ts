type Result<T, E = Error> = { ok: true; value: T } | { ok: false; error: E };
namespace Geometry { export const tau = Math.PI * 2; export function turn(n: number) { return n * tau; } }
const enum Color { Red = "RED", Blue = "BLUE" }
function parse(text: string): Result<number, string> {
  const n = Number(text);
  return Number.isNaN(n) ? { ok: false, error: `not a number: ${text}` } : { ok: true, value: n };
}
function isOk<T, E>(r: Result<T, E>): r is { ok: true; value: T } { return r.ok; }
function overload(a: string): string; function overload(a: number): number;
function overload(a: any) { return a; }
const tuple: readonly [name: string, age?: number] = ["x"];
const settings = { a: 1, b: "two" } satisfies Record<string, unknown>;
let definitely!: string; definitely = <string>"cast";
abstract class Base<T extends object = {}> { declare tag: string; abstract get(): T; optional?(): void; }
class Impl extends Base<{ n: number }> { override get() { return { n: 1 }; } private static count = 0; static { Impl.count++; } accessorLike = Impl.count; }
console.log(["1", "x"].map(parse).map((r) => (isOk(r) ? r.value : r.error)), Color.Red, Geometry.turn(0.5), overload(3), tuple, settings!.a, definitely, new Impl().get(), new Impl());
const keys = Object.keys(settings) as (keyof typeof settings)[];
const fn = async <T,>(x: T): Promise<T> => x;
console.log(keys, await fn<string>("generic"), ((x: unknown) => typeof x)(null), "tag" in new Impl());
function assertNever(x: never): never { throw new Error(`unexpected ${x}`); }
label: for (const i of [1, 2, 3]) { for (const j of [1, 2]) { if (i * j === 4) break label; if (j > i) continue label; console.log(i, j); } }
export {};
