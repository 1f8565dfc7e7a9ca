// A program to run side by side with Node: hash and encode.
const crypto = require("crypto");
const text = "The quick brown fox — žluťoučký kůň";
for (const algorithm of ["md5", "sha1", "sha256", "sha512"]) {
  console.log(algorithm, crypto.createHash(algorithm).update(text, "utf8").digest("hex"));
}
console.log(crypto.createHmac("sha256", "secret").update("a").update("b").digest("base64"));
const signature = crypto.createHmac("sha256", Buffer.from("k")).update("m").digest();
console.log(crypto.timingSafeEqual(signature, Buffer.from(signature)), signature.length);
console.log(Buffer.from(text).toString("base64url"));
console.log(crypto.randomBytes(8).toString("hex").length, /^[0-9a-f-]{36}$/.test(crypto.randomUUID()));
