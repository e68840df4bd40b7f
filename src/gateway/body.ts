import type { IncomingMessage } from 'node:http';
import { clientGone } from './client-gone.ts';
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
export function readBody(request: IncomingMessage, room: BodyRoom): Promise<HeldBody> {
  const { promise, resolve, reject } = Promise.withResolvers<HeldBody>();
  const chunks: Buffer[] = [];
  let size = 0;
  const release = () => {
    room.held -= size;
    size = 0;
  };
  const refuse = (error: Error) => {
    request.off('data', take).off('close', leave).pause();
    release();
    reject(error);
  };
  const take = (chunk: Buffer) => {
    size += chunk.length;
    room.held += chunk.length;
    if (size > largestBody) refuse(tooLarge(`the body is larger than ${largestBody} bytes`));
    else if (room.held > mostInFlight)
      refuse(tooLarge('the bodies of all requests in flight are too large together'));
    else chunks.push(chunk);
  };
  const leave = () => refuse(clientGone());
  request.on('data', take).once('close', leave);
  request.once('end', () => {
    request.off('close', leave);
    const [only, ...others] = chunks;
    const bytes = only && others.length === 0 ? only : Buffer.concat(chunks);
    resolve({ bytes, [Symbol.dispose]: release });
  });
  return promise;
}

function tooLarge(message: string): Refusal {
  return new Refusal(413, 'REQUEST_TOO_LARGE', message);
}
