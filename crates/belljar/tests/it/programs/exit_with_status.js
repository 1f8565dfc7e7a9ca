// A program to run side by side with Node: exit with status.
function fail(message) { console.error("error: " + message); process.exit(3); }
console.log("checking");
if (![1, 2, 3].includes(4)) fail("4 is missing");
console.log("never");
