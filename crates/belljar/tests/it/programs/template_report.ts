const orders = [{ id: 7, customer: "Ana", lines: [{ sku: "A1", qty: 2, price: 9.99 }, { sku: "B2", qty: 1, price: 100 }] }, { id: 12, customer: "Łukasz", lines: [] }];
const money = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
const escapeHtml = (s: string) => s.replace(/[&<>"']/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[c]!);
const html = orders.map((o) => `<section id="o${o.id}">
  <h2>${escapeHtml(o.customer)} &mdash; ${money.format(o.lines.reduce((s, l) => s + l.qty * l.price, 0))}</h2>
  ${o.lines.map((l) => `<li>${l.sku} x ${l.qty}</li>`).join("\n  ") || "<em>empty</em>"}
</section>`).join("\n");
console.log(html);
console.log(String.raw`C:\temp\new`, escapeHtml(`<a href="x">'&'</a>`));
const table = [["id", "customer"], ...orders.map((o) => [String(o.id), o.customer])];
const widths = table[0].map((_, c) => Math.max(...table.map((r) => r[c].length)));
console.log(table.map((r) => "| " + r.map((x, c) => x.padEnd(widths[c])).join(" | ") + " |").join("\n"));
console.log(new Intl.ListFormat("en", { style: "long", type: "conjunction" }).format(["a", "b", "c"]), new Intl.PluralRules("en-US", { type: "ordinal" }).select(22), new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(-1, "day"));
