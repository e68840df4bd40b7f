import { setFlagsFromString } from 'node:v8';

/**
 * Keeps this process's memory small, and what passes through it cheap. All bytes of sandboxes and models do
 * pass through, in many short-lived buffers; to be called before any do.
 */
export function settleHeap(): void {
  // A young heap that may grow keeps 100 MB of them.
  setFlagsFromString('--semi-space-growth-factor=1');
  // An old heap that may grow to several times what lives in it keeps as much of the trials that are over.
  setFlagsFromString('--optimize-for-size');
  // V8 would begin to mark the old heap for every few megabytes of buffers, most of which are gone by then:
  // 10 times for an answer of 64 MiB, more than half of the time that this process has for it. Marked at
  // once, and about once, the old heap takes 20 ms.
  setFlagsFromString('--no-incremental-marking');
}
