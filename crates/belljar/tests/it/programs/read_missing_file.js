// refused: ENOENT: no such file or directory, open '/data/input.csv' ... --read /data/input.csv
const fs = require("fs");
const rows = fs.readFileSync("/data/input.csv", "utf8").trim().split("\n");
console.log(rows.length);
