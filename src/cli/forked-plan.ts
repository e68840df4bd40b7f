import { openBatch } from '../agent/batch-run.ts';
import { type LeftOut, ledgerCassette } from '../agent/ledger-cassette.ts';
import type { RecordedExchange } from '../gateway/replay/cassette.ts';
import { findTarget, labelOf } from '../ledger/find-target.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { KnownKeys } from '../redaction/known-keys.ts';
import type { Config } from '../suite/config-file.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { findModel, type HarnessOffer, unknownModel } from '../suite/planned-variant.ts';
import { plural } from '../text/quantities.ts';
import { requireMapped, variantWith } from './forked-harness.ts';
import { trialNeeded } from './show/open-trial.ts';

interface Fork {
  /** The name of a trial, as findTarget reads it. */
  reference: string;
  /** How many requests of the trial get their recorded answers. */
  at: number;
  /** Who answers afterwards. */
  model: string;
  /** Another harness, and its profile. */
  harness?: string | undefined;
  profile?: string | undefined;
}

interface ForkParts {
  ledger: Ledger;
  config: Config;
  harnesses: readonly HarnessOffer[];
  keys: KnownKeys;
}

/**
 * The plan of one trial that begins like another one and continues with another model. Throws as
 * {@link findTarget}, {@link openBatch}, {@link variantWith} and {@link requireMapped} do, `MODEL_UNKNOWN`,
 * `OPTION_MISSING`, `NOT_RECORDED`, `FORK_TOO_LATE` and `FORK_UNPLANNED`.
 */
export function forkedPlan(fork: Fork, { ledger, config, harnesses, keys }: ForkParts): SuitePlan {
  const { reference, at, model, harness, profile } = fork;
  if (profile !== undefined && harness === undefined)
    throw refused('OPTION_MISSING', '--profile needs --harness', 'Add --harness, or remove --profile.');
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
  const { variant } = planned;
  const others = { config, harnesses, keys, meetsUser: planned.case.request.user !== undefined };
  const changed =
    harness === undefined
      ? { ...variant, name: `${variant.name}, then ${model}`, model, modelConfig }
      : variantWith({ variant, harness, profile, model }, others);
  if (at > 0) {
    const leftOut: LeftOut[] = [];
    const exchanges = recordedUpTo(ledger, batch, trial.key, { at, shown, leftOut });
    if (harness !== undefined) requireMapped(exchanges, leftOut, { at, shown });
  }
  const name = `${shown} of ${batch.id}, its first ${plural(at, 'request')}`;
  const forked = {
    trial: trial.key,
    name,
    at,
    ...(harness !== undefined && { fromHarness: variant.harness }),
  };
  return {
    ...plan,
    suite: { ...plan.suite, prompt: { kind: 'text', text: prompt } },
    trials: 1,
    cases: [planned.case],
    variants: [changed],
    trigger: undefined,
    replay: { batch: batch.key, name, live: 'at-end', fork: forked },
  };
}

/** The first recorded exchanges of a trial. Throws if it has fewer. */
function recordedUpTo(
  ledger: Ledger,
  batch: { key: number; id: string },
  key: number,
  { at, shown, leftOut }: { at: number; shown: string; leftOut: LeftOut[] },
): RecordedExchange[] {
  const parts = { ledger, leftOut: (_: string, exchange: LeftOut) => leftOut.push(exchange) };
  const { trials } = ledgerCassette(parts, batch, key);
  const all = trials.flatMap((one) => one.exchanges());
  if (all.length === 0)
    throw refused(
      'NOT_RECORDED',
      `${shown} kept no exchanges with its model`,
      'Set `record: full` for the model in offsite.yaml, and run it again.',
    );
  const last = all.at(-1)?.number ?? 0;
  if (at > last)
    throw refused(
      'FORK_TOO_LATE',
      `${shown} has no request ${at}: its last one that can be replayed is ${last}`,
      `Choose --at from 0 to ${last}; \`offsite show ${shown} --model\` lists the requests.`,
    );
  return all.filter(({ number }) => number <= at);
}

function refused(code: string, message: string, hint: string): OffsiteError {
  return new OffsiteError(message, { code, kind: 'input', hint });
}
