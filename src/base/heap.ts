import { setFlagsFromString } from 'node:v8';

/**
 * Keeps this process's memory small, and the traffic through it cheap. All bytes of sandboxes and models pass
 * through this process, in many short-lived buffers. Call this before any do, and after the program's code is
 * loaded: what that leaves behind is not garbage, and looking for garbage in it takes a fifth of a start.
 */
export function settleHeap(): void {
  keepYoungHeapSmall();
  // If the old generation may grow to several times its live size, it keeps that much of finished trials.
  setFlagsFromString('--optimize-for-size');
  // V8 would start to mark the old generation for every few megabytes of buffers, most of which are garbage
  // by then: 10 times for an answer of 64 MiB, more than half of the time that this process spends on it.
  // Marking the old generation at once, about once per answer, takes 20 ms.
  setFlagsFromString('--no-incremental-marking');
}

/** The part of {@link settleHeap} that must come before the code is loaded: what has grown stays large. */
export function keepYoungHeapSmall(): void {
  // If the young generation may grow, it keeps 100 MB of short-lived buffers.
  setFlagsFromString('--semi-space-growth-factor=1');
}
