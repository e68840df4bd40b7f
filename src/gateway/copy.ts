import { ByteStore } from '../byte-store.ts';

/** Bytes of an answer that are kept for the record. */
export const mostRecordedBytes = 64 * 1024 * 1024;

/** The copy of an answer, where the record is to have it. */
export interface AnswerCopy {
  /** What it holds. */
  readonly size: number;
  add(bytes: Buffer): void;
  /** What is too large is cut, and says so at its end. To be asked for once. */
  bytes(): Buffer;
}

export function copyOf(isKept: boolean): AnswerCopy {
  const store = new ByteStore();
  let size = 0;
  return {
    get size() {
      return store.size;
    },
    add(bytes) {
      size += bytes.length;
      if (isKept) store.add(bytes.subarray(0, mostRecordedBytes - store.size));
    },
    bytes() {
      const isCut = isKept && size > mostRecordedBytes;
      if (isCut) store.add(Buffer.from(`\n[cut: ${mostRecordedBytes} of ${size} bytes]`));
      return store.take();
    },
  };
}
