// A program to run side by side with Node: process stdout.
const total = 5;
for (let i = 0; i <= total; i++) process.stdout.write(`\rProgress: ${Math.round((i / total) * 100)}%`);
process.stdout.write("\n");
process.stdout.write(Buffer.from("bytes\n"));
console.error("to stderr"); process.stderr.write("also\n");
console.log(Boolean(process.stdout.isTTY), process.argv0 !== undefined, process.uptime() >= 0, typeof process.version, process.versions.node.split(".").length);
process.on("exit", (code) => console.log("exiting with", code));
const start = process.hrtime(); const [s, ns] = process.hrtime(start); console.log(s >= 0, ns >= 0, performance.now() > 0, process.memoryUsage().rss >= 0);
