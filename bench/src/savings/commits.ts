const text: string = await mcp.git.gitLog(context);
const authors: Record<string, number> = {};
let commits = 0;
for (const line of text.split("\n")) {
  if (line.startsWith("Commit: ")) commits += 1;
  const author = line.match(/^Author: .*?([A-Z]\w+ [A-Z]\w+)/)?.[1];
  if (author) authors[author] = (authors[author] ?? 0) + 1;
}
const busiest = Object.entries(authors).sort((a, b) => b[1] - a[1]).slice(0, 5);
return { commits, busiest };
