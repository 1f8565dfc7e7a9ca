// A program to run side by side with Node: urls and queries.
const { URL: NodeURL, URLSearchParams: Params, fileURLToPath, pathToFileURL } = require("url");
const url = new URL("https://user:pa%20ss@Example.com:8443/a/../b c?x=1&y=two&x=3#frag");
console.log(url.href, url.hostname, url.port, url.pathname, url.searchParams.getAll("x"), NodeURL === URL);
url.searchParams.append("q", "a b&c"); url.searchParams.delete("y"); url.hash = ""; url.port = "443";
console.log(String(url), url);
console.log(Object.fromEntries(new Params("a=1&b=%20&c")), new Params({ z: "1", a: "ü" }).toString(), [...new Params([["k", "v"]])]);
console.log(encodeURIComponent("a/b?c=d&e f"), decodeURIComponent("%F0%9F%98%80"), encodeURI("http://x/ü?a b"), escape("ü"));
for (const bad of ["not a url", "http://", "//host"]) { try { new URL(bad); } catch (e) { console.log(e.name, e.code, e.message); } }
console.log(URL.canParse("a:b"), fileURLToPath("file:///tmp/a%20b"), pathToFileURL("/tmp/a b").href, new URL("../x", "http://h/a/b/c").href);
console.log(require("querystring").parse("a=1&a=2&b=x%20y"), new Params("b=2&a=1").size);
