interface Sale { region: string; product: string; amount: number; when: Date }
const csv = `region,product,amount,when
north,"Widget, large",120.50,2024-01-03
south,Gadget,80,2024-01-05
north,Gadget,42.25,2024-02-11
east,"Widget ""XL""",15,2024-02-12
`;
function parseLine(line: string): string[] {
  const cells: string[] = [];
  let cell = "", quoted = false;
  for (let i = 0; i < line.length; i++) {
    const c = line[i];
    if (quoted) {
      if (c === '"' && line[i + 1] === '"') { cell += '"'; i++; }
      else if (c === '"') quoted = false;
      else cell += c;
    } else if (c === '"') quoted = true;
    else if (c === ",") { cells.push(cell); cell = ""; }
    else cell += c;
  }
  return [...cells, cell];
}
const [head, ...lines] = csv.trim().split(/\r?\n/);
const sales: Sale[] = lines.map(parseLine).map(([region, product, amount, when]) => ({
  region, product, amount: Number.parseFloat(amount), when: new Date(when),
}));
const byRegion = sales.reduce<Record<string, number>>((sums, { region, amount }) => {
  sums[region] = (sums[region] ?? 0) + amount;
  return sums;
}, {});
console.log(head.split(","));
console.log(byRegion);
console.table(Object.entries(byRegion).map(([region, total]) => ({ region, total: total.toFixed(2) })));
console.log(sales[1]);
const byMonth = Object.entries(sales.reduce((m, s) => m.set(s.when.getUTCMonth(), [...(m.get(s.when.getUTCMonth()) ?? []), s.product]), new Map<number, string[]>()));
console.log(byMonth);
