// Makes values for the schemas of cases.json, right and wrong ones, and has ajv say which are valid.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
const require = createRequire(process.argv[2] + "/node_modules/x.js");
const Ajv = require("ajv");
const Ajv2020 = require("ajv/dist/2020");
const cases = JSON.parse(readFileSync("cases.json", "utf8"));
const options = { strict: false, validateFormats: false, logger: false };

// The same in every run.
let seed = 1;
const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
const pick = (list) => list[random(list.length)];
const anything = () => pick([null, true, 0, 7, -1.5, 1e21, "", "text", "2024-01-01", [], [1, "a"], {}, { a: 1 }]);

// A value that is probably valid.
function sample(schema, root, depth) {
  if (depth > 8 || schema === null || typeof schema !== "object") return anything();
  if (random(25) === 0) return anything();
  if (schema.$ref) {
    const target = schema.$ref.slice(2).split("/").filter(Boolean).reduce((at, key) => at?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], root);
    return sample(target ?? {}, root, depth + 1);
  }
  if ("const" in schema) return schema.const;
  if (schema.enum?.length) return pick(schema.enum);
  const branches = schema.anyOf ?? schema.oneOf;
  if (branches?.length && (random(2) || !schema.properties)) return sample(pick(branches), root, depth + 1);
  if (schema.allOf?.length) return Object.assign({}, ...schema.allOf.map((part) => sample(part, root, depth + 1)));
  switch (pick([schema.type].flat()) ?? (schema.properties ? "object" : undefined)) {
    case "null": return null;
    case "boolean": return random(2) === 0;
    case "integer": return Math.max(schema.minimum ?? 0, Math.min(schema.maximum ?? 1e9, random(20)));
    case "number": return Math.max(schema.minimum ?? 0, Math.min(schema.maximum ?? 1e9, random(200) / 10));
    case "string": return pick(["a", "text", "#A0b1C2", "2024-01-01", "x".repeat(schema.minLength ?? 3)]);
    case "array": return Array.from({ length: (schema.minItems ?? 0) + random(3) }, (_, at) =>
      sample((schema.prefixItems ?? (Array.isArray(schema.items) ? schema.items : []))[at] ?? (Array.isArray(schema.items) ? {} : schema.items ?? {}), root, depth + 1));
    case "object": {
      const out = {};
      for (const [name, inner] of Object.entries(schema.properties ?? {})) {
        if (schema.required?.includes(name) ? random(12) : random(2)) out[name] = sample(inner, root, depth + 1);
      }
      if (random(8) === 0) out.undeclared = anything();
      return out;
    }
    default: return anything();
  }
}

const out = [];
for (const [at, schema] of cases.entries()) {
  let validate;
  try {
    validate = new (JSON.stringify(schema).includes("2020-12") || "$defs" in schema ? Ajv2020 : Ajv)(options).compile(schema);
  } catch {
    try { validate = new Ajv2020(options).compile(schema); } catch { continue; }
  }
  for (let n = 0; n < 40; n++) {
    const value = sample(schema, schema, 0);
    out.push([at, value, validate(value)]);
  }
}
writeFileSync("judged.json", JSON.stringify(out));
