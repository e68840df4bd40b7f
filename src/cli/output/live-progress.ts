import { styleText } from 'node:util';
import { createLogUpdate } from 'log-update';
import type { PhaseName } from '../../trial/result.ts';
import { lineOf, nameOf } from './event-lines.ts';
import type { Progress } from './progress.ts';
import { duration } from './quantities.ts';

/** Each running trial has a line at the bottom of the terminal, with its phase and time. */
export function liveProgress(stream: NodeJS.WriteStream, redact: (text: string) => string): Progress {
  const log = createLogUpdate(stream);
  const running = new Map<string, { phase: PhaseName; since: number }>();
  const draw = () =>
    log(
      [...running]
        .map(
          ([name, { phase, since }]) =>
            `  ${styleText('cyan', '…')} ${name}  ${phase} ${duration(Date.now() - since)}`,
        )
        .join('\n'),
    );
  const ticking = setInterval(draw, 200);
  const printAbove = (line: string) => {
    log.clear();
    stream.write(`${redact(line)}\n`);
    draw();
  };
  return {
    event(event) {
      if (event.kind === 'phase') {
        const name = nameOf(event.trial);
        running.set(name, { phase: event.phase, since: running.get(name)?.since ?? Date.now() });
      }
      if (event.kind === 'finished') running.delete(nameOf(event.trial));
      const line = lineOf(event);
      if (line !== undefined) printAbove(line);
    },
    note: printAbove,
    [Symbol.dispose]() {
      clearInterval(ticking);
      log.clear();
      log.done();
    },
  };
}
