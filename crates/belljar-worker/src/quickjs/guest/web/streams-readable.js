// ReadableStream, with its default reader and controller. Byte streams are read as any other.
(function (native) {
  "use strict";

  const later = (value) => Promise.resolve(value);
  const locked = (what) => new TypeError(`Invalid state: ${what} is locked`);

  function highWaterMark(strategy, otherwise) {
    const mark = strategy?.highWaterMark;
    if (mark === undefined) return otherwise;
    if (!(Number(mark) >= 0)) throw new RangeError(`The property 'strategy.highWaterMark' is invalid. Received ${native.inspect(mark)}`);
    return Number(mark);
  }
  native.streamMark = highWaterMark;

  /** The state that a stream and its reader share: the queue, the waiting reads, and how it ended. */
  class ReadableState {
    constructor(source, strategy) {
      this.source = source;
      this.sizeOf = typeof strategy?.size === "function" ? strategy.size : () => 1;
      this.mark = highWaterMark(strategy, source.type === "bytes" ? 0 : 1);
      this.queue = [];
      this.size = 0;
      this.waiting = [];
      this.status = "readable";
      this.error = undefined;
      this.isClosing = false;
      this.isPulling = false;
      this.wantsMore = false;
      this.hasStarted = false;
      this.ended = Promise.withResolvers();
      this.ended.promise.catch(() => {});
      this.reader = undefined;
    }

    desired() {
      if (this.status === "errored") return null;
      return this.status === "closed" ? 0 : this.mark - this.size;
    }

    enqueue(chunk) {
      if (this.isClosing || this.status !== "readable") throw new TypeError("Invalid state: Controller is already closed");
      if (this.waiting.length > 0) {
        this.waiting.shift().resolve({ value: chunk, done: false });
      } else {
        const size = Number(this.sizeOf(chunk));
        this.queue.push([chunk, size]);
        this.size += size;
      }
      this.pull();
    }

    close() {
      if (this.isClosing || this.status !== "readable") throw new TypeError("Invalid state: Controller is already closed");
      this.isClosing = true;
      if (this.queue.length === 0) this.finish();
    }

    finish() {
      this.status = "closed";
      for (const one of this.waiting.splice(0)) one.resolve({ value: undefined, done: true });
      this.ended.resolve();
    }

    fail(error) {
      if (this.status !== "readable") return;
      this.status = "errored";
      this.error = error;
      this.queue = [];
      for (const one of this.waiting.splice(0)) one.reject(error);
      this.ended.reject(error);
    }

    /** Asks the source for more, once at a time. */
    pull() {
      const wants = this.status === "readable" && !this.isClosing && this.hasStarted
        && (this.waiting.length > 0 || this.mark - this.size > 0);
      if (!wants || typeof this.source.pull !== "function") return;
      if (this.isPulling) {
        this.wantsMore = true;
        return;
      }
      this.isPulling = true;
      new Promise((resolve) => { resolve(this.source.pull(this.controller)); }).then(() => {
        this.isPulling = false;
        if (this.wantsMore) {
          this.wantsMore = false;
          this.pull();
        }
      }, (error) => this.fail(error));
    }

    read() {
      if (this.queue.length > 0) {
        const [value, size] = this.queue.shift();
        this.size -= size;
        if (this.isClosing && this.queue.length === 0) this.finish();
        else this.pull();
        return later({ value, done: false });
      }
      if (this.status === "closed") return later({ value: undefined, done: true });
      if (this.status === "errored") return Promise.reject(this.error);
      const waiting = Promise.withResolvers();
      this.waiting.push(waiting);
      this.pull();
      return waiting.promise;
    }

    async cancel(reason) {
      if (this.status === "errored") throw this.error;
      if (this.status === "closed") return;
      this.queue = [];
      this.finish();
      await this.source.cancel?.(reason);
    }
  }

  let stateOf;
  class ReadableStreamDefaultController {
    #state;

    constructor(state) {
      if (!(state instanceof ReadableState)) throw new TypeError("Illegal constructor");
      this.#state = state;
    }

    get desiredSize() {
      return this.#state.desired();
    }

    enqueue(chunk) {
      this.#state.enqueue(chunk);
    }

    close() {
      this.#state.close();
    }

    error(reason) {
      this.#state.fail(reason);
    }
  }

  class ReadableStreamDefaultReader {
    #state;

    constructor(stream) {
      const state = stateOf(stream);
      if (state.reader !== undefined) throw locked("ReadableStream");
      this.#state = state;
      state.reader = this;
    }

    get closed() {
      return this.#state === undefined ? Promise.reject(new TypeError("Invalid state: Reader released")) : this.#state.ended.promise;
    }

    #held() {
      if (this.#state === undefined) throw new TypeError("Invalid state: The reader is not attached to a stream");
      return this.#state;
    }

    async read() {
      return this.#held().read();
    }

    async cancel(reason) {
      return this.#held().cancel(reason);
    }

    releaseLock() {
      if (this.#state === undefined) return;
      for (const one of this.#state.waiting.splice(0)) one.reject(new TypeError("Invalid state: Releasing reader"));
      this.#state.reader = undefined;
      this.#state = undefined;
    }
  }

  class ReadableStream {
    #state;

    constructor(source = {}, strategy = {}) {
      const state = new ReadableState(source ?? {}, strategy);
      this.#state = state;
      state.controller = new ReadableStreamDefaultController(state);
      const started = source?.start?.(state.controller);
      later(started).then(() => {
        state.hasStarted = true;
        state.pull();
      }, (error) => state.fail(error));
    }

    static {
      stateOf = (stream) => {
        if (typeof stream !== "object" || stream === null || !(#state in stream)) throw new TypeError("A ReadableStream is needed");
        return stream.#state;
      };
    }

    static from(items) {
      const iterator = items[Symbol.asyncIterator]?.() ?? items[Symbol.iterator]();
      return new ReadableStream({
        async pull(controller) {
          const { value, done } = await iterator.next();
          if (done) controller.close();
          else controller.enqueue(await value);
        },
        async cancel(reason) {
          await iterator.return?.(reason);
        },
      }, { highWaterMark: 0 });
    }

    get locked() {
      return this.#state.reader !== undefined;
    }

    async cancel(reason) {
      if (this.locked) throw locked("ReadableStream");
      return this.#state.cancel(reason);
    }

    getReader(options) {
      if (options?.mode === "byob") throw new TypeError("A BYOB reader is not supported: use getReader() without a mode");
      return new ReadableStreamDefaultReader(this);
    }

    async pipeTo(destination, options = {}) {
      const [reader, writer] = [this.getReader(), destination.getWriter()];
      const { signal, preventClose, preventAbort, preventCancel } = options;
      try {
        for (;;) {
          signal?.throwIfAborted();
          await writer.ready;
          const { value, done } = await reader.read();
          if (done) break;
          await writer.write(value);
        }
        if (!preventClose) await writer.close();
      } catch (error) {
        if (!preventCancel) await reader.cancel(error).catch(() => {});
        if (!preventAbort) await writer.abort(error).catch(() => {});
        throw error;
      } finally {
        reader.releaseLock();
        writer.releaseLock();
      }
    }

    pipeThrough({ readable, writable }, options) {
      if (this.locked) throw locked("ReadableStream");
      this.pipeTo(writable, options).catch(() => {});
      return readable;
    }

    tee() {
      const reader = this.getReader();
      const controllers = [];
      let reading;
      const pull = () => {
        reading ??= reader.read().then(({ value, done }) => {
          reading = undefined;
          for (const one of controllers) (done ? one.close() : one.enqueue(value));
        }, (error) => controllers.forEach((one) => one.error(error)));
        return reading;
      };
      const branch = () => new ReadableStream({ start: (controller) => { controllers.push(controller); }, pull });
      return [branch(), branch()];
    }

    async *values(options) {
      const reader = this.getReader();
      let isDone = false;
      try {
        for (;;) {
          const { value, done } = await reader.read();
          isDone = done;
          if (done) return;
          yield value;
        }
      } finally {
        if (!isDone && !options?.preventCancel) await reader.cancel().catch(() => {});
        reader.releaseLock();
      }
    }

    [Symbol.asyncIterator](options) {
      return this.values(options);
    }
  }

  native.printAs(ReadableStream, (stream, show) => [`locked: ${show(stream.locked)}`, `state: ${show(stateOf(stream).status)}`]);
  for (const type of [ReadableStream, ReadableStreamDefaultReader, ReadableStreamDefaultController]) {
    Object.defineProperty(type.prototype, Symbol.toStringTag, { value: type.name, configurable: true });
  }
  native.expose({ ReadableStream, ReadableStreamDefaultReader, ReadableStreamDefaultController });
});
