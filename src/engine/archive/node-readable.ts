import { Readable } from 'node:stream';
import type { Pack } from 'tar-stream';

/**
 * An archive of tar-stream as a stream of Node. Its own kind of stream has no `readableEnded`, so a reader
 * that looks for the end takes a whole archive for a cut one. Destroying either destroys both.
 */
export function nodeReadable(archive: Pack): Readable {
  return Readable.from(archive, { objectMode: false });
}
