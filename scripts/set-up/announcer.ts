import type { Clock } from '../../src/base/clock.ts';
import { type During, progress, progressLines } from '../../src/base/progress.ts';

/** How a script reports: lines, and long steps. */
export interface Announcer {
  log: (line: string) => void;
  during: During;
}

/**
 * On a terminal, a running step is one line that counts its seconds. Elsewhere it is a plain line from time
 * to time.
 */
export function announcer(output: NodeJS.WriteStream, clock: Clock): Announcer {
  if (!output.isTTY) {
    const log = (line: string) => void output.write(`${line}\n`);
    return { log, during: progressLines(log, clock) };
  }
  const replaceLine = (text: string) => void output.write(`\r\x1b[K${text}`);
  const during = progress(
    {
      everyMs: 1_000,
      begins: (title) => replaceLine(`${title} ...`),
      goesOn: (title, seconds) => replaceLine(`${title} ... ${seconds} s`),
      ends: (title, seconds, how) =>
        replaceLine(`${title}: ${how === 'done' ? 'done in' : 'failed after'} ${seconds} s\n`),
    },
    clock,
  );
  return { log: (line) => replaceLine(`${line}\n`), during };
}
