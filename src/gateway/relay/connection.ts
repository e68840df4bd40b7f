import type { ServerHttp2Stream } from 'node:http2';
import { Duplex } from 'node:stream';
import { type EndTraffic, listenTo } from '../../foreign-traffic.ts';

/**
 * A connection of the sandbox, for Node's HTTP server. The stream itself would work, except for a bug in Node
 * 24: if a string and bytes are written together, such as the head of an answer and its body, Node frees the
 * string's memory before it is sent. This class writes only bytes.
 */
export class Connection extends Duplex {
  readonly #stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream, end: EndTraffic) {
    super();
    this.#stream = stream;
    const data = (chunk: Buffer) => {
      if (!this.push(chunk)) stream.pause();
    };
    // 'close' always follows an error, on both streams.
    listenTo(stream, { data, end: () => this.push(null), close: () => this.destroy() }, end);
    listenTo(this, {}, end);
  }

  override _read(): void {
    this.#stream.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#stream.write(chunk, done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#stream.cork();
    const last = chunks.length - 1;
    for (const [index, { chunk }] of chunks.entries())
      this.#stream.write(chunk, index === last ? done : undefined);
    this.#stream.uncork();
  }

  override _final(done: () => void): void {
    this.#stream.end(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#stream.destroy(error ?? undefined);
    done(error);
  }
}
