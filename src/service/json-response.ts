/**
 * Up to this many characters an answer is put together before it is sent; a longer one is sent as it is made.
 */
const joinedAtMost = 1024 * 1024;

/** The body of an answer that comes in pieces of one JSON text. */
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
