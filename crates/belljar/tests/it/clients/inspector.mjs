// The Inspector's command line, asked as in asked.py, with --modules DIR where node_modules is.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

const given = { stdio: [] };
const words = process.argv.slice(2);
while (words.length > 0) {
  const name = words.shift().replace(/^--/, "");
  if (name === "stdio") given.stdio = words.splice(0);
  else given[name] = words.shift();
}

const home = `${given.modules}/@modelcontextprotocol/inspector`;
const about = JSON.parse(readFileSync(`${home}/package.json`));
const program = `${home}/${about.bin["mcp-inspector"] ?? about.bin.inspector}`;

function inspect(method, extra = []) {
  const server = given.http
    ? [given.http, "--transport", "http", "--header", `Authorization: Bearer ${given.token}`]
    : given.stdio;
  const rest = ["--method", method, ...extra];
  const run = spawnSync(process.execPath, [program, "--cli", ...server, ...rest], { encoding: "utf8" });
  // A tool that failed makes it exit with an error, with the result on standard output all the same.
  const start = run.stdout.indexOf("{");
  if (start < 0) throw new Error(`${method}: ${run.status}\n${run.stdout}\n${run.stderr}`);
  return JSON.parse(run.stdout.slice(start));
}

const { tools } = inspect("tools/list");
const args = ["--tool-name", "execute_code", "--tool-arg", `code=${given.code}`];
if (given.language) args.push("--tool-arg", `language=${given.language}`);
const result = inspect("tools/call", args);
console.log(
  JSON.stringify({
    client: `@modelcontextprotocol/inspector ${about.version}`,
    tools: tools.map((tool) => tool.name),
    structured: result.structuredContent,
    isError: result.isError === true,
  }),
);
