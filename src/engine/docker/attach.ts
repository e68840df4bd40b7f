import { Duplex } from 'node:stream';
import { listenTo } from '../../foreign-traffic.ts';
import type { AttachRequest } from '../port/containers.ts';
import type { DockerClient } from './client.ts';
import { FrameReader } from './frame-reader.ts';

/**
 * Connects to the standard streams of a container's program. One round trip.
 *
 * Writing never waits, so the writer's protocol must bound what is in flight, as the windows of HTTP/2 do.
 * Node's HTTP/2 does not read while a write of its own waits: where both ends did so with both pipes full,
 * neither would ever continue.
 */
export async function attachProgram(
  client: DockerClient,
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

/**
 * Takes the engine's frames off, without a queue of its own: who does not read stops the engine's connection,
 * and that the program.
 */
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
