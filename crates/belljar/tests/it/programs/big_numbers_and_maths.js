// A program to run side by side with Node: big numbers and maths.
const factorial = (n) => (n <= 1n ? 1n : n * factorial(n - 1n));
console.log(factorial(30n), 2n ** 100n % 97n, BigInt.asUintN(8, 300n), -7n / 2n, typeof 1n, 0x1fn, BigInt("123") + 1n);
console.log((1234.5678).toFixed(2), (0.000001234).toExponential(2), (255).toString(2), parseInt("ff", 16), (1e21).toLocaleString("en-US"), (0.1).toPrecision(20), (25).toString(36));
console.log(Math.hypot(3, 4), Math.trunc(-4.7), Math.sign(-3), Math.cbrt(27), Math.clz32(1), Math.fround(5.5), Math.log1p(1), 5 % -3, -5 % 3, 2 ** -1, 7 >>> 1, ~5, -1 >>> 28);
const xs = [2, 4, 4, 4, 5, 5, 7, 9], mean = xs.reduce((a, b) => a + b) / xs.length;
console.log({ mean, sd: Math.sqrt(xs.map((x) => (x - mean) ** 2).reduce((a, b) => a + b) / xs.length), median: xs.sort((a, b) => a - b)[4] });
console.log((1234567.891).toLocaleString("en-US", { style: "currency", currency: "USD" }), new Intl.NumberFormat("en-US", { notation: "compact" }).format(1.5e6), (0.256).toLocaleString("en-US", { style: "percent" }), (12345.678).toLocaleString());
console.log(Number("0b101"), Number(""), Number(" 12 "), Number("1e3"), Number(null), Number([5]), Number("1_000"), +[], +{}, [] + {}, "5" * "2", "5" + 2, null ?? 1, 0 || "x", [10, 9, 1].sort(), [1, 2] == "1,2");
const sieve = (n) => { const p = new Uint8Array(n + 1); const out = []; for (let i = 2; i <= n; i++) if (!p[i]) { out.push(i); for (let j = i * i; j <= n; j += i) p[j] = 1; } return out; };
console.log(sieve(60), new Float64Array([1.5, NaN]), Number.EPSILON > 0, (123.456).toFixed(0), (-1.5).toFixed(0), (1.005).toFixed(2), 0.1 * 3);
