// The official TypeScript SDK. Asked as in asked.py; node_modules are found by NODE_PATH's place,
// which is given as --modules DIR, because ES modules do not look there by themselves.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const given = { stdio: [] };
const words = process.argv.slice(2);
while (words.length > 0) {
  const name = words.shift().replace(/^--/, "");
  if (name === "stdio") given.stdio = words.splice(0);
  else if (name === "files") given.files = true;
  else given[name] = words.shift();
}

const require = createRequire(`${given.modules}/`);
const load = (path) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${path}`)));
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { ElicitRequestSchema } = await load("types.js");

const transport = given.http
  ? new StreamableHTTPClientTransport(new URL(given.http), {
      requestInit: { headers: { Authorization: `Bearer ${given.token}` } },
    })
  : new StdioClientTransport({ command: given.stdio[0], args: given.stdio.slice(1) });

// A client that can show forms says so; the SDK checks an answer against the form.
const capabilities = given.decide ? { elicitation: { form: {} } } : {};
const client = new Client({ name: "sdk", version: "1" }, { capabilities });
const forms = [];
if (given.decide) {
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    forms.push(params);
    if (given.decide === "close") return { action: "cancel" };
    const decision = { approve: "once", deny: "deny" }[given.decide] ?? given.decide;
    return { action: "accept", content: { decision } };
  });
}
await client.connect(transport);
const { tools } = await client.listTools();
const args = given.run ? { run_id: given.run } : { code: given.code };
if (given.language) args.language = given.language;
const result = await client.callTool({ name: given.run ? "get_run" : "execute_code", arguments: args });
const ofType = (type) => result.content.filter((block) => block.type === type);
const read = [];
for (const { uri } of ofType("resource_link")) {
  read.push((await client.readResource({ uri })).contents[0].text);
}
await client.close();

const about = `${given.modules}/@modelcontextprotocol/sdk/package.json`;
console.log(
  JSON.stringify({
    client: `@modelcontextprotocol/sdk ${JSON.parse(readFileSync(about)).version}`,
    tools: tools.map((tool) => tool.name),
    structured: result.structuredContent,
    isError: result.isError === true,
    forms,
    pictures: ofType("image").map((block) => block.mimeType),
    read,
  }),
);
