type State = "idle" | "loading" | "done" | "failed";
type Event = { type: "start" } | { type: "finish"; rows: number } | { type: "fail"; reason: string };
const next: { [S in State]?: { [E in Event["type"]]?: (e: any) => State } } = {
  idle: { start: () => "loading" }, loading: { finish: (e) => (e.rows > 0 ? "done" : "failed"), fail: () => "failed" },
};
function* run(events: Event[], state: State = "idle"): Generator<[State, string]> {
  for (const event of events) {
    const step = next[state]?.[event.type];
    if (!step) throw new RangeError(`no ${event.type} in ${state}`);
    state = step(event);
    switch (event.type) { case "finish": yield [state, `${event.rows} rows`]; break; case "fail": yield [state, event.reason]; break; default: yield [state, ""]; }
  }
}
for (const [state, note] of run([{ type: "start" }, { type: "finish", rows: 3 }])) console.log(state, note);
try { [...run([{ type: "finish", rows: 1 }])]; } catch (e) { console.error(String(e)); console.log(`${e}`); }
const reducer = (s: { n: number; log: string[] }, a: { type: string; by?: number }) => { switch (a.type) { case "add": return { ...s, n: s.n + (a.by ?? 1), log: [...s.log, "add"] }; case "reset": return { n: 0, log: [] }; default: return s; } };
console.log([{ type: "add" }, { type: "add", by: 5 }, { type: "?" }].reduce(reducer, { n: 0, log: [] }));
