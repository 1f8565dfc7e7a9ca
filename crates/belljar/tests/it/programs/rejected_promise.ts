async function load(id: number): Promise<string> { if (id > 1) throw new Error(`no record ${id}`); return `record ${id}`; }
console.log(await load(1));
const all = [1, 2].map(load);
console.log((await Promise.all(all)).length);
export {};
