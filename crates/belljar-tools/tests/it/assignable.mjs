// Has json-schema-to-typescript convert the schemas of cases.json, and writes for each a file that
// compiles only if its type and ours are assignable to each other. Prints what it skips, and why.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
const require = createRequire(process.argv[2] + "/node_modules/x.js");
const { compile } = require("json-schema-to-typescript");
const { transpileModule } = require("typescript");
const cases = JSON.parse(readFileSync("cases.json", "utf8"));

// Keywords that the other reads differently, or not at all, in a form that it knows.
function rewritten(schema) {
  if (Array.isArray(schema)) return schema.map(rewritten);
  if (schema === null || typeof schema !== "object") return schema;
  const out = {};
  for (const [key, value] of Object.entries(schema)) {
    // Names and comments are no part of a type; ids would move what references mean.
    if (["$schema", "$id", "id", "title", "description", "default", "examples", "format"].includes(key) && typeof value !== "object") continue;
    if (["default", "examples"].includes(key)) continue;
    if (["properties", "patternProperties", "$defs", "definitions"].includes(key) && value && typeof value === "object" && !Array.isArray(value)) {
      out[key] = Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, rewritten(inner)]));
    } else if (["enum", "const"].includes(key)) out[key] = value;
    else out[key] = rewritten(value);
  }
  const types = [out.type].flat();
  if (types.includes("object") || out.properties) {
    // An object that lists its fields and does not say whether there are more is meant as listed.
    if (out.additionalProperties === undefined && !out.patternProperties) {
      out.additionalProperties = !(out.properties && Object.keys(out.properties).length);
    }
  }
  // It knows tuples by the older word.
  if (Array.isArray(out.prefixItems)) {
    out.additionalItems = out.items ?? true;
    out.items = out.prefixItems;
    delete out.prefixItems;
  }
  // It does not know OpenAPI's word.
  if (out.nullable === true) {
    const { nullable, ...rest } = out;
    return { anyOf: [rest, { type: "null" }] };
  }
  // Ours writes long choices as their kind.
  if (Array.isArray(out.enum) && out.enum.length > 64) delete out.enum;
  return out;
}

for (const [at, [name, schema]] of cases.entries()) {
  let theirs;
  try {
    if (schema === null || typeof schema !== "object" || Array.isArray(schema)) throw new Error("not an object");
    theirs = await compile(rewritten(schema), "Theirs", {
      bannerComment: "", format: false, ignoreMinAndMaxItems: true, unreachableDefinitions: false,
      $refOptions: { resolve: { http: false, file: false } },
    });
    // Some of what it writes is no TypeScript.
    const [wrong] = transpileModule(theirs, { reportDiagnostics: true }).diagnostics;
    if (wrong) throw new Error(`theirs does not parse: ${wrong.messageText}`);
  } catch (error) {
    console.log(`${name}: ${String(error).split("\n")[0]}`);
    continue;
  }
  writeFileSync(`their_${at}.ts`, theirs);
  // Two types that differ in an optional field are assignable to each other: so once more with
  // everything required.
  writeFileSync(`check_${at}.ts`, `import type { Theirs } from "./their_${at}";
type Whole<T> = T extends (infer U)[] ? Whole<U>[] : T extends object ? { [K in keyof T]-?: Whole<T[K]> } : T;
type Ours = Awaited<ReturnType<typeof mcp.c.t${at}>>;
${name.startsWith("hostile") || !schema.type ? "" : "export const known: 0 extends 1 & Ours ? false : true = true;"}
export const there: (ours: Ours) => Theirs = (ours) => ours;
export const back: (theirs: Theirs) => Ours = (theirs) => theirs;
export const wholeThere: (ours: Whole<Ours>) => Whole<Theirs> = (ours) => ours;
export const wholeBack: (theirs: Whole<Theirs>) => Whole<Ours> = (theirs) => theirs;
`);
}
writeFileSync("tsconfig.json", JSON.stringify({
  compilerOptions: { noEmit: true, strict: true, target: "es2022", module: "es2022", moduleResolution: "bundler", types: [] },
  include: ["*.ts"],
}));
