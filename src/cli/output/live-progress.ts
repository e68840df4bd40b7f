import { createLogUpdate } from 'log-update';
import type { BatchEvent, BatchTrial } from '../../agent/run-batch.ts';
import type { PhaseName } from '../../record/trial-record.ts';
import type { Content, Output } from '../../text/output.ts';
import { ours, stack, styled, text } from '../../text/printable.ts';
import { keyOf, lineOf, nameOf } from './event-lines.ts';
import { duration } from './quantities.ts';

/** Shows a batch while it runs. Disposing removes the live lines and leaves the finished ones. */
export interface Progress extends Disposable {
  event(event: BatchEvent): void;
  note(message: Content): void;
}

/** Each running trial has a line at the bottom of the terminal, with its phase and time. */
export function liveProgress(stream: NodeJS.WriteStream, err: Output): Progress {
  const log = createLogUpdate(stream);
  const running = new Map<string, { trial: BatchTrial; phase: PhaseName; since: number }>();
  const draw = () => {
    const lines = [...running.values()].map(({ trial, phase, since }) => {
      const forMs = duration(Date.now() - since);
      return text`  ${styled('cyan', ours('…'))} ${nameOf(trial)}  ${phase} ${forMs}`;
    });
    log(err.shown(stack(lines)));
  };
  const ticking = setInterval(draw, 200);
  const printAbove = (content: Content) => {
    log.clear();
    err.print(content);
    draw();
  };
  return {
    event(event) {
      if (event.kind === 'phase') {
        const { trial, phase } = event;
        const key = keyOf(trial);
        running.set(key, { trial, phase, since: running.get(key)?.since ?? Date.now() });
      }
      if (event.kind === 'finished') running.delete(keyOf(event.trial));
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
