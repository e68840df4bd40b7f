import type { RunningContainer } from '../container/running-container.ts';

/**
 * The variable that holds an exec's number. Its children inherit it, which distinguishes its processes from
 * those of another exec.
 */
export const execTag = 'OFFSITE_EXEC';

/** Identifies the processes of an exec in its container. */
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
