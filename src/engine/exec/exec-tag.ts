import type { RunningContainer } from '../container/running-container.ts';

/**
 * Every exec finds its number here, and so does all it starts, so that its processes can be told from
 * another's.
 */
export const EXEC_TAG = 'OFFSITE_EXEC';

/** How the processes of an exec are found again in its container. */
export interface TaggedExec {
  tag: string;
  user: string | undefined;
}

/** Takes the next number; it counts as running until disposed. */
export function tagExec(container: RunningContainer, user: string | undefined): TaggedExec & Disposable {
  container.execCount += 1;
  const tag = String(container.execCount);
  container.activeExecs.add(tag);
  return { tag, user: user ?? container.user, [Symbol.dispose]: () => container.activeExecs.delete(tag) };
}
