export interface Report { total: number; names: string[] }
export const items = [{ name: "b", n: 2 }, { name: "a", n: 1 }];
export function report(list: typeof items): Report {
  return { total: list.reduce((sum, { n }) => sum + n, 0), names: list.map((i) => i.name).sort() };
}
export type Item = (typeof items)[number];
export enum Level { Low = 1, High = Low << 2, Text = "t" }
console.log(report(items), Level.High, Level[1], Level);
const extra = 5;
export { extra as renamed, report as default };
