// A program to run side by side with Node: walk files.
const fs = require("fs");
const path = require("path");
fs.mkdirSync("site/posts/2024", { recursive: true });
fs.writeFileSync("site/index.html", "<h1>Home</h1>\n");
fs.writeFileSync(path.join("site", "posts", "a.md"), "# A\n\nText\n");
fs.writeFileSync("site/posts/2024/b.md", "# B\n");
function* walk(directory) {
  for (const entry of fs.readdirSync(directory, { withFileTypes: true }).sort((a, b) => a.name.localeCompare(b.name))) {
    const full = path.join(directory, entry.name);
    if (entry.isDirectory()) yield* walk(full);
    else if (entry.isFile()) yield full;
  }
}
const files = [...walk("site")];
console.log(files.map((f) => ({ f, ext: path.extname(f), size: fs.statSync(f).size })));
const lines = files.filter((f) => f.endsWith(".md")).reduce((n, f) => n + fs.readFileSync(f, "utf-8").split("\n").length, 0);
console.log({ lines, exists: fs.existsSync("site/none"), relative: path.relative("site/posts", "site/index.html") });
console.log(fs.readdirSync("site", { recursive: true }).sort());
fs.rmSync("site", { recursive: true, force: true });
try { fs.readFileSync("site/index.html"); } catch (e) { console.log(e.code, e.message, e.syscall); }
