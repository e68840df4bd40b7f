import { Duplex } from 'node:stream';
import { listenTo } from '../../foreign-traffic.ts';
import type { EngineClient } from '../connection/engine-client.ts';
import { FrameReader } from '../exec/frame-reader.ts';

export interface AttachRequest {
  /** Sees what the program prints to stderr, as it comes. */
  onStderr(bytes: Buffer): void;
  signal?: AbortSignal | undefined;
}

/**
 * Connects to the standard streams of a container's program; one that runs already loses what it said before. One round trip.
 * Writing is the program's stdin and reading its stdout. The stream ends with the program, and destroying it closes the program's stdin.
 *
 * Writing never waits, so what is under way must be bounded by the writer's protocol, as by the windows of HTTP/2. Node's HTTP/2 does not read
 * while a write of its own waits: where both ends did so with both pipes full, neither would ever go on.
 */
export async function attachProgram(
  client: EngineClient,
  id: string,
  { onStderr, signal }: AttachRequest,
): Promise<Duplex> {
  const socket = await client.call(
    'attaching to a container',
    (abortSignal) =>
      client.docker
        .getContainer(id)
        .attach({ stream: true, stdin: true, stdout: true, stderr: true, hijack: true, abortSignal }),
    { signal },
  );
  return new ProgramStream(socket as Duplex, onStderr);
}

/** Takes the engine's frames off, without a queue of its own: who does not read stops the engine's connection, and that the program. */
class ProgramStream extends Duplex {
  readonly #socket: Duplex;

  constructor(socket: Duplex, onStderr: (bytes: Buffer) => void) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    const frames = new FrameReader();
    const end = (error: unknown) => this.destroy(error as Error);
    // Whoever reads it may come later than an error does; 'close' tells them as well.
    listenTo(this, {}, end);
    listenTo(
      socket,
      {
        data: (chunk: Buffer) => {
          for (const { stream, bytes } of frames.read(chunk)) {
            if (stream === 'stderr') onStderr(bytes);
            else if (!this.push(bytes)) socket.pause();
          }
        },
        end: () => this.push(null),
        error: end,
        // What was read but not yet asked for is not thrown away with a connection that ended well.
        close: () => {
          if (!socket.readableEnded) this.destroy();
        },
      },
      end,
    );
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#socket.write(chunk);
    done();
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.#socket.cork();
    for (const { chunk } of chunks) this.#socket.write(chunk);
    this.#socket.uncork();
    done();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
