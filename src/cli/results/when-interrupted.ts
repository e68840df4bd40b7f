import { messageOf } from '../../base/offsite-error.ts';
import { text } from '../../text/printable.ts';
import type { Progress } from '../output/progress.ts';

/**
 * Saves results as soon as the signal aborts: a CI system that ends a job may kill this process before its
 * sandboxes are removed. Disposing ends that.
 *
 * @param save gets the signal's reason
 */
export function whenInterrupted(
  save: (reason: unknown) => void,
  signal: AbortSignal,
  progress: Pick<Progress, 'note'>,
): Disposable {
  const onAbort = () => saveIfPossible(() => save(signal.reason), progress);
  signal.addEventListener('abort', onAbort, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', onAbort) };
}

/** Saves the results of a command that is ending. Never throws: the first error decides the exit code. */
export function saveIfPossible(save: () => void, { note }: Pick<Progress, 'note'>): void {
  try {
    save();
  } catch (error) {
    note(text`cannot save the results so far: ${messageOf(error)}`);
  }
}
