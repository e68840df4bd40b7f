import type { Clock } from '../base/clock.ts';
import { defects } from '../bounds/anyone.ts';
import { spentMessage } from '../gateway/budget.ts';
import type { BudgetAccount } from '../gateway/gateway.ts';
import type { TrialKey } from '../ledger/batches.ts';
import type { CrashCount } from '../ledger/crashes.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Cause } from '../record/cause.ts';
import { recordVersion, type TrialRecord } from '../record/trial-record.ts';
import type { Sandboxes } from '../trial/prepare/sandboxes.ts';
import type { TrialSpec } from '../trial/spec.ts';

/**
 * If the harness did not work in this many trials of a variant in a batch, the variant's other trials do not
 * run.
 */
const mostBroken = 3;

/** How many first and last lines of a harness's output a warning shows: the reason, and the end. */
const firstLines = 4;
const lastLines = 8;

/**
 * Whether a trial must not run because its variant is stopped. Only the ledger decides this, so a resumed
 * batch decides the same.
 */
export function isStopped(ledger: Ledger, trial: TrialKey): boolean {
  return ledger.trials.brokenHarnesses.count(trial) >= mostBroken;
}

/**
 * The void result of a trial whose batch has no budget left when the trial begins; undefined for any other
 * trial. The trial is void because what other trials spent says nothing about its agent.
 */
export function resultWithoutBudget(
  spec: TrialSpec,
  parts: { clock: Clock; sandboxes: Sandboxes; budgets: { batch: BudgetAccount | undefined } },
): TrialRecord | undefined {
  const { batch } = parts.budgets;
  const asksModel = spec.modelConfig !== undefined && spec.replay === undefined;
  const spent = batch && asksModel ? spentMessage(batch, parts.clock) : undefined;
  if (spent === undefined) return undefined;
  return notRun(spec, parts, { kind: 'infrastructure', phase: 'sandbox', message: `not run: ${spent}` });
}

/** The result of a trial that does not run. Gives up the sandbox that was started ahead for it. */
export function resultOfStopped(spec: TrialSpec, parts: { clock: Clock; sandboxes: Sandboxes }): TrialRecord {
  const failure = `${spec.harness} ended with an error before it asked its model anything`;
  const message = `not run: the variant was stopped after ${mostBroken} trials in which ${failure}`;
  return notRun(spec, parts, { kind: 'harness', phase: 'harness', message });
}

function notRun(
  spec: TrialSpec,
  { clock, sandboxes }: { clock: Clock; sandboxes: Sandboxes },
  cause: Cause,
): TrialRecord {
  sandboxes.forget(spec);
  const now = clock.now();
  return {
    version: recordVersion,
    verdict: 'void',
    cause,
    notRun: true,
    startedAt: now,
    finishedAt: now,
    phases: [],
    modelUnmeasured: false,
  };
}

/**
 * The warning about a trial whose harness did not work; undefined if there is nothing new to say. The warning
 * about the first such trial of a variant says what to check, the last one that the variant is stopped.
 */
export function brokenHarnessWarning(
  position: number,
  { harness, profile, model }: TrialSpec,
  cause: Cause | undefined,
): string | undefined {
  if (position === 1) {
    const printed = shown(cause?.output?.trim().split('\n') ?? []);
    const of = profile.name === undefined ? 'its profile' : `the profile ${profile.name}`;
    const check = `Check install, version, args and env of ${of}, and the wire of the model`;
    return [
      `warning: ${cause?.message}`,
      ...(printed.length > 0 ? ['it printed:', ...printed.map((line) => `  ${line}`)] : []),
      `such a trial is void and says nothing about ${model}. ${check}`,
    ].join('\n');
  }
  if (position === mostBroken) {
    return `${harness} did not work in ${mostBroken} trials: the other trials of this variant are not run`;
  }
  return undefined;
}

function shown(lines: readonly string[]): readonly string[] {
  if (lines.length <= firstLines + lastLines) return lines;
  return [...lines.slice(0, firstLines), '…', ...lines.slice(-lastLines)];
}

/**
 * The void result of a trial that crashed Offsite too often to be tried again; undefined for any other trial.
 */
export function crashedTooOften(
  { errors, deaths, detail }: CrashCount,
  now: number,
): TrialRecord | undefined {
  if (errors < defects.count.crashes && deaths < defects.count.deaths) return undefined;
  const where = detail === undefined ? '' : `; please report ${detail}`;
  const message =
    errors >= defects.count.crashes
      ? `Offsite itself failed ${errors} times while it ran this trial; the trial is not tried again${where}`
      : `Offsite's process died ${deaths} times while it ran this trial; the trial is not tried again`;
  return {
    version: recordVersion,
    verdict: 'void',
    cause: { kind: 'infrastructure', phase: 'sandbox', message },
    startedAt: now,
    finishedAt: now,
    phases: [],
    // What its attempts used is lost with their processes.
    modelUnmeasured: true,
  };
}
