async function work(ms: number, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(`done after ${ms}`), ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}
const quick = new AbortController();
console.log(await work(1, quick.signal));
const slow = new AbortController();
setTimeout(() => slow.abort(), 5);
await work(5000, slow.signal).catch((e) => console.log(e.name, e.message, e.code, slow.signal.aborted));
await work(5000, AbortSignal.timeout(5)).catch((e) => console.log(e.name, e.message));
await work(5000, AbortSignal.any([AbortSignal.abort("why"), slow.signal])).catch(() => console.log("any"), ).then(() => 0, () => 0) ;
const interval = setInterval(() => { n++; if (n === 3) { clearInterval(interval); start(); } }, 1); let n = 0;
function debounce<A extends unknown[]>(f: (...a: A) => void, ms: number) { let t: ReturnType<typeof setTimeout>; return (...a: A) => { clearTimeout(t); t = setTimeout(f, ms, ...a); }; }
const say = debounce((x: string) => console.log("debounced", x, n), 3);
function start() { say("a"); say("b"); say("c"); }
