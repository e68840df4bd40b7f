import type { IncomingMessage } from 'node:http';
import { modelRequests } from '../bounds/sandbox.ts';
import { ByteStore } from '../byte-store.ts';
import { heaviestDocument } from '../parse-json.ts';
import { Refusal } from './refusal.ts';
import type { Hold } from './room.ts';

/**
 * Reads a request's body, no faster than `hold` has room for it. Throws a {@link Refusal}: 413 where it is
 * too large, 503 where there is no room; rejects where the client goes away.
 */
export async function readBody(request: IncomingMessage, hold: Hold, signal: AbortSignal): Promise<Buffer> {
  // A larger body could not become a text, whatever it says.
  const largest = Math.min(modelRequests.bytes.body, Math.floor(heaviestDocument() / 4));
  const declared = Number(request.headers['content-length'] ?? 0);
  const store = new ByteStore();
  const makeRoom = async (bytes: number) => {
    if (bytes > largest) throw tooLarge(largest);
    const wait = hold.resize(bytes, signal);
    if (wait) await wait;
  };
  // All at once where the size is known, so that no two requests wait for each other with half of what they
  // need.
  await makeRoom(declared);
  // A refusal is answered on the same connection, which a destroyed request would close.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    await makeRoom(Math.max(declared, store.size + chunk.length));
    store.add(chunk);
  }
  return store.take();
}

function tooLarge(largest: number): Refusal {
  return new Refusal(413, 'REQUEST_TOO_LARGE', `the body is larger than ${largest} bytes`);
}
