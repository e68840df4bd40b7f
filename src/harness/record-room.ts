import { getHeapStatistics } from 'node:v8';
import { harnessLines } from '../bounds/sandbox.ts';

/**
 * The maximum number of characters in the record of one conversation. With a small heap it is less: {@link
 * heapPart} of the heap.
 */
const recordedChars = harnessLines.bytes.recorded;
/**
 * Storing a trial keeps several copies of its record in memory, and several trials may be stored at a time.
 */
const heapPart = 1 / 64;
/** The characters that an entry counts for in addition to its texts. */
const entryChars = 200;

/**
 * The limit on what is recorded of a harness, over all turns of a conversation. The agent decides how much
 * its harness prints, so the record needs a limit.
 */
export class RecordRoom {
  #left = Math.min(recordedChars, Math.floor(getHeapStatistics().heap_size_limit * heapPart));

  /**
   * Reserves room for another entry with the given number of characters. Returns false if there is not
   * enough.
   */
  takeEntry(chars: number): boolean {
    return this.take(chars + entryChars);
  }

  /** Reserves room for more characters of an existing entry. Returns false if there is not enough. */
  take(chars: number): boolean {
    if (chars > this.#left) return false;
    this.#left -= chars;
    return true;
  }
}
