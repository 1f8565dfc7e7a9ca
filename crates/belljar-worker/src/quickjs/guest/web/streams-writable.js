// WritableStream with its writer, TransformStream, the text streams and the queuing strategies.
(function (native) {
  "use strict";

  native.need("web/streams-readable");
  const { ReadableStream } = native.global("ReadableStream");

  let connect;
  class WritableState {
    constructor(sink, strategy) {
      this.sink = sink;
      this.mark = native.streamMark(strategy, 1);
      this.sizeOf = typeof strategy?.size === "function" ? strategy.size : () => 1;
      this.size = 0;
      this.status = "writable";
      this.error = undefined;
      this.ready = Promise.withResolvers();
      this.ready.resolve();
      this.ended = Promise.withResolvers();
      this.ended.promise.catch(() => {});
      this.aborting = new (native.global("AbortController").AbortController)();
      this.controller = { signal: this.aborting.signal, error: (reason) => this.fail(reason) };
      // All work is done one after the other.
      this.last = new Promise((resolve) => { resolve(sink.start?.(this.controller)); });
      this.last.catch((error) => this.fail(error));
    }

    desired() {
      if (this.status === "errored") return null;
      return this.status === "closed" ? 0 : this.mark - this.size;
    }

    fail(error) {
      if (this.status !== "writable" && this.status !== "closing") return;
      this.status = "errored";
      this.error = error;
      this.ready.promise.catch(() => {});
      this.ready.reject(error);
      this.ready = Promise.withResolvers();
      this.ready.promise.catch(() => {});
      this.ready.reject(error);
      this.ended.reject(error);
    }

    check() {
      if (this.status === "errored") throw this.error;
      if (this.status !== "writable") throw new TypeError("Invalid state: WritableStream is closed");
    }

    write(chunk) {
      this.check();
      const size = Number(this.sizeOf(chunk));
      this.size += size;
      if (this.desired() <= 0) {
        this.ready = Promise.withResolvers();
        this.ready.promise.catch(() => {});
      }
      const work = this.last.then(async () => {
        if (this.status === "errored") throw this.error;
        await this.sink.write?.(chunk, this.controller);
        this.size -= size;
        if (this.desired() > 0) this.ready.resolve();
      });
      this.last = work.catch((error) => this.fail(error));
      return work;
    }

    close() {
      this.check();
      this.status = "closing";
      const work = this.last.then(async () => {
        if (this.status === "errored") throw this.error;
        await this.sink.close?.(this.controller);
        this.status = "closed";
        this.ready.resolve();
        this.ended.resolve();
      });
      this.last = work.catch((error) => this.fail(error));
      return work;
    }

    async abort(reason) {
      if (this.status === "closed" || this.status === "errored") return;
      this.aborting.abort(reason);
      this.fail(reason ?? new DOMException("This operation was aborted", "AbortError"));
      await this.sink.abort?.(reason);
    }
  }

  class WritableStreamDefaultWriter {
    #state;
    #release;

    constructor(stream) {
      const { state, lock } = connect(stream);
      this.#state = state;
      this.#release = lock(this);
    }

    #held() {
      if (this.#state === undefined) throw new TypeError("Invalid state: Writer is not bound to a stream");
      return this.#state;
    }

    get closed() {
      return this.#held().ended.promise;
    }

    get ready() {
      return this.#held().ready.promise;
    }

    get desiredSize() {
      return this.#held().desired();
    }

    async write(chunk) {
      return this.#held().write(chunk);
    }

    async close() {
      return this.#held().close();
    }

    async abort(reason) {
      return this.#held().abort(reason);
    }

    releaseLock() {
      this.#release?.();
      this.#state = undefined;
    }
  }

  class WritableStream {
    #state;
    #writer;

    constructor(sink = {}, strategy = {}) {
      this.#state = new WritableState(sink ?? {}, strategy);
    }

    static {
      connect = (stream) => ({
        state: stream.#state,
        lock: (writer) => {
          if (stream.#writer !== undefined) throw new TypeError("Invalid state: WritableStream is locked");
          stream.#writer = writer;
          return () => { stream.#writer = undefined; };
        },
      });
    }

    get locked() {
      return this.#writer !== undefined;
    }

    getWriter() {
      return new WritableStreamDefaultWriter(this);
    }

    async close() {
      if (this.locked) throw new TypeError("Invalid state: WritableStream is locked");
      return this.#state.close();
    }

    async abort(reason) {
      if (this.locked) throw new TypeError("Invalid state: WritableStream is locked");
      return this.#state.abort(reason);
    }
  }

  class TransformStream {
    #readable;
    #writable;

    constructor(transformer = {}, writableStrategy = {}, readableStrategy = { highWaterMark: 0 }) {
      let inner;
      let pulled = Promise.withResolvers();
      const controller = {
        enqueue: (chunk) => inner.enqueue(chunk),
        error: (reason) => inner.error(reason),
        terminate: () => inner.close(),
        get desiredSize() {
          return inner.desiredSize;
        },
      };
      this.#readable = new ReadableStream({
        start: (made) => { inner = made; },
        pull: () => { pulled.resolve(); },
        cancel: (reason) => transformer.cancel?.(reason),
      }, readableStrategy);
      const started = transformer.start?.(controller);
      this.#writable = new WritableStream({
        start: () => started,
        write: async (chunk) => {
          // Chunks are transformed only when somebody reads.
          if (inner.desiredSize <= 0) await pulled.promise;
          pulled = Promise.withResolvers();
          try {
            if (typeof transformer.transform === "function") await transformer.transform(chunk, controller);
            else controller.enqueue(chunk);
          } catch (error) {
            inner.error(error);
            throw error;
          }
        },
        close: async () => {
          try {
            await transformer.flush?.(controller);
          } catch (error) {
            inner.error(error);
            throw error;
          }
          if (inner.desiredSize !== null) {
            try {
              inner.close();
            } catch {
              // `terminate` has closed it.
            }
          }
        },
        abort: (reason) => inner.error(reason),
      }, writableStrategy);
    }

    get readable() {
      return this.#readable;
    }

    get writable() {
      return this.#writable;
    }
  }

  class TextEncoderStream extends TransformStream {
    constructor() {
      const { TextEncoder } = native.global("TextEncoder");
      super({ transform: (chunk, controller) => controller.enqueue(new TextEncoder().encode(String(chunk))) });
    }
  }

  class TextDecoderStream extends TransformStream {
    constructor(label, options) {
      const { TextDecoder } = native.global("TextDecoder");
      const decoder = new TextDecoder(label, options);
      super({
        transform(chunk, controller) {
          const text = decoder.decode(chunk, { stream: true });
          if (text !== "") controller.enqueue(text);
        },
        flush(controller) {
          const text = decoder.decode();
          if (text !== "") controller.enqueue(text);
        },
      });
    }
  }

  class CountQueuingStrategy {
    constructor({ highWaterMark }) {
      this.highWaterMark = highWaterMark;
    }

    size() {
      return 1;
    }
  }

  class ByteLengthQueuingStrategy {
    constructor({ highWaterMark }) {
      this.highWaterMark = highWaterMark;
    }

    size(chunk) {
      return chunk.byteLength;
    }
  }

  for (const type of [WritableStream, WritableStreamDefaultWriter, TransformStream, TextEncoderStream, TextDecoderStream]) {
    Object.defineProperty(type.prototype, Symbol.toStringTag, { value: type.name, configurable: true });
  }
  native.expose({
    WritableStream, WritableStreamDefaultWriter, TransformStream, TextEncoderStream, TextDecoderStream,
    CountQueuingStrategy, ByteLengthQueuingStrategy,
  });
});
