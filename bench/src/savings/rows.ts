// This server answers with Python's way of writing a list.
const text: string = await mcp.sqlite.readQuery(context);
const rows: { region: string; status: string; amount: number }[] =
  JSON.parse(text.replaceAll("'", '"'));
const paid: Record<string, { count: number; total: number }> = {};
for (const { region, status, amount } of rows) {
  if (status !== "paid") continue;
  const group = (paid[region] ??= { count: 0, total: 0 });
  group.count += 1;
  group.total += amount;
}
return { rows: rows.length, paid };
