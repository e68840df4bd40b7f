import { ByteStore } from '../base/byte-store.ts';
import { modelAnswers } from '../bounds/model.ts';

/** The copy of an answer, if the record keeps it. */
export interface AnswerCopy {
  /** Bytes that it holds. */
  readonly size: number;
  add(bytes: Buffer): void;
  /** Returns the copy. One that is too large is cut, and its end says so. Call this once. */
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
      if (isKept) store.add(bytes.subarray(0, modelAnswers.bytes.recorded - store.size));
    },
    bytes() {
      const isCut = isKept && size > modelAnswers.bytes.recorded;
      if (isCut) store.add(Buffer.from(`\n[cut: ${modelAnswers.bytes.recorded} of ${size} bytes]`));
      return store.take();
    },
  };
}
