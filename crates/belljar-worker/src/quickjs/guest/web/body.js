// Request and Response: their headers and bodies. For web/fetch.js: `native.takeRequest(request)`, which uses up
// its body, and `native.responseOf(body, head, url, isRedirected)`.
(function (native) {
  "use strict";

  native.need("web/headers", "web/blob", "web/form-data", "web/streams-readable");
  const { Headers, Blob, FormData, ReadableStream } = native.global("Headers", "Blob", "FormData", "ReadableStream");
  const { URL, URLSearchParams, TextDecoder } = native.global("URL", "URLSearchParams", "TextDecoder");
  const { bytesOf, partBytes } = native.blobBytes;

  /** A body as bytes or as a stream, and the type that goes with it. */
  function extract(body) {
    if (body === null || body === undefined) return [null, null];
    if (body instanceof ReadableStream) return [body, null];
    if (body instanceof FormData) {
      const [blob, type] = native.formData.encode(body);
      return [bytesOf(blob), type];
    }
    if (body instanceof URLSearchParams) return [partBytes(`${body}`), "application/x-www-form-urlencoded;charset=UTF-8"];
    if (body instanceof Blob) return [bytesOf(body), body.type || null];
    const isBytes = body instanceof ArrayBuffer || ArrayBuffer.isView(body);
    return [partBytes(body), isBytes ? null : "text/plain;charset=UTF-8"];
  }

  class Body {
    #content;
    #stream = null;
    #isUsed = false;
    #headers;

    constructor(body, headers) {
      const [content, type] = extract(body);
      this.#content = content;
      this.#headers = headers;
      if (content instanceof ReadableStream) this.#stream = content;
      if (type !== null && !headers.has("content-type")) headers.set("content-type", type);
    }

    get headers() {
      return this.#headers;
    }

    get body() {
      if (this.#stream === null && this.#content !== null) this.#stream = new Blob([this.#content]).stream();
      return this.#stream;
    }

    get bodyUsed() {
      return this.#isUsed || (this.#stream?.locked ?? false);
    }

    async #take() {
      if (this.bodyUsed) throw new TypeError("Body is unusable: Body has already been read");
      if (this.#content === null) return new Uint8Array(0);
      this.#isUsed = true;
      if (!(this.#content instanceof ReadableStream)) return this.#content.slice();
      const parts = [];
      for await (const part of this.#content) parts.push(part);
      return bytesOf(new Blob(parts));
    }

    async arrayBuffer() {
      return (await this.#take()).buffer;
    }

    async bytes() {
      return this.#take();
    }

    async blob() {
      return new Blob([await this.#take()], { type: this.#headers.get("content-type") ?? "" });
    }

    async text() {
      return new TextDecoder().decode(await this.#take());
    }

    async json() {
      return JSON.parse(await this.text());
    }

    async formData() {
      return native.formData.decode(await this.#take(), this.#headers.get("content-type") ?? "");
    }

    /** The body once more, for `clone`. */
    static copied(one) {
      if (one.bodyUsed) throw new TypeError("Response.clone: Body has already been consumed.");
      if (!(one.#content instanceof ReadableStream)) return one.#content;
      const [first, second] = one.#content.tee();
      one.#content = first;
      one.#stream = first;
      return second;
    }

    /** The body as it is, which is used up then. */
    static taken(one) {
      if (one.bodyUsed) throw new TypeError("Body is unusable: Body has already been read");
      one.#isUsed = one.#content !== null;
      return one.#content;
    }
  }
  const { copied, taken } = Body;
  delete Body.copied;
  delete Body.taken;

  const REDIRECTS = [301, 302, 303, 307, 308];
  const EMPTY = [101, 103, 204, 205, 304];

  class Response extends Body {
    #status;
    #statusText;
    #type;
    #url = "";
    #isRedirected = false;

    constructor(body = null, init = {}) {
      const status = init?.status === undefined ? 200 : Number(init.status);
      if (!(status >= 200 && status <= 599) && init !== ERROR) {
        throw new RangeError('init["status"] must be in the range of 200 to 599, inclusive.');
      }
      if (body !== null && body !== undefined && EMPTY.includes(status)) throw new TypeError(`Response with null body status cannot have body`);
      super(body, new Headers(init?.headers));
      this.#status = status;
      this.#statusText = init?.statusText === undefined ? "" : `${init.statusText}`;
      this.#type = init === ERROR ? "error" : "default";
    }

    static {
      native.responseOf = (body, { status, statusText, headers }, url, isRedirected) => {
        const response = new Response(EMPTY.includes(status) ? null : body, { headers });
        response.#status = status;
        response.#statusText = statusText;
        response.#type = "basic";
        response.#url = url;
        response.#isRedirected = isRedirected;
        return response;
      };
    }

    static json(value, init = {}) {
      const text = JSON.stringify(value);
      if (text === undefined) throw new TypeError("Value is not JSON serializable");
      const headers = new Headers(init?.headers);
      if (!headers.has("content-type")) headers.set("content-type", "application/json");
      return new Response(text, { ...init, headers });
    }

    static error() {
      return new Response(null, ERROR);
    }

    static redirect(url, status = 302) {
      if (!REDIRECTS.includes(status)) throw new RangeError(`Invalid status code ${status}`);
      return new Response(null, { status, headers: { location: new URL(url).href } });
    }

    get status() {
      return this.#status;
    }

    get statusText() {
      return this.#statusText;
    }

    get ok() {
      return this.#status >= 200 && this.#status < 300;
    }

    get type() {
      return this.#type;
    }

    get url() {
      return this.#url;
    }

    get redirected() {
      return this.#isRedirected;
    }

    clone() {
      const head = { status: this.#status, statusText: this.#statusText, headers: this.headers };
      const clone = native.responseOf(copied(this), head, this.#url, this.#isRedirected);
      clone.#type = this.#type;
      return clone;
    }
  }
  const ERROR = { status: 0 };

  const REDIRECT_MODES = ["follow", "error", "manual"];
  const METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];

  class Request extends Body {
    #url;
    #method;
    #signal;
    #redirect;

    constructor(input, init = {}) {
      const other = input instanceof Request ? input : undefined;
      if (other === undefined && !URL.canParse(input)) throw new TypeError(`Failed to parse URL from ${input}`);
      const parsed = new URL(other?.url ?? input);
      if (parsed.username !== "" || parsed.password !== "") {
        throw new TypeError(`Request cannot be constructed from a URL that includes credentials: ${input}`);
      }
      const url = parsed.href;
      const given = init?.method ?? other?.method ?? "GET";
      const method = METHODS.includes(`${given}`.toUpperCase()) ? `${given}`.toUpperCase() : `${given}`;
      if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(method) || /^(?:connect|trace|track)$/i.test(method)) {
        throw new TypeError(`'${method}' is not a valid HTTP method.`);
      }
      const redirect = init?.redirect ?? other?.redirect ?? "follow";
      if (!REDIRECT_MODES.includes(redirect)) throw new TypeError(`Request: redirect must be one of ${REDIRECT_MODES.join(", ")}`);
      const body = init?.body ?? (other === undefined ? null : copied(other));
      if (body !== null && body !== undefined && (method === "GET" || method === "HEAD")) {
        throw new TypeError("Request with GET/HEAD method cannot have body.");
      }
      super(body, new Headers(init?.headers ?? other?.headers));
      this.#url = url;
      this.#method = method;
      this.#redirect = redirect;
      this.#signal = init?.signal ?? other?.signal ?? new (native.global("AbortController").AbortController)().signal;
    }

    get url() {
      return this.#url;
    }

    get method() {
      return this.#method;
    }

    get signal() {
      return this.#signal;
    }

    get redirect() {
      return this.#redirect;
    }

    clone() {
      return new Request(this);
    }

    static {
      native.takeRequest = (request) => {
        const url = new URL(request.#url);
        if (!/^https?:$/.test(url.protocol)) throw new TypeError(`fetch failed: ${url.protocol} is not http: or https:`);
        url.hash = "";
        return {
          url: url.href, method: request.#method, headers: new Headers(request.headers), content: taken(request),
          signal: request.#signal, redirect: request.#redirect,
        };
      };
    }
  }

  for (const type of [Request, Response]) {
    Object.defineProperty(type.prototype, Symbol.toStringTag, { value: type.name, configurable: true });
  }
  native.printAs(Response, (response, show) => [
    `status: ${show(response.status)}`, `statusText: ${show(response.statusText)}`, `headers: ${show(response.headers)}`,
    `body: ${show(response.body)}`, `bodyUsed: ${show(response.bodyUsed)}`, `ok: ${show(response.ok)}`,
    `redirected: ${show(response.redirected)}`, `type: ${show(response.type)}`, `url: ${show(response.url)}`,
  ]);
  native.printAs(Request, (request, show) => [
    `method: ${show(request.method)}`, `url: ${show(request.url)}`, `headers: ${show(request.headers)}`, `bodyUsed: ${show(request.bodyUsed)}`,
  ]);
  native.expose({ Request, Response });
});
