import { defects } from '../bounds/anybody.ts';
import type { CrashCount } from '../ledger/crashes.ts';
import type { TrialResult } from '../trial/result.ts';

/** The result of a trial that its process came to its end with too often to be tried again; undefined of any other. */
export function crashedTooOften(
  { errors, deaths, detail }: CrashCount,
  now: number,
): TrialResult | undefined {
  if (errors < defects.count.crashes && deaths < defects.count.deaths) return undefined;
  const where = detail === undefined ? '' : `; please report ${detail}`;
  const message =
    errors >= defects.count.crashes
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
