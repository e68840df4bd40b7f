import { clamped } from '../intervals.ts';
import type { HarnessRun } from './runner.ts';

/**
 * A turn with all times within its span, in epoch milliseconds. A harness may report its own times, and the
 * agent may choose what it prints.
 */
export function withinSpan(run: HarnessRun, startedAt: number, finishedAt: number): HarnessRun {
  const moved = <Given extends object>(given: Given, names: readonly (keyof Given)[]): Given => {
    const times = names.flatMap((name) => {
      const at = given[name];
      return typeof at === 'number' ? [[name, clamped(at, startedAt, finishedAt)]] : [];
    });
    return { ...given, ...Object.fromEntries(times) };
  };
  return {
    ...run,
    trajectory: run.trajectory.map((entry) => moved(entry, ['startedAtMillis', 'finishedAtMillis'])),
    events: run.events.map((event) =>
      event.kind === 'tool' ? moved(event, ['at', 'finishedAt']) : moved(event, ['at']),
    ),
  };
}
