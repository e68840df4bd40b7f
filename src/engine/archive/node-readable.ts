import { Readable } from 'node:stream';
import type { Pack } from 'tar-stream';

/**
 * Turns an archive of tar-stream into a stream of Node. tar-stream's own streams have no `readableEnded`, so
 * a reader that checks it would take a complete archive for one that was cut. Destroying either destroys
 * both.
 */
export function nodeReadable(archive: Pack): Readable {
  return Readable.from(archive, { objectMode: false });
}
