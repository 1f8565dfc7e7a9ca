const source = new ReadableStream<string>({ start(c) { for (const line of ["a,1\nb,", "2\nc,3"]) c.enqueue(line); c.close(); } });
const lines = new TransformStream<string, string>({
  start() { (this as any).rest = ""; },
  transform(chunk, c) { const parts = ((this as any).rest + chunk).split("\n"); (this as any).rest = parts.pop(); parts.forEach((p) => c.enqueue(p)); },
  flush(c) { c.enqueue((this as any).rest); },
});
const seen: string[] = [];
await source.pipeThrough(lines).pipeTo(new WritableStream({ write(line) { seen.push(line); } }));
console.log(seen, await new Response(new Blob(["a", "b"]).stream()).text());
const [one, two] = new ReadableStream({ start(c) { c.enqueue(1); c.enqueue(2); c.close(); } }).tee();
const reader = one.getReader(); console.log(await reader.read(), await reader.read(), await reader.read());
for await (const n of two as any) console.log(n);
const encoded = new Response("héllo").body!.pipeThrough(new TextDecoderStream());
for await (const text of encoded as any) console.log(text);
