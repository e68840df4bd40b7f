import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Keeps this process's memory small, and the traffic through it cheap. All bytes of sandboxes and models pass
 * through this process, in many short-lived buffers. Call this before any do.
 */
export function settleHeap(): void {
  // If the young generation may grow, it keeps 100 MB of such buffers.
  setFlagsFromString('--semi-space-growth-factor=1');
  // If the old generation may grow to several times its live size, it keeps that much of finished trials.
  setFlagsFromString('--optimize-for-size');
  // V8 would start to mark the old generation for every few megabytes of buffers, most of which are garbage
  // by then: 10 times for an answer of 64 MiB, more than half of the time that this process spends on it.
  // Marking the old generation at once, about once per answer, takes 20 ms.
  setFlagsFromString('--no-incremental-marking');
}

/** How many bytes may wait in memory to be freed. */
const freeEvery = 8 * 1024 * 1024;

let collect: NodeJS.GCFunction | undefined;

/**
 * Frees buffers that were read and dropped, each time 8 MiB of them wait, in about a millisecond. V8 looks
 * for young objects that are garbage when its own heap has grown by about a megabyte. The bytes of a buffer
 * are outside that heap, so while a long answer is read, V8 would keep 64 MB of its buffers before it looks.
 */
export class DroppedBuffers {
  #bytes = 0;

  /** A buffer of the given number of bytes is not needed any more. */
  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes < freeEvery) return;
    this.#bytes = 0;
    collect ??= collector();
    collect({ type: 'minor' });
  }
}

/** V8's own function. Only contexts that are made while the flag is set have it. */
function collector(): NodeJS.GCFunction {
  setFlagsFromString('--expose-gc');
  const found: NodeJS.GCFunction = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  return found;
}
