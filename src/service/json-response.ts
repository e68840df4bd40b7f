import { setImmediate } from 'node:timers/promises';

/** Text, or its bytes in UTF-8. */
export type Piece = string | Uint8Array;

/**
 * An answer of up to `joinedAtMost` bytes is built before it is sent. A longer one is sent while it is built,
 * in chunks of at least `chunkAtLeast` bytes.
 */
const joinedAtMost = 1024 * 1024;
const chunkAtLeast = 64 * 1024;

/** The sizes of pieces. A slow reader keeps one piece in memory. */
export const pieceSizes = {
  /** Characters of a text that is made while it is sent. */
  text: 64 * 1024,
  /** Bytes of a stored record. SQLite reads the whole record for each slice, so smaller ones take longer. */
  record: 4 * 1024 * 1024,
} as const;

/**
 * The body of an answer that is given as pieces of one JSON text. A piece is taken once its reader wants it,
 * and other requests are served between two chunks. If the reader goes away, the pieces end.
 */
export function bodyOf(pieces: Iterable<Piece>): Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.iterator]();
  const start = take(iterator, joinedAtMost);
  if (start.isEnd) return start.bytes;
  let next: Taken | undefined = start;
  return new ReadableStream(
    {
      async pull(controller) {
        next ??= take(iterator, chunkAtLeast);
        controller.enqueue(next.bytes);
        if (next.isEnd) controller.close();
        next = undefined;
        await setImmediate();
      },
      cancel() {
        iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

interface Taken {
  bytes: Uint8Array<ArrayBuffer>;
  isEnd: boolean;
}

/** The next pieces, until they have more than `most` bytes. */
function take(iterator: Iterator<Piece>, most: number): Taken {
  const taken: Uint8Array[] = [];
  for (let size = 0; size <= most; ) {
    const { done, value } = iterator.next();
    if (done) return { bytes: Buffer.concat(taken), isEnd: true };
    const bytes = typeof value === 'string' ? Buffer.from(value) : value;
    taken.push(bytes);
    size += bytes.length;
  }
  return { bytes: Buffer.concat(taken), isEnd: false };
}
