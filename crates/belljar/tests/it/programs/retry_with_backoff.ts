class RetryError extends Error {
  constructor(message: string, readonly attempts: number, options?: ErrorOptions) {
    super(message, options);
    this.name = "RetryError";
  }
}
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
async function retry<T>(task: (attempt: number) => Promise<T>, { attempts = 4, base = 1 } = {}): Promise<T> {
  let last: unknown;
  for (let attempt = 1; attempt <= attempts; attempt++) {
    try { return await task(attempt); } catch (error) {
      last = error;
      console.warn(`attempt ${attempt} failed: ${(error as Error).message}`);
      await sleep(base * 2 ** attempt);
    }
  }
  throw new RetryError("gave up", attempts, { cause: last });
}
const value = await retry(async (n) => { if (n < 3) throw new Error(`HTTP ${500 + n}`); return { ok: true, n }; });
console.log(value);
try {
  await retry(async () => { throw new TypeError("always"); }, { attempts: 2 });
} catch (error) {
  if (error instanceof RetryError) console.log(error.name, error.message, error.attempts, (error.cause as Error).message);
}
export {};
