import type { Output } from '../../text/output.ts';
import { lineOf } from './event-lines.ts';
import type { Progress } from './live-progress.ts';

export interface ProgressOptions {
  /** Prints on the process's standard error. */
  err: Output;
  /** No live lines, even on a terminal. */
  plain: boolean;
}

/** Shows live lines on a terminal; otherwise prints one plain line when a trial ends. */
export async function openProgress({ err, plain }: ProgressOptions): Promise<Progress> {
  if (err.isTerminal && !plain) {
    const { liveProgress } = await import('./live-progress.ts');
    return liveProgress(process.stderr, err);
  }
  return {
    event(event) {
      const line = lineOf(event);
      if (line !== undefined) err.print(line);
    },
    note: (message) => err.print(message),
    [Symbol.dispose]: () => undefined,
  };
}
