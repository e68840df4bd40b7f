import { getHeapStatistics } from 'node:v8';
import { pathLists } from '../bounds/sandbox.ts';
import { infrastructureError, type OffsiteError } from './offsite-error.ts';

/** On a small heap, a list of a sandbox's paths may take this fraction of it. */
const heapPart = 1 / 32;
/** The overhead of a path, counted as characters. */
const pathChars = 32;

/**
 * Bounds one list of paths: the agent in a sandbox chooses how many paths there are and how long they are.
 */
export class PathRoom {
  #left = longestPathList();

  /** Reserves room for a path; false if there is none left. */
  take(path: string): boolean {
    if (this.#left < path.length + pathChars) return false;
    this.#left -= path.length + pathChars;
    return true;
  }
}

/** The maximum length of a list of paths, in characters. */
export function longestPathList(): number {
  return Math.min(pathLists.bytes.list, Math.floor(getHeapStatistics().heap_size_limit * heapPart));
}

/** For lists that are useless unless complete. */
export function tooManyPaths(): OffsiteError {
  return infrastructureError('SANDBOX_UNWITNESSED', 'A sandbox has too many changes to read.');
}
