import { Duplex } from 'node:stream';
import { listenTo } from '../../base/foreign-traffic.ts';
import type { AttachRequest } from '../port/containers.ts';
import type { DockerClient } from './client.ts';
import { FrameReader } from './frame-reader.ts';

/**
 * Connects to the standard streams of a container's program. One round trip.
 *
 * By default writing never waits, so the writer's protocol must bound the bytes in flight, as the windows of
 * HTTP/2 do. Node's HTTP/2 does not read while its own write waits: if both ends wait with both pipes full,
 * neither continues.
 */
export async function attachProgram(
  client: DockerClient,
  id: string,
  { onStderr, waitsForReader, signal }: AttachRequest,
): Promise<Duplex> {
  const route = `POST /containers/${id}/attach?stream=true&stdin=true&stdout=true&stderr=true` as const;
  const socket = await client.hijack('attaching to a container', route, { signal });
  return new ProgramStream(socket, onStderr, waitsForReader);
}

/**
 * Removes the engine's frames. It has no queue of its own: if nobody reads, the connection to the engine
 * pauses, and then the program waits.
 */
export class ProgramStream extends Duplex {
  readonly #socket: Duplex;
  readonly #waits: boolean;

  constructor(socket: Duplex, onStderr: (bytes: Buffer) => void, waitsForReader = false) {
    super({ allowHalfOpen: false });
    this.#waits = waitsForReader;
    this.#socket = socket;
    const frames = new FrameReader();
    const end = (error: unknown) => this.destroy(error as Error);
    // An error may come before anybody listens; 'close' reports it too.
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
        // After a clean end, keep the bytes that were received but not read yet.
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

  // Node passes a single chunk to this too.
  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.#socket.cork();
    const last = chunks.at(-1);
    for (const each of chunks)
      this.#socket.write(each.chunk, this.#waits && each === last ? () => done() : undefined);
    this.#socket.uncork();
    if (!this.#waits) done();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
