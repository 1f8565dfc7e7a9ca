const source = "# Title\n\nSome *emph* and **bold** `code` [link](http://x.y).\n\n- one\n- two\n\n```\nraw <b>\n```\n";
type Token = { kind: "heading"; level: number; text: string } | { kind: "list"; items: string[] } | { kind: "code"; text: string } | { kind: "paragraph"; text: string };
const tokens: Token[] = source.split(/\n{2,}/).filter(Boolean).map((block): Token => {
  const heading = /^(#{1,6})\s+(.*)/.exec(block);
  if (heading) return { kind: "heading", level: heading[1].length, text: heading[2] };
  if (block.startsWith("```")) return { kind: "code", text: block.replace(/^```\w*\n|\n```\n?$/g, "") };
  if (/^- /m.test(block)) return { kind: "list", items: block.split("\n").map((l) => l.slice(2)) };
  return { kind: "paragraph", text: block };
});
const inline = (s: string) => s.replace(/\*\*(.+?)\*\*/g, "<b>$1</b>").replace(/(?<!\*)\*(?!\*)(.+?)\*/g, "<i>$1</i>").replace(/`([^`]+)`/g, "<code>$1</code>").replace(/\[([^\]]+)\]\(([^)]+)\)/g, '<a href="$2">$1</a>');
console.log(tokens.map((t) => { switch (t.kind) { case "heading": return `<h${t.level}>${t.text}</h${t.level}>`; case "list": return `<ul>${t.items.map((i) => `<li>${i}</li>`).join("")}</ul>`; case "code": return `<pre>${t.text}</pre>`; default: return `<p>${inline(t.text)}</p>`; } }).join("\n"));
console.log(tokens);
