// A program to run side by side with Node: buffers.
const { Buffer } = require("node:buffer");
const b = Buffer.alloc(12);
b.writeUInt32BE(0xdeadbeef, 0); b.writeInt16LE(-2, 4); b.writeDoubleBE; b.write("héy", 6, "utf8");
console.log(b, b.readUInt32BE(0).toString(16), b.readInt16LE(4), b.toString("utf8", 6, 10), b.length);
console.log(Buffer.concat([Buffer.from("ab"), Buffer.from([99, 256 + 100])]).toString(), Buffer.byteLength("€"), Buffer.from("ff00", "hex"));
console.log(Buffer.compare(Buffer.from("a"), Buffer.from("b")), Buffer.from("abc").equals(Buffer.from("abc")), Buffer.isBuffer(new Uint8Array(1)));
console.log(b.subarray(0, 2).toJSON(), JSON.stringify(Buffer.from("hi")), [...Buffer.from("hi").entries()], b.indexOf("y"), b.includes(0xfe));
console.log(Buffer.from("zażółć").toString("latin1"), Buffer.from("aGk", "base64").toString(), Buffer.from("hello").slice(1, 3) + "", b.fill("x").toString("ascii"));
console.log(Buffer.from("0123456789").swap16().toString(), Buffer.from([1, 2, 3]).reverse(), Buffer.from("test").readUIntBE(0, 3), new Uint8Array(Buffer.from("a")));
const view = new DataView(new ArrayBuffer(8)); view.setFloat32(0, 1.5); view.setInt16(4, -3, true);
console.log(new Uint8Array(view.buffer), view.getFloat32(0), atob(btoa("x")), new TextDecoder().decode(Uint8Array.of(0xe2, 0x82, 0xac)));
