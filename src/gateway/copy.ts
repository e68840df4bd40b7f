/** Bytes of an answer that are kept for the record, and for who looks on. */
const mostRecorded = 64 * 1024 * 1024;
const mostObserved = 8 * 1024 * 1024;

/** The copy of an answer, as far as anybody wants one. */
export interface AnswerCopy {
  add(bytes: Buffer): void;
  /** What is too large is cut, and says so at its end. */
  bytes(): Buffer;
}

export function copyOf({ full, observed }: { full: boolean; observed: boolean }): AnswerCopy {
  const most = full ? mostRecorded : observed ? mostObserved : 0;
  const chunks: Buffer[] = [];
  let size = 0;
  return {
    add(bytes) {
      if (size < most) chunks.push(bytes.subarray(0, most - size));
      size += bytes.length;
    },
    bytes() {
      const said = size > most && most > 0 ? [Buffer.from(`\n[cut: ${most} of ${size} bytes]`)] : [];
      return Buffer.concat([...chunks, ...said]);
    },
  };
}
