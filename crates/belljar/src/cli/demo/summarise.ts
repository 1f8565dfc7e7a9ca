const { commits } = await mcp.github.listCommits({ repo: "example/shop", since: "2026-01-01" });
const authors: Record<string, number> = {};
const areas: Record<string, number> = {};
const kinds: Record<string, number> = {};
let churn = 0;

for (const { author, message, files } of commits) {
  authors[author.name] = (authors[author.name] ?? 0) + 1;
  const kind = message.split(":")[0];
  kinds[kind] = (kinds[kind] ?? 0) + 1;
  for (const file of files) {
    const lines = file.additions + file.deletions;
    const area = file.path.split("/").slice(0, 2).join("/");
    areas[area] = (areas[area] ?? 0) + lines;
    churn += lines;
  }
}

const top = (counts: Record<string, number>, n: number) =>
  Object.fromEntries(Object.entries(counts).sort((a, b) => b[1] - a[1]).slice(0, n));

return {
  commits: commits.length,
  from: commits.at(0)?.date.slice(0, 10),
  to: commits.at(-1)?.date.slice(0, 10),
  linesChanged: churn,
  byKind: top(kinds, 6),
  topAuthors: top(authors, 5),
  hottestAreas: top(areas, 5),
  largest: commits
    .map(({ sha, message, files }) => ({
      sha: sha.slice(0, 8),
      subject: message.split("\n")[0],
      lines: files.reduce((sum, file) => sum + file.additions + file.deletions, 0),
    }))
    .sort((a, b) => b.lines - a.lines)
    .slice(0, 1),
};
