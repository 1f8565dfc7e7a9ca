// refused: module "stream" cannot be imported ... ReadableStream
const { Readable, Transform, Writable, pipeline, PassThrough } = require("stream");
const { promisify } = require("util");
const upper = new Transform({ transform(chunk, encoding, done) { this.push(chunk.toString().toUpperCase()); done(); } });
const chunks = [];
const sink = new Writable({ write(chunk, _, done) { chunks.push(chunk.toString()); done(); } });
promisify(pipeline)(Readable.from(["hello ", "stream ", "world"]), upper, sink).then(async () => {
  console.log(chunks.join(""));
  const through = new PassThrough(); through.end("tail");
  for await (const piece of through) console.log(piece.toString());
});
