const { content } = await mcp.filesystem.readTextFile(context);
const levels: Record<string, number> = {};
const failing: Record<string, number> = {};
let lines = 0;
for (const line of content.split("\n")) {
  if (line === "") continue;
  lines += 1;
  const [, level, service] = line.split(" ", 3);
  levels[level] = (levels[level] ?? 0) + 1;
  if (level === "ERROR") failing[service] = (failing[service] ?? 0) + 1;
}
const worst = Object.entries(failing).sort((a, b) => b[1] - a[1]).slice(0, 3);
return { lines, levels, worst };
