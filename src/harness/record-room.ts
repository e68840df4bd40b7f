import { getHeapStatistics } from 'node:v8';
import { harnessLines } from '../bounds/sandbox.ts';

/**
 * Characters that the record of one conversation holds at most. With a small heap it holds less: {@link
 * heapPart} of it.
 */
const recordedChars = harnessLines.bytes.told;
/** A record is there several times when its trial is stored, and several trials may be stored at a time. */
const heapPart = 1 / 64;
/** What an entry takes beside its texts. */
const entryChars = 200;

/**
 * The room for what a harness tells of itself, over all turns of a conversation: how much it says is its
 * agent's choice.
 */
export class RecordRoom {
  #left = Math.min(recordedChars, Math.floor(getHeapStatistics().heap_size_limit * heapPart));

  /** Takes the room for another entry with so many characters, where there is some. */
  takeEntry(chars: number): boolean {
    return this.take(chars + entryChars);
  }

  /** Takes the room for so many characters more of an entry that is there. */
  take(chars: number): boolean {
    if (chars > this.#left) return false;
    this.#left -= chars;
    return true;
  }
}
