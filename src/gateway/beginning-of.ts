import { modelAnswers } from '../bounds/model.ts';

/**
 * Reads the first bytes of a body: as many as an error may have, or the first piece. `whole` still gives the
 * complete body.
 */
export async function beginningOf(source: AsyncIterable<Uint8Array>, most: 'judged' | 'first' = 'judged') {
  const iterator = source[Symbol.asyncIterator]();
  const chunks: Uint8Array[] = [];
  let size = 0;
  let ended = false;
  while (!ended && size < (most === 'first' ? 1 : modelAnswers.bytes.judgedError)) {
    const { done, value } = await iterator.next();
    if (done) ended = true;
    else {
      chunks.push(value);
      size += value.length;
    }
  }
  async function* whole(): AsyncGenerator<Uint8Array, void> {
    try {
      yield* chunks;
      while (!ended) {
        const { done, value } = await iterator.next();
        if (done) return;
        yield value;
      }
    } finally {
      await iterator.return?.();
    }
  }
  return { read: Buffer.concat(chunks), whole, discard: async () => void (await iterator.return?.()) };
}
