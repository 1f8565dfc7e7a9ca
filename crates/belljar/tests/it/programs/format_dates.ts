const when = new Date(Date.UTC(2024, 1, 29, 13, 5, 9, 42));
const pad = (n: number, width = 2) => String(n).padStart(width, "0");
const stamp = `${when.getUTCFullYear()}-${pad(when.getUTCMonth() + 1)}-${pad(when.getUTCDate())}`;
console.log(stamp, when.toISOString(), when.toJSON(), when.getTime());
console.log(when.toString(), "|", when.toUTCString(), "|", when.toDateString());
console.log(when.toLocaleDateString("en-US", { weekday: "long", year: "numeric", month: "long", day: "numeric" }));
console.log(when.toLocaleTimeString("en-US"), when.toLocaleString("en-GB", { timeZone: "Europe/London" }));
console.log(new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeStyle: "short", timeZone: "Asia/Tokyo" }).format(when));
const days = Math.round((Date.parse("2024-12-25") - Date.parse("2024-02-29")) / 86_400_000);
console.log({ days, invalid: new Date("nonsense"), when });
console.log(new Date(2024, 0, 31).getMonth(), new Date("2024-03-10T02:30:00-05:00").toISOString());
try { new Date(NaN).toISOString(); } catch (error) { console.log((error as Error).name, (error as Error).message); }
