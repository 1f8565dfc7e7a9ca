// Request and Response: their headers and bodies. Nothing is sent: `fetch` is refused.
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
  }
  const { copied } = Body;
  delete Body.copied;

  const REDIRECTS = [301, 302, 303, 307, 308];
  const EMPTY = [101, 103, 204, 205, 304];

  class Response extends Body {
    #status;
    #statusText;
    #type;

    constructor(body = null, init = {}) {
      const status = init?.status === undefined ? 200 : Number(init.status);
      if (!(status >= 200 && status <= 599) && !(init === ERROR)) {
        throw new RangeError('init["status"] must be in the range of 200 to 599, inclusive.');
      }
      if (body !== null && EMPTY.includes(status)) throw new TypeError(`Response with null body status cannot have body`);
      super(body, new Headers(init?.headers));
      this.#status = status;
      this.#statusText = init?.statusText === undefined ? "" : `${init.statusText}`;
      this.#type = init === ERROR ? "error" : "default";
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
      return "";
    }

    get redirected() {
      return false;
    }

    clone() {
      return new Response(copied(this), { status: this.#status, statusText: this.#statusText, headers: this.headers });
    }
  }
  const ERROR = { status: 0 };

  const METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];

  class Request extends Body {
    #url;
    #method;
    #signal;

    constructor(input, init = {}) {
      const other = input instanceof Request ? input : undefined;
      if (other === undefined && !URL.canParse(input)) throw new TypeError(`Failed to parse URL from ${input}`);
      const url = other?.url ?? new URL(input).href;
      const given = init?.method ?? other?.method ?? "GET";
      const method = METHODS.includes(`${given}`.toUpperCase()) ? `${given}`.toUpperCase() : `${given}`;
      const body = init?.body ?? (other === undefined ? null : copied(other));
      if (body !== null && body !== undefined && (method === "GET" || method === "HEAD")) {
        throw new TypeError("Request with GET/HEAD method cannot have body.");
      }
      super(body, new Headers(init?.headers ?? other?.headers));
      this.#url = url;
      this.#method = method;
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

    clone() {
      return new Request(this);
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
