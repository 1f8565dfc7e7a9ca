// refused: cannot be imported ... `context`
const readline = require("readline").createInterface({ input: process.stdin, output: process.stdout });
readline.question("Name? ", (name) => { console.log(`Hello ${name}`); readline.close(); });
