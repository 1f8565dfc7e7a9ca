async function sha256(message: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(message));
  return Array.from(new Uint8Array(digest)).map((b) => b.toString(16).padStart(2, "0")).join("");
}
const key = await crypto.subtle.importKey("raw", new TextEncoder().encode("secret"), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
const mac = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode("payload"));
console.log(await sha256("hello"), Buffer.from(mac).toString("hex"));
console.log(await crypto.subtle.verify("HMAC", key, mac, new TextEncoder().encode("payload")));
export {};
