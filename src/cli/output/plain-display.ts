import type { Clock } from '../../clock.ts';
import type { Output } from '../../text/output.ts';
import type { Printable } from '../../text/printable.ts';
import type { Display } from './display.ts';
import { heartbeat } from './heartbeat.ts';

export interface PlainParts {
  err: Output;
  clock: Clock;
  /** Says what is going on; undefined if nothing is. */
  lines(): Printable | undefined;
}

/** Prints plain lines, and says what is going on when nothing was printed for a while. */
export function plainDisplay({ err, clock, lines }: PlainParts): Display {
  const beating = heartbeat(clock, () => {
    const content = lines();
    if (content) err.print(content);
  });
  return {
    isLive: false,
    print(content) {
      err.print(content);
      beating.printed();
    },
    changed: () => undefined,
    [Symbol.dispose]: () => beating[Symbol.dispose](),
  };
}
