/**
 * An answer of up to this many characters is built before it is sent. A longer one is sent while it is built.
 */
const joinedAtMost = 1024 * 1024;

/** The body of an answer that is given as pieces of one JSON text. */
export function bodyOf(pieces: Iterable<string>): string | ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.iterator]();
  const start: string[] = [];
  for (let size = 0; size <= joinedAtMost; ) {
    const { done, value } = iterator.next();
    if (done) return start.join('');
    start.push(value);
    size += value.length;
  }
  const encoder = new TextEncoder();
  return new ReadableStream({
    start: (controller) => controller.enqueue(encoder.encode(start.join(''))),
    pull(controller) {
      const { done, value } = iterator.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    cancel() {
      iterator.return?.();
    },
  });
}
