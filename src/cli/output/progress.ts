import type { BatchEvent } from '../../agent/run-batch.ts';
import type { Content, Output } from '../../text/output.ts';
import { lineOf } from './event-lines.ts';

/** Shows a batch while it runs. Disposing takes the live lines away and leaves the finished ones. */
export interface Progress extends Disposable {
  event(event: BatchEvent): void;
  note(message: Content): void;
}

export interface ProgressOptions {
  /** Prints on the process's standard error. */
  err: Output;
  /** No live lines, even on a terminal. */
  plain: boolean;
}

/** Live lines on a terminal; elsewhere one plain line when a trial ends. */
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
