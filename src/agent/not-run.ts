import { defects } from '../bounds/anybody.ts';
import type { Clock } from '../clock.ts';
import type { TrialKey } from '../ledger/batches.ts';
import type { CrashCount } from '../ledger/crashes.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Cause, TrialResult } from '../trial/result.ts';
import type { Sandboxes } from '../trial/sandboxes.ts';
import type { TrialSpec } from '../trial/spec.ts';

/** Trials of one variant, in one batch, whose harness did not work, before the others are not run. */
const mostBroken = 3;

/** Lines of what a harness printed that a warning shows: the reason, and the end. */
const firstLines = 4;
const lastLines = 8;

/**
 * Whether a trial is not to be run, by what the ledger knows: so a batch that is resumed goes on as it was.
 */
export function isStopped(ledger: Ledger, trial: TrialKey): boolean {
  return ledger.trials.brokenHarnesses.count(trial) >= mostBroken;
}

/** The result of a trial that is not run. Gives up the sandbox that was begun for it. */
export function resultOfStopped(
  spec: TrialSpec,
  { clock, sandboxes }: { clock: Clock; sandboxes: Sandboxes },
): TrialResult {
  sandboxes.forget(spec);
  const now = clock.now();
  return {
    verdict: 'void',
    cause: {
      kind: 'harness',
      phase: 'harness',
      message: `not run: the variant was stopped after ${mostBroken} trials in which ${spec.harness} ended with an error before it asked its model anything`,
    },
    notRun: true,
    startedAt: now,
    finishedAt: now,
    phases: [],
    modelUnmeasured: false,
  };
}

/**
 * What a user is told of a trial whose harness did not work: at the first of a variant what to look at, and
 * when it is stopped.
 */
export function tellBrokenHarness(
  place: number,
  { harness, profile, model }: TrialSpec,
  cause: Cause | undefined,
): string | undefined {
  if (place === 1) {
    const printed = shown(cause?.output?.trim().split('\n') ?? []);
    const of = profile.name === undefined ? 'its profile' : `the profile ${profile.name}`;
    return [
      `warning: ${cause?.message}`,
      ...(printed.length > 0 ? ['it printed:', ...printed.map((line) => `  ${line}`)] : []),
      `such a trial is void, and no result of ${model}. Check install, version, args and env of ${of}, and the wire of the model`,
    ].join('\n');
  }
  if (place === mostBroken) {
    return `${harness} did not work in ${mostBroken} trials: the other trials of this variant are not run`;
  }
  return undefined;
}

function shown(lines: readonly string[]): readonly string[] {
  if (lines.length <= firstLines + lastLines) return lines;
  return [...lines.slice(0, firstLines), '…', ...lines.slice(-lastLines)];
}

/**
 * The result of a trial that its process came to its end with too often to be tried again; undefined of any
 * other.
 */
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
