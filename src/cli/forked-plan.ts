import { openBatch } from '../agent/batch-run.ts';
import { ledgerCassette } from '../agent/ledger-cassette.ts';
import { findTarget, labelOf } from '../ledger/find-target.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { Config } from '../suite/config-file.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { findModel, unknownModel } from '../suite/planned-variant.ts';
import { plural } from '../text/quantities.ts';
import { trialNeeded } from './show/open-trial.ts';

interface Fork {
  /** The name of a trial, as findTarget reads it. */
  reference: string;
  /** How many requests of the trial get their recorded answers. */
  at: number;
  /** Who answers afterwards. */
  model: string;
}

/**
 * The plan of one trial that begins as another one did and goes on with another model. Throws as
 * {@link findTarget} and {@link openBatch} do, `MODEL_UNKNOWN`, `NOT_RECORDED` and `FORK_TOO_LATE`.
 */
export function forkedPlan({ reference, at, model }: Fork, ledger: Ledger, config: Config): SuitePlan {
  const target = findTarget(ledger.records, reference);
  if (target.kind !== 'trial') throw trialNeeded(target, 'a fork begins with one trial');
  const { batch, run, trial } = target;
  const shown = `${labelOf(run)}#${trial.ordinal}`;
  const modelConfig = findModel(model, config);
  if (!modelConfig)
    throw refused('MODEL_UNKNOWN', unknownModel(model, config), 'Name a model of offsite.yaml.');
  const { plan, prompt, runs } = openBatch(batch, ledger);
  const planned = runs.find(({ id }) => id === run.id);
  if (!planned)
    throw refused(
      'FORK_UNPLANNED',
      `${shown} of ${batch.id} was not planned on this machine`,
      'Fork a trial of a suite that `offsite run` ran.',
    );
  if (at > 0) requireRequests(ledger, batch, trial.key, { at, shown });
  const { variant } = planned;
  const name = `${shown} of ${batch.id}, its first ${plural(at, 'request')}`;
  return {
    ...plan,
    suite: { ...plan.suite, prompt: { kind: 'text', text: prompt } },
    trials: 1,
    cases: [planned.case],
    variants: [{ ...variant, name: `${variant.name}, then ${model}`, model, modelConfig }],
    trigger: undefined,
    replay: { batch: batch.key, name, live: 'at-end', fork: { trial: trial.key, name, at } },
  };
}

function requireRequests(
  ledger: Ledger,
  batch: { key: number; id: string },
  key: number,
  { at, shown }: { at: number; shown: string },
): void {
  const leftOut: string[] = [];
  const { trials } = ledgerCassette({ ledger, leftOut: (why) => leftOut.push(why) }, batch, key);
  const all = trials.flatMap((one) => one.exchanges());
  if (all.length === 0)
    throw refused(
      'NOT_RECORDED',
      `${shown} kept no exchanges with its model`,
      'Set `record: full` for the model in offsite.yaml, and run it again.',
    );
  const last = all.at(-1)?.number ?? 0;
  if (at <= last) return;
  throw refused(
    'FORK_TOO_LATE',
    `${shown} has no request ${at}: its last one that can be replayed is ${last}`,
    `Choose --at from 0 to ${last}; \`offsite show ${shown} --model\` lists the requests.`,
  );
}

function refused(code: string, message: string, hint: string): OffsiteError {
  return new OffsiteError(message, { code, kind: 'input', hint });
}
