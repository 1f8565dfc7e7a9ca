// Fills the tables of this directory with what real Node says: `node expect.mjs FILE.txt…`.
//
// A table is a list of expressions, each after `>>> `, each followed by what is expected. Files
// named print-*.txt hold what console.log prints, the others JSON of the value, or of
// "Name: message" when the expression throws. Lines that begin with `#` are comments.
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { createRequire } from "node:module";
import { format } from "node:util";

const require = createRequire(import.meta.url);

/** JSON in which every invisible character is an escape, so that a reader sees it. */
function visibleJson(value) {
  return JSON.stringify(value ?? null).replace(
    /[\u007f-\u00a0\u2000-\u200f\u2028-\u202f\ufe0f\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

async function valueOf(expression) {
  try {
    return await new Function("require", `return (${expression});`)(require);
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
}

process.env.TZ = "UTC";
for (const path of process.argv.slice(2)) {
  const print = basename(path).startsWith("print-");
  const out = [];
  for (const line of readFileSync(path, "utf8").split("\n")) {
    if (line.startsWith("#")) out.push(line);
    if (!line.startsWith(">>> ")) continue;
    const value = await valueOf(line.slice(4));
    out.push(line, print ? format(value) : visibleJson(value));
  }
  writeFileSync(path, `${out.join("\n")}\n`);
}
