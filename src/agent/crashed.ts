import type { CrashCount } from '../ledger/crashes.ts';
import type { TrialResult } from '../trial/result.ts';

/** So often a trial may run when its process ends by an error that nobody expected. Then it is not tried again. */
export const mostCrashes = 2;

/**
 * So often a trial may run when its process dies without a word. More, since a machine that is switched off, or a person with `kill -9`, is
 * mostly why; yet a trial that exhausts the machine's memory leaves no word either.
 */
export const mostDeaths = 5;

/** The result of a trial that its process came to its end with too often to be tried again; undefined of any other. */
export function crashedTooOften(
  { errors, deaths, detail }: CrashCount,
  now: number,
): TrialResult | undefined {
  if (errors < mostCrashes && deaths < mostDeaths) return undefined;
  const where = detail === undefined ? '' : `; please report ${detail}`;
  const message =
    errors >= mostCrashes
      ? `Offsite itself failed ${errors} times while it ran this trial, which is not tried again${where}`
      : `Offsite's process died ${deaths} times while it ran this trial, which is not tried again`;
  return {
    verdict: 'void',
    cause: { kind: 'infrastructure', phase: 'sandbox', message },
    startedAt: now,
    finishedAt: now,
    phases: [],
    // What its attempts used went with their processes.
    modelUnmeasured: true,
  };
}
