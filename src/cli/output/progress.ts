import type { BatchEvent } from '../../agent/batch.ts';
import { lineOf } from './event-lines.ts';

/** Shows a batch while it runs. Disposing takes the live lines away and leaves the finished ones. */
export interface Progress extends Disposable {
  event(event: BatchEvent): void;
  note(message: string): void;
}

export interface ProgressOptions {
  stream: NodeJS.WriteStream;
  /** No live lines, even on a terminal. */
  plain: boolean;
  /** Takes known secrets out of what is printed. */
  redact(text: string): string;
}

/** Live lines on a terminal; elsewhere one plain line when a trial ends. */
export async function openProgress({ stream, plain, redact }: ProgressOptions): Promise<Progress> {
  if (stream.isTTY && !plain) {
    const { liveProgress } = await import('./live-progress.ts');
    return liveProgress(stream, redact);
  }
  const print = (line: string) => stream.write(`${redact(line)}\n`);
  return {
    event(event) {
      const line = lineOf(event);
      if (line !== undefined) print(line);
    },
    note: print,
    [Symbol.dispose]: () => undefined,
  };
}
