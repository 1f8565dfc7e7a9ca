// fetch: the host makes the request. Each redirect is a request of its own, about which the host decides
// anew; a body comes piece by piece, when it is asked for. Offers `native.fetch(input, init)` and
// `native.settleFetch(call, isOk, value)`.
(function (native) {
  "use strict";

  native.need("web/body", "web/streams-readable", "events");
  const { Request, Headers, ReadableStream, URL } = native.global("Request", "Headers", "ReadableStream", "URL");
  const { PermissionError } = native.errors;
  const { defineProperty } = Reflect;

  const REDIRECTS = [301, 302, 303, 307, 308];
  const MAX_REDIRECTS = 20;
  const PIECE_BYTES = 256 * 1024;
  const OF_BODY = ["content-encoding", "content-language", "content-location", "content-type", "content-length"];
  const OF_ORIGIN = ["authorization", "cookie", "proxy-authorization", "host"];

  // Steps under way, by number.
  let waiting = { __proto__: null };

  /** Fetches of an earlier run of the session: nobody will answer them. */
  native.forgetFetches = () => {
    waiting = { __proto__: null };
  };

  native.settleFetch = (call, isOk, value) => {
    if (waiting[call] === undefined) return;
    const { resolve, reject, origin } = waiting[call];
    delete waiting[call];
    if (isOk) resolve(value);
    else reject(withStack(errorOf(value), origin));
  };

  function errorOf({ code, message, hint, missing }) {
    if (!/^(?:permission|approval)\./.test(code)) return new TypeError(`fetch failed: ${message}`);
    const grant = missing && { __proto__: null, kind: "net", name: missing.name };
    return new PermissionError(`fetch: ${message}`, { code, hint: hint ?? undefined, missing: grant ?? undefined });
  }

  /** The stack of the call, not of the loop that heard of its end. */
  function withStack(error, origin) {
    const stack = native.rawStack(origin);
    defineProperty(error, "stack", {
      value: native.presentStack(error, stack), writable: true, enumerable: false, configurable: true,
    });
    native.keepStack(error, stack);
    return error;
  }

  /** One request and its answer. */
  class Exchange {
    #signal;
    #origin;
    #number;
    #steps = new Set();
    #controller;
    #onAbort = () => this.#end(this.#signal.reason);

    constructor(signal, origin) {
      this.#signal = signal;
      this.#origin = origin;
    }

    /** Sends the request; gives the head of the answer. */
    async begin(method, url, headers, content) {
      const isWhole = content === null || (content instanceof Uint8Array && (content.length <= PIECE_BYTES || native.isDurable()));
      const length = content instanceof Uint8Array ? content.length : -1;
      const pairs = [...headers].map((pair) => [...pair]);
      this.#number = native.fetchBegin(method, url, pairs, native.rawStack(this.#origin), isWhole ? content?.toHex() : true, length);
      this.#signal.addEventListener("abort", this.#onAbort);
      const answer = this.#step(this.#number);
      if (!isWhole) this.#upload(content).catch((error) => this.#end(error));
      try {
        const head = await answer;
        if (head.isWhole) this.#forget();
        return head;
      } catch (error) {
        this.#forget();
        throw error;
      }
    }

    /** The body of the answer. */
    body() {
      return new ReadableStream({
        start: (controller) => {
          this.#controller = controller;
        },
        pull: async (controller) => {
          const piece = await this.#step(native.fetchRead(this.#number));
          if (piece.length > 0) {
            controller.enqueue(piece);
            return;
          }
          this.#forget();
          controller.close();
        },
        cancel: () => this.drop(),
      }, { highWaterMark: 0 });
    }

    /** The rest is of no use. */
    drop() {
      this.#forget();
      native.fetchCancel(this.#number);
    }

    #step(number) {
      const { promise, resolve, reject } = Promise.withResolvers();
      waiting[number] = { __proto__: null, resolve, reject, origin: this.#origin };
      this.#steps.add(number);
      return promise.finally(() => this.#steps.delete(number));
    }

    async #upload(content) {
      for await (const part of piecesOf(content)) {
        const sent = await this.#step(native.fetchSend(this.#number, part.toHex(), false)).then(() => true, () => false);
        // The server has answered, or is gone: the answer says which.
        if (!sent) return;
      }
      await this.#step(native.fetchSend(this.#number, "", true)).catch(() => {});
    }

    #end(reason) {
      this.drop();
      for (const number of [...this.#steps]) {
        waiting[number]?.reject(reason);
        delete waiting[number];
      }
      this.#controller?.error(reason);
    }

    #forget() {
      this.#signal.removeEventListener("abort", this.#onAbort);
    }
  }

  async function* piecesOf(content) {
    const parts = content instanceof Uint8Array ? [content] : content;
    for await (const part of parts) {
      if (!(part instanceof Uint8Array)) throw new TypeError("fetch: a stream that is a body must give Uint8Arrays");
      for (let at = 0; at < part.length; at += PIECE_BYTES) yield part.slice(at, at + PIECE_BYTES);
    }
  }

  async function collected(stream) {
    const parts = [];
    for await (const part of piecesOf(stream)) parts.push(part);
    return native.blobBytes.joined(parts);
  }

  /** The next request of a redirect; the fetch standard says what it takes along. */
  function redirected(request, { status }, location) {
    const { url, method, headers, content } = request;
    const next = URL.parse(location, url);
    if (!/^https?:$/.test(next?.protocol)) throw new TypeError(`fetch failed: the server redirects to ${JSON.stringify(location)}`);
    const isSwitched = (status === 303 && method !== "GET" && method !== "HEAD") || ((status === 301 || status === 302) && method === "POST");
    if (!isSwitched && content !== null && !(content instanceof Uint8Array)) {
      throw new TypeError("fetch failed: the server redirects, and a body that is a stream cannot be sent again");
    }
    const kept = new Headers(headers);
    if (isSwitched) for (const name of OF_BODY) kept.delete(name);
    if (next.origin !== new URL(url).origin) for (const name of OF_ORIGIN) kept.delete(name);
    next.hash = "";
    return { url: next.href, method: isSwitched ? "GET" : method, headers: kept, content: isSwitched ? null : content };
  }

  native.fetch = async function fetch(input, init) {
    const origin = new Error();
    const given = native.takeRequest(new Request(input, init));
    const { signal, redirect } = given;
    signal.throwIfAborted();
    let request = given;
    if (native.isDurable() && given.content instanceof ReadableStream) {
      request = { ...given, content: await collected(given.content) };
    }
    for (let hops = 0; ; hops++) {
      signal.throwIfAborted();
      const exchange = new Exchange(signal, origin);
      const head = await exchange.begin(request.method, request.url, request.headers, request.content);
      const location = head.headers.find(([name]) => name === "location")?.[1];
      if (!REDIRECTS.includes(head.status) || location === undefined || redirect === "manual") {
        const body = head.isWhole ? head.body : exchange.body();
        return native.responseOf(body, head, request.url, hops > 0);
      }
      if (!head.isWhole) exchange.drop();
      if (redirect === "error") throw withStack(new TypeError('fetch failed: the server redirects, and `redirect` is "error"'), origin);
      if (hops === MAX_REDIRECTS) throw withStack(new TypeError(`fetch failed: more than ${MAX_REDIRECTS} redirects`), origin);
      request = redirected(request, head, location);
    }
  };
});
