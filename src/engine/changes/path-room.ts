import { getHeapStatistics } from 'node:v8';
import { pathLists } from '../../bounds/sandbox.ts';
import { OffsiteError } from '../../offsite-error.ts';

/** With a small heap a list of a sandbox's paths may take this part of it. */
const heapPart = 1 / 32;
/** What a path takes beside its characters. */
const pathChars = 32;

/** The room for one list of paths: how many a sandbox has, and how long they are, is its agent's choice. */
export class PathRoom {
  #left = longestPathList();

  /** Takes room for a path, where there is some. */
  take(path: string): boolean {
    if (this.#left < path.length + pathChars) return false;
    this.#left -= path.length + pathChars;
    return true;
  }
}

/** Characters that a list of paths comes to at most. */
export function longestPathList(): number {
  return Math.min(pathLists.bytes.list, Math.floor(getHeapStatistics().heap_size_limit * heapPart));
}

/** For lists that are nothing unless they are whole. */
export function tooManyPaths(): OffsiteError {
  return new OffsiteError('A sandbox has more changes than are read.', {
    code: 'SANDBOX_UNWITNESSED',
    kind: 'infrastructure',
  });
}
