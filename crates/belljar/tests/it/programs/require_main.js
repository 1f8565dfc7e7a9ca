// A program to run side by side with Node: require main.
"use strict";
const path = require("path"), os = require("os");
function add(a, b) { return a + b; }
module.exports = { add };
if (require.main === module) { console.log(add(2, 3), path.basename(__filename).startsWith("main"), typeof __dirname, os.EOL === "\n"); }
(function () { try { undeclared = 1; } catch (e) { console.log(e.name, e.message); } console.log(this); })();
console.log(typeof require, require("path") === path);
if (typeof module !== "undefined" && module.exports) module.exports = { add };
exports.add = add;
module.exports.also = add;
