import type { ServerHttp2Stream } from 'node:http2';
import { Refusal } from './refusal.ts';

/** Bytes of one request, and of all that one sandbox has in flight: they are held, so that a request can be sent again. */
const largestBody = 80 * 1024 * 1024;
const mostInFlight = 256 * 1024 * 1024;

/** What a session's requests hold of this process's memory. */
export interface BodyRoom {
  held: number;
}

export interface HeldBody extends Disposable {
  bytes: Buffer;
}

/** Reads a request's body. Throws a {@link Refusal} (413) where it is too large; rejects where the client goes away. */
export async function readBody(stream: ServerHttp2Stream, room: BodyRoom): Promise<HeldBody> {
  const chunks: Buffer[] = [];
  let size = 0;
  const release = () => {
    room.held -= size;
    size = 0;
  };
  try {
    // The answer goes out by the same stream, so the end of reading must not destroy it.
    for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
      size += chunk.length;
      room.held += chunk.length;
      if (size > largestBody) throw tooLarge(`the body is larger than ${largestBody} bytes`);
      if (room.held > mostInFlight)
        throw tooLarge('the bodies of all requests in flight are too large together');
      chunks.push(chunk);
    }
  } catch (error) {
    release();
    throw error;
  }
  return { bytes: Buffer.concat(chunks), [Symbol.dispose]: release };
}

function tooLarge(message: string): Refusal {
  return new Refusal(413, 'REQUEST_TOO_LARGE', message);
}
